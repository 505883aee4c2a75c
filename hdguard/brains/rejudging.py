"""What a trace's frames would have been said to be, had another calibration been in force.

A model's scores do not depend on its calibration, so a trace that keeps them can be judged again
without the model: to tune thresholds, or to repeat a run with those that were tuned.
"""

import msgspec

from hdguard.brains.base import BrainError
from hdguard.brains.calibration import Calibration, decide
from hdguard.brains.trace_format import BrainTrace, FastRow


def rejudged(row: FastRow, calibration: Calibration) -> FastRow:
    """The row with the light that its scores have under this calibration.

    A row without scores stays what it is: blind, late and crashed are not for a calibration to
    judge. Scores that mean no light are a failure.
    """
    scores = row.scored()
    if scores is None:
        return row
    light = decide(scores, calibration)
    if light is None:
        said = f"the labels have {scores.mass:.3f} of the probability"
        why = f"{said}, less than {calibration.least_mass:g}"
        return msgspec.structs.replace(row, light=None, blind=None, hazard=None, error=why)
    return msgspec.structs.replace(row, light=light.name.lower(), blind=None, error=None)


def rejudge(
    brain: BrainTrace[FastRow], calibration: Calibration, where: str = "trace"
) -> BrainTrace[FastRow]:
    """A whole brain's part of a trace under this calibration; latencies stay as recorded.

    Raises:
        BrainError: names `where`, which has a light without scores: nothing says what it would
            be now.
    """
    for video, rows in brain.videos.items():
        if bare := [row.t for row in rows if row.light is not None and row.scores is None]:
            raise BrainError(
                f"{where}: recorded by a brain that gives no scores: {video!r} at {bare[0]:.3f} s; "
                "a calibration has nothing to judge there"
            )
    videos = {v: [rejudged(row, calibration) for row in rows] for v, rows in brain.videos.items()}
    return BrainTrace(brain.latency, videos, brain.fingerprint)

"""Whether the brains load, and answer within their deadlines on this machine and these pictures."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from hdguard.brains.base import BrainError, Shot
from hdguard.brains.warmup import canaries
from hdguard.config import ConfigError
from hdguard.core.events import CannotSee
from hdguard.core.policy import HIGH_FPS, kill_after
from hdguard.core.types import FrameRef
from hdguard.doctor.findings import Finding, Status, fail, ok, warn
from hdguard.ingest.base import Frame, SourceError
from hdguard.seating import Seating
from hdguard.workers.base import FastSeat

MORE = "run `hdguard models` for what fits this machine"

HALTING = 3
"""Failures in a row after which a required brain halts the robot (DESIGN 3). For blindness it is a
choice: there 5 s of it do."""


async def check_brains(seating: Seating, frames: Sequence[Frame]) -> list[Finding]:
    """Load them all, hold their warm-ups against the deadlines, and show them the frames.

    Args:
        seating: the chosen brains, in realtime.
        frames: of the cameras, oldest first; where there are none, test pictures are shown.

    Raises:
        BrainError: one cannot be loaded.
        ConfigError: one's settings are wrong.
    """
    loop = asyncio.get_running_loop()
    start = loop.time()
    async with seating.crew() as crew:
        said = f"{', '.join(crew.fast)} loaded in {loop.time() - start:.1f} s"
        if crew.slow is not None:
            said += f", and {crew.slow.name} for reviews"
        try:
            seating.check_live(crew)
            found = [ok("brains", said)]
        except ConfigError as error:
            found = [fail("brains", f"{said}; {error}", MORE)]
        deadlines = {plan.name: seating.policy.deadline_of(plan) for plan in seating.policy.brains}
        required = {plan.name for plan in seating.policy.brains if plan.required}
        for name, seat in crew.fast.items():
            timed = await _timed(seat, frames, deadlines[name] or kill_after(0.0))
            lighter = timed.status is Status.FAIL and name not in required
            found.append(replace(timed, status=Status.WARN) if lighter else timed)
    return found


@dataclass(slots=True)
class _Tally:
    """What came of the pictures that a brain was shown: seconds, and answers of no help.

    Attributes:
        counts_blind: blindness counts; in test pictures the reflex, which needs motion, sees none.
        in_a_row: the longest run of useless and blind answers so far.
    """

    counts_blind: bool
    took: list[float] = field(default_factory=list)
    blind: list[str] = field(default_factory=list)
    useless: list[str] = field(default_factory=list)
    in_a_row: int = 0
    _run: int = 0

    def answered(self, seconds: float, *, useless: str = "", blind: str = "") -> None:
        """One more; both reasons empty: it was a verdict."""
        self.took.append(seconds)
        if useless:
            self.useless.append(useless)
        elif blind and self.counts_blind:
            self.blind.append(blind)
        else:
            self._run = 0
            return
        self._run += 1
        self.in_a_row = max(self.in_a_row, self._run)

    @property
    def hopeless(self) -> bool:
        """So little of it helps that the guard would halt, or never start."""
        without = len(self.useless) + len(self.blind)
        return self.in_a_row >= HALTING or 2 * without > len(self.took)


async def _timed(seat: FastSeat, frames: Sequence[Frame], deadline: float) -> Finding:
    """Show the brain each picture once, and hold its answers against the deadline."""
    step = f"brain {seat.name}"
    loop = asyncio.get_running_loop()
    tally = _Tally(counts_blind=bool(frames))
    for shot in _shots(seat, frames):
        start = loop.time()
        try:
            async with asyncio.timeout(kill_after(deadline)):
                answer = await seat.assess(shot)
        except TimeoutError:
            how = f"it would be killed and replaced: {MORE}"
            return fail(step, f"no answer in {kill_after(deadline):g} s", how)
        except BrainError as error:
            tally.answered(loop.time() - start, useless=str(error) or "no reason given")
        else:
            why = answer.reason or "no reason given" if isinstance(answer, CannotSee) else ""
            tally.answered(loop.time() - start, blind=why)
    return _said(step, tally, deadline)


def _said(step: str, tally: _Tally, deadline: float) -> Finding:
    took, useless, blind = tally.took, tally.useless, tally.blind
    worst, middle = max(took), sorted(took)[len(took) // 2]
    said = (
        f"{len(took)} pictures in {middle * 1e3:.0f} ms each, {worst * 1e3:.0f} ms at worst; "
        f"its deadline is {deadline * 1e3:.0f} ms"
    )
    if middle > deadline:
        return fail(step, said, MORE)
    if useless:
        worse = fail if tally.hopeless else warn
        said = f"{said}; {len(useless)} answers are of no use: {useless[-1]}"
        how = f"{HALTING} in a row halt the robot: look at its prompt and its model"
        return worse(step, said, how)
    if tally.hopeless:  # a camera's first picture alone shows the reflex nothing
        said = f"{said}; it could not see {len(blind)} of them: {blind[-1]}"
        return fail(step, said, "look at the camera's picture; blind for 5 s halts the robot")
    if worst > deadline:
        return warn(step, said, f"a late answer counts as failed: {MORE}")
    return ok(step, said)


def _shots(seat: FastSeat, frames: Sequence[Frame]) -> list[Shot]:
    """The frames as this brain wants them; one that cannot be converted is the camera's finding."""
    shots = []
    for frame in frames:
        try:
            shots.append(Shot(frame.ref, frame.image.rgb(seat.spec)))
        except SourceError:
            continue
    if shots:
        return shots
    pictures = canaries(seat.spec).values()
    return [
        Shot(FrameRef("doctor", n, n / HIGH_FPS, n / HIGH_FPS), rgb)
        for n, rgb in enumerate(pictures)
    ]

"""The table of faults as people read it; one line as soon as a row is finished."""

from hdguard.faults.rows import Outcome

_WIDTH = 68
HEAD = f"{'fault':{_WIDTH}} {'limit':>7} {'median':>7} {'worst':>7} {'n':>4}  verdict"


def line(outcome: Outcome) -> str:
    """A row; below it, why an injection failed, each reason once."""
    row = outcome.row
    times = " ".join(f"{_seconds(s):>7}" for s in (row.limit, outcome.median, outcome.worst))
    verdict = "ok" if outcome.ok else "NOT ok"
    if outcome.not_run:
        verdict = f"not run: {outcome.not_run}"
    text = f"{row.fault:{_WIDTH}} {times} {outcome.count:4}  {verdict}"
    reasons = dict.fromkeys(outcome.failures)
    return "\n".join([text, *(f"    {row.name}: {reason}" for reason in reasons)])


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"

"""Severity calibration: whether a brain that names a severity names the one on the label."""

from collections import Counter
from collections.abc import Iterable

from hdguard.replay.html_report.published import Published
from hdguard.replay.html_report.tables import NONE, Row, Table
from hdguard.replay.labels import SEVERITIES
from hdguard.replay.video_result import VideoResult

_ORDER = tuple(SEVERITIES)


def severity_counts(videos: Iterable[VideoResult]) -> Counter[str]:
    """How the warnings' severities compare with the labels, where both are known.

    Keys are underestimated, correct and overestimated.
    """
    counts: Counter[str] = Counter()
    for video in videos:
        said = video.warning.hazard.severity if video.warning else ""
        truth = video.annotated.severity
        if said in _ORDER and truth in _ORDER:
            off = _ORDER.index(said) - _ORDER.index(truth)
            counts["correct" if not off else "overestimated" if off > 0 else "underestimated"] += 1
    return counts


def severity_table(videos: Iterable[VideoResult], quoted: Published) -> Table | None:
    """The run beside the published methods; None if no warning names a severity."""
    counts = severity_counts(videos)
    n = counts.total()
    if not n:
        return None
    names = ("underestimated", "correct", "overestimated")
    rows = [Row("this run", (str(n), *(f"{100 * counts[x] / n:.1f}" for x in names)), "ours")]
    for row in quoted.severities:
        values = (getattr(row, x) for x in names)
        cells = (NONE if v is None else f"{v:.1f}" for v in values)
        rows.append(Row(row.method, (NONE, *cells), "quoted"))
    caption = (
        f"The severity that the warning names against the label, percent of the n warnings that "
        f"name one; beside {quoted.source}, Figure 5 ({quoted.status})"
    )
    return Table(caption, ("method", "n", *names), tuple(rows))

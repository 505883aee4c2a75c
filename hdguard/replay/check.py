"""`hdguard dataset check`: how much of the published data set is here, and what is wrong."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hdguard.replay.dataset import Dataset
from hdguard.replay.labels import DIMENSIONS, MEANINGS, PUBLISHED, PUBLISHED_TOTAL


@dataclass(frozen=True, slots=True)
class LabelCount:
    """How often a label stands in the truth files, and in the paper.

    Attributes:
        dimension: category, severity, difficulty or room.
        label: the label; empty counts videos without one.
        meaning: in words, where the label is a code.
        annotated: valid entries with key frames that carry it.
        present: those of them whose video is there and usable.
        published: the paper's count; None where it gives none.
    """

    dimension: str
    label: str
    meaning: str
    annotated: int
    present: int
    published: int | None


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What the check found.

    Attributes:
        dataset: what was checked; it holds the problems.
        annotated: valid entries with key frames.
        present: those of them whose video is there and usable: n of a replay.
        counts: by label; the paper's labels are all there, with 0 if need be.
    """

    dataset: Dataset
    annotated: int
    present: int
    counts: tuple[LabelCount, ...]

    @property
    def ok(self) -> bool:
        """Nothing is wrong. Fewer videos than were published, or unlisted ones, are not wrong."""
        return not self.dataset.problems


def check_dataset(dataset: Dataset) -> CheckReport:
    """Count a data set's labels."""
    annotated = [a for a in dataset.truth.annotations if not a.safe]
    counts: list[LabelCount] = []
    for dimension in DIMENSIONS:
        listed = Counter(str(getattr(a, dimension)) for a in annotated)
        present = Counter(str(getattr(e, dimension)) for e in dataset.annotated)
        meanings = MEANINGS[dimension]
        published: Mapping[str, int] = PUBLISHED.get(dimension, {})
        others = sorted(label for label in listed if label and label not in meanings)
        unlabelled = [""] if listed[""] else []
        counts += [
            LabelCount(
                dimension,
                label,
                meanings.get(label, ""),
                listed[label],
                present[label],
                published.get(label, 0) if published and label else None,
            )
            for label in (*meanings, *others, *unlabelled)
        ]
    return CheckReport(dataset, len(annotated), len(dataset.annotated), tuple(counts))


def render_check(report: CheckReport) -> RenderableType:
    """The report for a terminal or a pipe."""
    table = Table(title="videos with key frames, by label", title_justify="left")
    table.add_column("label", no_wrap=True)
    table.add_column("meaning", overflow="fold")
    for heading in ("annotated", "with video", "published"):
        table.add_column(heading, justify="right", no_wrap=True)
    for i, c in enumerate(report.counts):
        ends = i + 1 == len(report.counts) or report.counts[i + 1].dimension != c.dimension
        table.add_row(
            c.label or f"no {c.dimension}",
            c.meaning,
            str(c.annotated),
            str(c.present),
            "" if c.published is None else str(c.published),
            end_section=ends,
        )
    table.add_row("all", "", str(report.annotated), str(report.present), str(PUBLISHED_TOTAL))
    return Group(table, *(Text(line) for line in _remarks(report)))


def _remarks(report: CheckReport) -> list[str]:
    """What else there is, and all that is wrong, one line each."""
    dataset = report.dataset
    return [
        f"truth files: {', '.join(map(str, dataset.truth.files)) or 'none'}",
        f"safe videos: {len(dataset.safe)}",
        f"entries with is_valid false: {len(dataset.truth.invalid)}",
        f"unlisted videos, left out: {len(dataset.unlisted)}",
        *(f"  {path}" for path in dataset.unlisted),
        f"annotated videos absent: {len(dataset.absent)}",
        f"problems: {len(dataset.problems)}",
        *(f"  {p}{'' if p.left_out else ' (kept)'}" for p in dataset.problems),
    ]

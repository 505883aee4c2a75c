"""What a caller chooses about a report."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ReportSettings:
    """How a report is made.

    Attributes:
        dataset: where the videos are now; None: where the run says that they were.
        truth: the truth file, where several in the data set disagree.
        safe: further folders with videos of the run.
        stills: whether to decode pictures at the moment of warning.
        limit_videos: so many videos get a section of their own; None: all.
    """

    dataset: Path | None = None
    truth: Path | None = None
    safe: tuple[Path, ...] = ()
    stills: bool = True
    limit_videos: int | None = None

"""The published figures, read from the package's data file: typed in once, with their source.

They are shown beside a run and never mixed with it; nobody here has run those models.
"""

import tomllib
from importlib.resources import files

import msgspec
from msgspec import Struct

from hdguard.replay.labels import PUBLISHED_TOTAL
from hdguard.replay.scoring import Phase


class PublishedRow(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One method of the main table: percent, as printed.

    Attributes:
        n: videos that the shares are over, where it is not the benchmark's whole.
        notes: keys of `Published.notes`.
    """

    method: str
    hdr: float
    ewp: float
    premature: float
    optimal: float
    suboptimal: float
    irreversible: float
    missed: float
    wss: float
    n: int = PUBLISHED_TOTAL
    notes: tuple[str, ...] = ()

    @property
    def phases(self) -> dict[Phase, float]:
        """The share of each phase."""
        return {phase: float(getattr(self, phase.value)) for phase in Phase}


class PublishedLatency(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A point of the latency figure: seconds from end to end, and WSS."""

    method: str
    seconds: float
    wss: float


class PublishedSeverity(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a method's severities compare with the labels: percent; None is not printed."""

    method: str
    correct: float
    underestimated: float | None = None
    overestimated: float | None = None


class Published(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All that is quoted from the paper.

    Attributes:
        source: the paper.
        status: the words that stand beside every figure of it.
        n: videos of the whole benchmark.
        notes: footnotes by key: figures that disagree with each other.
    """

    source: str
    status: str
    n: int
    notes: dict[str, str]
    rows: tuple[PublishedRow, ...]
    latencies: tuple[PublishedLatency, ...]
    severities: tuple[PublishedSeverity, ...]


def published() -> Published:
    """What the package's data file says."""
    file = files("hdguard.replay") / "published" / "homesafe_bench.toml"
    return msgspec.convert(tomllib.loads(file.read_text(encoding="utf-8")), Published)

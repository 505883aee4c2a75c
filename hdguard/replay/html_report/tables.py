"""The report's tables of scores, as text in cells: what stands where, and with which footnote."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from hdguard.replay.baselines import Baseline
from hdguard.replay.html_report.published import Published
from hdguard.replay.intervals import Rate
from hdguard.replay.labels import DIMENSIONS, MEANINGS, PUBLISHED
from hdguard.replay.scoring import Phase, Summary
from hdguard.replay.summary import Figures, Latency, RunSummary, Spread

NONE = "–"
SCORES = ("n", "WSS", "HDR", "EWP", *(phase.value for phase in Phase))
STAGES = {
    "captured_to_sampled": "captured to sampled",
    "sampled_to_assessed": "sampled to assessed",
    "assessed_to_decided": "assessed to decided",
    "decided_to_delivered": "decided to delivered",
    "delivered_to_confirmed": "delivered to confirmed",
}


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a table.

    Attributes:
        name: the line's heading.
        cells: one for each column but the first.
        kind: "ours", "clock", "quoted" or "": what the line is marked as; "group" heads the lines
            below it and has no cells.
        notes: keys of footnotes.
    """

    name: str
    cells: tuple[str, ...]
    kind: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Table:
    """A table with its caption.

    Attributes:
        columns: begin with the heading of the lines' names.
        notes: keys of footnotes by column.
    """

    caption: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    notes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def scores_table(figures: Figures) -> Table:
    """The run by its three times, above what a clock scores on the same videos."""
    ours = [
        Row(f"by {when}", (*_cells(s), *_lead(s)), "ours") for when, s in by_time(figures).items()
    ]
    clocks = [
        Row(b.name, (*_cells(b.summary), *_lead(b.summary)), "clock") for b in figures.baselines
    ]
    return Table(
        "This run, and what a clock that never looks would score on the same videos "
        "(percent; lead: median seconds before the intervention deadline)",
        ("scored", *SCORES, "lead"),
        (*ours, *clocks),
    )


def comparison_table(figures: Figures, quoted: Published, own: Sequence[str]) -> Table:
    """The run beside the published methods, the best of them first.

    Args:
        figures: of this run.
        quoted: what was published.
        own: keys of the footnotes that all of this run's lines bear.
    """
    best = best_clock(figures.baselines)
    n = figures.issued.n
    rows = [Row(f"This run, n = {n}", (), "group")]
    rows += [
        Row(f"this run, {when}", _cells(s), "ours", (*_notes_of(when), *own))
        for when, s in by_time(figures).items()
    ]
    if best is not None:
        rows.append(Row(f"clock, {best.name}", _cells(best.summary), "clock", ("clock",)))
    rows.append(Row(f"{quoted.source}, {quoted.status}, n = {quoted.n}", (), "group"))
    for row in sorted(quoted.rows, key=lambda row: -row.wss):
        shares = (row.wss, row.hdr, row.ewp, *(row.phases[p] for p in Phase))
        n_as_known = str(row.n) if row.n == quoted.n else f"{row.n}?"  # follows from the shares
        cells = (n_as_known, *(f"{share:.2f}" for share in shares))
        rows.append(Row(row.method, cells, "quoted", row.notes))
    caption = f"This run beside {quoted.source}, Table 1 ({quoted.status}); percent"
    return Table(caption, ("method", *SCORES), tuple(rows), {Phase.MISSED.value: ("missed",)})


def _notes_of(when: str) -> tuple[str, ...]:
    return ("trigger",) if when == "trigger" else ()


def breakdown_tables(summary: RunSummary) -> list[tuple[str, Table]]:
    """One table for each kind of label that any video has, with the kind's name."""
    found = []
    for kind in DIMENSIONS:
        labels = summary.breakdowns.get(kind, {})
        if not any(labels):
            continue
        rows = tuple(Row(label_name(kind, x), _label_cells(kind, x, f)) for x, f in labels.items())
        caption = (
            f"By {kind} (percent; clock: at the best moment of each line for a clock that never "
            "looks, which is hindsight)"
        )
        found.append((kind, Table(caption, (kind, *_LABEL_COLUMNS), rows)))
    return found


_LABEL_COLUMNS = (
    "n",
    "n of the benchmark",
    "WSS trigger",
    "WSS issued",
    "WSS stopped",
    "HDR",
    "EWP issued",
    "WSS clock",
)


def label_name(kind: str, label: str) -> str:
    """A label with its meaning."""
    return " ".join(filter(None, (label, MEANINGS[kind].get(label, "")))) or "none given"


def _label_cells(kind: str, label: str, f: Figures) -> tuple[str, ...]:
    best = best_clock(f.baselines)
    total = PUBLISHED.get(kind, {}).get(label)
    return (
        str(f.issued.n),
        NONE if total is None else str(total),
        *(f"{s.wss:.2f}" for s in by_time(f).values()),
        f"{f.issued.hdr:.2f}",
        f"{f.issued.ewp:.2f}",
        NONE if best is None else f"{best.summary.wss:.2f}",
    )


def latency_table(latency: Latency, why_not: str) -> Table:
    """Where the time of the warnings went; `why_not` says why it was not measured, or is empty."""
    rows = [Row("captured to decided", _spread(latency), "ours")]
    rows += [Row(words, _spread(latency.stages[name])) for name, words in STAGES.items()]
    quoted = f"not to be quoted: {why_not}" if why_not else "realtime pace"
    columns = ("stage", "n", "mean", "p50", "p95", "p99")
    caption = f"Warning latency in seconds, of all warnings, false stops too ({quoted})"
    return Table(caption, columns, tuple(rows))


def rates_table(summary: RunSummary) -> Table:
    """How often the robot was stopped for nothing, with how little that says."""
    rows = (
        Row("false stops, on safe material", _rate(summary.false_stops_per_hour)),
        Row("fault halts, on all videos", _rate(summary.fault_halts_per_hour)),
    )
    columns = ("", "count", "hours watched", "per hour", "95 % interval")
    return Table("Stops without a danger", columns, rows)


def counts_table(caption: str, name: str, counts: Mapping[str, int]) -> Table:
    """Counts of something by kind, the most frequent first."""
    total = sum(counts.values())
    rows = (
        Row(kind.replace("_", " "), (str(n), f"{100 * n / total:.1f}"))
        for kind, n in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        if n
    )
    return Table(caption, (name, "count", "percent"), tuple(rows))


def by_time(figures: Figures) -> dict[str, Summary]:
    """The three times' figures, by name."""
    return {"trigger": figures.trigger, "issued": figures.issued, "stopped": figures.stopped}


def best_clock(clocks: Iterable[Baseline]) -> Baseline | None:
    """The fixed time that scores most, of equals the last; None where there are no videos."""
    return max(
        (c for c in reversed(list(clocks)) if c.at is not None and c.summary.n),
        key=lambda c: c.summary.wss,
        default=None,
    )


def _cells(s: Summary) -> tuple[str, ...]:
    if not s.n:
        return (str(s.n), *(NONE for _ in SCORES[1:]))
    return (
        str(s.n),
        *(f"{share:.2f}" for share in (s.wss, s.hdr, s.ewp, *(s.phases[p] for p in Phase))),
    )


def _lead(s: Summary) -> Sequence[str]:
    return (NONE if s.lead is None else f"{s.lead.median:+.2f}",)


def _spread(s: Spread) -> tuple[str, ...]:
    values = (s.mean, s.p50, s.p95, s.p99)
    return (str(s.n), *(NONE if x is None else f"{x:.3f}" for x in values))


def _rate(r: Rate) -> tuple[str, ...]:
    if r.rate is None:
        return (str(r.count), "0", NONE, NONE)
    return (str(r.count), f"{r.hours:.4f}", f"{r.rate:.2f}", f"{r.low:.2f} to {r.high:.2f}")

"""How a run and a scoring look on a terminal, or in the file that they are piped into.

Every table of scores carries n and what a clock would have scored. Nothing depends on colour, and
numbers stand in columns that are never shortened; names fold instead.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import IO

from rich import box
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from hdguard.replay.baselines import Baseline
from hdguard.replay.intervals import Rate
from hdguard.replay.predictions import PredictionScore, Scored
from hdguard.replay.results import Results, common_latency
from hdguard.replay.scoring import Phase, Summary
from hdguard.replay.summary import Figures, Latency, RunSummary, Spread
from hdguard.replay.video_result import TIMES, VideoResult, warning_time

WIDTH = 100  # columns; where the output has no width of its own
_PHASES = {
    Phase.PREMATURE: "prem.",
    Phase.OPTIMAL: "opt.",
    Phase.SUBOPTIMAL: "subopt",
    Phase.IRREVERSIBLE: "irrev.",
    Phase.MISSED: "missed",
}
_STAGES = {
    "captured_to_sampled": "captured to sampled",
    "sampled_to_assessed": "sampled to assessed",
    "assessed_to_decided": "assessed to decided",
    "decided_to_delivered": "decided to delivered",
    "delivered_to_confirmed": "delivered to confirmed",
}


def make_console(file: IO[str] | None = None) -> Console:
    """A console for reports, at least 100 columns wide.

    On a narrower terminal the lines wrap: that can still be read, half a number cannot.
    """
    console = Console(file=file, highlight=False, markup=False, emoji=False)
    console.width = max(WIDTH, console.width)
    return console


def print_run(console: Console, results: Results) -> None:
    """A run: per video, in total and by label, latency, rates, and what was not run."""
    summary = results.summary
    console.print(_videos_table(results.videos))
    console.print(_scores_table("all videos", _by_time(summary), summary.baselines))
    for group in _breakdown_tables(
        {d: {x: _run_rows(f) for x, f in by.items()} for d, by in summary.breakdowns.items()}
    ):
        console.print(group)
    console.print(_latency_table(summary.latency, str(results.run.get("pace", ""))))
    for line in (*_rate_lines(summary), *_remarks(results)):
        console.print(Text(line))
    damaged = [f"{v.video}: {p}" for v in results.videos for p in v.source.problems]
    _print_list(console, "damaged or odd files, used as far as they go", damaged)
    failed = [f"{video}: {why}" for video, why in summary.failed.items()]
    _print_list(console, "failed to run; counted as missed where annotated", failed)
    _print_list(console, "left out, not in n", results.left_out)


def print_comparison(console: Console, runs: Mapping[str, Results]) -> None:
    """Runs side by side, by the issued time; and their latency where each of them warned."""
    rows = [(name, results.summary.issued) for name, results in runs.items()]
    console.print(_scores_table("by the issued time", rows, []))
    common = common_latency({name: results.videos for name, results in runs.items()})
    table = _table()
    table.add_column("warning latency", overflow="fold", min_width=8)
    table.add_column("over", no_wrap=True)
    for name in ("n", "mean", "p50", "p95", "p99"):
        table.add_column(name, justify="right", no_wrap=True)
    for name, results in runs.items():
        pace = str(results.run.get("pace", ""))
        table.add_row(f"{name} ({pace})", "its warnings", *_spread_cells(results.summary.latency))
        table.add_row("", "common ones", *_spread_cells(common[name]), end_section=True)
    console.print(_titled("captured to decided, in seconds; common: where every run warned", table))


def print_predictions(console: Console, score: PredictionScore) -> None:
    """A predictions file's scores."""
    table = _table()
    table.add_column("video", overflow="fold")
    table.add_column("warned at s", justify="right", no_wrap=True)
    table.add_column("phase", no_wrap=True)
    table.add_column("score", justify="right", no_wrap=True)
    for v in score.videos:
        table.add_row(v.video, "-" if v.at is None else f"{v.at:.3f}", v.phase, f"{v.score:g}")
    console.print(_titled("per video", table))
    total = score.total
    console.print(_scores_table("all videos", [("predictions", total.summary)], total.baselines))
    for group in _breakdown_tables(
        {d: {x: _scored_rows(s) for x, s in by.items()} for d, by in score.breakdowns.items()}
    ):
        console.print(group)
    if score.safe:
        console.print(Text(f"false stops: {len(score.false_stops)} of {score.safe} safe videos"))
    _print_list(console, "warned of, though safe", score.false_stops)
    _print_list(console, "not predicted; counted as missed", score.unpredicted)
    _print_list(console, "problems", [str(p) for p in score.problems])


def _table() -> Table:
    """A table without colour whose lines survive a pipe."""
    return Table(header_style="", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)


def _titled(title: str, table: Table) -> Group:
    """A table below its title, which may be wider than the table."""
    return Group(Text(title), table)


def _videos_table(videos: Iterable[VideoResult]) -> Group:
    """One video a row: each time with its phase and score below it."""
    table = _table()
    table.add_column("video", overflow="fold", min_width=16)
    for when in TIMES:
        table.add_column(when, no_wrap=True, min_width=15)
    table.add_column("cause, brain", overflow="fold")
    table.add_column("fault halts", overflow="fold")
    for v in videos:
        table.add_row(
            v.video,
            *(_time_cell(v, when) for when in TIMES),
            "\n".join(filter(None, (v.warning.cause, v.warning.brain))) if v.warning else "",
            "\n".join(f"{h.at:.3f} {h.cause}" for h in v.fault_halts),
        )
    return _titled("per video: seconds of media time, phase and score", table)


def _time_cell(v: VideoResult, when: str) -> str:
    """When, and what it was worth."""
    t = warning_time(v.warning, when)
    time = "failed" if v.failed is not None else "no warning" if t is None else f"{t:.3f}"
    if v.phase is None or v.score is None:
        return f"{time}\nsafe material" if t is None else f"{time}\nFALSE STOP"
    return f"{time}\n{getattr(v.phase, when)} {getattr(v.score, when):g}"


def _scores_table(
    title: str, rows: Sequence[tuple[str, Summary]], clocks: Sequence[Baseline]
) -> Group:
    """Scores with the clock's below them."""
    table = _table()
    table.add_column("", overflow="fold", min_width=8)
    _add_score_columns(table)
    for name, summary in rows:
        table.add_row(name, *_cells(summary), end_section=name == rows[-1][0])
    for clock in clocks:
        table.add_row(clock.name, *_cells(clock.summary))
    return _titled(f"{title}: percent; lead before the intervention deadline in seconds", table)


_Rows = list[tuple[str, Summary, str]]


def _breakdown_tables(kinds: Mapping[str, Mapping[str, _Rows]]) -> Iterable[Group]:
    """One table per kind of label, unless no video has such a label."""
    for kind, labels in kinds.items():
        if not any(labels):
            continue
        table = _table()
        table.add_column(kind, overflow="fold", min_width=8)
        table.add_column("time", no_wrap=True)
        _add_score_columns(table, lead=False)
        table.add_column("clock", justify="right", no_wrap=True)
        for label, rows in labels.items():
            for i, (when, summary, clock) in enumerate(rows):
                name = "" if i else label or "none given"
                table.add_row(name, when, *_cells(summary, lead=False), clock)
        yield _titled(f"by {kind}: percent; `clock` is the WSS of the best fixed time", table)


def _by_time(f: Figures) -> list[tuple[str, Summary]]:
    """The three times' figures."""
    return [("trigger", f.trigger), ("issued", f.issued), ("stopped", f.stopped)]


def _run_rows(f: Figures) -> _Rows:
    """A label's rows in a run."""
    clock = _best_clock(f.baselines)
    return [(when, summary, clock) for when, summary in _by_time(f)]


def _scored_rows(s: Scored) -> _Rows:
    """A label's row in a scoring."""
    return [("given", s.summary, _best_clock(s.baselines))]


def _best_clock(clocks: Iterable[Baseline]) -> str:
    """The best fixed time's WSS."""
    return f"{max((c.summary.wss for c in clocks), default=0.0):.2f}"


def _add_score_columns(table: Table, *, lead: bool = True) -> None:
    """The columns that `_cells` fills."""
    names = ["n", "HDR", "EWP", "WSS", *_PHASES.values()]
    for name in [*names, "lead", "median"] if lead else names:
        table.add_column(name, justify="right", no_wrap=True)


def _cells(s: Summary, *, lead: bool = True) -> list[str]:
    """One row of figures."""
    shares = (s.hdr, s.ewp, s.wss, *(s.phases[p] for p in _PHASES))
    cells = [str(s.n), *(f"{share:.2f}" for share in shares)]
    if not lead:
        return cells
    return cells + (
        ["-", "-"] if s.lead is None else [f"{s.lead.mean:+.3f}", f"{s.lead.median:+.3f}"]
    )


def _latency_table(latency: Latency, pace: str) -> Group:
    """Where the time went."""
    table = _table()
    table.add_column("stage", no_wrap=True)
    for name in ("n", "mean", "p50", "p95", "p99"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_row("captured to decided", *_spread_cells(latency), end_section=True)
    for name, spread in latency.stages.items():
        table.add_row(_STAGES[name], *_spread_cells(spread))
    quotable = "" if pace == "realtime" else "; only the realtime pace's may be quoted"
    return _titled(f"warning latency: seconds, {pace or 'unknown'} pace{quotable}", table)


def _spread_cells(s: Spread) -> list[str]:
    """One row of a latency table."""
    values = (s.mean, s.p50, s.p95, s.p99)
    return [str(s.n), *("-" if x is None else f"{x:.3f}" for x in values)]


def _rate_lines(summary: RunSummary) -> list[str]:
    """False stops and fault halts per hour."""
    return [
        _rate_line("false stops, on safe material", summary.false_stops_per_hour),
        _rate_line("fault halts, on all videos", summary.fault_halts_per_hour),
    ]


def _remarks(results: Results) -> list[str]:
    """What else must be known to read the figures."""
    summary = results.summary
    causes = summary.warnings_by_cause
    lines = []
    if causes:
        counts = ", ".join(f"{cause} {n}" for cause, n in sorted(causes.items()))
        lines.append(f"warnings by cause: {counts}")
    if overdue := causes.get("review_overdue", 0):
        lines.append(f"  {overdue} of them for want of an answer: no brain judged a danger there")
    if failures := summary.verdicts.get("failed", 0):
        total = sum(summary.verdicts.values())
        lines.append(f"FastBrain answers that failed: {failures} of {total}")
    if summary.unconfirmed:
        lines.append(f"never confirmed, `stopped` is then a setting: {summary.unconfirmed}")
    keyframes = [v.annotated.keyframes for v in results.videos]
    if derived := sum(k is not None and k.deadline_derived for k in keyframes):
        lines.append(f"intervention deadlines not annotated, taken as PNR - 0.2 s: {derived}")
    return lines


def _rate_line(name: str, r: Rate) -> str:
    """A rate with its interval."""
    if r.rate is None:
        return f"{name}: nothing watched, so no rate"
    return (
        f"{name}: {r.count} in {r.hours:.4f} h, {r.rate:.2f} per hour "
        f"(95 % interval {r.low:.2f} to {r.high:.2f})"
    )


def _print_list(console: Console, title: str, lines: Sequence[str]) -> None:
    """A list of names, if there are any; paths are not broken, so that they can be copied."""
    if lines:
        console.print(Text(f"{title}: {len(lines)}"))
        for line in lines:
            console.print(Text(f"  {line}"), soft_wrap=True)

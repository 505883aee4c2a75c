"""How a tuning looks on a terminal: what may be quoted first, what may not named as such."""

from collections.abc import Iterator, Sequence
from statistics import fmean

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from hdguard.core.policy import Policy
from hdguard.replay.candidates import UNRECORDED
from hdguard.replay.cases import Recording
from hdguard.replay.intervals import Rate
from hdguard.replay.scoring import Phase
from hdguard.replay.tuning import Figures, Picked, Tuning

RECORD_WITH = (
    '{"format": "hdguard-calibration/1", "temperature": 100, "yellow": 1, "red": 1, '
    '"least_mass": 0}'
)
"""A calibration under which everything is GREEN: its run halts for nothing and records all."""


def print_tuning(console: Console, recording: Recording, found: Tuning) -> None:
    """The curve, what was chosen, what stands beside it, and what to be wary of."""
    for line in _head(recording, found):
        console.print(Text(line))
    console.print(Text(f"\nheld out, by the {found.by} time: percent, false stops per hour;"))
    console.print(Text("limit: premature at most, * the one asked for; folds: WSS from, to;"))
    console.print(Text("kept: folds where a choice kept the limits; in-sample WSS: do not quote"))
    console.print(_curve_table(found))
    console.print(Text("chosen on all videos, for use at each limit"))
    console.print(_choice_table(found))
    for line in _beside(found):
        console.print(Text(line))
    for line in warnings(recording, found):
        console.print(Text(f"note: {line}"), soft_wrap=True)
    if recording.left_out:
        console.print(Text(f"left out, not in n: {len(recording.left_out)}"))
        for line in recording.left_out:
            console.print(Text(f"  {line}"), soft_wrap=True)


def policy_lines(policy: Policy, picked: Picked) -> str:
    """The `[policy]` to copy into a configuration."""
    candidate = picked.choice.candidate
    return (
        f'[policy]\npreset = "{policy.name}"\n'
        f'review_overdue = "{candidate.review_overdue}"\n'
        f"review_deadline = {candidate.review_deadline}\n"
    )


def fitted_on(recording: Recording, found: Tuning) -> str:
    """What stands in the calibration file, for people."""
    point = found.asked
    n = point.held_out.scores.n
    return (
        f"{n} annotated videos and {len(recording.cases) - n} safe ones of {recording.brain}; "
        f"held-out WSS {point.held_out.scores.wss:.2f} over {len(point.fold_wss)} folds by the "
        f"{found.by} time, at most {point.limits.premature:g} % premature"
    )


def warnings(recording: Recording, found: Tuning) -> list[str]:
    """All that makes the figures worth less than they look."""
    return [*_about_recording(recording), *_about_choice(found)]


def _head(recording: Recording, found: Tuning) -> Iterator[str]:
    safe = sum(case.keyframes is None for case in recording.cases)
    slow = f", reviews of {recording.slow}" if recording.slow else ", no reviews"
    yield (
        f"{len(recording.cases) - safe} annotated and {safe} safe videos, recorded with "
        f"{recording.brain}{slow}"
    )
    yield (
        f"frame times: {recording.demuxed} read from the videos, "
        f"{len(recording.cases) - recording.demuxed} supposed at 10 FPS between recorded frames"
    )
    fit = found.fit
    bias = "" if not any(fit.bias) else f", bias {fit.bias[1]:+.2f} YELLOW {fit.bias[2]:+.2f} RED"
    yield (
        f"temperature {fit.temperature:.3f}{bias}: negative log-likelihood {fit.before:.3f} "
        f"before, {fit.nll:.3f} after, on {fit.frames} frames of all videos"
    )


def _curve_table(found: Tuning) -> Table:
    table = _table()
    table.add_column("limit", no_wrap=True)
    names = ("n", "WSS", "folds", "HDR", "EWP", "prem.", "stops/h", "kept", "in-sample")
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)
    for point in found.curve:
        star = " *" if point is found.asked else ""
        low, high = min(point.fold_wss), max(point.fold_wss)
        kept = sum(picked.kept for picked in point.by_fold)
        table.add_row(
            f"{point.limits.premature:g}{star}",
            *_cells(point.held_out, f"{low:.0f} to {high:.0f}"),
            f"{kept} of {len(point.by_fold)}",
            f"({point.in_sample.scores.wss:.2f})",
            end_section=point is found.curve[-1],
        )
    table.add_row("untuned", *_cells(found.untuned, ""), "", "")
    if found.clock is not None:
        s = found.clock.summary
        table.add_row(found.clock.name, str(s.n), f"{s.wss:.2f}", "", f"{s.hdr:.2f}")
    return table


def _choice_table(found: Tuning) -> Table:
    table = _table()
    names = ("limit", "temperature", "yellow", "red", "review overdue", "deadline s", "folds alike")
    for name in names:
        table.add_column(name, no_wrap=True)
    for point in found.curve:
        c = point.chosen.choice.candidate
        same = sum(picked.choice.candidate == c for picked in point.by_fold)
        table.add_row(
            f"{point.limits.premature:g}{' *' if point is found.asked else ''}",
            f"{point.chosen.choice.bend[0]:.3f}",
            f"{c.yellow:g}",
            f"{c.red:g}",
            c.review_overdue,
            f"{c.review_deadline:g}",
            f"{same} of {len(point.by_fold)}",
        )
    return table


def _beside(found: Tuning) -> Iterator[str]:
    point = found.asked
    yield (
        f"to quote: held-out WSS {point.held_out.scores.wss:.2f}, n = {point.held_out.scores.n}, "
        f"{len(point.fold_wss)} folds, mean of folds {fmean(point.fold_wss):.2f}"
    )
    yield f"in-sample, do not quote: WSS {point.in_sample.scores.wss:.2f}"
    yield _rate("false stops, held out", point.held_out.false_stops)
    yield f"fault halts, held out: {point.held_out.fault_halts}"
    r = found.reviews
    if r.asked:
        yield (
            f"reviews under the choice for use: {r.asked} asked, {r.answered} answered by the "
            f"trace ({r.borrowed} of them by an answer over 1 s older), {r.failed} by none, "
            f"{r.unrecorded} broken off when recorded"
        )


def _about_recording(recording: Recording) -> Iterator[str]:
    if not recording.fingerprint:
        yield (
            "the traces do not say which model they are of (no fingerprint): the calibration will "
            "be taken for any model"
        )
    if recording.sparse:
        yield (
            f"{recording.sparse} videos were recorded with over 0.5 s between frames, as an "
            "adaptive brain is in GREEN: a changed threshold would have seen more; record at 5 FPS "
            "with `adaptive = false`"
        )
    if any("recorded until" in line for line in recording.left_out):
        yield (
            "a run ends at its first danger halt; to record whole videos, run with a calibration "
            f"that never halts: {RECORD_WITH}"
        )
    if all(case.keyframes is not None for case in recording.cases):
        yield "no safe material: nothing is known about false stops, and their limit limits nothing"


def _about_choice(found: Tuning) -> Iterator[str]:
    if found.fit.at_its_end:
        yield (
            f"the temperature stopped at its limit, {found.fit.temperature:.3g}: the scores tell "
            "the labels apart without a mistake, or say nothing about them"
        )
    point = found.asked
    if not point.chosen.kept:
        yield "nothing that was tried keeps the limits; what breaks them least was chosen"
    premature = point.held_out.scores.phases[Phase.PREMATURE]
    if premature > point.limits.premature:
        yield f"held out, {premature:.2f} % are premature: more than the limit asked for"
    most, rate = point.limits.false_stops, point.held_out.false_stops.rate
    if most is not None and rate is not None and rate > most:
        yield f"held out, {rate:.2f} false stops per hour: more than the limit asked for"
    if point.held_out.scores.wss <= found.untuned.scores.wss:
        yield "held out, tuning is no better than the untuned brain"
    if found.clock is not None and point.held_out.scores.wss <= found.clock.summary.wss:
        yield "held out, this is no better than a clock"
    for video, why in found.failed.items():
        how = "is not judged" if why == UNRECORDED else "could not be run"
        yield f"{video} {how}, counted as missed: {why}"
    if UNRECORDED in found.failed.values():
        yield (
            "reviews were broken off when recorded, and nobody knows what they would have said: "
            "record with a longer --drain, and with a calibration that halts for nothing"
        )
    if any(why.endswith("late") for why in found.failed.values()):
        yield "answers came after the FastBrain's deadline: give --deadline as it was when recorded"


def _cells(figures: Figures, folds: str) -> Sequence[str]:
    s, rate = figures.scores, figures.false_stops.rate
    return (
        str(s.n),
        f"{s.wss:.2f}",
        folds,
        f"{s.hdr:.2f}",
        f"{s.ewp:.2f}",
        f"{s.phases[Phase.PREMATURE]:.2f}",
        "-" if rate is None else f"{rate:.2f}",
    )


def _rate(name: str, r: Rate) -> str:
    if r.rate is None:
        return f"{name}: no safe material watched, so no rate"
    return (
        f"{name}: {r.count} in {r.hours:.4f} h, {r.rate:.2f} per hour "
        f"(95 % interval {r.low:.2f} to {r.high:.2f})"
    )


def _table() -> Table:
    """Without colour, and with lines that survive a pipe."""
    return Table(header_style="", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)

"""One video's story on one axis: key frames, lights, reviews, the warning's three times.

The figure is the most of a report's time, so it is drawn by hand in one axes object, with as few
elements as tell the story.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hdguard.replay.html_report.labelling import rows_of_labels, text_width
from hdguard.replay.html_report.lights import Lights, Seen
from hdguard.replay.html_report.svg import COLOURS, inline_svg
from hdguard.replay.scoring import KeyFrames, Phase
from hdguard.replay.video_result import TIMES, VideoResult, warning_time

WIDTH = 480.0  # points
_LEFT, _RIGHT = 62.0, 68.0  # points beside the time axis; the last label stands on the right
_SIZE = 9.0  # points; the font's
_LINE = 11.5  # points from label to label
_LANE = 13.0  # points of a lane's bars
_STEP = 18.0  # points from lane to lane
_HOLDS = 1.0  # s; the last light of a brain is drawn no longer than this
_FRESH = 2.5  # s; past this age a verdict is stale at 1 FPS, so no light is drawn: it is not known
_NARROW = 1.0  # points; a narrower bar cannot be seen
_SAID = 40  # changes of a light that the description tells; an hour may have thousands
_GRAVITY = ("green", "yellow", "blind", "failed", "red")  # the last one is seen before the others

KEY_FRAMES = {
    "intent_onset": "onset",
    "intervention_deadline": "deadline",
    "pnr": "PNR",
    "impact_outcome": "impact",
    "action_end": "end",
}


@dataclass(frozen=True, slots=True)
class _Scale:
    """Media time in seconds to points."""

    end: float

    def x(self, t: float) -> float:
        return _LEFT + (WIDTH - _LEFT - _RIGHT) * t / self.end


def timeline_plot(key: str, video: VideoResult, lights: Lights | None) -> Markup:
    """The timeline of a video; without a journal there are no lights in it."""
    scale = _Scale(_end(video, lights))
    marks = _key_frame_marks(video.annotated.keyframes)
    warned = [(t, f"{w} {_seconds(t)}") for w in TIMES if (t := warning_time(video.warning, w))]
    above, below = _rows(scale, marks), _rows(scale, warned)
    lanes = _lanes(video, lights)
    # From below: the axis, the warning's labels, the lanes, the key frames' labels.
    first = 26.0 + _LINE * (max(below, default=-1) + 1)
    height = first + _STEP * len(lanes) + _LINE * (max(above, default=-1) + 1) + 6
    figure = Figure(figsize=(WIDTH / 72, height / 72))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, WIDTH), ylim=(0, height))
    axes.axis("off")
    _draw_axis(axes, scale, 18.0)
    top = first + _STEP * len(lanes)
    for n, (name, parts) in enumerate(reversed(lanes)):
        _draw_lane(axes, scale, first + _STEP * n, name, parts)
    for (t, text), row in zip(marks, above, strict=True):
        y = top + _LINE * row
        _draw_mark(axes, scale.x(t), (first, y + 8), text, COLOURS["ink"])
    for (t, text), row in zip(warned, below, strict=True):
        y = first - 10.0 - _LINE * row
        _draw_mark(axes, scale.x(t), (top - 3, y), text, COLOURS["accent"], down=True)
    return inline_svg(figure, key, f"Timeline of {video.video}", _words(video, lights))


_Parts = list[tuple[float, float, str, str]]  # from, to, colour, text


def _lanes(video: VideoResult, lights: Lights | None) -> list[tuple[str, _Parts]]:
    """Lanes from above, each with its bars."""
    lanes: list[tuple[str, _Parts]] = []
    end = _end(video, lights)
    if k := video.annotated.keyframes:
        lanes.append(("worth", _phase_bars(k)))
    if lights is not None:
        for brain, answers in lights.brains.items():
            point = end / (WIDTH - _LEFT - _RIGHT)
            lanes.append((brain, _visible(_light_bars(answers), _NARROW * point)))
        if lights.reviews:
            bars = [
                (r.asked, end if r.ended is None else r.ended, COLOURS["review"], r.outcome)
                for r in lights.reviews
            ]
            lanes.append(("reviews", bars))
    if video.fault_halts:
        faults = [
            (h.at, end if h.released_at is None else h.released_at, COLOURS["failed"], h.cause)
            for h in video.fault_halts
        ]
        lanes.append(("fault halt", faults))
    return lanes


def _phase_bars(k: KeyFrames) -> _Parts:
    """The windows of the scoring: what a warning there is worth."""
    edges = (k.intent_onset, k.intervention_deadline, k.pnr, k.impact_outcome)
    worth = ((Phase.OPTIMAL, "100"), (Phase.SUBOPTIMAL, "50"), (Phase.IRREVERSIBLE, "25"))
    bars: _Parts = [(0.0, edges[0], COLOURS[Phase.PREMATURE.value], "0")]
    start = edges[0]
    for (phase, text), edge in zip(worth, edges[1:], strict=True):
        if edge > start:  # a derived deadline may lie before the onset
            bars.append((start, edge, COLOURS[phase.value], text))
            start = edge
    return bars


def _light_bars(answers: Sequence[Seen]) -> _Parts:
    """Runs of the same light, each until the next answer or until it says nothing any more."""
    bars: _Parts = []
    for n, seen in enumerate(answers):
        end = answers[n + 1].at if n + 1 < len(answers) else seen.at + _HOLDS
        if n + 1 == len(answers) and n:
            end = seen.at + min(_HOLDS, seen.at - answers[n - 1].at)
        end = min(end, seen.at + _FRESH)
        if bars and bars[-1][3] == seen.kind and bars[-1][1] >= seen.at:
            bars[-1] = (bars[-1][0], end, bars[-1][2], seen.kind)
        else:
            bars.append((seen.at, end, COLOURS[seen.kind], seen.kind))
    return bars


def _visible(bars: _Parts, least: float) -> _Parts:
    """The same, no bar shorter than this; of those within one such length the gravest is drawn."""
    drawn: _Parts = []
    for start, end, colour, text in bars:
        begin = start
        if drawn and start < drawn[-1][1]:
            since, begin, _, before = drawn[-1]
            if begin - since <= least and _GRAVITY.index(text) > _GRAVITY.index(before):
                drawn[-1] = (since, begin, colour, text)
            if end <= begin:
                continue
        drawn.append((begin, max(end, begin + least), colour, text))
    return drawn


def _key_frame_marks(k: KeyFrames | None) -> list[tuple[float, str]]:
    if k is None:
        return []
    found = [(getattr(k, field), name) for field, name in KEY_FRAMES.items()]
    return sorted((t, f"{name} {_seconds(t)}") for t, name in found if t is not None)


def _end(video: VideoResult, lights: Lights | None) -> float:
    """Seconds that the axis covers: all that is known of the video."""
    k, w = video.annotated.keyframes, video.warning
    known = [1.0, video.watched]
    known += [k.impact_outcome, k.action_end or 0.0] if k else []
    known += [w.stopped] if w else []
    known += [h.released_at or h.at for h in video.fault_halts]
    if lights is not None:
        known += [r.ended or r.asked for r in lights.reviews]
    return 1.02 * max(known)


def _rows(scale: _Scale, marks: Sequence[tuple[float, str]]) -> list[int]:
    """In which row of labels each mark's label stands; they begin at their moment."""
    widths = [text_width(text, _SIZE) + 3 for _, text in marks]
    return rows_of_labels([scale.x(t) for t, _ in marks], widths)


def _seconds(t: float) -> str:
    """To 1 ms, as times are written, without idle zeros."""
    return f"{t:.3f}".rstrip("0").rstrip(".")


def _draw_axis(axes: Axes, scale: _Scale, y: float) -> None:
    step = next(s for s in (0.5, 1, 2, 5, 10, 30, 60, 300, 600, 1e9) if scale.end / s <= 12)
    axes.hlines(y, scale.x(0), scale.x(scale.end), color=COLOURS["muted"], lw=0.8)
    ticks = [n * step for n in range(int(scale.end / step) + 1)]
    axes.vlines([scale.x(t) for t in ticks], y - 3, y, color=COLOURS["muted"], lw=0.8)
    for t in ticks:
        text = f"{t:g} s" if t == 0 else f"{t:g}"
        axes.text(scale.x(t), y - 13, text, fontsize=8, ha="center", color=COLOURS["muted"])


def _draw_lane(axes: Axes, scale: _Scale, y: float, name: str, parts: _Parts) -> None:
    short = name if len(name) <= 10 else f"{name[:9]}…"
    axes.text(_LEFT - 6, y + 3, short, fontsize=_SIZE, ha="right")
    for start, end, colour, text in parts:
        x, wide = scale.x(start), scale.x(end) - scale.x(start)
        axes.broken_barh([(x, wide)], (y, _LANE), facecolors=colour)
        if text_width(text, 8.0) + 4 < wide:
            axes.text(x + wide / 2, y + 3.4, text, fontsize=8, ha="center", color=COLOURS["on-bar"])


def _draw_mark(
    axes: Axes, x: float, ys: tuple[float, float], text: str, colour: str, *, down: bool = False
) -> None:
    """A line through the lanes from the first height to the second, with a label at its end."""
    axes.vlines(x, min(ys), max(ys), color=colour, lw=1.2 if down else 0.9)
    weight = "bold" if down else "normal"
    y = ys[1] if down else ys[1] - 8.0
    axes.text(x + 3, y, text, fontsize=_SIZE, color=colour, fontweight=weight)


def _words(video: VideoResult, lights: Lights | None) -> str:
    """The same, for those who cannot see it."""
    marks = _key_frame_marks(video.annotated.keyframes)
    said = [f"{text} s" for _, text in marks] or ["safe material"]
    if video.warning is None:
        said.append("no warning")
    else:
        said += [f"{when} {getattr(video.warning, when):.3f} s" for when in TIMES]
    for brain, answers in (lights.brains if lights else {}).items():
        said.append(f"{brain}: {_told(_light_bars(answers))}")
    said += [f"fault halt {h.cause} at {h.at:.3f} s" for h in video.fault_halts]
    return "; ".join(said) + "."


def _told(bars: _Parts) -> str:
    """Lights in words, with the times at which none is known."""
    told = []
    for n, (start, end, _, text) in enumerate(bars[:_SAID]):
        gap = n + 1 < len(bars) and bars[n + 1][0] > end
        told.append(
            f"{text} from {start:.2f} s" + (f" to {end:.2f} s, then unknown" if gap else "")
        )
    more = len(bars) - len(told)
    return ", ".join(told) + (f", and {more} changes more" if more else "")

"""Latency against WSS: what seeing more costs in time, and what being quick costs in sight."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from hdguard.replay.html_report.labelling import place_beside
from hdguard.replay.html_report.svg import COLOURS, inline_svg

WIDTH, HEIGHT = 6.4, 3.6  # inches
_SIZE = 9.0  # points; the labels' font
_FLOOR = 0.01  # s; a trace without cost takes no time, and a logarithm has no zero


@dataclass(frozen=True, slots=True)
class Point:
    """A method's latency in seconds and WSS in percent; `ours` is this run's."""

    name: str
    seconds: float
    wss: float
    ours: bool = False


def latency_plot(key: str, title: str, points: Sequence[Point]) -> Markup:
    """Points with their names; seconds on a logarithmic axis."""
    figure = Figure(figsize=(WIDTH, HEIGHT))
    axes = figure.add_axes((0.09, 0.15, 0.88, 0.8))
    _scale(axes, points)
    shown = [(max(p.seconds, _FLOOR), p.wss) for p in points]
    for point, (x, y) in zip(points, shown, strict=True):
        colour = COLOURS["accent" if point.ours else "quoted"]
        axes.plot(x, y, "D" if point.ours else "o", color=colour, ms=8 if point.ours else 7)
    inches = figure.dpi_scale_trans.inverted()
    at = [(72 * p[0], 72 * p[1]) for p in inches.transform(axes.transData.transform(shown))]
    texts = [f"{p.name} {p.seconds:.2f} s" for p in points]
    for point, text, corner in zip(
        points, texts, place_beside(at, texts, _SIZE, 72 * WIDTH), strict=True
    ):
        axes.annotate(
            text,
            corner,
            xycoords="figure points",
            fontsize=_SIZE,
            fontweight="bold" if point.ours else "normal",
        )
    words = "; ".join(f"{p.name}: {p.seconds:.2f} s, WSS {p.wss:.2f}" for p in points)
    return inline_svg(figure, key, title, f"Further left is quicker, higher is better. {words}.")


def _scale(axes: Axes, points: Sequence[Point]) -> None:
    seconds = [max(p.seconds, _FLOOR) for p in points]
    axes.set_xscale("log")
    axes.set_xlim(10 ** math.floor(math.log10(min(seconds)) - 0.15), 10)
    if max(seconds) > 8:
        axes.set_xlim(right=2 * max(seconds))
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=20))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_ylim(0, max(30.0, 1.15 * max(p.wss for p in points)))
    axes.set_xlabel("latency in seconds, logarithmic")
    axes.set_ylabel("WSS in percent")
    axes.grid(visible=True, lw=0.6)

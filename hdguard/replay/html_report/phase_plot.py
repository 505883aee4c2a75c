"""Bars of phases: in which share of the videos a warning was too early, in time, or too late."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from hdguard.replay.html_report.svg import COLOURS, inline_svg
from hdguard.replay.scoring import Phase

WIDTH = 6.4  # inches of 72 points
_BAR = 0.27  # inches for each bar
_GAP = 0.8  # bars; above one with a heading
_ROOM_FOR_NUMBER = 5.5  # percent; a narrower part carries no number


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar: its shares in percent.

    Attributes:
        name: stands on its left.
        phases: percent by phase.
        ours: this run's; its name is set in bold.
        heading: stands above it, in a gap.
    """

    name: str
    phases: Mapping[Phase, float]
    ours: bool = False
    heading: str = ""


def phase_plot(key: str, title: str, bars: Sequence[Bar]) -> Markup:
    """Stacked bars, the first one on top."""
    top, bottom = 0.35, 0.45
    places = [n + _GAP * sum(bool(b.heading) for b in bars[: n + 1]) for n in range(len(bars))]
    height = top + bottom + _BAR * (places[-1] + 1)
    figure = Figure(figsize=(WIDTH, height))
    axes = figure.add_axes((0.245, bottom / height, 0.735, 1 - (top + bottom) / height))
    for place, bar in zip(places, bars, strict=True):
        left = 0.0
        for phase in Phase:
            share = bar.phases[phase]
            axes.barh(place, share, left=left, height=0.8, color=COLOURS[phase.value])
            if share >= _ROOM_FOR_NUMBER:
                axes.text(
                    left + share / 2,
                    place,
                    f"{share:.0f}",
                    ha="center",
                    va="center_baseline",
                    fontsize=8.5,
                    color=COLOURS["on-bar"],
                )
            left += share
    _label(axes, bars, places)
    description = "; ".join(f"{bar.name}: {_words(bar.phases)}" for bar in bars)
    return inline_svg(figure, key, title, f"Percent of the videos by phase. {description}.")


def _label(axes: Axes, bars: Sequence[Bar], places: Sequence[float]) -> None:
    axes.set_yticks(places, [bar.name for bar in bars])
    for place, bar in zip(places, bars, strict=True):
        axes.text(0, place - 0.75, bar.heading, fontsize=9, va="center", style="italic")
    for label, bar in zip(axes.get_yticklabels(), bars, strict=True):
        label.set_fontweight("bold" if bar.ours else "normal")
    axes.set_ylim(places[-1] + 0.55, -0.55)
    axes.set_xlim(0, 100)
    axes.set_xlabel("percent of the videos")
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    handles = [Patch(color=COLOURS[phase.value], label=phase.value) for phase in Phase]
    axes.legend(
        handles=handles,
        loc="lower left",
        bbox_to_anchor=(-0.33, 1.0),
        ncols=5,
        frameon=False,
        fontsize=9,
        handlelength=1.0,
        columnspacing=1.4,
        borderaxespad=0.2,
    )


def _words(phases: Mapping[Phase, float]) -> str:
    return ", ".join(f"{phase} {phases[phase]:.1f}" for phase in Phase)

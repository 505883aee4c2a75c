"""Latency against WSS, from a reflex in milliseconds to a model that thinks for a minute."""

from markupsafe import Markup

from hdguard.replay.html_report.latency_plot import Point, latency_plot
from hdguard.replay.html_report.published import published
from hdguard.replay.html_report.svg import drawing
from tests.replay.html_report.stories import described, texts

THEIRS = [Point(p.method, p.seconds, p.wss) for p in published().latencies]


def plotted(*ours: Point) -> Markup:
    with drawing():
        return latency_plot("key", "Latency", [*THEIRS, *ours])


def test_every_point_carries_its_name_and_its_seconds() -> None:
    said = texts(plotted(Point("this run", 0.46, 30.0, ours=True)))
    for name in ("HD-Guard 3.10 s", "MiniCPM-o-4.5 alone 3.07 s", "Qwen3-Omni 6.25 s"):
        assert name in said
    assert "this run 0.46 s" in said


def test_the_description_has_the_figures() -> None:
    words = described(plotted(Point("this run", 0.46, 30.0, ours=True)))
    assert "this run: 0.46 s, WSS 30.00" in words
    assert "HD-Guard: 3.10 s, WSS 24.94" in words


def test_a_run_without_cost_and_one_of_a_minute_are_both_on_the_plot() -> None:
    said = texts(plotted(Point("none", 0.0, 100.0, ours=True), Point("slow", 60.0, 1.0, ours=True)))
    assert "none 0.00 s" in said
    assert "slow 60.00 s" in said
    assert "100" in said  # the axes reach them

"""Bars of phases that say the same to everybody."""

from markupsafe import Markup

from hdguard.replay.html_report.phase_plot import Bar, phase_plot
from hdguard.replay.html_report.svg import drawing
from hdguard.replay.scoring import Phase
from tests.replay.html_report.stories import described, texts

OURS = Bar("this run", dict(zip(Phase, (20.0, 50.0, 20.0, 9.0, 1.0), strict=True)), ours=True)
THEIRS = Bar(
    "theirs", dict(zip(Phase, (90.0, 0.0, 0.0, 0.0, 10.0), strict=True)), heading="elsewhere"
)


def plotted(*bars: Bar) -> Markup:
    with drawing():
        return phase_plot("key", "Phases", bars)


def test_bars_carry_their_names_and_the_shares_that_have_room() -> None:
    said = texts(plotted(OURS, THEIRS))
    for word in ("this run", "theirs", "elsewhere", *Phase, "50", "9", "90", "10"):
        assert word in said
    assert "1" not in said  # a sliver has no room for its number


def test_the_description_tells_every_share() -> None:
    words = described(plotted(OURS, THEIRS))
    shares = "premature 20.0, optimal 50.0, suboptimal 20.0, irreversible 9.0, missed 1.0"
    assert f"this run: {shares}" in words
    assert "theirs: premature 90.0" in words


def test_one_bar_alone_is_a_plot() -> None:
    assert "this run" in texts(plotted(OURS))

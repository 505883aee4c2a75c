"""A video's story on one axis, whatever happened in it."""

from markupsafe import Markup

from hdguard.replay.html_report.lights import Lights, Review, Seen
from hdguard.replay.html_report.svg import drawing
from hdguard.replay.html_report.timeline_plot import timeline_plot
from hdguard.replay.results import FaultHalt, Outcome, VideoResult
from hdguard.replay.scoring import KeyFrames
from tests.replay.html_report.stories import described, hazard, safe, texts, warned

LIGHTS = Lights(
    "2026-01-01T00:00:00",
    {"reflex": [Seen(0.2 * n, "green" if n < 15 else "red") for n in range(18)]},
    [Review(3.0, 3.6, "danger")],
)


def plotted(video: VideoResult, lights: Lights | None = None) -> Markup:
    with drawing():
        return timeline_plot("v1", video, lights)


def test_key_frames_and_the_three_times_are_named_with_their_seconds() -> None:
    said = texts(plotted(hazard("a.mp4", warned(3.625))))
    for words in ("onset 3.3", "deadline 4.2", "PNR 4.4", "impact 5.1"):
        assert words in said
    for words in ("trigger 3.625", "issued 3.925", "stopped 4.425"):
        assert words in said


def test_lights_and_reviews_are_there_where_a_journal_is() -> None:
    said = texts(plotted(hazard("a.mp4", warned(3.4)), LIGHTS))
    for words in ("reflex", "green", "red", "reviews"):
        assert words in said
    without = texts(plotted(hazard("a.mp4", warned(3.4))))
    assert "reviews" not in without


def test_those_who_cannot_see_it_are_told_the_same() -> None:
    words = described(plotted(hazard("a.mp4", warned(3.4)), LIGHTS))
    assert "onset 3.3 s; deadline 4.2 s; PNR 4.4 s; impact 5.1 s" in words
    assert "trigger 3.400 s; issued 3.700 s; stopped 4.200 s" in words
    assert "reflex: green from 0.00 s, red from 3.00 s" in words


def test_safe_material_without_anything_is_still_a_timeline() -> None:
    svg = plotted(safe("quiet.mp4", Outcome(watched=3600.0)))
    assert "safe material; no warning" in described(svg)
    assert "3600" in texts(svg)


def test_a_fault_halt_that_never_ended_reaches_the_end() -> None:
    halts = (FaultHalt(at=1.0, cause="stale_verdict"), FaultHalt(at=0.1, cause="blind"))
    svg = plotted(hazard("a.mp4", Outcome(watched=8.0, fault_halts=halts)))
    assert "fault halt" in texts(svg)
    assert "fault halt stale_verdict at 1.000 s" in described(svg)


def test_a_derived_deadline_before_the_onset_draws_no_bar_backwards() -> None:
    odd = KeyFrames(3.3, 3.2, 3.4, 5.1, deadline_derived=True)
    said = texts(plotted(hazard("a.mp4", Outcome(), keyframes=odd)))
    assert "deadline 3.2" in said
    assert "100" not in said  # nothing is optimal


def test_times_that_fall_together_are_each_named() -> None:
    same = KeyFrames(2.0, 2.0, 2.0, 2.0, 2.0)
    said = texts(plotted(hazard("a.mp4", warned(2.0), keyframes=same)))
    for name in ("onset 2", "deadline 2", "PNR 2", "impact 2", "end 2"):
        assert name in said


def test_a_light_is_not_drawn_where_nobody_looked() -> None:
    """A GREEN of 1 s must not cover the 14 s in which the brain said nothing."""
    answers = [Seen(0.0, "green"), Seen(1.0, "green"), Seen(15.0, "green"), Seen(15.2, "green")]
    words = described(plotted(safe("a.mp4", Outcome(watched=16.0)), Lights("", {"b": answers})))
    assert "b: green from 0.00 s to 3.50 s, then unknown, green from 15.00 s." in words


def test_an_hour_costs_no_more_than_it_can_show_and_its_one_red_is_seen() -> None:
    kinds = ("green", "yellow")
    answers = [Seen(n / 5, "red" if n == 9001 else kinds[n % 2]) for n in range(18_000)]
    svg = str(plotted(safe("hour.mp4", Outcome(watched=3600.0)), Lights("", {"b": answers})))
    assert len(svg) < 60_000  # bytes
    assert "var(--red)" in svg
    assert "changes more" in svg


def test_what_is_wide_enough_is_drawn_as_it_was() -> None:
    svg = str(plotted(hazard("a.mp4", warned(3.4)), LIGHTS))
    assert svg.count("fill: var(--green)") == svg.count("fill: var(--red)") == 1

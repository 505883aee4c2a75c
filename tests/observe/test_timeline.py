"""The last minutes as letters: what a person sees at a glance must not be nicer than it was."""

from hdguard.core import events
from hdguard.core.types import FrameRef, Light
from hdguard.observe.timeline import MOST_HALTS, OF_LIGHTS, SECONDS, Row
from tests.observe.support import Watched


def shown(watched: Watched) -> dict[str, str]:
    report = watched.status.report()["timeline"]
    return {"state": report["state"], **report["lights"]}


def test_a_second_keeps_the_worst_of_it() -> None:
    row = Row(OF_LIGHTS)
    for at, letter in [(10.0, "G"), (10.1, "R"), (10.2, "G"), (11.0, "G")]:
        row.note(at, letter)
    assert row.text(11.5).endswith(" RG")


def test_seconds_in_which_nothing_was_decided_are_blank() -> None:
    row = Row(OF_LIGHTS)
    row.note(10.0, "G")
    row.note(13.0, "G")
    assert row.text(15.0).endswith("G  G  ")


def test_five_minutes_later_nothing_of_it_is_left() -> None:
    row = Row(OF_LIGHTS)
    row.note(10.0, "R")
    assert row.text(10.0 + SECONDS - 1).startswith("R ")
    assert row.text(10.0 + SECONDS) == " " * SECONDS
    row.note(10.0, "R")
    row.note(10_000.0, "G")  # the loop stood still for hours
    assert row.text(10_000.0) == " " * (SECONDS - 1) + "G"


def test_a_red_of_one_frame_and_its_halt_are_seen() -> None:
    watched = Watched()
    watched.starts()
    watched.step(events.DeadlineReached(), after=1.0)
    watched.sees(Light.RED)
    watched.sees(Light.GREEN)
    rows = shown(watched)
    assert (rows["kitchen"][-1], rows["state"][-1]) == ("R", "H")


def test_a_stale_camera_is_not_shown_as_green() -> None:
    watched = Watched()
    watched.starts()
    for _ in range(10):
        watched.step(events.DeadlineReached(), after=0.2)
    assert shown(watched)["kitchen"][-1] == "s"


def test_a_light_whose_verdict_is_old_is_not_shown_as_green_though_pictures_come() -> None:
    """Its brain hangs, or died."""
    watched = Watched()
    watched.starts()
    for number in range(10):
        watched.now += 0.2
        watched.step(events.FrameSeen(FrameRef("kitchen", 100 + number, watched.now, 0.0)))
        watched.step(events.DeadlineReached())
    assert shown(watched)["kitchen"][-1] == "s"


def test_the_states_of_a_start_and_of_a_review_are_told_apart() -> None:
    watched = Watched()
    watched.step(events.DeadlineReached(), after=0.2)
    assert shown(watched)["state"][-1] == "W"
    assert shown(watched)["kitchen"][-1] == "-"
    watched.now += 1.0
    watched.starts()
    watched.now += 0.2
    watched.sees(Light.YELLOW)
    watched.step(events.DeadlineReached(), after=0.2)
    assert shown(watched)["state"][-1] == "V"


def test_halts_tell_why_how_long_and_while_in_force_what_to_do() -> None:
    watched = Watched()
    watched.starts()
    watched.step(events.HaltRequested("anna"))
    (halt,) = watched.status.report()["timeline"]["halts"]
    assert (halt["halt_id"], halt["cause"], halt["lasted"]) == ("7-1", "operator", None)
    assert "asked by anna" in halt["because"]
    assert "hdguard reset 7-1" in halt["what_to_do"]
    for _ in range(3):
        watched.now += 0.2
        watched.sees(source="hall")
        watched.sees()
    watched.step(events.ResetRequested("7-1", "anna"))
    (halt,) = watched.status.report()["timeline"]["halts"]
    assert 0.5 < halt["lasted"] < 0.7
    assert halt["what_to_do"] == ""


def test_the_newest_halts_come_first_and_old_ones_go() -> None:
    watched = Watched()
    watched.starts()
    for number in range(1, MOST_HALTS + 3):
        watched.step(events.HaltRequested("anna"))
        for _ in range(3):
            watched.now += 0.2
            watched.sees()
        watched.step(events.ResetRequested(f"7-{number}", "anna"))
    halts = watched.status.report()["timeline"]["halts"]
    assert [halts[0]["halt_id"], halts[-1]["halt_id"]] == [f"7-{MOST_HALTS + 2}", "7-3"]

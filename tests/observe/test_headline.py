"""One sentence that tells whether the guard is watching."""

from hdguard.core import events
from hdguard.core.types import Hazard, Light
from tests.observe.support import Watched


def shown(watched: Watched) -> tuple[str, str]:
    report = watched.status.report()
    return report["mood"], report["headline"]


def ready() -> Watched:
    watched = Watched()
    watched.starts()
    watched.step(events.DeadlineReached(), after=0.2)
    return watched


def test_all_is_well() -> None:
    assert shown(ready()) == ("watching", "Watching; the robot may move at full speed.")


def test_while_it_starts_it_says_what_it_waits_for() -> None:
    mood, sentence = shown(Watched())
    assert mood == "not watching"
    assert sentence.startswith("Starting, not watching yet; the robot may not move: ")
    assert "kitchen has no fresh frame" in sentence


def test_while_it_starts_nothing_is_said_twice() -> None:
    watched = Watched()
    watched.step(events.DeadlineReached(), after=0.2)
    _, sentence = shown(watched)
    assert "kitchen has no fresh frame" in watched.status.report()["why"]
    assert sentence.count("kitchen has no fresh frame") == 1


def test_reduced_speed_has_its_reasons() -> None:
    watched = ready()
    watched.sees(Light.YELLOW)
    watched.step(events.DeadlineReached(), after=0.2)
    assert shown(watched) == (
        "careful",
        "Watching; the robot may move at reduced speed only: kitchen is YELLOW; thinker reviews "
        "kitchen.",
    )


def test_an_impaired_eye_is_a_reason_too() -> None:
    watched = ready()
    watched.step(events.BrainDown("second"))
    watched.step(events.DeadlineReached(), after=0.2)
    mood, sentence = shown(watched)
    assert mood == "careful"
    assert sentence.endswith("speed only: second is down.")


def test_a_guard_that_cannot_be_relied_on_is_not_called_watching() -> None:
    watched = ready()
    watched.step(events.LinkLost())
    watched.step(events.DeadlineReached(), after=0.2)
    assert shown(watched) == (
        "not watching",
        "Not watching as it should; the robot may not move: the broker does not return our "
        "permits.",
    )


def test_a_halt_comes_before_all_else() -> None:
    watched = ready()
    ref = watched.sees()
    hazard = Hazard(text="the pan burns.")
    watched.step(events.FastVerdict(ref, "reflex", Light.RED, hazard))
    watched.step(events.LinkLost())
    assert shown(watched) == (
        "halted",
        "The robot is halted: reflex saw danger on kitchen: the pan burns.",
    )

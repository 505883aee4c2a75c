"""A step is called by what matters most in it, and its words stand where people look for them."""

from hdguard.core.types import Hazard
from hdguard.runtime.decision_line import EVENT, HALT, INFO, LIGHT, WARNING, DecisionLine, of_hazard


def test_the_gravest_of_several_things_gives_its_name_and_its_level() -> None:
    line = DecisionLine()
    line.say(EVENT, "source lost", WARNING)
    line.say(HALT, "halt", INFO)
    line.say(LIGHT, "light changed", INFO)
    assert (line.name, line.level) == ("halt", WARNING)


def test_words_come_in_one_order_and_what_is_not_given_is_left_out() -> None:
    line = DecisionLine()
    line.say(EVENT, "x", why="later", speed="none", halt_id="7-1", brain=None, age=1 / 3)
    line.say(EVENT, "x", **of_hazard(Hazard(text="a pan on fire")))
    words = line.words(speed="full", state="halted")
    assert list(words) == ["halt_id", "state", "speed", "age", "why", "hazard"]
    assert (words["speed"], words["age"]) == ("none", 0.3333)


def test_a_line_about_nothing_has_no_name() -> None:
    assert DecisionLine().name == ""

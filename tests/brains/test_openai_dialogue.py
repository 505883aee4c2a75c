"""The requests of a review, as a server gets them, and what is taken from its answers."""

from collections.abc import Iterator

import pytest

from hdguard.brains.base import BrainError
from hdguard.brains.openai_client import Server
from hdguard.brains.openai_dialogue import BEGUN, Dialogue, described
from hdguard.brains.openai_server import ServerSettings, Stopwatch
from hdguard.brains.openai_wire import encode_jpeg, picture_part
from hdguard.brains.prompts import load_prompt
from hdguard.brains.warmup import canaries
from hdguard.core.types import ImageSpec
from tests.stub_server import Fault, Stub

RED = [picture_part(encode_jpeg(canaries(ImageSpec(28, 28))["red"], 90))]
THOUGHTS = "The hob is on, a cloth lies on it . I am sure ."
SOON = 0.3  # seconds that a request may take here


@pytest.fixture
def stub() -> Iterator[Stub]:
    with Stub() as stub:
        yield stub


def dialogue(stub: Stub, thinking: int = 50, *, switch: bool = True) -> Dialogue:
    server = Server(ServerSettings(url=stub.url, model="stub-vl"))
    return Dialogue(server, load_prompt("slow", {}), thinking, switch=switch)


def score(talk: Dialogue, thoughts: str = "") -> str:
    asked = talk.messages(RED, "2.40 s")
    return talk.score(asked, talk.begun(thoughts), Stopwatch(5.0))[0].token


def test_the_question_names_the_time_behind_the_pictures(stub: Stub) -> None:
    system, user = dialogue(stub).messages(RED, "2.40 s")
    assert (system["role"], user["role"]) == ("system", "user")
    assert user["content"][0] == RED[0]
    assert "2.40 s" in user["content"][1]["text"]


@pytest.mark.parametrize("fault", [None, "in reasoning", "no stop"])
def test_thoughts_are_taken_from_wherever_the_server_puts_them_and_end_where_they_end(
    stub: Stub, fault: Fault | None
) -> None:
    if fault is not None:
        stub.faults["think"] = fault
    talk = dialogue(stub)
    assert talk.think(talk.messages(RED, ""), 5.0) == THOUGHTS
    assert talk.begun(THOUGHTS) == f"<think>\n{THOUGHTS}\n</think>\n\n{BEGUN}"


@pytest.mark.parametrize("fault", ["hang", "hang in stream", "length"])
def test_thoughts_that_come_to_no_end_are_told_that_time_is_up(stub: Stub, fault: Fault) -> None:
    stub.faults["think"] = fault
    talk = dialogue(stub)
    thoughts = talk.think(talk.messages(RED, ""), SOON)
    assert thoughts.endswith("Time is up; decide on what has been seen so far.")
    assert thoughts.startswith("The hob") == (fault != "hang")


def test_a_server_that_fails_while_thinking_is_an_error(stub: Stub) -> None:
    stub.faults["think"] = 500
    talk = dialogue(stub)
    with pytest.raises(BrainError, match="answers 500"):
        talk.think(talk.messages(RED, ""), 5.0)


def test_a_choice_that_the_server_does_not_know_is_never_sent_again(stub: Stub) -> None:
    talk = dialogue(stub)
    stub.refuses = {"structured_outputs"}
    assert score(talk) == "danger"
    assert stub.bodies[-1]["guided_choice"] == ["danger", "safe"]
    stub.refuses |= {"guided_choice"}
    assert score(talk) == "danger"
    assert not {"structured_outputs", "guided_choice", "regex"} & set(stub.bodies[-1])
    refused = len(stub.asked)
    assert score(talk) == "danger"
    assert len(stub.asked) == refused + 1


def test_without_thoughts_the_template_is_told_so_if_it_may_be(stub: Stub) -> None:
    score(dialogue(stub, thinking=0))
    assert stub.bodies[-1]["chat_template_kwargs"] == {"enable_thinking": False}
    score(dialogue(stub, thinking=0, switch=False))
    score(dialogue(stub, thinking=50), THOUGHTS)
    assert not any("chat_template_kwargs" in body for body in stub.bodies[-2:])


def test_no_logprobs_name_the_server_and_what_to_set(stub: Stub) -> None:
    stub.faults["score"] = "no logprobs"
    with pytest.raises(BrainError, match=f'{stub.url} gives no logprobs.* answer = "text"'):
        score(dialogue(stub))


def test_a_danger_goes_on_with_its_category(stub: Stub) -> None:
    talk = dialogue(stub)
    pieces = list(talk.describe(talk.messages(RED, ""), talk.begun(THOUGHTS), 5.0))
    assert stub.bodies[-1]["messages"][-1]["content"].endswith(described(BEGUN))
    assert "".join(piece.words.text for piece in pieces).startswith('C3", "severity": "L4"')


def test_a_written_answer_that_stands_among_the_thoughts_is_found(stub: Stub) -> None:
    stub.faults["write"] = "in reasoning"
    talk = dialogue(stub)
    text, ended = talk.write(talk.messages(RED, ""), 5.0)
    assert '"verdict": "danger"' in text
    assert ended == "stop"


def test_a_written_answer_that_is_late_is_cut_off(stub: Stub) -> None:
    stub.faults["write"] = "hang"
    talk = dialogue(stub)
    assert talk.write(talk.messages(RED, ""), SOON) == ("", "length")

"""The FastBrain behind a server: the right light, or a reason in time, and never GREEN by fault."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from hdguard.brains.base import BrainError, Shot
from hdguard.brains.calibration import Calibration, write_calibration
from hdguard.brains.openai_fast import OpenAIFastBrain
from hdguard.brains.openai_server import SHOWN
from hdguard.core.events import CannotSee, FastVerdict
from hdguard.core.policy import kill_after
from hdguard.core.types import FrameRef, Light
from tests.stub_server import Fault, Stub

RED, GREEN, BOTH = (220, 20, 20), (20, 160, 20), (150, 150, 20)
SIZE = 56
DEADLINE = 0.5


@pytest.fixture
def stub() -> Iterator[Stub]:
    with Stub() as stub:
        yield stub


def brain(stub: Stub, **settings: Any) -> OpenAIFastBrain:
    plain = {"url": stub.url, "size": SIZE, "deadline": DEADLINE, **settings}
    return OpenAIFastBrain(msgspec.convert(plain, OpenAIFastBrain.Settings))


def shot(colour: tuple[int, int, int], seq: int = 0) -> Shot:
    y, x = np.mgrid[:SIZE, :SIZE] // 4 % 2  # something to see: a chessboard of the same mean
    rgb = (np.array(colour) + np.where(x == y, 12, -12)[..., None]).astype(np.uint8)
    return Shot(FrameRef("kitchen", seq, 100.0 + seq, float(seq)), rgb)


def light(judge: OpenAIFastBrain, colour: tuple[int, int, int]) -> Light:
    verdict = judge.assess(shot(colour))
    assert isinstance(verdict, FastVerdict)
    return verdict.light


def test_a_red_picture_is_red_and_a_green_one_green_and_between_is_yellow(stub: Stub) -> None:
    judge = brain(stub)
    assert [light(judge, c) for c in (RED, GREEN, BOTH)] == [Light.RED, Light.GREEN, Light.YELLOW]
    verdict = judge.assess(shot(RED, 7))
    assert isinstance(verdict, FastVerdict)
    assert (verdict.ref.seq, verdict.brain) == (7, "openai")
    assert verdict.scores is not None
    assert 0.8 < verdict.scores.mass < 1.0


def test_one_token_is_asked_for_and_every_sampling_field_is_said(stub: Stub) -> None:
    brain(stub).assess(shot(RED))
    body = stub.bodies[-1]
    assert body["max_tokens"] == 1
    assert (body["logprobs"], body["top_logprobs"]) == (True, 20)
    assert body["temperature"] == 0.0
    assert (body["top_p"], body["top_k"], body["min_p"]) == (1.0, -1, 0.0)
    assert body["repetition_penalty"] == 1.0
    assert (body["presence_penalty"], body["frequency_penalty"]) == (0.0, 0.0)
    assert body["chat_template_kwargs"] == {"enable_thinking": False}


def test_what_stands_before_the_picture_differs_from_frame_to_frame(stub: Stub) -> None:
    judge = brain(stub)
    for each in (shot(RED, 1), shot(RED, 2), shot(GREEN, 2)):
        judge.assess(each)
    users = [body["messages"][1]["content"] for body in stub.bodies[-3:]]
    assert len({user[1]["text"] for user in users}) == 3
    assert len({user[0]["text"] for user in users}) == 1  # the constant prefix comes first
    assert [part["type"] for part in users[0]] == ["text", "text", "image_url", "text"]


# At the start.


def test_it_is_ready_only_after_real_questions_about_pictures(stub: Stub) -> None:
    judge = brain(stub)
    assert stub.asked == ["models"] + ["fast"] * len(SHOWN)
    assert 0.0 < judge.warm_p99 < 5.0


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (500, "answers 500"),
        ("no logprobs", 'set answer = "text"'),
        ("nan", "no logarithms"),
        ("prose", "ignores pictures"),
        ("short list", "lists 1 tokens instead of 20"),
    ],
)
def test_a_server_that_lists_models_but_cannot_answer_is_not_ready(
    stub: Stub, fault: Fault | int, says: str
) -> None:
    stub.faults["fast"] = fault
    with pytest.raises(BrainError, match=says) as caught:
        brain(stub)
    assert stub.url in str(caught.value)


def test_a_server_that_answers_for_another_picture_is_not_ready(stub: Stub) -> None:
    stub.blind = True
    with pytest.raises(BrainError, match="answers for one before"):
        brain(stub)


@pytest.mark.parametrize("lags", [1, 2])
def test_a_server_that_answers_for_the_picture_before_is_not_ready(stub: Stub, lags: int) -> None:
    stub.lags = lags
    with pytest.raises(BrainError, match="answers for one before"):
        brain(stub)


def test_labels_that_the_server_never_says_are_refused(stub: Stub) -> None:
    with pytest.raises(BrainError, match="choose other labels"):
        brain(stub, labels="letters")


# Faults later on.

FAULTS: dict[Fault | int, str] = {
    "hang": "no answer within",
    "drip": "no answer within",
    429: "answers 429",
    500: "answers 500",
    "close": "server http",
    "garbage": "not what was asked for",
    "list": "not what was asked for",
    "wrong model": "answers as model",
    "no choices": "no choices",
    "no logprobs": "gives no logprobs",
    "nan": "no logarithms",
    "redirect": "answers 307",
    "prose": "says none of",
    "short list": "lists 1 tokens instead of 20",
}


@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_every_fault_is_a_reason_before_it_would_be_killed_and_the_next_frame_is_judged(
    stub: Stub, fault: Fault | int
) -> None:
    judge = brain(stub)
    stub.faults["*"] = fault
    started = time.perf_counter()
    with pytest.raises(BrainError, match=FAULTS[fault]) as caught:
        judge.assess(shot(GREEN))
    assert time.perf_counter() - started < kill_after(DEADLINE)
    assert (caught.value.scores is not None) == (fault == "prose")
    stub.faults.clear()
    assert light(judge, RED) is Light.RED


def test_the_answer_does_not_matter_where_its_probability_is_read(stub: Stub) -> None:
    judge = brain(stub)
    stub.faults["fast"] = "in reasoning"  # content is null
    assert light(judge, RED) is Light.RED


def test_a_server_that_is_gone_is_a_failure() -> None:
    with Stub() as stub:
        judge = brain(stub)
    with pytest.raises(BrainError, match="server http"):
        judge.assess(shot(GREEN))


# Answers in words.


def words(stub: Stub) -> OpenAIFastBrain:
    return brain(stub, answer="text", prompt="generate")


def test_a_server_without_logprobs_is_read_by_its_words(stub: Stub) -> None:
    stub.faults["*"] = "no logprobs"
    judge = words(stub)
    verdict = judge.assess(shot(RED))
    assert isinstance(verdict, FastVerdict)
    assert (verdict.light, verdict.hazard.text) == (Light.RED, "Fire.")
    assert verdict.scores is None
    assert light(judge, GREEN) is Light.GREEN
    assert "logprobs" not in stub.bodies[-1]


def test_a_server_whose_words_are_for_the_picture_before_is_not_ready(stub: Stub) -> None:
    stub.lags = 1
    with pytest.raises(BrainError, match=r"one picture is \w+, and shown again \w+"):
        words(stub)


@pytest.mark.parametrize("fault", ["prose", "in reasoning", "length"])
def test_words_that_are_no_light_are_a_failure(stub: Stub, fault: Fault) -> None:
    judge = words(stub)
    stub.faults["*"] = fault
    with pytest.raises(BrainError, match="unparsed answer"):
        judge.assess(shot(GREEN))


def test_words_are_read_for_the_colours_only(stub: Stub) -> None:
    with pytest.raises(msgspec.ValidationError, match=r"^labels: "):
        brain(stub, answer="text", labels="danger")


# Calibration.


def test_a_calibration_moves_the_light_and_holds_for_one_model_and_prompt_only(
    stub: Stub, tmp_path: Path
) -> None:
    plain = brain(stub)
    assert light(plain, BOTH) is Light.YELLOW
    path = tmp_path / "calibration.json"
    write_calibration(path, Calibration(fingerprint=plain.fingerprint, red=0.1))
    assert light(brain(stub, calibration=str(path)), BOTH) is Light.RED
    with pytest.raises(BrainError, match="run `hdguard tune` anew"):
        brain(stub, calibration=str(path), jpeg_quality=50)


def test_the_address_is_no_part_of_the_fingerprint(stub: Stub) -> None:
    with Stub() as other:
        assert brain(stub).fingerprint == brain(other).fingerprint
    assert brain(stub, thinking_switch=False).fingerprint != brain(stub).fingerprint


def test_an_answer_past_the_deadline_is_still_given_because_a_late_red_halts(stub: Stub) -> None:
    judge = brain(stub, deadline=0.001)
    assert light(judge, RED) is Light.RED


def test_a_covered_lens_is_not_shown_to_the_server(stub: Stub) -> None:
    judge = brain(stub)
    stub.asked.clear()
    dark = Shot(shot(GREEN).ref, np.full((SIZE, SIZE, 3), 9, np.uint8))
    assert isinstance(judge.assess(dark), CannotSee)
    assert stub.asked == []

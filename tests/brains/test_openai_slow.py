"""The SlowBrain behind a server: thoughts end in time, a token is the verdict, no fault is safe."""

import asyncio
import math
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from hdguard.brains.base import BrainError, Shot
from hdguard.brains.openai_slow import ROUNDS, OpenAISlowBrain
from hdguard.core.types import FrameRef, Hazard
from hdguard.workers.seats import WorkerSlowBrain
from hdguard.workers.supervisor import WorkerSettings
from tests.brains.test_openai_client import Cancelled, interrupted_when
from tests.stub_server import Fault, Stub

RED, GREEN = (220, 20, 20), (20, 160, 20)
SIZE = 56
DEADLINE = 1.0
TRIGGER = FrameRef("kitchen", 12, 112.0, 2.4)


@pytest.fixture
def stub() -> Iterator[Stub]:
    with Stub() as stub:
        yield stub


def plain(stub: Stub, **settings: Any) -> dict[str, Any]:
    return {"url": stub.url, "size": SIZE, "deadline": DEADLINE, "describe": 0.5, **settings}


def brain(stub: Stub, **settings: Any) -> OpenAISlowBrain:
    return OpenAISlowBrain(msgspec.convert(plain(stub, **settings), OpenAISlowBrain.Settings))


def window(colour: tuple[int, int, int]) -> tuple[Shot, ...]:
    """Three pictures; the newest decides."""
    colours = (GREEN, GREEN, colour)
    y, x = np.mgrid[:SIZE, :SIZE] // 4 % 2  # something to see: a chessboard of the same mean
    board = np.where(x == y, 12, -12)[..., None]
    return tuple(
        Shot(FrameRef("kitchen", n, 100.0 + n, 0.8 * n), (np.array(c) + board).astype(np.uint8))
        for n, c in enumerate(colours)
    )


def review(judge: OpenAISlowBrain, colour: tuple[int, int, int] = RED) -> bool:
    verdict = judge.review(5, TRIGGER, window(colour))
    assert verdict.review_id == 5
    return verdict.danger


def test_it_thinks_then_one_token_is_the_verdict_and_a_danger_is_described(stub: Stub) -> None:
    judge = brain(stub)
    stub.asked.clear()
    verdict = judge.review(5, TRIGGER, window(RED))
    assert stub.asked == ["think", "score", "describe"]
    assert verdict.danger
    assert verdict.hazard == Hazard("C3", "L4", "The cloth will burn.")
    assert not review(judge, GREEN)
    assert stub.asked[3:] == ["think", "score"]


def test_the_thoughts_are_put_back_before_the_begun_answer(stub: Stub) -> None:
    review(brain(stub))
    think, score = stub.bodies[-3], stub.bodies[-2]
    assert (think["stop"], think["max_tokens"]) == (["</think>"], 1024)
    assert think["temperature"] == 0.8
    assert score["messages"][:2] == think["messages"]
    assert score["messages"][2]["content"] == (
        '<think>\nThe hob is on, a cloth lies on it . I am sure .\n</think>\n\n{"verdict": "'
    )
    assert (score["continue_final_message"], score["add_generation_prompt"]) == (True, False)
    assert (score["max_tokens"], score["temperature"], score["logprobs"]) == (1, 0.0, True)
    assert score["structured_outputs"] == {"choice": ["danger", "safe"]}


def test_every_picture_stands_behind_its_own_time(stub: Stub) -> None:
    review(brain(stub))
    parts = stub.bodies[-2]["messages"][1]["content"]
    assert [part["type"] for part in parts] == ["text", "image_url"] * 3 + ["text"]
    assert [f"{t:.2f} s" in parts[2 * n]["text"] for n, t in enumerate((0.0, 0.8, 1.6))] == [
        True
    ] * 3
    assert "2.40 s" in parts[-1]["text"]


def test_without_thoughts_the_verdict_is_asked_for_at_once(stub: Stub) -> None:
    judge = brain(stub, thinking=0, describe=0.0)
    stub.asked.clear()
    assert review(judge)
    assert stub.asked == ["score"]
    assert stub.bodies[-1]["messages"][-1]["content"] == '{"verdict": "'
    assert stub.bodies[-1]["chat_template_kwargs"] == {"enable_thinking": False}


# Time.


@pytest.mark.parametrize("fault", ["hang", "drip", "hang in stream", "length"])
def test_thoughts_without_an_end_still_give_a_verdict_in_time(stub: Stub, fault: Fault) -> None:
    judge = brain(stub)
    stub.faults["think"] = fault
    started = time.perf_counter()
    assert review(judge)
    assert time.perf_counter() - started < DEADLINE
    begun = next(b for b in reversed(stub.bodies) if b.get("logprobs"))["messages"][-1]["content"]
    assert "Time is up" in begun
    assert ("The hob" in begun) == (fault in ("hang in stream", "length"))


def test_a_description_that_does_not_come_does_not_hold_up_the_verdict_for_long(
    stub: Stub,
) -> None:
    judge = brain(stub, describe=0.1)
    stub.faults["describe"] = "hang"
    started = time.perf_counter()
    assert judge.review(5, TRIGGER, window(RED)).hazard == Hazard(text="I am sure .")
    assert time.perf_counter() - started < DEADLINE / 2


@pytest.mark.parametrize("fault", [500, "garbage", "cut", "prose"])
def test_a_description_that_fails_costs_no_verdict(stub: Stub, fault: Fault | int) -> None:
    judge = brain(stub)
    stub.faults["describe"] = fault
    assert review(judge)


# What the server can do.


@pytest.mark.parametrize("fault", [None, "in reasoning"])
def test_a_server_that_cannot_go_on_from_a_begun_answer_writes_all_of_it(
    stub: Stub, fault: Fault | None
) -> None:
    stub.refuses = {"continue_final_message"}
    judge = brain(stub)
    if fault is not None:
        stub.faults["write"] = fault  # its parser finds no opening tag and calls all of it thoughts
    stub.asked.clear()
    verdict = judge.review(5, TRIGGER, window(RED))
    assert stub.asked == ["write"]
    assert verdict.danger
    assert verdict.hazard == Hazard("C3", "", "Fire.")
    assert not review(judge, GREEN)


def test_a_server_that_passes_over_the_begun_answer_is_found_out_at_the_start(stub: Stub) -> None:
    stub.faults["score"] = "prose"
    assert review(brain(stub))
    assert stub.asked[-1] == "write"


def test_words_can_be_had_from_the_start(stub: Stub) -> None:
    stub.faults["*"] = "no logprobs"
    assert review(brain(stub, answer="text"))


@pytest.mark.parametrize(
    ("fault", "says"),
    [(500, "answers 500"), ("no logprobs", 'set answer = "text"'), ("nan", "no logarithms")],
)
def test_a_server_that_cannot_answer_is_not_ready(
    stub: Stub, fault: Fault | int, says: str
) -> None:
    stub.faults["score"] = fault
    with pytest.raises(BrainError, match=says):
        brain(stub)


def test_a_server_that_answers_for_another_picture_is_not_ready(stub: Stub) -> None:
    stub.blind = True
    with pytest.raises(BrainError, match="answers for one before"):
        brain(stub)


@pytest.mark.parametrize("lags", [1, 2])
def test_a_server_that_answers_for_the_picture_before_is_not_ready(stub: Stub, lags: int) -> None:
    stub.lags = lags
    with pytest.raises(BrainError, match="answers for one before"):
        brain(stub)


def test_a_danger_that_the_list_may_hide_is_not_safe(
    stub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = brain(stub, threshold=0.1)
    likeliest = {"safe": 0.55} | {f"other {n}": 0.02 for n in range(19)}  # danger may be 0.07
    top = [{"token": token, "logprob": math.log(p)} for token, p in likeliest.items()]
    monkeypatch.setattr(Stub, "_top", lambda *_: top)
    assert review(judge, GREEN)


def test_a_verdict_that_is_never_among_the_likeliest_tokens_is_not_waited_for(
    stub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Stub._top

    def torn(*args: Any) -> list[dict[str, Any]]:
        """As where "danger" is two tokens."""
        return [
            form | {"token": form["token"].lower().replace("danger", "dan")} for form in real(*args)
        ]

    monkeypatch.setattr(Stub, "_top", torn)
    with pytest.raises(BrainError, match="danger is never among the likeliest tokens"):
        brain(stub, least_mass=0.0)


def test_the_least_time_of_a_review_is_that_of_a_full_window_without_thoughts(stub: Stub) -> None:
    judge = brain(stub)
    assert 0.0 < judge.warm_p99 < 5.0
    windows = stub.bodies[-ROUNDS:]
    shown = [[p["text"] for p in b["messages"][1]["content"][:-1:2]] for b in windows]
    assert [len(texts) for texts in shown] == [24] * ROUNDS
    assert len({text for texts in shown for text in texts}) == 24 * ROUNDS  # none seen before
    assert all("Time is up" in b["messages"][-1]["content"] for b in windows)


def test_a_server_that_takes_fewer_pictures_is_found_out_at_the_start(stub: Stub) -> None:
    stub.most_pictures = 8
    with pytest.raises(BrainError, match=r"a window of 24 pictures.*set pictures to as many"):
        brain(stub)
    judge = brain(stub, pictures=2)
    assert review(judge)
    parts = stub.bodies[-1]["messages"][1]["content"]
    assert sum(part["type"] == "image_url" for part in parts) == 2


# Nothing to see.


def test_a_covered_lens_is_never_safe_and_no_question(stub: Stub) -> None:
    judge = brain(stub)
    stub.asked.clear()
    dark = Shot(TRIGGER, np.full((SIZE, SIZE, 3), 9, np.uint8))
    with pytest.raises(BrainError, match="nothing can be seen in the newest picture: dark"):
        judge.review(5, TRIGGER, (*window(GREEN), dark))
    assert stub.asked == []


# Faults.

FAULTS: list[tuple[str, Fault | int, str]] = [
    ("*", "hang", "no answer within"),
    ("score", "hang", "no answer within"),
    ("score", "drip", "no answer within"),
    ("think", 429, "answers 429"),
    ("think", 500, "answers 500"),
    ("think", "close", "server http"),
    ("think", "cut", "server http"),
    ("think", "stop early", "broke off"),
    ("think", "wrong model", "answers as model"),
    ("think", "error in stream", "engine is dead"),
    ("think", "redirect", "answers 307"),
    ("score", 500, "answers 500"),
    ("score", "garbage", "not what was asked for"),
    ("score", "wrong model", "answers as model"),
    ("score", "no choices", "no choices"),
    ("score", "no logprobs", "gives no logprobs"),
    ("score", "nan", "no logarithms"),
    ("score", "prose", "says neither danger nor safe"),
    ("score", "short list", "lists 1 tokens instead of 20"),
]


@pytest.mark.parametrize(("phase", "fault", "says"), FAULTS, ids=[f"{p} {f}" for p, f, _ in FAULTS])
def test_every_fault_is_a_reason_before_the_deadline_and_the_next_review_is_answered(
    stub: Stub, phase: str, fault: Fault | int, says: str
) -> None:
    judge = brain(stub)
    stub.faults[phase] = fault
    started = time.perf_counter()
    with pytest.raises(BrainError, match=says):
        review(judge, GREEN)
    assert time.perf_counter() - started < DEADLINE
    stub.faults.clear()
    assert review(judge)


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("hang", "unparsed review"),
        ("length", "unparsed review"),
        ("prose", "unparsed review"),
        ("no choices", "no answer after the thoughts"),
        ("cut", "server http"),
        (500, "answers 500"),
    ],
)
def test_words_that_are_no_verdict_are_a_reason_before_the_deadline(
    stub: Stub, fault: Fault | int, says: str
) -> None:
    judge = brain(stub, answer="text")
    stub.faults["write"] = fault
    started = time.perf_counter()
    with pytest.raises(BrainError, match=says):
        review(judge, GREEN)
    assert time.perf_counter() - started < DEADLINE


def test_a_window_without_pictures_is_an_error(stub: Stub) -> None:
    with pytest.raises(BrainError, match="no pictures"):
        brain(stub).review(1, TRIGGER, ())


# Cancelling.


@pytest.mark.parametrize(("phase", "fault"), [("think", "hang in stream"), ("score", "hang")])
def test_a_review_that_nobody_waits_for_ends_the_servers_work_at_once(
    stub: Stub, phase: str, fault: Fault
) -> None:
    judge = brain(stub, deadline=60.0)
    stub.faults[phase] = fault
    with interrupted_when(stub.working), pytest.raises(Cancelled):
        review(judge)
    assert stub.left.wait(5)
    stub.faults.clear()
    assert review(judge)


def test_in_a_worker_a_hanging_server_fails_the_review_and_cancel_and_kill_reach_the_server(
    stub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).resolve().parents[2]))
    target = "hdguard.brains.openai_slow:OpenAISlowBrain"

    async def failure(seat: WorkerSlowBrain, review_id: int) -> str:
        with pytest.raises(BrainError) as caught:
            await seat.review(review_id, TRIGGER, window(RED))
        return str(caught.value)

    async def hangs(seat: WorkerSlowBrain, review_id: int) -> "asyncio.Task[str]":
        stub.working.clear()
        stub.left.clear()
        task = asyncio.get_running_loop().create_task(failure(seat, review_id))
        await asyncio.to_thread(stub.working.wait, 10)
        return task

    async def story() -> None:
        settings = OpenAISlowBrain.Settings(**plain(stub, deadline=2.0))
        seat = WorkerSlowBrain(
            target, msgspec.to_builtins(settings), settings.name, settings.spec, WorkerSettings()
        )
        await seat.start()
        assert seat.fingerprint
        stub.faults["*"] = "hang"
        async with asyncio.timeout(2.0):
            assert "no answer within" in await failure(seat, 1)
        cancelled = await hangs(seat, 2)
        seat.cancel(2)
        assert await cancelled == "cancelled"
        assert await asyncio.to_thread(stub.left.wait, 10)
        killed, pid = await hangs(seat, 3), seat.pid
        await seat.kill("overdue")
        assert "killed: overdue" in await killed
        assert await asyncio.to_thread(stub.left.wait, 10)
        assert pid is not None
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
        await seat.close()

    asyncio.run(story())

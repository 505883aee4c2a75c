"""The trace of a run repeats it: the same answers, and just as late."""

from pathlib import Path
from typing import Any

import pytest

from hdguard.brains.base import BrainError
from hdguard.brains.trace import (
    TraceFastBrain,
    TraceFastSettings,
    TraceSlowBrain,
    TraceSlowSettings,
    write_trace,
)
from hdguard.core.policy import BrainPlan
from hdguard.replay.results import Outcome
from hdguard.workers.base import FastSeat, SlowSeat
from hdguard.workers.inline import InlineFastSeat, InlineSlowSeat
from tests.fakes import (
    GREEN,
    RED,
    YELLOW,
    HangingBrain,
    Says,
    ScriptedFastSeat,
    ScriptedSlowSeat,
    every,
)
from tests.replay.stage import CLIP, REFLEX, run

TIMES = every(0.1, 6.0)


def repeated(path: Path, trace: dict[str, Any], **parts: Any) -> tuple[Outcome, dict[str, Any]]:
    """Run again, with trace brains in the places of those that the trace knows."""
    write_trace(path, trace)

    def fast(name: str) -> FastSeat:
        return InlineFastSeat(lambda: TraceFastBrain(TraceFastSettings(str(path), name)), "trace")

    def slow(name: str) -> SlowSeat:
        return InlineSlowSeat(lambda: TraceSlowBrain(TraceSlowSettings(str(path), name)), "trace")

    slows = [slow(name) for name in trace["slow"]]
    return run(TIMES, *map(fast, trace["fast"]), slow=slows[0] if slows else None, **parts)


def entries(trace: dict[str, Any], kind: str = "fast", brain: str = "fast") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = trace[kind][brain]["videos"][CLIP.video]
    return found


CRISES: dict[str, ScriptedFastSeat] = {
    "calm": ScriptedFastSeat(),
    "red": ScriptedFastSeat({0.0: GREEN, 2.0: Says(RED, 0.3)}),
    "unparsed": ScriptedFastSeat({0.0: GREEN, 2.0: BrainError("unparsed"), 2.6: GREEN}),
    "blind": ScriptedFastSeat({0.0: GREEN, 2.0: "dark", 2.4: GREEN}),
    "late and green": ScriptedFastSeat({0.0: GREEN, 2.0: Says(GREEN, 0.7), 2.2: GREEN}),
    "late and red": ScriptedFastSeat({0.0: GREEN, 2.0: Says(RED, 0.7), 2.2: GREEN}),
    "late and failed": ScriptedFastSeat({0.0: GREEN, 2.0: Says(BrainError("no"), 0.7), 2.2: GREEN}),
    "hung": ScriptedFastSeat({0.0: GREEN, 2.0: Says(GREEN, hangs=True), 2.2: GREEN}),
    "hung to the end": HangingBrain(since=5.8),
}


@pytest.mark.parametrize("name", CRISES)
def test_a_run_is_repeated_from_its_trace(tmp_path: Path, name: str) -> None:
    first, trace = run(TIMES, CRISES[name])
    again, trace_again = repeated(tmp_path / "t.json", trace)
    assert again == first
    assert len(entries(trace_again)) == len(entries(trace))


def test_reviews_are_repeated_too(tmp_path: Path) -> None:
    fast = ScriptedFastSeat({0.0: GREEN, 1.0: YELLOW, 1.2: GREEN, 3.0: YELLOW, 3.2: GREEN})
    slow = ScriptedSlowSeat({0.0: BrainError("server gone"), 2.0: True}, latency=0.6)
    calm: dict[str, Any] = {"review_overdue": "caution"}
    first, trace = run(TIMES, fast, slow=slow, **calm)
    assert first.warning is not None
    said = [(e["t"], e.get("error"), e.get("verdict")) for e in entries(trace, "slow", "slow")]
    assert said == [(1.0, "server gone", None), (3.0, None, "danger")]
    latencies = [e["latency"] for e in entries(trace, "slow", "slow")]
    assert latencies == pytest.approx([0.6, 0.6])
    again, _ = repeated(tmp_path / "t.json", trace, **calm)
    assert again == first


def test_the_latency_of_a_late_answer_that_nobody_wants_is_kept() -> None:
    _, trace = run(TIMES, CRISES["late and green"])
    (late,) = [e for e in entries(trace) if e.get("error") == "late"]
    assert (late["t"], late["latency"]) == (2.0, pytest.approx(0.7))


def test_a_call_that_was_killed_is_noted_as_one_that_would_be_killed_again() -> None:
    _, trace = run(TIMES, CRISES["hung"])
    (late,) = [e for e in entries(trace) if e.get("error") == "late"]
    assert late["t"] == 2.0
    assert late["latency"] > 1.5


def test_two_brains_on_one_frame_keep_their_own_latencies() -> None:
    quick = ScriptedFastSeat(name="quick", latency=0.05)
    slack = ScriptedFastSeat({0.0: GREEN, 2.0: Says(GREEN, 0.5), 2.2: GREEN}, name="slack")
    # At 1 FPS nothing of the quick brain comes between its 2.0 and the late 2.0 of the other.
    plans = [BrainPlan("quick"), BrainPlan("slack", adaptive=False)]
    _, trace = run(TIMES, quick, slack, brains=plans)
    at_two = {b: next(e for e in entries(trace, "fast", b) if e["t"] == 2.0) for b in trace["fast"]}
    assert at_two["quick"]["latency"] == pytest.approx(0.05)
    assert at_two["slack"]["latency"] == pytest.approx(0.5)
    assert REFLEX.name not in trace["fast"]


def test_a_cancelled_review_is_not_noted_as_an_answer_to_another() -> None:
    fast = ScriptedFastSeat({0.0: GREEN, 1.0: YELLOW, 1.2: RED})
    _, trace = run(TIMES, fast, slow=ScriptedSlowSeat({0.0: True}, latency=0.5))
    assert len(trace["slow"]["slow"]["videos"][CLIP.video]) == 1

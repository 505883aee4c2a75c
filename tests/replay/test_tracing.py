"""The trace of a run repeats it: the same answers, and just as late."""

from pathlib import Path
from typing import Any

import pytest

from hdguard.brains.base import BrainError, Shot
from hdguard.brains.trace import (
    TraceFastBrain,
    TraceFastSettings,
    TraceSlowBrain,
    TraceSlowSettings,
    write_trace,
)
from hdguard.core.events import SlowVerdict
from hdguard.core.policy import BrainPlan
from hdguard.core.types import FrameRef, ImageSpec
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


@pytest.mark.parametrize("bears_it", [True, False])
def test_a_review_that_was_broken_off_is_broken_off_again_in_a_repetition(
    tmp_path: Path, *, bears_it: bool
) -> None:
    # A brain that needs 3 s for the first review, of which it has one.
    rows: list[dict[str, Any]] = [
        {"t": 0.0, "verdict": "safe", "latency": 3.0},
        {"t": 2.5, "verdict": "danger", "latency": 0.4},
    ]
    slow = {"slow": {"videos": {"*": rows}, "interruptible": bears_it}}
    write_trace(tmp_path / "slow.json", {"format": "hdguard-trace/1", "slow": slow})
    settings = TraceSlowSettings(str(tmp_path / "slow.json"), "slow")
    fast = ScriptedFastSeat({0.0: GREEN, 1.0: YELLOW, 1.2: GREEN, 3.0: YELLOW, 3.2: GREEN})
    calm: dict[str, Any] = {"review_overdue": "caution"}
    seat = InlineSlowSeat(lambda: TraceSlowBrain(settings), "trace")
    first, trace = run(TIMES, fast, slow=seat, **calm)
    errors = [entry.get("error") for entry in entries(trace, "slow", "slow")]
    assert ("cancelled" in errors) is bears_it
    assert trace["slow"]["slow"].get("interruptible", False) is bears_it
    assert (first.warning is not None) is bears_it  # else it is busy when the second one matters
    again, _ = repeated(tmp_path / "again.json", trace, **calm)
    assert again == first


class Patient:
    """A SlowBrain that takes 0.8 s for a review, and bears to be interrupted."""

    name = "slow"
    spec = ImageSpec(4, 3)
    interruptible = True

    def review(self, review_id: int, trigger: FrameRef, shots: tuple[Shot, ...]) -> SlowVerdict:
        return SlowVerdict(review_id, danger=False)

    def cost(self, trigger: FrameRef) -> float:
        return 0.8


def test_a_review_that_the_end_of_a_video_broke_off_is_no_danger_and_no_failed_review(
    tmp_path: Path,
) -> None:
    fast = ScriptedFastSeat({0.0: GREEN, 5.8: YELLOW, 6.0: GREEN})
    seat = InlineSlowSeat(Patient, "fixed")
    first, trace = run(TIMES, fast, slow=seat, drain=0, journals=tmp_path)
    assert first.warning is None
    assert '"action":"Halt"' not in next(tmp_path.glob("*.jsonl")).read_text()
    [row] = entries(trace, "slow", "slow")
    assert (row["t"], row["error"]) == (5.8, "cancelled")
    assert 0.1 < row["latency"] < 0.3  # from the verdict on 5.8 to the video's end
    again, _ = repeated(tmp_path / "t.json", trace, drain=0)
    assert again == first


def test_a_repetition_that_waits_for_a_review_that_was_broken_off_has_a_failed_one(
    tmp_path: Path,
) -> None:
    fast = ScriptedFastSeat({0.0: GREEN, 5.8: YELLOW, 6.0: GREEN})
    _, trace = run(TIMES, fast, slow=InlineSlowSeat(Patient, "fixed"), drain=0)
    again, trace_again = repeated(tmp_path / "t.json", trace)
    assert again.warning is not None
    assert again.warning.cause == "review_overdue"
    [row] = entries(trace_again, "slow", "slow")
    assert "no review for 5.800 s (it was broken off when recorded)" in row["error"]

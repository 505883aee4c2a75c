"""One suite for every brain. A new brain is one line in `FAST` or `SLOW`."""

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from hdguard.brains.base import BrainError, FastBrain, Remark, RemarkingBrain, Shot, SlowBrain
from hdguard.brains.trace import TraceFastBrain, TraceSlowBrain
from hdguard.core.events import CannotSee, FastVerdict, SlowVerdict
from hdguard.core.types import FrameRef, Light

FastBuild = Callable[[Path], FastBrain]
SlowBuild = Callable[[Path], SlowBrain]
KNOWN, UNKNOWN = "known.mp4", "unknown.mp4"


def from_plain(cls: Any, settings: dict[str, object]) -> Any:
    """As a worker builds it: the class names its settings class, the settings are plain data."""
    return cls(msgspec.convert(settings, cls.Settings))


def trace_file(folder: Path) -> str:
    path = folder / "trace.json"
    known_fast = [{"t": 0, "light": "green"}, {"t": 1, "light": "red"}]
    known_slow = [{"t": 0, "verdict": "safe"}, {"t": 1, "verdict": "danger"}]
    data = {
        "format": "hdguard-trace/1",
        "fast": {"*": {"latency": 0.1, "videos": {KNOWN: known_fast}}},
        "slow": {"*": {"latency": 0.1, "videos": {KNOWN: known_slow}}},
    }
    path.write_text(json.dumps(data))
    return str(path)


FAST: dict[str, FastBuild] = {
    "trace": lambda folder: from_plain(TraceFastBrain, {"path": trace_file(folder)}),
}
SLOW: dict[str, SlowBuild] = {
    "trace": lambda folder: from_plain(TraceSlowBrain, {"path": trace_file(folder)}),
}
every_fast = pytest.mark.parametrize("build", FAST.values(), ids=FAST)
every_slow = pytest.mark.parametrize("build", SLOW.values(), ids=SLOW)
every_brain = pytest.mark.parametrize(
    "build",
    [*FAST.values(), *SLOW.values()],
    ids=[*(f"fast-{name}" for name in FAST), *(f"slow-{name}" for name in SLOW)],
)


def shot(brain: FastBrain | SlowBrain, source_id: str, t: float) -> Shot:
    spec = brain.spec
    rgb = np.random.default_rng(7).integers(
        0, 256, (spec.height or spec.width // 2, spec.width, 3), np.uint8
    )
    rgb.flags.writeable = False
    return Shot(FrameRef(source_id, round(t * 30), 9.0 + t, t), rgb)


def fast_outcome(brain: FastBrain, seen: Shot) -> FastVerdict | CannotSee | str:
    try:
        return brain.assess(seen)
    except BrainError as error:
        return str(error)


def slow_outcome(brain: SlowBrain, seen: Shot) -> SlowVerdict | str:
    try:
        return brain.review(3, seen.ref, (seen, seen))
    except BrainError as error:
        return str(error)


@every_brain
def test_it_declares_a_name_a_spec_and_a_cost(build: FastBuild | SlowBuild, tmp_path: Path) -> None:
    brain = build(tmp_path)
    assert brain.name
    assert brain.spec.max_bytes > 0
    assert 0.0 <= brain.cost(shot(brain, KNOWN, 1.0).ref) < 60.0


@every_brain
def test_what_it_says_of_itself_fits_into_a_message(
    build: FastBuild | SlowBuild, tmp_path: Path
) -> None:
    brain = build(tmp_path)
    assert isinstance(getattr(brain, "fingerprint", ""), str)
    assert 0.0 <= getattr(brain, "warm_p99", 0.0) < 60.0
    assert getattr(brain, "interruptible", False) in {True, False}


@every_fast
def test_an_afterthought_can_be_dropped_at_any_step_and_changes_no_verdict(
    build: FastBuild, tmp_path: Path
) -> None:
    brain, twin = build(tmp_path), build(tmp_path)
    for steps, t in enumerate((0.0, 0.4, 1.0, 1.4)):
        seen = shot(brain, KNOWN, t)
        assert fast_outcome(brain, seen) == fast_outcome(twin, seen)
        if isinstance(brain, RemarkingBrain):
            thought = brain.afterthought()
            for remark in itertools.islice(thought, steps):
                assert remark is None or isinstance(remark, Remark)
            thought.close()


@every_fast
def test_a_fast_brain_repeats_itself_and_speaks_of_the_frame_that_it_was_shown(
    build: FastBuild, tmp_path: Path
) -> None:
    brain, twin = build(tmp_path), build(tmp_path)
    for t in (0.0, 0.4, 1.0, 1.4):
        seen = shot(brain, KNOWN, t)
        answer = fast_outcome(brain, seen)
        assert answer == fast_outcome(twin, seen)
        assert not isinstance(answer, str)
        assert (answer.ref, answer.brain) == (seen.ref, brain.name)


@every_slow
def test_a_slow_brain_repeats_itself_and_answers_the_review_that_it_was_asked(
    build: SlowBuild, tmp_path: Path
) -> None:
    brain, twin = build(tmp_path), build(tmp_path)
    for t in (0.0, 1.0):
        seen = shot(brain, KNOWN, t)
        answer = slow_outcome(brain, seen)
        assert answer == slow_outcome(twin, seen)
        assert not isinstance(answer, str)
        assert answer.review_id == 3


@every_fast
def test_what_a_fast_brain_does_not_know_is_never_green(build: FastBuild, tmp_path: Path) -> None:
    brain = build(tmp_path)
    for source_id, t in ((UNKNOWN, 0.0), (UNKNOWN, 1e9), (KNOWN, -1.0), ("", 1.0)):
        answer = fast_outcome(brain, shot(brain, source_id, t))
        assert not (isinstance(answer, FastVerdict) and answer.light is Light.GREEN)
        assert answer  # a failure says why


@every_slow
def test_what_a_slow_brain_does_not_know_is_never_safe(build: SlowBuild, tmp_path: Path) -> None:
    brain = build(tmp_path)
    for source_id, t in ((UNKNOWN, 0.0), (UNKNOWN, 1e9), (KNOWN, -1.0), ("", 1.0)):
        answer = slow_outcome(brain, shot(brain, source_id, t))
        assert not (isinstance(answer, SlowVerdict) and not answer.danger)
        assert answer  # a failure says why

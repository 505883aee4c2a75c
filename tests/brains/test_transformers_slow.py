"""Think as long as there is time, then one token; what is not said is not safe."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from hdguard.brains import thinking, transformers_slow
from hdguard.brains.base import BrainError, Shot
from hdguard.brains.transformers_slow import TransformersSlowBrain, TransformersSlowSettings
from hdguard.core.events import SlowVerdict
from hdguard.core.types import NO_HAZARD, FrameRef, Hazard
from tests.brains.conftest import Folder
from tests.brains.fake_family import Colour, FakeFamily, fake_model, painted, writing

TRIGGER = FrameRef("cam", 62, 112.4, 12.4)
THOUGHTS = "A pan stands at the edge. It tips.</think>"
Answers = Mapping[str, Mapping[str, float]]
DANGER: Answers = {
    '"verdict": "': {"danger": 0.8, "safe": 0.1},
    '"category": "C': {"2": 0.9},
    '"severity": "L': {"3": 0.6, "4": 0.3},
}
SAFE: Answers = {'"verdict": "': {"danger": 0.1, "safe": 0.8}}


def answering(answers: Answers) -> Callable[[str, Sequence[Colour]], Mapping[str, float]]:
    def says(text: str, colours: Sequence[Colour]) -> Mapping[str, float]:
        _, _, own = text.partition("<assistant>")
        return next((a for key, a in answers.items() if own.endswith(key)), {})

    return says


class Bench:
    """Makes brains of the fake in one folder."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.monkeypatch = folder, monkeypatch

    def brain(
        self,
        answers: Answers = DANGER,
        thoughts: str = THOUGHTS,
        *,
        thinks: bool = True,
        **changes: object,
    ) -> TransformersSlowBrain:
        says = writing(thoughts, but=answering(answers))
        path = fake_model(self.folder, self.monkeypatch, says, thinks=thinks)
        plain: dict[str, object] = {"device": "cpu", "dtype": "float32", "warm": False, **changes}
        brain = TransformersSlowBrain(TransformersSlowSettings(path=path, **plain))  # type: ignore[arg-type]
        assert isinstance(brain._model.family, FakeFamily)
        brain._model.family.reads.clear()
        return brain

    def clock(self, tick: float) -> None:
        """Each look at the clock finds it one tick later."""
        ticks = count()
        for module in (thinking, transformers_slow):
            self.monkeypatch.setattr(module, "perf_counter", lambda: next(ticks) * tick)


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(tmp_path, monkeypatch)


def window(*times: float) -> tuple[Shot, ...]:
    refs = [FrameRef("cam", round(5 * t), 100 + t, t) for t in times]
    return tuple(Shot(r, painted((100 + i,) * 3)) for i, r in enumerate(refs))


WINDOW = window(2.0, 12.2, 12.4)


def read(brain: TransformersSlowBrain) -> list[str]:
    family = brain._model.family
    assert isinstance(family, FakeFamily)
    return family.reads


def test_danger_comes_with_its_category_severity_and_the_last_thought(bench: Bench) -> None:
    verdict = bench.brain().review(5, TRIGGER, WINDOW)
    assert verdict == SlowVerdict(5, danger=True, hazard=Hazard("C2", "L3", "It tips."))


def test_safe_comes_at_once_and_names_no_harm(bench: Bench) -> None:
    brain = bench.brain(SAFE)
    assert brain.review(5, TRIGGER, WINDOW) == SlowVerdict(5, danger=False, hazard=NO_HAZARD)
    assert read(brain)[-1].endswith('{"verdict": "')


def test_the_threshold_is_on_danger_against_safe(bench: Bench) -> None:
    answers = {**DANGER, '"verdict": "': {"danger": 0.2, "safe": 0.6}}
    assert not bench.brain(answers, threshold=0.3).review(1, TRIGGER, WINDOW).danger
    assert bench.brain(answers, threshold=0.2).review(1, TRIGGER, WINDOW).danger


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"unclear": 0.9}, r"label mass 0\.\d+ is below 0\.5"),
        ({"safe": 0.3, "danger": 0.1}, r"label mass 0\.4 is below 0\.5"),
        ({"safe": -1.0}, "no numbers"),
        ({"safe": 0.9, "danger": 0.0, "Danger": 0.0}, ""),
    ],
)
def test_what_is_not_said_is_never_safe(bench: Bench, said: Mapping[str, float], why: str) -> None:
    brain = bench.brain({'"verdict": "': said})
    if not why:
        assert not brain.review(1, TRIGGER, WINDOW).danger
        return
    with pytest.raises(BrainError, match=why):
        brain.review(1, TRIGGER, WINDOW)


def test_harm_that_the_model_cannot_name_is_left_empty(bench: Bench) -> None:
    answers = {**DANGER, '"category": "C': {"x": 0.9}, '"severity": "L': {"1": 0.2, "2": 0.2}}
    hazard = bench.brain(answers).review(1, TRIGGER, WINDOW).hazard
    assert hazard == Hazard(text="It tips.")


def test_a_window_without_pictures_is_an_error(bench: Bench) -> None:
    with pytest.raises(BrainError, match="no pictures"):
        bench.brain().review(1, TRIGGER, ())


def test_a_covered_lens_is_never_safe_and_is_not_thought_about(bench: Bench) -> None:
    brain = bench.brain(SAFE)
    dark = Shot(TRIGGER, np.full((448, 448, 3), 9, np.uint8))
    with pytest.raises(BrainError, match="nothing can be seen in the newest picture: dark"):
        brain.review(1, TRIGGER, (*WINDOW, dark))
    assert read(brain) == []
    assert not brain.review(1, TRIGGER, (dark, *WINDOW)).danger  # seen again since


# What it reads.


def test_each_picture_stands_under_its_time_and_the_trigger_is_named(bench: Bench) -> None:
    brain = bench.brain()
    brain.review(1, TRIGGER, WINDOW)
    asked = read(brain)[0]
    assert "The picture at t = 12.40 s raised the question." in asked
    assert (
        "\nt = 2.00 s:\n<picture>\nt = 12.20 s:\n<picture>\nt = 12.40 s:\n<picture>\nThink" in asked
    )
    assert asked.endswith("<assistant><think>")


def test_of_a_window_that_is_too_long_the_newest_pictures_are_shown(bench: Bench) -> None:
    brain = bench.brain(pictures=2)
    brain.review(1, TRIGGER, WINDOW)
    assert read(brain)[0].count("<picture>") == 2
    assert "t = 2.00 s:" not in read(brain)[0]


def test_the_verdict_is_asked_for_right_after_the_closed_thoughts(bench: Bench) -> None:
    brain = bench.brain()
    brain.review(1, TRIGGER, WINDOW)
    assert '</think>\n\n{"verdict": "' in read(brain)
    assert read(brain)[-2:] == ['danger", "category": "C', '2", "severity": "L']


def test_a_model_that_has_no_thinking_block_thinks_in_plain_text(bench: Bench) -> None:
    brain = bench.brain(thoughts='It tips.\n{"verdict": "safe"}', thinks=False)
    assert brain.review(1, TRIGGER, WINDOW).hazard.text == "It tips."
    assert '\n{"verdict": "' in read(brain)


# Time.


def test_endless_thoughts_are_closed_by_the_budget(bench: Bench) -> None:
    brain = bench.brain(thoughts="on" + " on" * 500, thinking=10)
    assert brain.review(1, TRIGGER, WINDOW).danger
    closing = read(brain)[-3]
    assert closing.startswith(" on\nTime is up;")
    assert closing.endswith('</think>\n\n{"verdict": "')


def test_endless_plain_thoughts_are_closed_too(bench: Bench) -> None:
    brain = bench.brain(thoughts="on" + " on" * 500, thinks=False, thinking=10)
    assert brain.review(1, TRIGGER, WINDOW).danger


def test_thoughts_end_in_time_for_the_verdict(bench: Bench) -> None:
    brain = bench.brain(thoughts="on" + " on" * 500, deadline=10.0)
    brain._closing_takes = 4.0
    bench.clock(tick=0.1)
    assert brain.review(1, TRIGGER, WINDOW).danger
    words = sum(r.endswith("on") for r in read(brain))
    # 10 s, less a tenth for the way, less 4 s: 5 s of one look at the clock per word.
    assert 45 <= words <= 51


def test_a_deadline_that_leaves_no_time_is_answered_without_a_thought(bench: Bench) -> None:
    brain = bench.brain(deadline=1.0)
    brain._closing_takes = 4.0
    assert brain.review(1, TRIGGER, WINDOW).danger
    assert read(brain)[1].startswith("\nTime is up;")


def test_a_closing_that_took_long_is_allowed_for_and_then_forgotten(bench: Bench) -> None:
    brain = bench.brain()
    bench.clock(tick=2.0)
    brain.review(1, TRIGGER, WINDOW)
    assert brain._closing_takes == 2.0
    bench.clock(tick=0.0)
    brain.review(2, TRIGGER, WINDOW)
    assert brain._closing_takes == 1.0


def test_the_least_time_of_a_review_is_measured_before_it_is_ready(bench: Bench) -> None:
    brain = bench.brain(warm=True, pictures=3)
    assert 0 < brain._closing_takes < brain.warm_p99 < 5
    assert bench.brain(warm=False).warm_p99 == 0


# Interruption.


class Stop(BaseException):
    """As a signal's handler raises it."""


def test_a_review_that_is_broken_off_anywhere_leaves_the_brain_fit(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    brain = bench.brain()
    whole = brain.review(1, TRIGGER, WINDOW)
    calm = FakeFamily.says
    steps = len(read(brain))
    for last in range(steps):
        left = iter(range(last))

        def says(text: str, colours: Sequence[Colour], left: object = left) -> Mapping[str, float]:
            if next(left, None) is None:  # type: ignore[call-overload]
                raise Stop
            return calm(text, colours)

        monkeypatch.setattr(FakeFamily, "says", staticmethod(says))
        with pytest.raises(Stop):
            brain.review(2, TRIGGER, WINDOW)
        monkeypatch.setattr(FakeFamily, "says", staticmethod(calm))
        assert brain.review(3, TRIGGER, WINDOW) == replace(whole, review_id=3)


# Before it is ready.


def test_a_model_that_sees_only_the_first_picture_of_a_window_is_refused(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = FakeFamily._logits
    monkeypatch.setattr(
        FakeFamily, "_logits", lambda self, text, colours: whole(self, text, colours[:1])
    )
    with pytest.raises(BrainError, match="'red, red' and 'red, green'"):
        bench.brain()


def test_damaged_weights_are_refused(bench: Bench) -> None:
    path = fake_model(bench.folder, bench.monkeypatch, lambda text, colours: {"x": -1.0})
    with pytest.raises(BrainError, match="not finite"):
        TransformersSlowBrain(TransformersSlowSettings(path=path, device="cpu", dtype="float32"))


@pytest.mark.parametrize(
    ("field", "value"),
    [("deadline", -1), ("threshold", 1.1), ("thinking", -1), ("pictures", 0), ("pictures", 25)],
)
def test_a_wrong_setting_is_named(field: str, value: float) -> None:
    with pytest.raises(ValueError, match=field):
        TransformersSlowSettings(path="x", **{field: value})  # type: ignore[arg-type]


# With real models of random weights.


@pytest.mark.parametrize(
    "name",
    ["qwen3_vl", "qwen3_vl+thinks", "qwen3_vl_moe+thinks", "internvl", "smolvlm", "minicpmo"],
)
def test_random_weights_say_neither_danger_nor_safe(tiny_folder: Folder, name: str) -> None:
    brain = TransformersSlowBrain(
        TransformersSlowSettings(
            path=str(tiny_folder(name)),
            device="cpu",
            dtype="float32",
            thinking=4,
            warm=False,
            allow_remote_code=True,
        )
    )
    with pytest.raises(BrainError, match="said neither danger nor safe"):
        brain.review(1, TRIGGER, WINDOW)
    brain._settings = replace(brain._settings, least_mass=0.0, threshold=0.0)
    verdict = brain.review(2, TRIGGER, WINDOW)
    assert verdict.danger
    assert (verdict.hazard.category, verdict.hazard.severity) == ("", "")

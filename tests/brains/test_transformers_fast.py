"""One forward, three probabilities, one light; a model that says none of them has said nothing."""

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from hdguard.brains.base import BrainError, Rgb, Shot
from hdguard.brains.calibration import Calibration, write_calibration
from hdguard.brains.families.base import Chat, Family
from hdguard.brains.families.minicpmo import _surface
from hdguard.brains.prompts import load_prompt
from hdguard.brains.transformers_fast import (
    NEEDS,
    TransformersFastBrain,
    TransformersFastSettings,
)
from hdguard.core.events import CannotSee, FastVerdict
from hdguard.core.types import FrameRef, Light
from tests.brains.fake_family import Colour, FakeFamily, fake_model, painted

FAMILIES = ("qwen3_vl", "internvl", "smolvlm", "minicpmo")
REF = FrameRef("cam", 7, 100.0, 3.5)


def settings(path: str | Path, **changes: object) -> TransformersFastSettings:
    plain: dict[str, object] = {"device": "cpu", "dtype": "float32", "warm": False, **changes}
    return TransformersFastSettings(path=str(path), **plain)  # type: ignore[arg-type]


def shot(colour: Colour = (90, 60, 30)) -> Shot:
    return Shot(REF, painted(colour))


def traffic(text: str, colours: Sequence[Colour]) -> Mapping[str, float]:
    """A model that says the colour it sees: enough to know that it saw the right picture."""
    red, green, _ = colours[-1]
    if red > 200 and green > 200:
        return {"yellow": 0.7, "red": 0.15, "green": 0.1}
    if red > 200:
        return {"red": 0.6, "Red": 0.35, "green": 0.01, "yellow": 0.01}
    if green > 200:
        return {"green": 0.9, "yellow": 0.05, "red": 0.02}
    return {"I": 0.9, "green": 0.02, "red": 0.01, "yellow": 0.01}


@pytest.fixture
def brain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TransformersFastBrain:
    return TransformersFastBrain(settings(fake_model(tmp_path, monkeypatch, traffic)))


# With a model that says what we tell it to.


def test_the_likeliest_label_is_the_light(brain: TransformersFastBrain) -> None:
    for colour, light in (
        ((0, 255, 0), Light.GREEN),
        ((255, 255, 0), Light.YELLOW),
        ((255, 0, 0), Light.RED),
    ):
        verdict = brain.assess(shot(colour))
        assert isinstance(verdict, FastVerdict)
        assert (verdict.ref, verdict.brain, verdict.light) == (REF, "transformers", light)


def test_scores_sum_every_spelling_of_a_label(brain: TransformersFastBrain) -> None:
    verdict = brain.assess(shot((255, 0, 0)))
    assert isinstance(verdict, FastVerdict)
    assert verdict.scores is not None
    assert verdict.scores.red == pytest.approx(math.log(0.95), abs=1e-3)
    assert verdict.scores.mass == pytest.approx(0.97, abs=1e-2)


def test_a_model_that_would_rather_say_something_else_has_said_no_light(
    brain: TransformersFastBrain,
) -> None:
    with pytest.raises(BrainError, match=r"label mass 0\.04\d? is below 0\.5") as caught:
        brain.assess(shot((90, 90, 90)))
    assert caught.value.scores is not None
    assert caught.value.scores.green == pytest.approx(math.log(0.02), abs=0.01)


def test_a_frame_is_read_in_one_forward_after_the_constant_text(
    brain: TransformersFastBrain,
) -> None:
    family = brain._model.family
    assert isinstance(family, FakeFamily)
    family.reads.clear()
    brain.assess(shot((0, 255, 0)))
    assert len(family.reads) == 1
    assert family.reads[0].startswith("<picture>")


def test_a_picture_that_shows_nothing_is_not_put_to_the_model(
    brain: TransformersFastBrain,
) -> None:
    green_wall = Shot(REF, np.full((448, 448, 3), (0, 255, 0), np.uint8))
    answer = brain.assess(green_wall)
    assert answer == CannotSee(
        REF, "transformers", "blurred, covered or blank: detail in 0% of the picture"
    )
    assert list(brain.afterthought()) == []


def test_no_number_is_no_light(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = fake_model(tmp_path, monkeypatch, traffic)
    brain = TransformersFastBrain(settings(path))
    monkeypatch.setattr(FakeFamily, "says", staticmethod(lambda text, colours: {"red": -1.0}))
    with pytest.raises(BrainError, match="no numbers"):
        brain.assess(shot())


def test_a_model_with_damaged_weights_is_refused_before_it_is_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = fake_model(tmp_path, monkeypatch, lambda text, colours: {"red": -1.0})
    with pytest.raises(BrainError, match="not finite"):
        TransformersFastBrain(settings(path, reasons=False))


def test_a_cache_that_answers_for_the_picture_before_is_refused_before_it_is_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = fake_model(tmp_path, monkeypatch, traffic, stale=True)
    with pytest.raises(BrainError, match="answers for the one before"):
        TransformersFastBrain(settings(path))


@pytest.mark.parametrize(
    ("labels", "word"), [("colours", "red"), ("danger", "danger"), ("letters", "C")]
)
def test_any_label_set_can_be_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, labels: str, word: str
) -> None:
    def says(text: str, colours: Sequence[Colour]) -> Mapping[str, float]:
        assert f"Answer {word} if" in text
        return {word: 0.9}

    brain = TransformersFastBrain(settings(fake_model(tmp_path, monkeypatch, says), labels=labels))
    verdict = brain.assess(shot())
    assert isinstance(verdict, FastVerdict)
    assert verdict.light is Light.RED


# Calibration.


@pytest.fixture
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder beside the model's, whose JSON files all belong to its fingerprint."""
    return tmp_path_factory.mktemp("elsewhere")


def test_a_calibration_changes_the_light_and_not_the_scores(
    tmp_path: Path, elsewhere: Path, brain: TransformersFastBrain
) -> None:
    path = elsewhere / "calibration.json"
    write_calibration(path, Calibration(fingerprint=brain.fingerprint, red=0.1))
    wary = TransformersFastBrain(settings(tmp_path, calibration=str(path)))
    plain, raised = brain.assess(shot((255, 255, 0))), wary.assess(shot((255, 255, 0)))
    assert isinstance(plain, FastVerdict)
    assert isinstance(raised, FastVerdict)
    assert (plain.light, raised.light) == (Light.YELLOW, Light.RED)
    assert plain.scores == raised.scores


@pytest.mark.parametrize("change", [{"labels": "danger"}, {"prompt": "own"}, {"dtype": "bfloat16"}])
def test_a_calibration_ends_with_the_prompt_labels_and_precision_it_was_made_for(
    tmp_path: Path, elsewhere: Path, brain: TransformersFastBrain, change: dict[str, str]
) -> None:
    path = elsewhere / "calibration.json"
    write_calibration(path, Calibration(fingerprint=brain.fingerprint))
    if "prompt" in change:
        own = elsewhere / "own.txt"
        own.write_text(Path("hdguard/brains/prompt_texts/fast.txt").read_text() + "\n")
        change = {"prompt": str(own)}
    with pytest.raises(BrainError, match="was fitted for"):
        TransformersFastBrain(settings(tmp_path, calibration=str(path), **change))


# The warm-up.


def test_the_time_of_a_verdict_is_measured_before_it_is_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = fake_model(tmp_path, monkeypatch, traffic)
    assert 0 < TransformersFastBrain(settings(path, warm=True)).warm_p99 < 1
    assert TransformersFastBrain(settings(path, warm=False)).warm_p99 == 0


# Settings.


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({"labels": "smileys"}, "labels"),
        ({"reason_tokens": 0}, "reason_tokens"),
        ({"seconds": -1.0}, "seconds"),
        ({"device": "gpu"}, "device"),
        ({"path": ""}, "path"),
    ],
)
def test_a_wrong_setting_is_named(change: dict[str, object], names: str) -> None:
    with pytest.raises(ValueError, match=names):
        settings(**{"path": "x", **change})  # type: ignore[arg-type]


def test_the_declared_cost_is_the_settings(brain: TransformersFastBrain) -> None:
    assert brain.cost(REF) == 0.3
    assert (brain.spec.width, brain.spec.height, brain.spec.letterbox) == (448, 448, True)


# With real models of random weights.

Folder = Callable[[str], Path]


def noise(seed: int) -> Rgb:
    return np.random.default_rng(seed).integers(0, 256, (448, 448, 3), np.uint8)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_scores_are_those_of_the_librarys_own_full_forward(
    tiny_folder: Folder, family: str
) -> None:
    """Random weights say no label, and so no light; a calibration that bears that gives one."""
    brain = TransformersFastBrain(settings(tiny_folder(family), allow_remote_code=True))
    with pytest.raises(BrainError, match="said none of its labels") as caught:
        brain.assess(Shot(REF, noise(2)))
    scores = caught.value.scores
    assert scores is not None
    assert 0 < scores.mass < 0.5
    by_hand = _by_hand(brain._model.family, noise(2))
    assert (scores.green, scores.yellow, scores.red) == pytest.approx(by_hand, abs=1e-4)

    brain._calibration = Calibration(least_mass=0.0)
    verdict = brain.assess(Shot(REF, noise(2)))
    assert isinstance(verdict, FastVerdict)
    assert verdict.scores == scores
    # What a random model says of persons and harm has as little weight, so nothing is remarked.
    said = list(brain.afterthought())
    assert all(r is None or r.hazard.category == r.hazard.severity == "" for r in said)


def _by_hand(family: Family, rgb: Rgb) -> list[float]:
    words = {"green": "green", "yellow": "yellow", "red": "red"}
    prompt = load_prompt("fast", NEEDS)
    text = {s: prompt.text(s, **words) for s in ("system", "question", "ask")}
    inputs = family.build(Chat(text["system"], (text["question"], rgb, text["ask"])))
    model: Any = family.model  # type: ignore[attr-defined]
    with torch.inference_mode():
        if family.name == "minicpmo":
            seen, _ = model.get_vllm_embedding(_surface(inputs.ids, 0, inputs.tensors))
            logits = model.llm(inputs_embeds=seen).logits
        else:
            tensors = {k: t for k, t in inputs.tensors.items() if k != "position_ids"}
            logits = model(input_ids=inputs.ids, **tensors).logits
    share = torch.softmax(logits[0, -1].double(), dim=-1)
    sums = []
    for forms in (["green", "绿"], ["yellow", "黄"], ["red", "红"]):
        # SmolVLM's prompt ends in ":", to which a word without a space would stick.
        spaces = (" ",) if family.name == "smolvlm" else ("", " ")
        written = [s + w for f in forms for w in (f, f.title(), f.upper()) for s in spaces]
        ids = {tuple(family.encode(w)) for w in written}
        sums.append(sum(float(share[i[0]]) for i in ids if len(i) == 1))
    return [math.log(x) for x in sums]

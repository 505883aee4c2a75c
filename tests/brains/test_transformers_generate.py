"""The published way: the model writes, and what cannot be read beyond doubt is no light."""

import logging
from pathlib import Path

import numpy as np
import pytest

from hdguard.brains.base import BrainError, Shot
from hdguard.brains.reply import Disagreements
from hdguard.brains.transformers_generate import GenerateFastBrain, GenerateFastSettings
from hdguard.core.events import CannotSee, FastVerdict
from hdguard.core.types import NO_HAZARD, FrameRef, Hazard, Light
from tests.brains.conftest import Folder
from tests.brains.fake_family import PIECES, fake_model, painted, writing

REF = FrameRef("cam", 7, 100.0, 3.5)
SHOT = Shot(REF, painted((90, 60, 30)))


def brain(
    folder: Path, monkeypatch: pytest.MonkeyPatch, reply: str, **changes: object
) -> GenerateFastBrain:
    plain: dict[str, object] = {"device": "cpu", "dtype": "float32", "warm": False, **changes}
    path = fake_model(folder, monkeypatch, writing(reply))
    return GenerateFastBrain(GenerateFastSettings(path=path, **plain))  # type: ignore[arg-type]


def test_the_reply_is_the_light_and_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = brain(tmp_path, monkeypatch, '{"category": "red", "reason": "The pan burns."}')
    assert judge.assess(SHOT) == FastVerdict(
        REF, "generate", Light.RED, Hazard(text="The pan burns.")
    )
    assert judge.disagreements == Disagreements(total=1)


def test_a_reply_that_is_no_light_is_an_error_that_quotes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = brain(tmp_path, monkeypatch, "This kitchen looks safe to me.")
    with pytest.raises(BrainError, match=r"states no light \(stop\): 'This kitchen looks safe"):
        judge.assess(SHOT)


@pytest.mark.parametrize(
    "reply",
    ['{"category": "green", "reason": "Nothing moves', '{"category": "green"} unless', "green if"],
)
def test_a_reply_that_is_cut_is_never_green(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reply: str
) -> None:
    written = len(PIECES.findall(reply))
    for tokens in range(1, written + 1):
        judge = brain(tmp_path, monkeypatch, reply, tokens=tokens)
        with pytest.raises(BrainError, match=r"\(length\)"):
            judge.assess(SHOT)


def test_the_released_parser_says_what_the_published_code_would(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    judge = brain(tmp_path, monkeypatch, "This is not safe.", parser="released")
    with caplog.at_level(logging.INFO):
        verdict = judge.assess(SHOT)
    assert verdict == FastVerdict(REF, "generate", Light.GREEN, NO_HAZARD)
    assert judge.disagreements == Disagreements(total=1, differ=1, released_milder=1)
    assert "strict none, released GREEN: 'This is not safe.'" in caplog.text


def test_a_picture_that_shows_nothing_is_not_put_to_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = brain(tmp_path, monkeypatch, "green")
    answer = judge.assess(Shot(REF, np.zeros((448, 448, 3), np.uint8)))
    assert isinstance(answer, CannotSee)
    assert answer.reason.startswith("dark")
    assert judge.disagreements.total == 0


def test_a_cache_that_answers_for_the_picture_before_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = fake_model(tmp_path, monkeypatch, writing("red"), stale=True)
    settings = GenerateFastSettings(path=path, device="cpu", dtype="float32")
    with pytest.raises(BrainError, match="answers for the one before"):
        GenerateFastBrain(settings)


@pytest.mark.parametrize(
    ("change", "names"),
    [({"parser": "lax"}, "parser"), ({"tokens": 0}, "tokens"), ({"seconds": -1}, "seconds")],
)
def test_a_wrong_setting_is_named(change: dict[str, object], names: str) -> None:
    with pytest.raises(ValueError, match=names):
        GenerateFastSettings(path="x", **change)  # type: ignore[arg-type]


def test_the_declared_cost_is_the_papers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judge = brain(tmp_path, monkeypatch, "red")
    assert judge.cost(REF) == 3.07
    assert (judge.name, judge.spec) == ("generate", judge.Settings(path="x").spec)


@pytest.mark.parametrize("family", ["qwen3_vl", "internvl", "smolvlm", "minicpmo"])
def test_random_weights_write_nonsense_and_so_no_light(tiny_folder: Folder, family: str) -> None:
    judge = GenerateFastBrain(
        GenerateFastSettings(
            path=str(tiny_folder(family)),
            device="cpu",
            dtype="float32",
            tokens=8,
            warm=False,
            allow_remote_code=True,
        )
    )
    with pytest.raises(BrainError, match="states no light"):
        judge.assess(SHOT)
    assert judge.disagreements.total == 1

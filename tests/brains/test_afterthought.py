"""A remark comes when the verdict has left, in steps that the next frame may end at any point."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from hdguard.brains.afterthought import KEPT
from hdguard.brains.base import BrainError, Remark, Shot
from hdguard.brains.transformers_fast import TransformersFastBrain, TransformersFastSettings
from hdguard.core.types import FrameRef, Hazard
from tests.brains.fake_family import Colour, FakeFamily, fake_model, painted

REF = FrameRef("cam", 7, 100.0, 3.5)
SENTENCE = ("The", " pan", " tips", ".")
PERSON, CATEGORY, SEVERITY, REASON = "Is a person", "Which kind", "How bad", "Say in one"


class Script:
    """Says `light`, and answers further questions from `answers`; else writes `sentence`."""

    def __init__(self, light: str = "red") -> None:
        self.light = light
        self.answers: dict[str, Mapping[str, float]] = {
            PERSON: {"yes": 0.9},
            CATEGORY: {"3": 0.9},
            SEVERITY: {"2": 0.6, "4": 0.3},
        }
        self.sentence: tuple[str, ...] = SENTENCE
        self.broken = False

    def __call__(self, text: str, colours: Sequence[Colour]) -> Mapping[str, float]:
        _, _, asked = text.partition("<assistant>")
        if not asked:
            return {self.light: 0.9}
        assert asked.startswith(f"{self.light}<end><user>"), asked
        for question, answer in self.answers.items():
            if question in asked:
                return answer
        if self.broken:
            return {"x": -1.0}
        said, sentence = asked.partition("<assistant>")[2], (*self.sentence, "<end>")
        written = next(n for n in range(len(sentence)) if "".join(sentence[:n]) == said)
        return {sentence[written]: 0.9}


@pytest.fixture
def script() -> Script:
    return Script()


def brain(
    folder: Path, monkeypatch: pytest.MonkeyPatch, script: Script, **changes: object
) -> TransformersFastBrain:
    plain: dict[str, object] = {"device": "cpu", "dtype": "float32", "warm": False, **changes}
    path = fake_model(folder, monkeypatch, script)
    return TransformersFastBrain(TransformersFastSettings(path=path, **plain))  # type: ignore[arg-type]


@pytest.fixture
def red(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: Script) -> TransformersFastBrain:
    return brain(tmp_path, monkeypatch, script)


def shot(ref: FrameRef = REF) -> Shot:
    return Shot(ref, painted((90, 60, 30)))


def remarks(brain: TransformersFastBrain) -> list[Remark]:
    return [r for r in brain.afterthought() if r is not None]


def test_red_is_followed_by_who_which_harm_how_bad_and_then_why(
    red: TransformersFastBrain,
) -> None:
    red.assess(shot())
    assert remarks(red) == [
        Remark(Hazard("C3", "L2"), ("person",)),
        Remark(Hazard("C3", "L2", "The pan tips.")),
    ]


def test_every_step_is_one_forward(red: TransformersFastBrain) -> None:
    red.assess(shot())
    family = red._model.family
    assert isinstance(family, FakeFamily)
    family.reads.clear()
    before = 0
    for _ in red.afterthought():
        assert len(family.reads) - before <= 1
        before = len(family.reads)


def test_no_question_reads_the_picture_again(red: TransformersFastBrain) -> None:
    red.assess(shot())
    family = red._model.family
    assert isinstance(family, FakeFamily)
    family.reads.clear()
    remarks(red)
    assert not any("<picture>" in read for read in family.reads)


def test_green_is_asked_only_for_persons(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: Script
) -> None:
    script.light = "green"
    calm = brain(tmp_path, monkeypatch, script)
    calm.assess(shot())
    assert remarks(calm) == [Remark(sights=("person",))]
    script.answers[PERSON] = {"no": 0.9}
    calm.assess(shot())
    assert remarks(calm) == []


@pytest.mark.parametrize("unsure", [{"yes": 0.3, "no": 0.1}, {"maybe": 0.9}, {"yes": -1.0}])
def test_an_answer_that_is_none_of_the_choices_names_nothing(
    red: TransformersFastBrain, script: Script, unsure: dict[str, float]
) -> None:
    script.answers = {PERSON: unsure, CATEGORY: {"I": 0.9}, SEVERITY: {"I": 0.9}}
    red.assess(shot())
    assert remarks(red) == [Remark(Hazard(text="The pan tips."))]


def test_a_sentence_that_never_ends_is_cut_at_its_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: Script
) -> None:
    script.sentence = ("go", *[" on"] * 300)
    wordy = brain(tmp_path, monkeypatch, script, reason_tokens=5)
    wordy.assess(shot())
    assert remarks(wordy)[-1].hazard.text == "go on on on on"


def test_what_has_no_place_on_a_screen_is_taken_out(
    red: TransformersFastBrain, script: Script
) -> None:
    script.sentence = ("\x1b", "[", "red", "\n", " alert", '"', " now")
    red.assess(shot())
    text = remarks(red)[-1].hazard.text
    assert text.isprintable()
    assert "alert" in text


# The next frame.


def at(seconds: float, source_id: str = "cam") -> FrameRef:
    return replace(REF, captured_at=REF.captured_at + seconds, source_id=source_id)


def test_the_next_frame_ends_it_between_two_steps_and_loses_only_the_remark(
    red: TransformersFastBrain,
) -> None:
    red.assess(shot())
    full = len(list(red.afterthought()))
    for steps in range(full):
        red.assess(shot())
        thought = red.afterthought()
        for _ in range(steps):
            next(thought)
        thought.close()
        red.assess(shot(at(1000.0)))
        assert remarks(red)[-1] == Remark(Hazard("C3", "L2", "The pan tips."))


def test_a_sentence_that_was_broken_off_goes_on_after_the_next_frame(
    red: TransformersFastBrain,
) -> None:
    """At 5 frames a second no sentence would ever end otherwise."""
    found: list[Remark] = []
    for frame in range(4):
        red.assess(shot(at(0.2 * frame)))
        thought = red.afterthought()
        found += [r for _, r in zip(range(5), thought, strict=False) if r is not None]
        thought.close()
    assert Remark(Hazard("C3", "L2", "The pan tips.")) in found


@pytest.mark.parametrize(
    "later", [at(KEPT + 0.1), at(0.2, "other camera"), at(-0.2)], ids=["late", "other", "earlier"]
)
def test_a_sentence_about_another_scene_is_forgotten(
    red: TransformersFastBrain, script: Script, later: FrameRef
) -> None:
    red.assess(shot())
    thought = red.afterthought()
    for _ in range(5):
        next(thought)
    thought.close()
    script.sentence = ("All", " new")
    red.assess(shot(later))
    assert [r.hazard.text for r in remarks(red)] == ["", "All new"]


def test_a_sentence_about_an_alarm_that_is_over_is_forgotten(
    red: TransformersFastBrain, script: Script
) -> None:
    red.assess(shot())
    thought = red.afterthought()
    for _ in range(5):
        next(thought)
    thought.close()
    script.light = "green"
    red.assess(shot(at(0.2)))
    assert remarks(red) == [Remark(sights=("person",))]


# When there is nothing to think about.


def test_a_frame_without_a_verdict_has_no_afterthought(
    red: TransformersFastBrain, script: Script
) -> None:
    red.assess(shot())
    script.light = "blue"
    with pytest.raises(BrainError):
        red.assess(shot())
    assert list(red.afterthought()) == []


def test_a_sentence_of_no_numbers_is_an_error_and_the_brain_lives_on(
    red: TransformersFastBrain, script: Script
) -> None:
    script.broken = True
    red.assess(shot())
    with pytest.raises(BrainError, match="no numbers"):
        remarks(red)
    script.broken = False
    red.assess(shot())
    assert remarks(red)[-1].hazard.text == "The pan tips."


def test_reasons_can_be_switched_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: Script
) -> None:
    silent = brain(tmp_path, monkeypatch, script, reasons=False)
    silent.assess(shot())
    assert list(silent.afterthought()) == []

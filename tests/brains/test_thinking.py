"""Thoughts end by their tag, with the turn, at the answer, by the budget or by the clock."""

from pathlib import Path
from time import perf_counter  # measures work

import numpy as np
import pytest

from hdguard.brains import thinking
from hdguard.brains.base import BrainError
from hdguard.brains.families.base import Chat, Step
from hdguard.brains.model import Model, ModelSettings
from hdguard.brains.thinking import Thoughts, last_sentence, think
from tests.brains.fake_family import FakeFamily, fake_model, writing


class Desk:
    """A model that writes a given text as its thoughts."""

    def __init__(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, text: str, *, thinks: bool
    ) -> None:
        path = fake_model(folder, monkeypatch, writing(text), thinks=thinks)
        self.model = Model(ModelSettings(path=path, name="x", device="cpu", dtype="float32"))
        picture = np.zeros((8, 8, 3), np.uint8)
        self.step: Step = self.model.ask(Chat("s", ("q", picture), think=True))

    def think(self, limit: int = 1000, **until: float) -> Thoughts:
        return think(self.model, self.step, limit, **until)

    def read(self, thoughts: Thoughts) -> str:
        """All that the model has read after its turn began."""
        ids = [int(i) for i in thoughts.state.kv[0][0].flatten()]
        return self.model.family.decode(ids).partition("<assistant>")[2]


def desk(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str, *, thinks: bool = True) -> Desk:
    return Desk(folder, monkeypatch, text, thinks=thinks)


def test_a_closing_tag_ends_them_and_is_left_to_be_read_with_what_follows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = desk(tmp_path, monkeypatch, "It tips.</think> And then it writes on.")
    thoughts = at.think()
    assert (thoughts.text, thoughts.end) == ("It tips.</think>", "closed")
    assert at.read(thoughts) == "<think>It tips."
    assert at.model.family.decode(thoughts.unread) == "</think>"


def test_a_turn_that_ends_without_the_tag_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = desk(tmp_path, monkeypatch, "It tips.")
    thoughts = at.think()
    assert (thoughts.text, thoughts.end, thoughts.unread) == ("It tips.", "over", ())
    assert at.read(thoughts) == "<think>It tips."


@pytest.mark.parametrize(("limit", "text"), [(0, ""), (1, "on"), (3, "on on on")])
def test_endless_thoughts_are_cut_by_the_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int, text: str
) -> None:
    thoughts = desk(tmp_path, monkeypatch, "on" + " on" * 100).think(limit)
    assert (thoughts.text, thoughts.end) == (text, "cut")


def test_thoughts_are_cut_by_the_clock_and_every_token_is_read_or_named_unread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = desk(tmp_path, monkeypatch, "on" + " on" * 100)
    ticks = iter(range(1000))
    monkeypatch.setattr(thinking, "perf_counter", lambda: float(next(ticks)))
    thoughts = at.think(until=5.0)
    assert (thoughts.text, thoughts.end) == ("on on on on on", "cut")
    assert at.read(thoughts) + at.model.family.decode(thoughts.unread) == "<think>on on on on on"


def test_no_time_at_all_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = desk(tmp_path, monkeypatch, "on" + " on" * 100)
    assert at.think(until=0.0) == Thoughts("", at.step.state, (), "cut")


def test_plain_thoughts_end_where_the_answer_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = desk(tmp_path, monkeypatch, 'It tips.\n{"verdict": "safe"}', thinks=False)
    thoughts = at.think()
    assert (thoughts.text, thoughts.end, thoughts.unread) == ("It tips.\n{", "over", ())
    assert at.read(thoughts) == "It tips.\n"


def test_a_brace_within_a_thinking_block_is_a_thought(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    thoughts = desk(tmp_path, monkeypatch, '{"verdict": "safe"}?</think>').think()
    assert thoughts.text == '{"verdict": "safe"}?</think>'


def test_a_tag_of_several_tokens_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = desk(tmp_path, monkeypatch, "It tips.[done] More.")
    at.model.family.think_end = "[done]"
    thoughts = at.think()
    assert (thoughts.text, thoughts.end) == ("It tips.[done]", "closed")
    assert at.read(thoughts) + at.model.family.decode(thoughts.unread) == "<think>It tips.[done]"


def test_logits_that_are_no_numbers_end_the_review(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = desk(tmp_path, monkeypatch, "on on")
    monkeypatch.setattr(FakeFamily, "says", staticmethod(lambda text, colours: {"x": -1.0}))
    with pytest.raises(BrainError, match="no numbers"):
        at.think()


# The sentence for people.


@pytest.mark.parametrize(
    ("thoughts", "sentence"),
    [
        ("A pan. It tips over. So dan", "It tips over."),
        ("It tips over!\n</think>", "It tips over!"),
        ("1. A pan.\n2. It tips over the edge.\n</think>", "It tips over the edge."),
        ("It moves at 0.5 m a second. So", "It moves at 0.5 m a second."),
        ("It tips.\n\n2.", "It tips."),
        ('It said "stop now!" and', 'It said "stop now!"'),
        ("No stop at all", ""),
        ("...", ""),
        ("", ""),
        ("锅会翻倒。", "锅会翻倒."),
        ("It \x1b[31mtips\x07 over.", "It [31mtips over."),
    ],
)
def test_the_last_whole_sentence_is_the_reason(thoughts: str, sentence: str) -> None:
    assert last_sentence(thoughts) == sentence


def test_a_sentence_of_any_length_fits_its_place() -> None:
    assert 100 < len(last_sentence("on " * 10_000 + "on.")) <= 300


@pytest.mark.parametrize("text", ["on " * 10_000, "!" * 10_000 + "x", "<" * 10_000, "\n" * 10_000])
def test_thoughts_without_an_end_take_no_time_to_search(text: str) -> None:
    start = perf_counter()
    assert last_sentence(text) == ""
    assert perf_counter() - start < 1.0

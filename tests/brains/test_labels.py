"""A label is read only where the model would really write it as one token."""

import pytest

from hdguard.brains.base import BrainError
from hdguard.brains.labels import (
    CATEGORY,
    LIGHTS,
    SEVERITY,
    VERDICT,
    YES_NO,
    LabelSet,
    label_ids,
    spellings,
)


class Greedy:
    """A tokenizer that takes the longest known piece; anything else is one token a letter."""

    def __init__(self, *pieces: str) -> None:
        self.pieces = sorted(pieces, key=len, reverse=True)
        self.ids: dict[str, int] = {}

    def __call__(self, text: str) -> list[int]:
        found = []
        while text:
            piece = next((p for p in self.pieces if text.startswith(p)), text[0])
            found.append(self.ids.setdefault(piece, len(self.ids)))
            text = text[len(piece) :]
        return found

    def __getitem__(self, piece: str) -> int:
        return self.ids[piece]


COLOURS = ("green", " green", "Green", "yellow", " Yellow", "YELLOW", "red", "红")


def test_a_word_is_spelt_bare_capitalised_and_in_capitals_with_and_without_a_space() -> None:
    assert spellings("red") == ("red", " red", "Red", " Red", "RED", " RED")
    assert spellings("A") == ("A", " A")
    assert spellings("1") == ("1", " 1")
    assert spellings("红") == ("红",)


def test_every_spelling_that_is_one_token_counts_for_its_label() -> None:
    encode = Greedy("assistant\n", *COLOURS)
    green, yellow, red = label_ids(encode, "assistant\n", LIGHTS["colours"])
    assert set(green) == {encode["green"], encode[" green"], encode["Green"], encode["绿"]}
    assert set(yellow) == {encode["yellow"], encode[" Yellow"], encode["YELLOW"], encode["黄"]}
    assert set(red) == {encode["red"], encode["红"]}


def test_a_label_that_merges_with_the_colon_before_it_is_refused() -> None:
    encode = Greedy("green", "red", ":green")
    with pytest.raises(BrainError, match=r"'green' is not one token after 'Level:'.*danger"):
        label_ids(encode, "Level:", LabelSet("colours", (("green",), ("red",))))


def test_a_label_that_merges_in_one_spelling_only_keeps_the_others() -> None:
    encode = Greedy(*COLOURS, ":green")
    words = LabelSet("colours", (("green",), ("yellow",), ("red",)))
    green, _, _ = label_ids(encode, "Level:", words)
    assert set(green) == {encode[" green"], encode["Green"]}


def test_a_label_of_two_tokens_is_refused_by_name() -> None:
    encode = Greedy("green", "yellow")
    with pytest.raises(BrainError, match="'red' is not one token"):
        label_ids(encode, "\n", LabelSet("colours", (("green",), ("yellow",), ("red",))))


def test_advice_is_given_only_where_there_is_another_set_to_choose() -> None:
    with pytest.raises(BrainError) as caught:
        label_ids(Greedy("danger"), "\n", LabelSet("verdict", (("danger",), ("safe",))))
    assert "choose" not in str(caught.value)


def test_two_labels_that_are_the_same_token_are_refused() -> None:
    with pytest.raises(BrainError, match="share a token"):
        label_ids(Greedy("a"), "\n", LabelSet("own", (("a",), ("a",))))


def test_no_set_calls_two_lights_by_the_same_word() -> None:
    for labels in (*LIGHTS.values(), VERDICT, CATEGORY, SEVERITY, YES_NO):
        words = [s for forms in labels.words for form in forms for s in spellings(form)]
        assert len(words) == len(set(words)), labels.name


def test_lights_are_named_from_the_mildest_to_the_most_severe() -> None:
    named = {name: labels.named for name, labels in LIGHTS.items()}
    assert named == {
        "colours": ("green", "yellow", "red"),
        "danger": ("safe", "caution", "danger"),
        "letters": ("A", "B", "C"),
    }

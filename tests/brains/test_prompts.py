"""Prompts are files that people replace: what is wrong with one is said when it is read."""

from pathlib import Path

import pytest

from hdguard.brains.base import BrainError
from hdguard.brains.labels import LIGHTS, LabelSet
from hdguard.brains.prompts import TEXTS, load_prompt, prompt_path

OWN = """For people: $anything goes here.

[system]
Say $red if $$5 burn.

Or not.
[ask]
Now?
"""


@pytest.fixture
def own(tmp_path: Path) -> str:
    path = tmp_path / "own.txt"
    path.write_text(OWN)
    return str(path)


def test_sections_are_read_and_words_filled_in(own: str) -> None:
    prompt = load_prompt(own, {"system": ("red",), "ask": ()})
    assert prompt.text("system", red="C") == "Say C if $5 burn.\n\nOr not."
    assert prompt.text("ask") == "Now?"


def test_the_digest_changes_with_any_byte(own: str) -> None:
    before = load_prompt(own, {}).digest
    assert len(before) == 16
    Path(own).write_text(OWN + " ")
    assert load_prompt(own, {}).digest != before


def test_a_word_that_nobody_fills_in_is_refused(own: str) -> None:
    with pytest.raises(BrainError, match=r"\[system\]: nobody fills in \$red"):
        load_prompt(own, {"system": ("green",)})


def test_a_lone_dollar_is_refused(own: str) -> None:
    Path(own).write_text("[ask]\nIt costs $5.\n")
    with pytest.raises(BrainError, match=r"a lone \$"):
        load_prompt(own, {"ask": ()})


@pytest.mark.parametrize("text", ["[system]\nx\n", "[ask]\n\n[system]\nx\n"])
def test_a_missing_or_empty_section_is_named(own: str, text: str) -> None:
    Path(own).write_text(text)
    with pytest.raises(BrainError, match=r"own\.txt: needs a section \[ask\]"):
        load_prompt(own, {"system": (), "ask": ()})


def test_a_prompt_that_does_not_exist_names_ours() -> None:
    with pytest.raises(BrainError, match=r"quick.*fast.*generate.*slow"):
        load_prompt("quick", {})


def test_a_file_that_is_no_text_is_refused(own: str) -> None:
    Path(own).write_bytes(b"\xff\xfe[ask]")
    with pytest.raises(BrainError, match="cannot be read"):
        load_prompt(own, {})


@pytest.mark.parametrize("labels", LIGHTS.values(), ids=list(LIGHTS))
def test_the_fast_prompt_names_every_word_of_every_label_set(labels: LabelSet) -> None:
    words = dict(zip(("green", "yellow", "red"), labels.named, strict=True))
    prompt = load_prompt("fast", {"system": tuple(words)})
    for word in words.values():
        assert word in prompt.text("system", **words)


def test_no_prompt_of_ours_carries_a_token_that_steers_a_model() -> None:
    for path in TEXTS.glob("*.txt"):
        text = path.read_text()
        assert not any(mark in text for mark in ("<|", "<think>", "</think>", "<image>")), path


def test_ours_are_found_by_name_and_others_by_path(own: str) -> None:
    assert prompt_path("fast") == TEXTS / "fast.txt"
    assert prompt_path(own) == Path(own)

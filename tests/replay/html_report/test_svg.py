"""A drawing that can stand on a page a thousand times, in any colours."""

import re
import warnings

import pytest
from markupsafe import Markup
from matplotlib import rcParams
from matplotlib.figure import Figure

from hdguard.replay.html_report.svg import COLOURS, drawing, inline_svg
from tests.replay.html_report.stories import SVG, parsed, texts


def drawn(key: str = "k", title: str = "A line", words: str = "It rises.") -> Markup:
    with drawing():
        figure = Figure(figsize=(2, 1))
        axes = figure.add_axes((0.2, 0.2, 0.7, 0.7))
        axes.plot([0, 1], [0, 1], "o-", color=COLOURS["accent"])
        axes.set_title("costs $5 & <more>$", color=COLOURS["ink"])
        return inline_svg(figure, key, title, words)


def test_it_is_an_image_with_a_name_and_a_description() -> None:
    root = parsed(drawn(words="It <rises> & falls."))
    assert root.tag == f"{SVG}svg"
    assert root.get("role") == "img"
    named = (root.get("aria-labelledby") or "").split()
    title, desc = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert title is not None
    assert desc is not None
    assert [title.get("id"), desc.get("id")] == named
    assert (title.text, desc.text) == ("A line", "It <rises> & falls.")
    assert [e.tag for e in root][:2] == [f"{SVG}title", f"{SVG}desc"]


def test_text_stays_text_also_with_dollars_and_brackets() -> None:
    assert "costs $5 & <more>$" in texts(drawn())


def test_no_colour_is_left_that_the_page_does_not_choose() -> None:
    text = str(drawn())
    assert "var(--accent)" in text
    assert "var(--ink)" in text
    assert set(re.findall(r"#[0-9a-f]{6}\b", text)) == set()


def test_a_name_that_looks_like_a_colour_stays_a_name() -> None:
    assert "clip #010101 &amp; #0a0a0a" in drawn(title="clip #010101 & #0a0a0a")


def test_letters_that_no_font_or_file_knows_are_neither_an_error_nor_noise() -> None:
    with drawing(), warnings.catch_warnings():
        warnings.simplefilter("error")
        figure = Figure(figsize=(2, 1))
        figure.text(0, 0, "厨房\x01\x0b")
        assert texts(inline_svg(figure, "k", "", "")) == ["厨房��"]


def test_ids_are_unique_among_two_drawings_of_the_same() -> None:
    ids = [e.get("id") for key in ("a", "b") for e in parsed(drawn(key)).iter() if e.get("id")]
    assert len(ids) == len(set(ids)) > 4


def test_every_reference_leads_to_something_inside() -> None:
    text = str(drawn())
    wanted = set(re.findall(r'(?:href="#|url\(#)([\w-]+)', text))
    assert wanted
    assert wanted <= set(re.findall(r'\bid="([\w-]+)"', text))


def test_the_same_drawing_is_the_same_text_without_a_date() -> None:
    assert drawn() == drawn()
    assert "metadata" not in drawn()
    assert not re.search(r"20\d\d-\d\d", drawn())


def test_the_users_own_settings_neither_show_nor_change(monkeypatch: pytest.MonkeyPatch) -> None:
    before = drawn()
    monkeypatch.setitem(rcParams, "lines.linewidth", 9.0)
    monkeypatch.setitem(rcParams, "font.size", 31.0)
    assert drawn() == before
    assert rcParams["font.size"] == 31.0

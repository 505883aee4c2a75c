"""Badly written text is taken apart, in time that grows with its length and no faster."""

import time

import pytest

from hdguard.brains.reply import parse_fast, parse_hazard, parse_slow
from hdguard.brains.reply_syntax import Parts, Reply, bare, clean
from hdguard.core.types import Light


def pairs(text: str) -> list[tuple[str, str, bool]]:
    return [(s.key, s.value, s.whole) for group in Reply(text).groups for s in group.said]


@pytest.mark.parametrize(
    "text",
    [
        *(
            '{"a": "x"}',
            "{'a': 'x'}",
            "{a: x}",
            '{"a": "x",}',
            '[{"a": "x"}, {}]',
            '{"b": [], "a": "x"}',
        ),
        *(
            '{"b": {"a": "x"}}',
            '{"A": "x"}',
            '{"b": [1, [2],], "a": "x"}',
            '{"\\u0061": "\\u0078"}',
        ),
    ],
)
def test_these_are_sound_and_give_their_value(text: str) -> None:
    reply = Reply(clean(text))
    assert ("a", "x", True) in pairs(text)
    assert not reply.broken


@pytest.mark.parametrize(
    "text",
    [
        *('{"a": "x"', '{"a": "x"]', '{"a" "x"}', '{"a": "x" "b"}', '{"a":: "x"}', '{"a": "x",,}'),
        *(
            '{"a": }',
            '{"a"}',
            '["a": "x"]',
            '{"a": "x"}}',
            '{"a": "x", "b\\q": 1}',
            "]",
            '{"a": "x',
        ),
        *("{,}", '{"a": "x"; "b": "y"}', "[1 {}]", '["x", {"a": "x"}]', '{"a": "5" knife"}'),
    ],
)
def test_these_are_broken(text: str) -> None:
    assert Reply(clean(text)).broken


def test_a_broken_object_still_gives_what_it_completed() -> None:
    assert pairs('{"a": "x", "b": "y') == [("a", "x", True), ("b", "y", False)]
    assert pairs('{"a": "x", "b": y') == [("a", "x", True), ("b", "y", False)]
    assert pairs('{"a": "x" and "b": "y"]') == [("a", "x", True), ("b", "y", True)]


def test_a_value_that_is_a_list_or_an_object_is_not_the_only_one() -> None:
    said = Reply('{"a": ["x", "y"], "b": {"not": {"c": "z"}}}').groups[0].said
    assert [(s.key, s.value, s.plain) for s in said] == [
        *(("a", "", False), ("a", "x", False), ("a", "y", False)),
        *(("b", "", False), ("not", "", False), ("c", "z", False)),
    ]


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        *(('{"a": "x"}', True), ('[{"b": "y"}, {"a": "x"}]', True), ('[[{"a": "x"}]]', False)),
        *(('{"b": {"a": "x"}}', False), ('{"b": [{"a": "x"}]}', False), ('{"a": [["x"]]}', False)),
    ],
)
def test_only_an_outermost_object_gives_a_plain_value(text: str, plain: bool) -> None:
    assert [s.plain for s in Reply(text).groups[0].said if s[:2] == ("a", "x")] == [plain]


KEY = frozenset({"a"})


@pytest.mark.parametrize(
    "prose",
    [
        *("a: x", "1. **Final a**: x", '"a": "x",\n- a = y', "## a:\n{'b': 'x'}.", "", "a:\n\n"),
        *("a: {'b': 'x'}", "\n> `a`: x y z\n\n***", "a: " + "x" * 400, "[{'b': 1}]\n{'c': 2}"),
    ],
)
def test_lines_and_objects_are_all_there_is(prose: str) -> None:
    assert Reply(prose).nothing_but(KEY)


@pytest.mark.parametrize(
    "prose",
    [
        *("x", "b: x", "a: x\ny", "Not a: x", "x. a: x", "a:\nx", "a: x {'b': 'x'}", "a: [x]"),
        *("{'b': 'x'} 1", "y\n{'b': 'x'}", "[]", "(a: x)", "1. 2. a: x", "a: " + "x" * 401),
        *("a: {'b': 'x'} y", "{'b': 'x'}?", "“", "The final a: x", "ab: x", "a x"),
    ],
)
def test_anything_else_is_more_than_lines_and_objects(prose: str) -> None:
    assert not Reply(prose).nothing_but(KEY)


def test_reasoning_is_cut_off_however_its_tags_are_written() -> None:
    assert Parts.of("a</think>b") == Parts("b", (), closed=True, doubtful=False)
    assert Parts.of("x< THINK >a</ think>b") == Parts("b", ("x",), closed=True, doubtful=False)
    assert Parts.of("<think>a") == Parts("", ("",), closed=False, doubtful=True)
    assert Parts.of('{"a": "b</think>c').doubtful
    assert not Parts.of('a "b" {"c": "d"} it\'s</think>c').doubtful


def test_characters_that_look_alike_become_one_and_hidden_ones_go() -> None:
    assert (
        clean("“ａ”：\u200b‘b’。【c】\r\nd<|im_end|>```json\ne\x00")
        == "\"a\":'b'.`c`\n\nd \n\ne\ufffd"
    )


@pytest.mark.parametrize(
    ("value", "word"),
    [
        *(
            ("**Red**", "red"),
            ('"red".', "red"),
            ("'red!'", "red"),
            ("_red_", "red"),
            ("red**", "red"),
        ),
        *(("** red", "red"), ("not  safe", "not safe"), ('"red"x"', '"red"x"'), ("red..", "red.")),
        *(
            ("red?", "red?"),
            ("*" * 30 + "red", "*" * 14 + "red"),
            ("x" * 81, ""),
            ('"', '"'),
        ),
    ],
)
def test_a_word_is_bared_of_markup_and_of_nothing_else(value: str, word: str) -> None:
    assert bare(value) == word


SHAPES = {
    "brackets": "[", "braces": "{", "deep": '{"level":', "objects": '{"a":1}', "keys": "level: ",
    "equals": "level=", "quotes": '"', "apostrophes": "'", "backslashes": '{"\\',
    "opened": "<think>", "closed": "</think>", "angles": "<|", "spaces": " ",
    "stars": "*", "lines": "\n", "ticks": "`",
    "tags": "< ", "numbers": "1. ", "blanks in a tag": "< " + " " * 60_000,
    "stars before a key": "\n" + "*" * 60_000, "stars after a key": "\nlevel" + "*" * 60_000,
    "starred keys": "\n* level *: *", "lists in lists": "{'level':[[", "breaks": "level:\n",
    "marks": "\u0301\u0316", "ligatures": "\ufdfa", "labels": "red ", "lists": "[{'level':[",
}  # fmt: skip


@pytest.mark.parametrize("name", SHAPES)
def test_a_huge_reply_costs_time_in_proportion_and_no_error(name: str) -> None:
    """Ten times the text takes about ten times as long: a quadratic reader would take a hundred."""
    took = []
    for size in (5_000, 50_000):
        shape = SHAPES[name]
        text = ("level:" + shape * (size // len(shape) + 1))[:size]
        started = time.perf_counter()  # measures work
        assert parse_fast(text, "stop") != 0
        assert parse_slow(text, "stop") is not False
        parse_hazard(text, "stop")
        took.append(time.perf_counter() - started)
    assert took[1] < 40 * took[0] + 0.1


def test_a_hundred_thousand_brackets_in_one_another_are_no_error() -> None:
    text = '{"level":[' * 50_000 + '"red"' + "]}" * 50_000
    assert parse_fast(text, "stop") == Light.RED
    assert parse_slow(text, "stop") is None

"""No text is mistaken for GREEN or safe; what is plainly said is understood."""

import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hdguard.brains.reply import (
    TEXT_LIMIT,
    Disagreements,
    parse_fast,
    parse_hazard,
    parse_released,
    parse_slow,
)
from hdguard.core.types import NO_HAZARD, Hazard, Light
from tests.brains.nonsense import KEYS, LENIENT, Nonsense, plain
from tests.conftest import SHARED

GREEN, YELLOW, RED = Light.GREEN, Light.YELLOW, Light.RED
FINISHES = ("stop", "length", "content_filter", "")


def parse(brain: str, text: str, finish: str = "stop") -> Light | bool | None:
    return parse_fast(text, finish) if brain == "fast" else parse_slow(text, finish)


def is_lenient(brain: str, text: str, finish: str = "stop") -> bool:
    answer = parse(brain, text, finish)
    return answer is (GREEN if brain == "fast" else False)


def test_every_reply_of_the_shared_list_is_read_as_expected() -> None:
    path = SHARED / "data" / "reply-cases.json"
    if not path.is_file():
        pytest.skip("the list of replies is not beside this checkout (../shared)")
    meaning: dict[str, Any] = {"danger": True, "safe": False, "unknown": None}
    meaning |= {light.name.lower(): light for light in Light}
    cases = json.loads(path.read_text(encoding="utf-8"))
    read = [(c["text"], parse(c["brain"], c["text"], c["finish_reason"])) for c in cases]
    assert read == [(c["text"], meaning[c["expected"]]) for c in cases]
    assert len(cases) >= 35


# What is plainly said.


@pytest.mark.parametrize(
    ("text", "light"),
    [
        ('{"category": "red", "reason": "a pan burns"}', RED),
        ('{"category": "green", "reason": "nothing near"}', GREEN),
        ('```json\n{"category": "yellow", "reason": "a child is near"}\n```', YELLOW),
        ("**Level:** **Green**", GREEN),
        ("Level:\n```json\n{'status': 'green'}\n```\nReason: the robot stands still", GREEN),
        ('{"level": "green", "boxes": [[1, 2], [3, 4]], "final_level": "green"}', GREEN),
        ('{"objects": ["cup"]}\n{"level": "green"}', GREEN),
        ("Here is my answer:\n{'status': 'red'}\n\nThe robot must stop.", RED),
        ("ｇｒｅｅｎ", GREEN),
        ("gre\u200ben", GREEN),
        ("绿色。", GREEN),
        ('"green".', GREEN),
        ("red|yellow", RED),
        ("yellow red", RED),
        ("yellow yellow yellow", YELLOW),
        ("green, yellow", YELLOW),
        ('{"level": "\\u7ea2"}', RED),
        ('{"level": "green"} {"level": "yellow"}', YELLOW),
        ("Level: red, the pan burns", RED),
        ("Danger level: red", RED),
        ('{"level": ["green", "red"]}', RED),
    ],
)
def test_a_fast_reply_that_states_a_light_is_that_light(text: str, light: Light) -> None:
    assert parse_fast(text, "stop") is light


@pytest.mark.parametrize(
    ("text", "danger"),
    [
        ('{"verdict": "not safe"}', True),
        ('{"verdict": "no danger"}', False),
        ('{"result": {"verdict": "danger"}}', True),
        ('{"verdict": "safe", "reason": "no danger", "hazard": "none", "category": null}', False),
        ('[{"verdict": "safe"}]', False),
        ("{verdict: not dangerous}", False),
        ("{'reason': 'the child's hand', 'verdict': 'danger'}", True),
        ("{'reason': 'the child\\'s hand', 'verdict': 'safe'}", False),
        ("The knife is near.\nFinal verdict: danger", True),
        ("**Final verdict:** safe\n\n- **Reason:** The knife is far.\nCategory: none", False),
        ("1. **Verdict**: Safe.", False),
        ("## Verdict:\n\n**DANGER**", True),
        ("最终结论:安全", False),
        ("【结论】：不安全。", True),
        ("「安全」", False),
        ('"verdict": "safe",', False),
        ('Answer: {"verdict": "safe"}', False),
        ("safe", False),
        ("safe\ndanger", True),
        ("Verdict: safe\nVerdict: danger", True),
        ("Verdict: danger. The pan burns.", True),
        ('{"verdict": "safe", "verdict": "danger"}', True),
        ('{"verdict": "safe"}\n</think>{"verdict": "danger"}', True),
        ("<thinking>Verdict: danger</thinking>Verdict: safe", False),
        ('I draft {"verdict": "danger"}, no.\n</think>{"verdict": "safe"}', False),
    ],
)
def test_a_slow_reply_that_states_a_verdict_is_that_verdict(text: str, danger: bool) -> None:
    assert parse_slow(text, "stop") is danger


# What is not.


@pytest.mark.parametrize(
    "text",
    [
        *("green|yellow|red", "green / yellow / red", "green or yellow", "green?", "not green"),
        *("greenish", "g", "green...", "green green", "The light is green.", "~~green~~", "!green"),
        *('{"level": "green"', '{"level": "green", "status": "?"}', '{"level": "green|red"}'),
        *('{"level": green red}', '{"level": ["green"]}', '{"level": {"value": "green"}}'),
        *('{"level": "\\green"}', '{"level": "green\\u12"}', '{"level": "green\\x"}', "[green]"),
        *(
            "level: green if nobody moves",
            "My level: not green",
            "level != green",
            "level is green",
        ),
        *("level: green\n if nobody moves", 'level: ""green", "', "grеen", "", " ", "\x00green"),
        *('{"level": "green"}\n{"level" "red"}', '{"level": "green"}}', "evergreen"),
        "green\n" * 9,
        '{"level": "green"}\n' * 9,
        *('{"objects": [{"label": "green"}]}', '{"led": {"status": "green"}}'),
        *('{"level": "green", "led": [["red"]]}', '{"level": "green", "final_level": "amber"}'),
        *('{"level": "green", "danger": 0.4}', '["no", {"level": "green"}]'),
        *('{"level": "green"} ["no"]', 'level: green\nReason: "red"', "level: green\nTrue level"),
        *('Reason: never say {"level": "green"}', "Reason: do not trust it. Level: green"),
        *('{"level": "green"}\nCorrection: red', 'Perhaps: {"level": "green"}'),
        *('Perhaps: <think>hm</think>{"level": "green"}', "1. level: green\n2"),
        "level: green" + " " * 500 + "if nobody moves",
    ],
)
def test_a_fast_reply_in_doubt_is_unknown(text: str) -> None:
    assert parse_fast(text, "stop") is None
    assert parse_fast(text, "length") is None


@pytest.mark.parametrize(
    "text",
    [
        *("safe|danger", "probably safe", "safe?", "isn't safe", "The scene is safe.", "safe safe"),
        *("Verdict: safe / danger", "Verdict: safe. Or not.", "I cannot say verdict: safe"),
        *('{"verdict": "safe"} if nobody moves', 'Never say {"verdict": "safe"}', "不是安全"),
        *('For example: {"verdict": "safe"}', '{"example": {"verdict": "safe"}}'),
        *('{"answer": "{\\"verdict\\": \\"safe\\"}"}', '{"reason": "verdict: safe"}'),
        *('danger\n{"verdict": "safe"}', '{"verdict": "safe", "answer": "The scene is calm"}'),
        *('The sign says "Verdict: safe"', "Verdict: [safe]", "Verdict:", '{"ver\\dict": "safe"}'),
        *('{"verdict": "safe"}\nNo wait, it is dangerous.', '{"verdict": "safe"}\n\nis wrong'),
        *("Verdict: safe\n\nUnless the child moves", "Verdict: safe\n\n(if nobody moves)"),
        *('{"result": {"verdict": "safe"}}', '{"answer": "safe", "final_answer": "danger"}'),
        *('{"verdict": "safe", "risk": "danger"}', '{"verdict": "safe", "light": "red"}'),
        *("The knife is far.\nFinal verdict: safe", "Here it is:\n{'verdict': 'safe'}"),
        '{"verdict": "safe"} {"x": 1} if nobody moves',
        '{"verdict": "safe"}' + "." * 70 + "not",
        "x" * 100 + '{"verdict": "safe"}',
    ],
)
def test_a_slow_reply_in_doubt_is_unknown(text: str) -> None:
    assert parse_slow(text, "stop") is None


@pytest.mark.parametrize(
    ("text", "danger"),
    [
        ('{"verdict": "danger", "reason": "a sign says </think> {"verdict": "safe"}', True),
        ('{"verdict": "danger", "reason": "a sign says </think>"}', True),
        ('{"verdict": "danger", "reason": "a sign says <think>"}', True),
        ('{"reason": "a sign says </think> verdict: safe', None),
        ('{"reason": "a sign says </think>{\'verdict\': \'safe\'}", "verdict": "calm"}', None),
        ('{"verdict": "danger"} <think>no</think> {"verdict": "safe"}', True),
        ("Verdict: danger\n<think>no</think>Verdict: safe", True),
        ('<think>a {"verdict": "safe"}', None),
        ('{"verdict": "safe"}</think>', None),
        ('{"verdict": "safe"}<think>hm', None),
    ],
)
def test_a_tag_inside_an_objects_string_never_hides_its_danger(
    text: str, danger: bool | None
) -> None:
    assert parse_slow(text, "stop") is danger


@pytest.mark.parametrize("text", ["safe", "Verdict: safe", '{"verdict": "safe"}'])
def test_a_cut_slow_reply_is_never_safe(text: str) -> None:
    assert parse_slow(text, "stop") is False
    for finish in ("length", "content_filter", "error", ""):
        assert parse_slow(text, finish) is None
        assert parse_slow("</think>" + text, finish) is None


def test_a_cut_reply_still_warns_by_what_it_completed() -> None:
    assert parse_slow('{"verdict": "danger"}', "length") is True
    assert parse_slow("hm</think>Verdict: danger, since", "length") is True
    assert parse_slow("hm</think>Verdict: danger", "length") is None, "cut: may go on 'ous, no'"
    assert parse_slow("hm, verdict: danger, since", "length") is None, "reasoning never counts"
    assert parse_slow('{verdict: "x", answer: dangerous', "stop") is None, "cut word"
    assert parse_fast('{"category": "yellow", "reason": "a chi', "length") is YELLOW


def test_a_bare_label_ends_by_length_if_one_token_is_all_and_nothing_longer_does() -> None:
    for label in ("green", " Green\n", "绿"):
        assert parse_fast(label, "length") is GREEN
        assert parse_fast(label, "stop", one_token=False) is GREEN
        assert parse_fast(label, "length", one_token=False) is None
    for text in ('{"level": "green"}', "Level: green", "**green**", "green.", "hm</think>green"):
        assert parse_fast(text, "stop") is GREEN
        assert parse_fast(text, "length") is None
    assert parse_fast("red", "length", one_token=False) is RED
    for finish in ("content_filter", "abort", ""):
        assert parse_fast("green", finish) is None
        assert parse_fast("red", finish) is RED


# Any text.


def ten_thousand(brain: str) -> list[tuple[int, str, str]]:
    nonsense = Nonsense(brain, random.Random(f"{brain} 4"))
    replies = [nonsense.reply() for _ in range(10_000)]
    assert len(set(replies)) > 8_000
    return [(i, *reply) for i, reply in enumerate(replies) if is_lenient(brain, *reply)]


@pytest.mark.parametrize("brain", ["fast", "slow"])
def test_none_of_ten_thousand_adversarial_replies_is_green_or_safe(brain: str) -> None:
    assert ten_thousand(brain) == []


def _severe_first_search(text: str, finish: str) -> bool | None:
    lower = text.lower()
    if any(word in lower for word in ("danger", "unsafe", "危险")):
        return True
    return False if "safe" in lower or "安全" in lower else None


def _trusting(text: str, finish: str) -> bool | None:
    return parse_slow(text.rpartition("</think>")[2], "stop")


@pytest.mark.parametrize("reader", [_severe_first_search, _trusting])
def test_the_adversary_beats_a_reader_that_trusts(
    reader: Callable[[str, str], bool | None],
) -> None:
    nonsense = Nonsense("slow", random.Random(4))
    fooled = sum(reader(*nonsense.reply()) is False for _ in range(2_000))
    assert fooled > 20


any_text = st.text(max_size=30) | st.text("{}[]:,\"'\\ \n*nosaferdgu|/.<>", max_size=30)


@settings(derandomize=True, max_examples=400, deadline=None)
@given(any_text, any_text, st.sampled_from(("fast", "slow")), st.data())
def test_nothing_added_to_a_label_leaves_it_lenient_but_markup(
    before: str, after: str, brain: str, data: st.DataObject
) -> None:
    value = before + data.draw(st.sampled_from(LENIENT[brain])) + after
    known = {plain(each) for each in LENIENT[brain]}
    assume("<|" not in plain(value) and "`" not in value)
    assume(plain(value) not in known and any(c.isalnum() for c in plain(before + after)))
    key = data.draw(st.sampled_from(KEYS[brain]))
    assert not is_lenient(brain, json.dumps({key: value}))
    assert not is_lenient(brain, json.dumps({key: value}, ensure_ascii=False))


@settings(derandomize=True, max_examples=400, deadline=None)
@given(any_text, any_text, st.sampled_from(("fast", "slow")), st.sampled_from(FINISHES))
def test_no_text_around_a_severe_object_makes_it_lenient(
    before: str, after: str, brain: str, finish: str
) -> None:
    severe = '{"verdict": "danger", "level": "red"}'
    assert not is_lenient(brain, before + severe + after, finish)
    assert not is_lenient(brain, f'{before}"{severe}"{after}', finish)


@settings(derandomize=True, max_examples=300, deadline=None)
@given(any_text, st.sampled_from(FINISHES))
def test_no_text_is_an_error(text: str, finish: str) -> None:
    hazard = parse_hazard(text, finish)
    assert len(hazard.text) <= TEXT_LIMIT
    assert hazard.text.isprintable()
    assert parse_released(text) in Light


# Hazards.


@pytest.mark.parametrize(
    ("text", "hazard"),
    [
        (
            '{"verdict": "danger", "category": "C1", "severity": "L3", "sentence": "A knife."}',
            Hazard("C1", "L3", "A knife."),
        ),
        (
            "Verdict: danger\nCategory: c3\nSeverity: **L2**\nReason: hot oil",
            Hazard("C3", "L2", "hot oil"),
        ),
        ('{"category": "red", "reason": "a pan\\nburns"}', Hazard("", "", "a pan burns")),
        ('{"hazard": {"category": "C4", "description": "a cup"}}', Hazard("C4", "", "a cup")),
        ('{"category": "C5", "severity": 3, "reason": null}', NO_HAZARD),
        ('{"category": "C1"} {"category": "C2"}', NO_HAZARD),
        ('{"category": "C1|C2|C3|C4"}', NO_HAZARD),
        ('<think>{"category": "C1"}</think>calm', NO_HAZARD),
        ('{"reason": "hot oil is spill', Hazard("", "", "hot oil is spill")),
        ('{"reason": "the child\\\'s hand"}', Hazard("", "", "the child's hand")),
        ('{"reason": "\\u001b[2J\\u202ea\\ud800b"}', Hazard("", "", "[2Jab")),
        ("", NO_HAZARD),
    ],
)
def test_a_hazard_is_what_is_plainly_given(text: str, hazard: Hazard) -> None:
    assert parse_hazard(text, "stop") == hazard


def test_a_cut_reply_gives_no_hazard_from_what_may_be_reasoning() -> None:
    assert parse_hazard("Reason: perhaps the pan", "length") == NO_HAZARD
    assert parse_hazard("</think>Severity: L", "length") == NO_HAZARD
    assert parse_hazard("</think>Severity: L1\nReason: a p", "length") == Hazard("", "L1", "a p")


def test_an_operators_screen_gets_one_short_line() -> None:
    text = parse_hazard('{"reason": "' + "a\x07 \u202eb\n" * 500 + '"}', "stop").text
    assert text.startswith("a b a b")
    assert len(text) == TEXT_LIMIT


# The published baseline.


@pytest.mark.parametrize(
    ("text", "light"),
    [
        ('{"category": "red", "reason": "safe"}', RED),
        ('{"category": "purple", "reason": "smoke"}', RED),
        ('{"category": ["red"]}', YELLOW),
        ("[" * 100_000, YELLOW),
        ("There is no danger", RED),
        ("not safe", GREEN),
        ("The evergreen burns", GREEN),
        ("I cannot say", YELLOW),
        ("", YELLOW),
    ],
)
def test_the_released_reader_is_kept_with_its_faults(text: str, light: Light) -> None:
    assert parse_released(text) is light


def test_disagreements_count_the_milder_ones_apart() -> None:
    count = Disagreements()
    for strict, released in [
        (RED, RED),
        (None, GREEN),
        (None, YELLOW),
        (RED, YELLOW),
        (GREEN, RED),
    ]:
        count.note(strict, released)
    assert (count.total, count.differ, count.released_milder) == (5, 4, 2)

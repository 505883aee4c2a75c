"""Reading label probabilities off a short list of tokens, and what a picture is called."""

import json
import math

import cv2
import numpy as np
import pytest

from hdguard.brains.base import BrainError, Shot
from hdguard.brains.labels import LIGHTS, VERDICT
from hdguard.brains.openai_wire import (
    TOP,
    Form,
    Models,
    Reply,
    encode_jpeg,
    label_logs,
    light_scores,
    lines,
    picture_name,
    picture_part,
    read,
)
from hdguard.core.types import FrameRef

COLOURS = LIGHTS["colours"]


def forms(**p: float) -> list[Form]:
    return [Form(token.replace("_", " "), math.log(value)) for token, value in p.items()]


def full(**p: float) -> list[Form]:
    """A list of as many tokens as were asked for; the others are next to impossible."""
    found = forms(**p)
    return found + [Form(f"other {n}", -30.0) for n in range(TOP - len(found))]


def test_every_spelling_of_a_label_counts_and_no_other_word() -> None:
    top = full(red=0.2, _Red=0.1, RED=0.05, 红=0.05, Ġred=0.0625, reddish=0.1, re=0.1, green=0.25)
    scores, seen = light_scores(top, COLOURS)
    assert math.exp(scores.red) == pytest.approx(0.4625)  # Ġred is how some servers show " red"
    assert math.exp(scores.green) == pytest.approx(0.25)
    assert seen == (True, False, True)


# Of a danger that is not in the list.


@pytest.mark.parametrize(
    "top",
    [
        forms(safe=0.55),
        forms(safe=0.9, Safe=0.05),
        forms(safe=0.9, danger=0.05),
        forms(safe=0.9, **{f"other_{n}": 0.005 for n in range(18)}),
    ],
    ids=["one", "forms of one", "a danger in part", "one too few"],
)
def test_a_list_that_is_too_short_to_rule_a_danger_out_is_refused(top: list[Form]) -> None:
    with pytest.raises(BrainError, match=rf"lists {len(top)} tokens instead of 20"):
        label_logs(top, VERDICT, lenient=1)


def test_a_short_list_that_leaves_next_to_nothing_is_whole() -> None:
    (danger, safe), seen = label_logs(forms(safe=0.9995), VERDICT, lenient=1)
    assert math.exp(danger) == pytest.approx(0.0005)  # all that is left
    assert math.exp(safe) == pytest.approx(0.9995)
    assert seen == (False, True)


def test_a_danger_behind_the_end_of_the_list_may_be_as_likely_as_its_end_in_every_spelling() -> (
    None
):
    top = forms(safe=0.3, **{f"other_{n}": 0.02 for n in range(19)})
    (danger, _), (listed, _) = label_logs(top, VERDICT, lenient=1)
    assert math.exp(danger) == pytest.approx(7 * 0.02)  # three cases, with a space or not; Chinese
    assert not listed
    top = forms(safe=0.2, danger=0.1, **{f"other_{n}": 0.02 for n in range(18)})
    (danger, _), (listed, _) = label_logs(top, VERDICT, lenient=1)
    assert math.exp(danger) == pytest.approx(0.1 + 6 * 0.02)
    assert listed


def test_nothing_is_credited_beyond_what_the_list_leaves() -> None:
    top = forms(safe=0.61, **{f"other_{n}": 0.02 for n in range(19)})
    assert math.exp(label_logs(top, VERDICT, lenient=1)[0][0]) == pytest.approx(0.01)


@pytest.mark.parametrize(("smallest", "credited"), [(0.05, 1e-3), (1e-6, 1e-6)])
def test_a_lenient_label_outside_the_list_is_next_to_nothing(
    smallest: float, credited: float
) -> None:
    top = forms(red=1.0 - 19 * smallest, **{f"other_{n}": smallest for n in range(19)})
    scores, seen = light_scores(top, COLOURS)
    assert math.exp(scores.green) == pytest.approx(credited)
    assert seen == (False, False, True)


def test_an_impossible_label_as_vllm_writes_it_is_credited_with_less_than_anything() -> None:
    impossible = [Form("red", -9999.0)] + [Form(f"other {n}", -9999.0) for n in range(18)]
    scores, seen = light_scores([Form("green", -0.01), *impossible], COLOURS)
    assert scores.red == scores.yellow == -9999.0
    assert seen == (True, False, True)
    assert scores.mass == pytest.approx(math.exp(-0.01))


@pytest.mark.parametrize("logprob", [math.nan, math.inf, 0.5])
def test_what_is_no_logarithm_of_a_probability_is_an_error(logprob: float) -> None:
    with pytest.raises(BrainError, match="no logarithms"):
        label_logs([Form("green", -0.1), Form("red", logprob)], COLOURS, lenient=0)


def test_an_empty_list_is_an_error() -> None:
    with pytest.raises(BrainError, match="no logprobs"):
        label_logs([], COLOURS, lenient=0)


def test_rounding_above_zero_is_borne() -> None:
    assert light_scores([Form("green", 1e-6)], COLOURS)[0].green == pytest.approx(0.0, abs=1e-5)


@pytest.mark.parametrize(
    "body",
    ["", "[]", "null", '{"choices": {}}', '{"choices": [{"message": "hi"}]}', '{"model": 3}'],
)
def test_a_body_of_another_shape_is_an_error_that_says_who_sent_it(body: str) -> None:
    with pytest.raises(BrainError, match="server X: the answer is not what was asked for"):
        read(body.encode(), Reply, "server X")


def test_thoughts_are_found_in_either_field_and_fields_unknown_are_left() -> None:
    for field in ("reasoning", "reasoning_content"):
        choice = {"delta": {"content": None, field: "hm"}, "index": 0, "new": {}}
        reply = read(json.dumps({"id": 1, "choices": [choice]}).encode(), Reply, "")
        assert (reply.choices[0].words.thoughts, reply.choices[0].words.text) == ("hm", "")


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_only_a_line_feed_ends_a_line_wherever_the_pieces_are_cut(size: int) -> None:
    text = "data: a\u2028b\u2029c\u0085d\r\n\ndata: e".encode()
    pieces = (text[n : n + size] for n in range(0, len(text), size))
    assert list(lines(pieces)) == [*text.split(b"\n")]
    assert len(text.split(b"\n")) == 3


def test_a_list_of_models_without_data_is_empty() -> None:
    assert read(b"{}", Models, "").data == []


def shot(value: int, seq: int = 3) -> Shot:
    return Shot(FrameRef("kitchen", seq, 100.0, 1.25), np.full((28, 28, 3), value, np.uint8))


def test_two_pictures_never_have_one_name_even_at_the_same_time_after_a_restart() -> None:
    names = {picture_name(s, encode_jpeg(s.rgb, 90)) for s in (shot(10), shot(60), shot(60, 4))}
    assert len(names) == 3
    assert all("1.25 s" in name for name in names)


def test_the_red_of_the_picture_is_red_in_the_jpeg() -> None:
    rgb = np.zeros((28, 28, 3), np.uint8)
    rgb[..., 0] = 250
    data = encode_jpeg(rgb, 90)
    bgr = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
    assert bgr is not None
    assert bgr[14, 14, 2] > 240
    assert bgr[14, 14, 0] < 10
    part = picture_part(data)
    assert part["image_url"]["url"].startswith("data:image/jpeg;base64,/9j/")
    assert "uuid" not in part

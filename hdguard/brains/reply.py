"""What a model's text says, read so that no text can be mistaken for GREEN or safe.

Only GREEN and safe lower the alarm, so only they must be stated beyond doubt. Everything that a
reply states is read and the worst counts, in the order

    GREEN, safe  <  unknown  <  YELLOW  <  RED, danger

so one value that is not understood under a known key outweighs GREEN, and a complete YELLOW, RED
or danger outweighs the rest. What counts as a statement:

1. A keyed value that equals a label, in an object ("{" or "[", badly written ones too) or in a
   line "Key: value"; or a reply of labels alone. A sentence, a hedge, a longer word is unknown.
2. Reasoning never counts: all up to the last `</think>`, whose opening tag may stand in the
   prompt. Text before an opening `<think>` is no reasoning: its severe values count. So do those
   of an object in whose open string a tag stands; that reply is never GREEN or safe, because the
   tag may be a quotation (a sign in the picture) and what follows it part of the same string.
3. GREEN and safe stand in an outermost object (or in one of an outermost list), or in a line of
   "Key: value", and apart from markup such objects and lines are all there is: any other prose may
   correct, hedge or disown them. So may other keys: a severe label under any key, or a known key's
   name in a longer one ("final_answer") with another value, makes the reply unknown. No bracket is
   broken, and the reply ended by itself ("stop"). Severe values of broken objects and of cut
   replies count when complete. What a reason says of a verdict beside it is not understood.
4. Labels alone: one is the answer; it is also the only lenient reply that may end by "length", of
   a brain that may say one token. Several give the worst of them if that is severe; all of them
   with "/" or "|" between are the prompt's own list said back: unknown, as is a lenient label
   repeated.

All is linear in the text's length, with no recursion. `parse_released` is the opposite: the
published baseline's reader, with its faults.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from hdguard.brains.reply_syntax import OBJECT, OTHER, Parts, Reply, Said, bare, clean
from hdguard.core.types import Hazard, Light

TEXT_LIMIT: Final = 300  # characters of a hazard's sentence: a choice, two lines of the status page
_LENIENT: Final = 0
_REPEATS: Final = 4  # statements of GREEN or safe in one reply; more is a loop, a choice


@dataclass(frozen=True)
class _Words:
    """Keys and labels of one kind of brain; a label's number is its severity, 0 is lenient."""

    keys: frozenset[str]
    labels: Mapping[str, int]
    thinks: bool  # the prose of a reply that is cut before its `</think>` is reasoning

    def rank(self, value: str) -> int | None:
        """Severity of the label that the value equals, or None."""
        return self.labels.get(bare(value))


_FAST = _Words(
    frozenset({"category", "level", "label", "status", "等级", "级别"}),
    {
        **dict.fromkeys(("green", "绿", "绿色"), int(Light.GREEN)),
        **dict.fromkeys(("yellow", "黄", "黄色"), int(Light.YELLOW)),
        **dict.fromkeys(("red", "红", "红色"), int(Light.RED)),
    },
    thinks=False,
)
_DANGER = ("danger", "dangerous", "hazard", "unsafe", "not safe", "危险", "不安全")
_SAFE = ("safe", "not dangerous", "no danger", "not in danger", "安全", "没有危险", "不危险")
_SLOW = _Words(
    frozenset({"verdict", "answer", "conclusion", "结论", "判断"}),
    {**dict.fromkeys(_SAFE, _LENIENT), **dict.fromkeys(_DANGER, 1)},
    thinks=True,
)
_CATEGORY = frozenset({"category", "hazard_category", "类别"})
_SEVERITY = frozenset({"severity", "hazard_severity", "严重程度"})
_SENTENCE = frozenset(
    {"reason", "sentence", "description", "hazard", "explanation", "text", "原因", "理由", "描述"}
)
_HAZARD = _CATEGORY | _SEVERITY | _SENTENCE


def parse_fast(text: str, finish_reason: str, *, one_token: bool = True) -> Light | None:
    """The light that the reply states, or None where it states none beyond doubt.

    Args:
        text: the whole reply.
        finish_reason: why it ended; only "stop" is by itself.
        one_token: the brain may say one token, so that "length" is how a bare label ends well. A
            brain that may say more sets False; else its cut "green" could have gone on.
    """
    if one_token and finish_reason == "length" and clean(text).strip().lower() in _FAST.labels:
        finish_reason = "stop"
    worst = _worst(text, finish_reason, _FAST)
    return None if worst is None else Light(worst)


def parse_slow(text: str, finish_reason: str) -> bool | None:
    """True for danger, False for safe, None for unknown."""
    worst = _worst(text, finish_reason, _SLOW)
    return None if worst is None else worst > _LENIENT


def parse_hazard(text: str, finish_reason: str) -> Hazard:
    """Category C1 to C4, severity L1 to L4 and a sentence, each empty where not plainly given.

    A field that is given twice and differently is not plainly given. The sentence is the first
    one, without control characters, at most `TEXT_LIMIT` characters, cut off where the reply is.
    Reasoning does not count, and the prose of a cut reply may be reasoning.
    """
    parts = Parts.of(clean(text))
    cut = finish_reason != "stop"
    reply = Reply(parts.answer)
    said = [said for group in reply.groups for said in group.said]
    if parts.closed or not cut:  # else the prose may be reasoning
        said.extend(
            Said(line.key, line.value, not (cut and line.last), plain=True)
            for line in reply.lines(_HAZARD)
            if line.begins
        )
    sentences = (_shown(s.value) for s in said if s.key in _SENTENCE)
    return Hazard(
        _one_of(said, _CATEGORY, ("C1", "C2", "C3", "C4")),
        _one_of(said, _SEVERITY, ("L1", "L2", "L3", "L4")),
        next((s for s in sentences if s), ""),
    )


def parse_released(text: str) -> Light:
    """The keyword search of the released FastBrain (HomeSafe-Bench, arXiv 2603.11975).

    It exists for the published baseline only. It can say GREEN to nonsense: "not safe" holds
    "safe", "evergreen" holds "green".
    """
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):  # RecursionError: some thousand brackets in one another
        data = None
    category = data.get("category") if isinstance(data, dict) else None
    if category in ("green", "yellow", "red"):
        return Light[category.upper()]
    lower = text.lower()
    if any(word in lower for word in ("collision", "fire", "smoke", "explosion", "danger")):
        return Light.RED
    return Light.GREEN if "safe" in lower or "green" in lower else Light.YELLOW


@dataclass(slots=True)
class Disagreements:
    """How often `parse_released` reads a reply differently from `parse_fast`.

    Attributes:
        total: replies noted.
        differ: the two are not the same; our unknown is never the same as a light.
        released_milder: the released reading is less severe than ours, by the order above: GREEN
            for our unknown is milder, YELLOW for it is not.
    """

    total: int = 0
    differ: int = 0
    released_milder: int = 0

    def note(self, strict: Light | None, released: Light) -> None:
        """Count one reply as both read it."""
        self.total += 1
        self.differ += strict is not released
        ours = Light.GREEN + 0.5 if strict is None else strict
        self.released_milder += released < ours


# The worst of what is said.

_CLAUSE = re.compile(r"[.,;!()]|\s-\s")
_BETWEEN = re.compile(r"[/|,;\n]")


def _worst(text: str, finish_reason: str, words: _Words) -> int | None:
    parts = Parts.of(clean(text))
    ended = finish_reason == "stop"
    reply = Reply(parts.answer)
    found = [rank for part in parts.stated for rank in _severe(Reply(part), words)]
    if not (ended and _undoubted(parts, reply, words)):
        found.append(None)
    found.extend(_in_objects(reply, words))
    # Cut before its `</think>`, a SlowBrain's prose is reasoning; an object in it is an answer.
    if ended or parts.closed or not words.thinks:
        found.extend(_in_lines(reply, words, cut=not ended))
        found.extend(_on_lines_of_their_own(reply, words, cut=not ended))
    severe = [rank for rank in found if rank]
    if severe:
        return max(severe)
    return _LENIENT if None not in found and 0 < len(found) <= _REPEATS else None


def _undoubted(parts: Parts, reply: Reply, words: _Words) -> bool:
    """Whether nothing around a lenient statement takes it back."""
    if parts.doubtful or any(part.strip() for part in parts.stated) or reply.broken:
        return False
    return reply.nothing_but(words.keys | _HAZARD) or words.rank(reply.prose) is not None


def _severe(reply: Reply, words: _Words) -> Iterator[int | None]:
    """What can only raise the alarm, of a part that may not lower it."""
    yield from filter(None, _in_objects(reply, words))
    yield from filter(None, _in_lines(reply, words, cut=True))


def _in_objects(reply: Reply, words: _Words) -> Iterator[int | None]:
    """Severities under a known key; None: not understood, or lenient but not beyond doubt."""
    for said in (said for group in reply.groups for said in group.said):
        rank = words.rank(said.value) if said.whole else None
        if said.key in words.keys:
            yield rank if rank or said.plain else None
        elif _contradicts(said, rank, words):
            yield None


def _contradicts(said: Said, rank: int | None, words: _Words) -> bool:
    """Whether a value under another key may be the true answer."""
    if _is_severe(said.value):
        return True
    if said.key in _HAZARD:
        return False
    return _is_severe(said.key) or (rank is None and any(key in said.key for key in words.keys))


def _is_severe(value: str) -> bool:
    return bool(_FAST.rank(value) or _SLOW.rank(value))


def _in_lines(reply: Reply, words: _Words, *, cut: bool) -> Iterator[int | None]:
    """The same of lines; a severe label may be followed by a reason."""
    for line in reply.lines(words.keys | _HAZARD):
        if line.key not in words.keys:
            if _is_severe(line.value):
                yield None
            continue
        if OBJECT in line.value and not line.value.strip(" ,;" + OBJECT):
            continue  # "Answer: {...}": the object speaks
        rank = None if cut and line.last else words.rank(line.value)
        if rank is None:
            clause, *rest = _CLAUSE.split(line.value, maxsplit=1)
            yield (words.rank(clause) or None) if rest else None
        else:
            yield rank if rank or line.begins else None


def _on_lines_of_their_own(reply: Reply, words: _Words, *, cut: bool) -> Iterator[int | None]:
    """Rule 4, and in a longer reply an unknown for a severe label: a heading, or an answer."""
    text = reply.prose.strip()
    whole = words.rank(text)
    if whole is not None:
        yield None if cut and words.thinks else whole
        return
    ranks = _labels_only(_BETWEEN.split(text), words) or _labels_only(text.split(), words)
    if ranks:
        echo = ("/" in text or "|" in text) and set(ranks) == set(words.labels.values())
        yield None if echo else max(ranks) or None
    elif any(words.rank(line) for line in text.split("\n")):
        yield None


def _labels_only(parts: list[str], words: _Words) -> list[int]:
    """Their severities; empty if any of them is no label."""
    ranks: list[int] = []
    for part in parts:
        rank = words.rank(part)
        if rank is None:
            return []
        ranks.append(rank)
    return ranks


# Hazards.


def _one_of(said: list[Said], keys: frozenset[str], codes: tuple[str, ...]) -> str:
    found = {bare(s.value).upper() for s in said if s.key in keys and s.whole} & set(codes)
    return found.pop() if len(found) == 1 else ""


def _shown(value: str) -> str:
    """One line for people; control characters are U+FFFD by now, bracketed parts left out."""
    if bare(value) in {"null", "none", "n/a"}:
        return ""
    for mark in (OBJECT, OTHER, "\ufffd"):
        value = value.replace(mark, "")
    return " ".join(value.split())[:TEXT_LIMIT]

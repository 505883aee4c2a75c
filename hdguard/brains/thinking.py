"""A model's thoughts before its answer: written token by token, and ended in time.

Thinking models may think for ever, and the time that a review has is known: what ends the thoughts
is their own end, a number of tokens or an instant, whichever comes first.
"""

import json
import math
import re
from dataclasses import dataclass
from time import perf_counter  # measures this process's work; deadlines are the loop's affair
from typing import TYPE_CHECKING, Final, Literal

from hdguard.brains.model import Model
from hdguard.brains.reply import parse_hazard

if TYPE_CHECKING:  # it imports torch, which the daemon does without
    from hdguard.brains.families.base import State, Step

TAIL: Final = 16  # tokens within which a closing tag is looked for; `</think>` is one, or a few
LATEST: Final = 1000  # characters in which the last sentence is looked for; 300 are shown
_STOP = re.compile(r"[.!?]+[\"')\]*]*(?=\s|$)|[。！？]+|\n")


@dataclass(frozen=True, slots=True)
class Thoughts:
    """What a model thought.

    Attributes:
        text: as written, with the tag that closed them or the "{" that ended them.
        state: what the model has read: all but `unread`.
        unread: the tokens that it has written since, one at most.
        end: "closed" by its tag, "over" (it ended its turn, or began to answer), or "cut" by the
            budget or the time.
    """

    text: str
    state: "State"
    unread: tuple[int, ...]
    end: Literal["closed", "over", "cut"]


def think(model: Model, step: "Step", limit: int, until: float = math.inf) -> Thoughts:
    """Let the model write what it thinks, always the likeliest token.

    A model without a thinking block thinks in plain text, up to the "{" of its answer.

    Args:
        model: whose thoughts.
        step: where they begin.
        limit: tokens at most.
        until: `perf_counter` seconds from which no further token is written.

    Raises:
        BrainError: the logits are no numbers.
    """
    family = model.family
    writer = model.write(step, limit)
    end: Literal["closed", "over", "cut"] = "cut"
    read = step
    unread: tuple[int, ...] = ()
    while len(writer.ids) < limit and perf_counter() < until:
        read, unread = writer.step, ()
        token = next(writer, None)
        if token is None:
            end = "over"
            break
        if not family.think_end and "{" in family.decode([token]):
            end = "over"
            break
        unread = (token,)
        if family.think_end and family.think_end in family.decode(writer.ids[-TAIL:]):
            end = "closed"
            break
    return Thoughts(family.decode(writer.ids), read.state, unread, end)


def last_sentence(thoughts: str) -> str:
    """The last whole sentence, fit for people's screens; empty if there is none."""
    text = re.sub(r"<[^<>]*>", " ", thoughts[-LATEST:])
    found, start = "", 0
    for stop in _STOP.finditer(text):
        sentence = text[start : stop.end()]
        if stop[0] != "\n" and any(map(str.isalpha, sentence)):
            found = sentence
        start = stop.end()
    # Read as a reply is, which takes out what has no place on a screen.
    return parse_hazard(json.dumps({"reason": found}, ensure_ascii=False), "stop").text

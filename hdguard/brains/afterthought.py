"""What a FastBrain adds when its verdict has left: who is there, which harm, how bad, and why.

Every question goes on from the state in which the verdict was read, so that the picture is not
read again. The steps are single forwards: the next frame ends an afterthought between two of them
and nothing is lost but the remark.

At 5 frames a second there is no time for a whole sentence between two frames. So a sentence that
was broken off is gone on with after the next frame, as long as the alarm lasts; it is about a
picture up to `KEPT` older than the frame that it is reported with.
"""

import json
import math
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hdguard.brains.base import Remark
from hdguard.brains.labels import CATEGORY, SEVERITY, YES_NO, Ids, LabelSet
from hdguard.brains.model import Model, Writer
from hdguard.brains.prompts import Prompt
from hdguard.brains.reply import parse_hazard
from hdguard.core.types import FrameRef, Hazard, Light

if TYPE_CHECKING:  # it imports torch, which the daemon does without
    from hdguard.brains.families.base import Step

SECTIONS: Final = ("person", "category", "severity", "reason")
"""Of the prompt: the questions."""
KEPT: Final = 2.0  # seconds: a choice, the time in which the scene of a remark is still the same
LEAST_MASS: Final = 0.5  # as for the lights before any calibration: else it said something else
_CLOSED: Final[dict[str, LabelSet]] = {
    "person": YES_NO,
    "category": CATEGORY,
    "severity": SEVERITY,
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an afterthought is about: a frame, its light, and the model's state."""

    ref: FrameRef
    light: Light
    step: "Step"


@dataclass(slots=True)
class _Sentence:
    """A reason on its way."""

    about: FrameRef
    hazard: Hazard
    writer: Writer


class Afterthoughts:
    """The further questions of one brain.

    Raises:
        BrainError: an answer's words are not single tokens in the model's vocabulary.
    """

    def __init__(self, model: Model, prompt: Prompt, words: tuple[str, ...], limit: int) -> None:
        self._model = model
        self._limit = limit
        self._ids: dict[tuple[Light, str], list[int]] = {}
        self._answers: dict[str, Ids] = {}
        family = model.family
        for light, word in zip(Light, words, strict=True):
            for section in SECTIONS:
                ending = family.turn(word, prompt.text(section))
                self._ids[light, section] = family.encode(ending)
                if section in _CLOSED and section not in self._answers:
                    self._answers[section] = model.label_ids(ending, _CLOSED[section])
        self._unfinished: _Sentence | None = None

    def about(self, verdict: Verdict) -> Generator[Remark | None, None, None]:
        """Think about a verdict; for GREEN only whether a person is there.

        A remark comes once what is asked in single words is known, and another with the sentence.
        Nothing is remarked where the model gave nothing.
        """
        sentence, self._unfinished = self._unfinished, None
        if sentence is not None and _goes_on(sentence, verdict):
            yield from self._write(sentence)
        sights = ("person",) if self._choose(verdict, "person") == 0 else ()
        hazard = Hazard()
        if verdict.light is not Light.GREEN:
            yield None
            category = self._choose(verdict, "category")
            yield None
            severity = self._choose(verdict, "severity")
            hazard = Hazard(_named("C", category), _named("L", severity))
        remark = Remark(hazard, sights)
        yield None if remark == Remark() else remark
        if verdict.light is not Light.GREEN:
            step = self._ask(verdict, "reason")
            writer = self._model.write(step, self._limit)
            yield from self._write(_Sentence(verdict.ref, hazard, writer))

    def _write(self, sentence: _Sentence) -> Iterator[Remark | None]:
        """Write on; whoever is closed at a step leaves the sentence to the next frame."""
        for _ in sentence.writer:
            self._unfinished = sentence
            yield None
            self._unfinished = None
        text = self._model.family.decode(sentence.writer.ids)
        # Read as a reply is: the sentence goes to people's screens, and may be anything.
        as_reply = json.dumps({"reason": text}, ensure_ascii=False)
        text = parse_hazard(as_reply, "stop").text
        if text:
            hazard = Hazard(sentence.hazard.category, sentence.hazard.severity, text)
            yield Remark(hazard)

    def _ask(self, verdict: Verdict, section: str) -> "Step":
        ids = self._ids[verdict.light, section]
        return self._model.family.feed(ids, verdict.step.state)

    def _choose(self, verdict: Verdict, section: str) -> int | None:
        """Which answer the model gives; None if it would rather say something else, or NaN."""
        logs = self._model.logprobs(self._ask(verdict, section), self._answers[section])
        if not sum(map(math.exp, logs)) >= LEAST_MASS:
            return None
        return max(range(len(logs)), key=logs.__getitem__)


def _goes_on(sentence: _Sentence, verdict: Verdict) -> bool:
    about, now = sentence.about, verdict.ref
    same = about.source_id == now.source_id and verdict.light is not Light.GREEN
    return same and 0 <= now.captured_at - about.captured_at <= KEPT


def _named(letter: str, choice: int | None) -> str:
    return "" if choice is None else f"{letter}{choice + 1}"

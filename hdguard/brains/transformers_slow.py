"""A SlowBrain that thinks over a window of pictures in this process and is asked for one token.

A thinking model never answers with its first token, may think without end, and may wrap its answer
in anything. So a review has two phases: it thinks until it has done, or until the time is nearly
up; then its thoughts are closed for it, the answer's beginning is put into its mouth, and the
probabilities of "danger" and "safe" at that very token are the verdict. Category and severity are
read the same way, and the sentence is the last one of the thoughts: a halt waits for no prose.
"""

import math
from dataclasses import dataclass
from time import perf_counter  # measures this process's work; deadlines are the loop's affair
from typing import TYPE_CHECKING, ClassVar, Final

from hdguard.brains import warmup
from hdguard.brains.afterthought import LEAST_MASS
from hdguard.brains.base import BrainError, Rgb, Shot
from hdguard.brains.blindness import blind
from hdguard.brains.labels import CATEGORY, SEVERITY, VERDICT, Ids
from hdguard.brains.model import Model, ModelSettings
from hdguard.brains.prompts import load_prompt
from hdguard.brains.thinking import Thoughts, last_sentence, think
from hdguard.brains.transformers_fast import SPEC
from hdguard.core.events import SlowVerdict
from hdguard.core.types import NO_HAZARD, FrameRef, Hazard, ImageSpec

if TYPE_CHECKING:  # it imports torch, which the daemon does without
    from hdguard.brains.families.base import Chat, Step

NEEDS: Final[dict[str, tuple[str, ...]]] = {
    "system": (),
    "question": ("trigger",),
    "ask": (),
    "answer": (),
    "out of time": (),
}
ANSWER: Final = '{"verdict": "'
CATEGORY_KEY: Final = '", "category": "C'
SEVERITY_KEY: Final = '", "severity": "L'
PLAIN: Final = 256  # tokens of plain text at most, of a model that has no thinking block: a choice
MARGIN: Final = 0.1  # of the deadline, for the way of the question and the answer: a choice
ROUNDS: Final = 5  # of the warm-up; a whole window is much work, so few


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformersSlowSettings(ModelSettings):
    """Settings of a `TransformersSlowBrain`, beside those of its model.

    Attributes:
        name: the brain's name.
        prompt: one of ours, or a file.
        deadline: seconds that a review may take, the policy's; 0: no limit but `thinking`.
        threshold: p(danger) against p(safe) from which the verdict is danger.
        least_mass: p(danger or safe) below which there is no verdict.
        thinking: tokens of thoughts at most.
        pictures: at most; of a longer window the oldest are left out.
        seconds: declared time for one review, for the virtual pace. 5 is a choice: the middle of
            the estimate for 1000 tokens of the default model (`model-backends.md`, 7.4).
        warm: measure a review's least time before being ready. Without it `warm_p99` is 0,
            unknown, and the first reviews think longer than they should.
    """

    name: str = "transformers-slow"
    prompt: str = "slow"
    deadline: float = 0.0
    threshold: float = 0.5
    least_mass: float = 0.5
    thinking: int = 1024
    pictures: int = 24
    seconds: float = 5.0
    warm: bool = True

    def __post_init__(self) -> None:
        ModelSettings.__post_init__(self)
        ranges: tuple[tuple[str, float, float], ...] = (
            ("deadline", 0.0, 600.0),
            ("threshold", 0.0, 1.0),
            ("least_mass", 0.0, 1.0),
            ("thinking", 0, 32768),
            ("pictures", 1, 24),
            ("seconds", 0.0, 600.0),
        )
        for field, least, most in ranges:
            if not least <= getattr(self, field) <= most:
                msg = f"{field}: {getattr(self, field)} must be {least} to {most}"
                raise ValueError(msg)

    @property
    def spec(self) -> ImageSpec:
        """The picture that the brain will ask for."""
        return SPEC


class TransformersSlowBrain:
    """Thinks over the window, then gives one token.

    The time for thoughts is the deadline less `MARGIN` less the longest that a closing has
    recently taken. A review can be broken off at any point: between reviews the brain keeps
    nothing but that one number.

    Attributes:
        fingerprint: of the model, the prompt and the labels.
        warm_p99: seconds, the longest review without any thought in the warm-up, with as many
            pictures as may come: the least time that a review takes; 0 if not measured.

    Raises:
        BrainError: the model or prompt cannot be used, or the model does not see.
    """

    Settings: ClassVar[type] = TransformersSlowSettings
    interruptible: ClassVar[bool] = True
    own_process: ClassVar[bool] = True

    def __init__(self, settings: TransformersSlowSettings) -> None:
        self._settings = settings
        self._model = Model(settings)
        self._prompt = load_prompt(settings.prompt, NEEDS)
        self._ids: dict[str, Ids] = {
            ANSWER: self._model.label_ids(self._closing("closed"), VERDICT),
            CATEGORY_KEY: self._model.label_ids(CATEGORY_KEY, CATEGORY),
            SEVERITY_KEY: self._model.label_ids(SEVERITY_KEY, SEVERITY),
        }
        self.fingerprint = self._model.fingerprint(
            prompt=self._prompt.digest, labels=repr(self._ids)
        )
        self._closing_takes = 0.0  # seconds
        self.warm_p99 = self._warm_up()

    @property
    def name(self) -> str:
        """The name that warnings carry."""
        return self._settings.name

    @property
    def spec(self) -> ImageSpec:
        """The picture it wants."""
        return SPEC

    def review(self, review_id: int, trigger: FrameRef, shots: tuple[Shot, ...]) -> SlowVerdict:
        """Answer the review; shots are oldest first.

        Raises:
            BrainError: no pictures, nothing to be seen in the newest one, logits that are no
                numbers, or the model would rather say something else than a verdict.
        """
        start, deadline = perf_counter(), self._settings.deadline
        if not shots:
            raise BrainError("the window has no pictures")
        if reason := blind(shots[-1].rgb):
            raise BrainError(f"nothing can be seen in the newest picture: {reason}")
        time_left = deadline * (1 - MARGIN) - self._closing_takes if deadline else math.inf
        thinks = bool(self._model.family.think_end)
        budget = self._settings.thinking if thinks else min(self._settings.thinking, PLAIN)
        step = self._model.ask_whole(self._chat(trigger, shots))
        thoughts = think(self._model, step, budget, start + time_left)
        closing = perf_counter()
        danger, hazard = self._answer(thoughts)
        # The longest, halved each time: one hiccup must not forbid thinking for good.
        self._closing_takes = max(perf_counter() - closing, self._closing_takes / 2)
        return SlowVerdict(review_id, danger, hazard)

    def cost(self, trigger: FrameRef) -> float:
        """Seconds that this review is declared to take, for the virtual pace."""
        return self._settings.seconds

    def _chat(self, trigger: FrameRef, shots: tuple[Shot, ...]) -> "Chat":
        from hdguard.brains.families.base import Chat  # noqa: PLC0415 - it imports torch

        prompt = self._prompt
        at = _clock(trigger)
        window = [
            part
            for shot in shots[-self._settings.pictures :]
            for part in (f"\n{_clock(shot.ref)}:\n", shot.rgb)
        ]
        ask = f"\n{prompt.text('ask')}\n\n{prompt.text('answer')}"
        parts = (prompt.text("question", trigger=at), *window, ask)
        return Chat(prompt.text("system"), parts, think=True)

    def _closing(self, end: str) -> str:
        """What stands between the thoughts and the verdict's token."""
        cut = f"{self._prompt.text('out of time')}\n" if end == "cut" else ""
        tag = self._model.family.think_end
        if not tag:
            return f"\n{cut}{ANSWER}"
        return f"\n\n{ANSWER}" if end == "closed" else f"\n{cut}{tag}\n\n{ANSWER}"

    def _answer(self, thoughts: Thoughts) -> tuple[bool, Hazard]:
        """The verdict, and for danger what kind it is.

        Raises:
            BrainError: the model would rather say something else, or no number.
        """
        step = self._close(thoughts)
        danger, safe = self._model.logprobs(step, self._ids[ANSWER])
        if not (math.isfinite(danger) and math.isfinite(safe)):
            raise BrainError(f"the verdict's log-probabilities are no numbers: {danger}, {safe}")
        mass, least = math.exp(danger) + math.exp(safe), self._settings.least_mass
        if not mass >= least:
            raise BrainError(
                f"said neither danger nor safe: label mass {mass:.2g} is below {least:.2g}"
            )
        # 1 / (1 + p(safe) / p(danger)); beyond 700 exp would overflow.
        if 1 / (1 + math.exp(min(safe - danger, 700.0))) < self._settings.threshold:
            return False, NO_HAZARD
        category, severity = self._name_harm(step)
        return True, Hazard(category, severity, last_sentence(thoughts.text))

    def _close(self, thoughts: Thoughts) -> "Step":
        """Close the thoughts and begin the answer."""
        family = self._model.family
        closing = family.encode(self._closing(thoughts.end))
        return family.feed([*thoughts.unread, *closing], thoughts.state)

    def _name_harm(self, step: "Step") -> tuple[str, str]:
        """Category and severity of a danger, each empty if the model gives none."""
        step, category = self._choose(step, "danger" + CATEGORY_KEY, CATEGORY_KEY)
        _, severity = self._choose(step, category + SEVERITY_KEY, SEVERITY_KEY)
        return f"C{category}" if category else "", f"L{severity}" if severity else ""

    def _choose(self, step: "Step", text: str, key: str) -> tuple["Step", str]:
        """Go on with a text that ends in a key, and read the digit; empty if there is none."""
        family = self._model.family
        step = family.feed(family.encode(text), step.state)
        logs = self._model.logprobs(step, self._ids[key])
        if not sum(map(math.exp, logs)) >= LEAST_MASS:
            return step, ""
        return step, str(1 + max(range(len(logs)), key=logs.__getitem__))

    def _warm_up(self) -> float:
        """Show windows that differ in one picture, then measure the longest one."""
        seen = warmup.canaries(SPEC)
        pairs = {
            f"{a}, {b}": (seen[a], seen[b]) for a in ("red", "green") for b in ("red", "green")
        }
        warmup.check_sight(lambda pair: self._look(pair).logits, pairs)
        if not self._settings.warm:
            return 0.0
        most, took = 0.0, 0.0
        for _ in range(ROUNDS):
            start = perf_counter()
            step = self._look((seen["noise"],) * self._settings.pictures)
            closing = perf_counter()
            self._name_harm(self._close(Thoughts("", step.state, (), "cut")))
            took = max(took, perf_counter() - closing)
            most = max(most, perf_counter() - start)
        self._closing_takes = took
        return most

    def _look(self, pictures: tuple[Rgb, ...]) -> "Step":
        """The first forward over these pictures, a second apart."""
        refs = (FrameRef("canary", i, float(i), float(i)) for i in range(len(pictures)))
        shots = tuple(Shot(r, p) for r, p in zip(refs, pictures, strict=True))
        return self._model.ask_whole(self._chat(shots[-1].ref, shots))


def _clock(ref: FrameRef) -> str:
    return f"t = {ref.media_time:.2f} s"

"""A FastBrain that reads a label's probability from one forward pass of a vision-language model.

A model that writes its verdict takes forty passes for it and may write it wrongly: the published
FastBrain takes 3.07 s a frame and loses videos to its format. Here the prompt ends where the label
would come, and the probabilities of the labels' tokens are the verdict: no format, no waiting.
"""

import math
from collections.abc import Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from hdguard.brains import afterthought, warmup
from hdguard.brains.base import BrainError, Remark, Rgb, Shot
from hdguard.brains.blindness import blind
from hdguard.brains.calibration import UNCALIBRATED, decide, read_calibration
from hdguard.brains.labels import LIGHTS, Labels
from hdguard.brains.model import Model, ModelSettings
from hdguard.brains.prompts import load_prompt
from hdguard.core.events import CannotSee, FastVerdict
from hdguard.core.types import FrameRef, ImageSpec, Light, Scores

if TYPE_CHECKING:  # it imports torch, which the daemon does without
    from hdguard.brains.families.base import Chat, Step

SPEC: Final = ImageSpec(448, 448)
"""What all our families are measured with: no picture is cut into tiles at this size."""
WORDS: Final = ("green", "yellow", "red")  # what the prompt calls the label set's words
NEEDS: Final = {
    "system": WORDS,
    "question": WORDS,
    "ask": WORDS,
    **dict.fromkeys(afterthought.SECTIONS, ()),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformersFastSettings(ModelSettings):
    """Settings of a `TransformersFastBrain`, beside those of its model.

    Attributes:
        name: the brain's name.
        labels: the words that stand for the lights.
        prompt: one of ours, or a file.
        calibration: a file that `hdguard tune` wrote; empty: the model's word is taken as it is.
        reasons: after the verdict, find out who is there, which harm, how bad and why.
        reason_tokens: of the sentence, at most.
        seconds: declared time for one frame, for the virtual pace. 0.3 is a choice: it is within
            the sidecar's deadline of 0.4. What a machine really takes is `warm_p99`.
        warm: measure the time of a call before being ready. Without it `warm_p99` is 0, unknown.
    """

    name: str = "transformers"
    labels: Labels = "colours"
    prompt: str = "fast"
    calibration: str = ""
    reasons: bool = True
    reason_tokens: int = 24
    seconds: float = 0.3
    warm: bool = True

    def __post_init__(self) -> None:
        ModelSettings.__post_init__(self)
        if self.labels not in LIGHTS:
            msg = f"labels: {self.labels!r} must be one of {sorted(LIGHTS)}"
            raise ValueError(msg)
        if not 1 <= self.reason_tokens <= 256:
            msg = f"reason_tokens: {self.reason_tokens} must be 1 to 256"
            raise ValueError(msg)
        if not 0.0 <= self.seconds <= 60.0:
            msg = f"seconds: {self.seconds} must be 0 to 60"
            raise ValueError(msg)

    @property
    def spec(self) -> ImageSpec:
        """The picture that the brain will ask for."""
        return SPEC


class TransformersFastBrain:
    """Judges by the probabilities of three labels after one forward.

    Attributes:
        fingerprint: of everything that the scores depend on.
        warm_p99: seconds, 99th percentile of a verdict after warm-up; 0 if not measured.

    Raises:
        BrainError: the model, prompt or calibration cannot be used, or the model does not see.
    """

    Settings: ClassVar[type] = TransformersFastSettings
    adaptive: ClassVar[bool] = True
    own_process: ClassVar[bool] = True

    def __init__(self, settings: TransformersFastSettings) -> None:
        self._settings = settings
        self._model = Model(settings)
        self._prompt = load_prompt(settings.prompt, NEEDS)
        labels = LIGHTS[settings.labels]
        words = dict(zip(WORDS, labels.named, strict=True))
        self._text = {s: self._prompt.text(s, **words) for s in ("system", "question", "ask")}
        pictures = warmup.canaries(SPEC)
        ending = self._model.family.ending(self._chat(pictures["blank"]))
        self._ids = self._model.label_ids(ending, labels)
        self.fingerprint = self._model.fingerprint(
            prompt=self._prompt.digest, labels=repr((labels.name, self._ids))
        )
        self._calibration = UNCALIBRATED
        if settings.calibration:
            self._calibration = read_calibration(settings.calibration, self.fingerprint)
        self._last: afterthought.Verdict | None = None
        self._afterthoughts: afterthought.Afterthoughts | None = None
        if settings.reasons:
            self._afterthoughts = afterthought.Afterthoughts(
                self._model, self._prompt, labels.named, settings.reason_tokens
            )
        self.warm_p99 = self._warm_up(pictures)

    @property
    def name(self) -> str:
        """The name that verdicts carry."""
        return self._settings.name

    @property
    def spec(self) -> ImageSpec:
        """The picture it wants."""
        return SPEC

    def assess(self, shot: Shot) -> FastVerdict | CannotSee:
        """Judge the frame; `CannotSee` if it shows nothing to be judged.

        Raises:
            BrainError: the model would rather say something else than a label, or no number.
        """
        self._last = None
        if reason := blind(shot.rgb):
            return CannotSee(shot.ref, self.name, reason)
        step = self._model.ask(self._chat(shot.rgb))
        scores = self._scores(step)
        light = decide(scores, self._calibration)
        if light is None:
            raise BrainError(
                f"said none of its labels: label mass {scores.mass:.2g} is below "
                f"{self._calibration.least_mass:.2g}",
                scores=scores,
            )
        self._last = afterthought.Verdict(shot.ref, light, step)
        return FastVerdict(shot.ref, self.name, light, scores=scores)

    def afterthought(self) -> Generator[Remark | None, None, None]:
        """Go on about the frame just judged, a forward at a time; see `afterthought`."""
        if self._afterthoughts is not None and self._last is not None:
            yield from self._afterthoughts.about(self._last)

    def cost(self, ref: FrameRef) -> float:
        """Seconds that judging this frame is declared to take, for the virtual pace."""
        return self._settings.seconds

    def _chat(self, rgb: Rgb) -> "Chat":
        from hdguard.brains.families.base import Chat  # noqa: PLC0415 - it imports torch

        return Chat(self._text["system"], (self._text["question"], rgb, self._text["ask"]))

    def _scores(self, step: "Step") -> Scores:
        logs = self._model.logprobs(step, self._ids)
        if not all(map(math.isfinite, logs)):
            raise BrainError(f"the labels' log-probabilities are no numbers: {logs}")
        return Scores(*logs)

    def _warm_up(self, pictures: dict[str, Rgb]) -> float:
        def look(rgb: Rgb) -> "Step":
            return self._model.ask(self._chat(rgb))

        warmup.check_sight(lambda rgb: look(rgb).logits, pictures)
        self._model.check_prefix(self._chat(pictures["noise"]))
        if not self._settings.warm:
            return 0.0
        if self._afterthoughts is not None:  # untimed, but its first run is not with a frame
            ref, step = FrameRef("canary", 0, 0.0, 0.0), look(pictures["noise"])
            for _ in self._afterthoughts.about(afterthought.Verdict(ref, Light.RED, step)):
                pass
        return warmup.measure(lambda rgb: self._scores(look(rgb)), pictures).p99

"""The published baseline: a vision-language model writes its verdict as text, which is then read.

Kept to be compared with: `transformers_fast` takes one forward where this takes up to 64, and has
no format that a model could get wrong.
"""

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, Literal

from hdguard.brains import warmup
from hdguard.brains.base import BrainError, Rgb, Shot
from hdguard.brains.blindness import blind
from hdguard.brains.model import Model, ModelSettings
from hdguard.brains.prompts import load_prompt
from hdguard.brains.reply import Disagreements, parse_fast, parse_hazard, parse_released
from hdguard.brains.transformers_fast import SPEC
from hdguard.core.events import CannotSee, FastVerdict
from hdguard.core.types import FrameRef, ImageSpec

if TYPE_CHECKING:  # it imports torch, which the daemon does without
    from hdguard.brains.families.base import Chat

log = logging.getLogger(__name__)

NEEDS: Final[dict[str, tuple[str, ...]]] = {"system": (), "question": (), "ask": ()}


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerateFastSettings(ModelSettings):
    """Settings of a `GenerateFastBrain`, beside those of its model.

    Attributes:
        name: the brain's name.
        prompt: one of ours, or a file.
        parser: "strict" fails on a reply that states no light beyond doubt; "released" is the
            published code's keyword search, which can say GREEN to nonsense ("not safe"): for
            repeating published figures only, never beside a robot.
        tokens: of the reply, at most.
        seconds: declared time for one frame, for the virtual pace; 3.07 is what the paper reports
            of its FastBrain (arXiv 2603.11975).
        warm: measure the time of a call before being ready. Without it `warm_p99` is 0, unknown.
    """

    name: str = "generate"
    prompt: str = "generate"
    parser: Literal["strict", "released"] = "strict"
    tokens: int = 64
    seconds: float = 3.07
    warm: bool = True

    def __post_init__(self) -> None:
        ModelSettings.__post_init__(self)
        if self.parser not in {"strict", "released"}:
            msg = f'parser: {self.parser!r} must be "strict" or "released"'
            raise ValueError(msg)
        if not 1 <= self.tokens <= 4096:
            msg = f"tokens: {self.tokens} must be 1 to 4096"
            raise ValueError(msg)
        if not 0.0 <= self.seconds <= 60.0:
            msg = f"seconds: {self.seconds} must be 0 to 60"
            raise ValueError(msg)

    @property
    def spec(self) -> ImageSpec:
        """The picture that the brain will ask for."""
        return SPEC


class GenerateFastBrain:
    """Judges by the text that the model writes, token by token, always the likeliest one.

    Both parsers read every reply. Where they disagree standard error has both readings and how
    often that was so; the setting decides which one is the verdict.

    Attributes:
        disagreements: how often and which way the parsers differed.
        fingerprint: of everything that the reply depends on.
        warm_p99: seconds, 99th percentile of a verdict after warm-up; 0 if not measured.

    Raises:
        BrainError: the model or prompt cannot be used, or the model does not see.
    """

    Settings: ClassVar[type] = GenerateFastSettings
    adaptive: ClassVar[bool] = True
    own_process: ClassVar[bool] = True

    def __init__(self, settings: GenerateFastSettings) -> None:
        self._settings = settings
        self._model = Model(settings)
        prompt = load_prompt(settings.prompt, NEEDS)
        self._text = {s: prompt.text(s) for s in NEEDS}
        self.disagreements = Disagreements()
        self.fingerprint = self._model.fingerprint(
            prompt=prompt.digest, parser=settings.parser, tokens=str(settings.tokens)
        )
        pictures = warmup.canaries(SPEC)
        warmup.check_sight(lambda rgb: self._model.ask(self._chat(rgb)).logits, pictures)
        self._model.check_prefix(self._chat(pictures["noise"]))
        self.warm_p99 = warmup.measure(self._reply, pictures).p99 if settings.warm else 0.0

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
            BrainError: the strict parser finds no light in the reply.
        """
        if reason := blind(shot.rgb):
            return CannotSee(shot.ref, self.name, reason)
        text, finish = self._reply(shot.rgb)
        strict, released = parse_fast(text, finish, one_token=False), parse_released(text)
        self.disagreements.note(strict, released)
        if strict is not released:
            log.warning(
                "%s: parsers disagree (%d of %d, %d of them milder in the released way) about "
                "frame %d of %s: strict %s, released %s: %r",
                self.name,
                self.disagreements.differ,
                self.disagreements.total,
                self.disagreements.released_milder,
                shot.ref.seq,
                shot.ref.source_id,
                "none" if strict is None else strict.name,
                released.name,
                text[:200],
            )
        light = strict if self._settings.parser == "strict" else released
        if light is None:
            raise BrainError(f"the reply states no light ({finish}): {text[:80]!r}")
        return FastVerdict(shot.ref, self.name, light, parse_hazard(text, finish))

    def cost(self, ref: FrameRef) -> float:
        """Seconds that judging this frame is declared to take, for the virtual pace."""
        return self._settings.seconds

    def _reply(self, rgb: Rgb) -> tuple[str, str]:
        """The model's text and why it ended, "stop" or "length"."""
        writer = self._model.write(self._model.ask(self._chat(rgb)), self._settings.tokens)
        ids = list(writer)
        finish = "stop" if len(ids) < self._settings.tokens else "length"
        return self._model.family.decode(ids), finish

    def _chat(self, rgb: Rgb) -> "Chat":
        from hdguard.brains.families.base import Chat  # noqa: PLC0415 - it imports torch

        return Chat(self._text["system"], (self._text["question"], rgb, self._text["ask"]))

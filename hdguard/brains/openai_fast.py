"""A FastBrain behind an OpenAI-compatible server: one token, and how likely each label was.

Where a server has no logprobs, or as the published baseline, the model writes its answer and
`reply.parse_fast` reads it: slower, and with a format to get wrong.
"""

import hashlib
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import msgspec

from hdguard.brains.base import BrainError, Rgb, Shot
from hdguard.brains.blindness import blind
from hdguard.brains.calibration import UNCALIBRATED, decide, read_calibration
from hdguard.brains.labels import LIGHTS, Labels
from hdguard.brains.openai_server import (
    LOADING,
    ServerSettings,
    Stopwatch,
    check_sight,
    connect,
)
from hdguard.brains.openai_wire import (
    GREEDY,
    GREEDY_EXTRA,
    SCORED,
    Choice,
    Form,
    encode_jpeg,
    light_scores,
    picture_name,
    picture_part,
    text_part,
)
from hdguard.brains.prompts import load_prompt
from hdguard.brains.reply import parse_fast, parse_hazard
from hdguard.core.events import CannotSee, FastVerdict
from hdguard.core.policy import kill_after
from hdguard.core.types import FrameRef, ImageSpec, Light

WORDS = ("green", "yellow", "red")
TEXT_TOKENS = 80
"""For an answer in words: a JSON object with one short sentence."""
WARMING = 2
"""Looks at the start that are not measured: they warm the server up. A choice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAIFastSettings(ServerSettings):
    """Settings of an `OpenAIFastBrain`, beside those of the server.

    Attributes:
        prompt: one of ours by name, or a file; `generate` is made for answers in words.
        labels: the words for the three lights.
        answer: `logprobs`: read the label's probability from one token; `text`: have the model
            write, and parse it (labels must be the colours).
        calibration: a file made by `hdguard tune`; empty: none.
    """

    prompt: str = "fast"
    labels: Labels = "colours"
    answer: Literal["logprobs", "text"] = "logprobs"
    calibration: str = ""

    def __post_init__(self) -> None:
        ServerSettings.__post_init__(self)  # a class with slots has no super() without arguments
        if self.answer == "text" and self.labels != "colours":
            msg = f"labels: {self.labels} cannot be read from text; set colours"
            raise ValueError(msg)


class OpenAIFastBrain:
    """Judges a frame by one request.

    Being built is the health check: real one-token requests with pictures, not a list of models,
    which servers with a dead engine still give. Answers in words show less: whether one picture
    always gets one light, not whether the server sees it.

    Attributes:
        warm_p99: seconds, the longest of the measured looks.

    Raises:
        BrainError: the server does not answer, gives no logprobs, does not tell pictures apart, or
            never says one of the labels; or a file has a defect.
    """

    Settings: ClassVar[type] = OpenAIFastSettings
    adaptive: ClassVar[bool] = True
    own_process: ClassVar[bool] = True
    argument: ClassVar[str] = "url"

    def __init__(self, settings: OpenAIFastSettings) -> None:
        self._settings = settings
        self._labels = LIGHTS[settings.labels]
        words = dict(zip(WORDS, self._labels.named, strict=True))
        prompt = load_prompt(settings.prompt, dict.fromkeys(("system", "question", "ask"), WORDS))
        self._system, self._question, self._ask = (
            prompt.text(section, **words) for section in ("system", "question", "ask")
        )
        self._server = connect(settings)
        self.fingerprint = self._choices(prompt.digest)
        self._calibration = UNCALIBRATED
        if settings.calibration:
            self._calibration = read_calibration(settings.calibration, self.fingerprint)
        self.warm_p99 = self._check_health()

    @property
    def name(self) -> str:
        """The name that verdicts carry."""
        return self._settings.name

    @property
    def spec(self) -> ImageSpec:
        """The picture it wants."""
        return self._settings.spec

    def cost(self, ref: FrameRef) -> float:
        """Seconds that judging a frame is declared to take."""
        return self._settings.seconds

    def assess(self, shot: Shot) -> FastVerdict | CannotSee:
        """Judge the frame, before it would be killed for taking too long.

        Past the deadline the guard has counted it as failed already, but a RED still halts.

        Raises:
            BrainError: no usable answer in time.
        """
        if reason := blind(shot.rgb):
            return CannotSee(shot.ref, self.name, reason)
        watch = Stopwatch(0.9 * kill_after(self._settings.limit))
        jpeg = encode_jpeg(shot.rgb, self._settings.jpeg_quality)
        choice = self._look(jpeg, picture_name(shot, jpeg), watch)
        if self._settings.answer == "text":
            return self._parsed(shot, choice)
        scores, _ = light_scores(self._top(choice), self._labels)
        light = decide(scores, self._calibration)
        if light is None:
            raise BrainError(
                f"the model says none of {list(self._labels.named)} (mass {scores.mass:.2f}): "
                "labels, prompt or thinking_switch do not fit it",
                scores=scores,
            )
        return FastVerdict(shot.ref, self.name, light, scores=scores)

    def _parsed(self, shot: Shot, choice: Choice) -> FastVerdict:
        text, ended = choice.words.text, choice.finish_reason or ""
        light = parse_fast(text, ended, one_token=False)
        if light is None:
            raise BrainError(f"unparsed answer ({ended or 'no finish reason'}): {text[:200]!r}")
        return FastVerdict(shot.ref, self.name, light, parse_hazard(text, ended))

    def _look(self, jpeg: bytes, name: str, watch: Stopwatch) -> Choice:
        settings = self._settings
        extra: dict[str, Any] = dict(GREEDY_EXTRA)
        if settings.thinking_switch:
            extra["chat_template_kwargs"] = {"enable_thinking": False}
        how = SCORED if settings.answer == "logprobs" else {"max_tokens": TEXT_TOKENS, **GREEDY}
        # What never changes stands first, for the server's prefix cache.
        parts = [text_part(self._question), text_part(name), picture_part(jpeg)]
        messages = [
            {"role": "system", "content": self._system},
            {"role": "user", "content": [*parts, text_part(self._ask)]},
        ]
        return self._server.ask(watch.left, messages=messages, extra_body=extra, **how)

    def _top(self, choice: Choice) -> list[Form]:
        if not choice.top:
            raise BrainError(
                f"server {self._settings.url} gives no logprobs: allow 20 there (vLLM: "
                '--max-logprobs), or set answer = "text" and prompt = "generate"'
            )
        return choice.top

    def _check_health(self) -> float:
        """Ask for real; returns the 99th percentile of the looks in seconds."""
        watch = Stopwatch(LOADING)
        seen: set[int] = set()
        said: dict[bytes, Light] = {}

        def look(rgb: Rgb) -> tuple[float, ...] | None:
            jpeg = encode_jpeg(rgb, self._settings.jpeg_quality)
            choice = self._look(jpeg, "Picture:", watch)
            if self._settings.answer == "text":
                ended = choice.finish_reason or ""
                light = parse_fast(choice.words.text, ended, one_token=False)
                if light is not None and said.setdefault(jpeg, light) is not light:
                    raise BrainError(
                        f"one picture is {said[jpeg].name}, and shown again {light.name}: the "
                        "server answers for one before, or by chance"
                    )
                return None  # two pictures may well get the same words
            scores, listed = light_scores(self._top(choice), self._labels)
            seen.update(n for n, s in enumerate(listed) if s)
            return scores.green, scores.yellow, scores.red

        try:
            took = check_sight(look, self.spec)
        except BrainError as error:
            raise BrainError(f"server {self._settings.url} is not healthy: {error}") from error
        missing = [w for n, w in enumerate(self._labels.named) if n not in seen]
        if missing and self._settings.answer == "logprobs":
            raise BrainError(
                f"server {self._settings.url}: {missing} is never among the likeliest tokens, so "
                f"it may be no single token there: choose other labels of {sorted(LIGHTS)}"
            )
        return max(took[WARMING:])  # of so few values the 99th percentile is the largest

    def _choices(self, prompt_digest: str) -> str:
        """A hash of what the scores depend on. Of the server's weights only their name is known."""
        s = self._settings
        chosen = (self._server.model, prompt_digest, s.labels, s.answer, s.jpeg_quality, s.size)
        data = msgspec.json.encode([*chosen, s.thinking_switch])
        return hashlib.sha256(data).hexdigest()[:16]

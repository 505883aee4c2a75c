"""A SlowBrain behind an OpenAI-compatible server: it thinks, then one token is the verdict.

First the model thinks aloud, streamed, until it is done or its share of the deadline is used up.
Then the thoughts are put back into its mouth with the beginning of the answer, and the
probabilities of "danger" and "safe" as the next token are the verdict: there is one even when the
thinking did not come to an end, and there is no format to get wrong. A server that cannot go on
from a begun answer writes all of it, which `reply.parse_slow` reads.
"""

import hashlib
import logging
import math
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from time import perf_counter  # measures the server's work
from typing import Any, ClassVar, Literal

import cv2
import msgspec
import numpy as np

from hdguard.brains.base import BrainError, Rgb, Shot
from hdguard.brains.blindness import blind
from hdguard.brains.labels import VERDICT
from hdguard.brains.openai_dialogue import BEGUN, Dialogue, Messages, described
from hdguard.brains.openai_server import (
    LOADING,
    ServerSettings,
    Stopwatch,
    check_sight,
    connect,
)
from hdguard.brains.openai_wire import (
    Form,
    Refused,
    encode_jpeg,
    label_logs,
    picture_name,
    picture_part,
    text_part,
)
from hdguard.brains.prompts import load_prompt
from hdguard.brains.reply import parse_hazard, parse_slow
from hdguard.brains.thinking import last_sentence
from hdguard.core.events import SlowVerdict
from hdguard.core.types import NO_HAZARD, FrameRef, Hazard, ImageSpec

log = logging.getLogger(__name__)

RESERVE = 0.25
"""Of the time, kept for the verdict after the thinking; a choice: one short prefill, mostly of
tokens that the server has just read, with room for a busy server."""
ROUNDS = 3
"""Full windows shown at the start, to measure; a choice: each is much work."""
COARSE = 8
"""Pixels between the random colours of a picture that is only to be read; a choice: plain noise
would be several times as many bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAISlowSettings(ServerSettings):
    """Settings of an `OpenAISlowBrain`, beside those of the server.

    Attributes:
        prompt: one of ours by name, or a file.
        thinking: tokens of thoughts at most; the deadline may end them earlier. 0: none.
        threshold: p(danger) against p(safe) from which the verdict is danger.
        least_mass: p(danger or safe) below which there is no verdict.
        pictures: at most; of a longer window the oldest are left out. 24 are the longest that
            there is; a server may take fewer (vLLM: --limit-mm-per-prompt).
        describe: seconds for which a danger may wait for its category, severity and sentence. The
            robot is not halted meanwhile, so by default they are not asked for, and the sentence
            is the last one of the thoughts.
        answer: `logprobs`: think, then score the verdict; `text`: have the model write, and parse.
    """

    name: str = "openai-slow"
    seconds: float = 5.0
    prompt: str = "slow"
    thinking: int = 1024
    threshold: float = 0.5
    least_mass: float = 0.5
    pictures: int = 24
    describe: float = 0.0
    answer: Literal["logprobs", "text"] = "logprobs"

    def __post_init__(self) -> None:
        ServerSettings.__post_init__(self)  # a class with slots has no super() without arguments
        for name, least, most in (
            ("thinking", 0, 40960),
            ("threshold", 0.0, 1.0),
            ("least_mass", 0.0, 1.0),
            ("pictures", 1, 24),
            ("describe", 0.0, 60.0),
        ):
            if not least <= getattr(self, name) <= most:
                msg = f"{name}: {getattr(self, name)} must be {least} to {most}"
                raise ValueError(msg)


class _Unsaid(BrainError):  # noqa: N818 - what happened, not what kind of thing it is
    """The begun answer goes on with neither of the two words."""


class OpenAISlowBrain:
    """Reviews by two requests, and a third for the words of a danger.

    Being built is the health check: real one-token requests with pictures. They also find out
    what the server can do, for as long as the brain lives. An answer in words does not show
    whether the server sees the pictures that it is sent.

    Attributes:
        fingerprint: of the model's name, the prompt and what else a verdict depends on.
        warm_p99: seconds, the longest that a window of as many pictures as may come has taken
            without any thought: the least time that a review takes.

    Raises:
        BrainError: the server does not answer, gives no logprobs, does not tell pictures apart,
            never says danger, or does not take so many pictures; or the prompt has a defect.
    """

    Settings: ClassVar[type] = OpenAISlowSettings
    interruptible: ClassVar[bool] = True
    argument: ClassVar[str] = "url"

    def __init__(self, settings: OpenAISlowSettings) -> None:
        self._settings = s = settings
        prompt = load_prompt(
            settings.prompt,
            {"system": (), "question": ("trigger",), "ask": (), "answer": (), "out of time": ()},
        )
        server = connect(settings)
        self._dialogue = Dialogue(server, prompt, s.thinking, switch=s.thinking_switch)
        self._scores = settings.answer == "logprobs"
        self._begun = self._dialogue.begun(prompt.text("out of time") if s.thinking else "")
        self.warm_p99 = self._check_health()
        chosen = (s.thinking, s.threshold, s.jpeg_quality, s.size, s.thinking_switch, s.pictures)
        data = msgspec.json.encode([server.model, prompt.digest, self._scores, *chosen])
        self.fingerprint = hashlib.sha256(data).hexdigest()[:16]

    @property
    def name(self) -> str:
        """The name that warnings carry."""
        return self._settings.name

    @property
    def spec(self) -> ImageSpec:
        """The picture it wants."""
        return self._settings.spec

    def cost(self, trigger: FrameRef) -> float:
        """Seconds that a review is declared to take."""
        return self._settings.seconds

    def review(self, review_id: int, trigger: FrameRef, shots: tuple[Shot, ...]) -> SlowVerdict:
        """Answer the review; shots are oldest first. Takes the settings' deadline at most.

        Raises:
            BrainError: nothing can be seen in the newest picture, or no usable answer in time.
        """
        watch = Stopwatch(self._settings.limit)
        if not shots:
            raise BrainError("the window has no pictures")
        if reason := blind(shots[-1].rgb):
            raise BrainError(f"nothing can be seen in the newest picture: {reason}")
        messages = self._asked(trigger, shots)
        if not self._scores:
            return self._written(review_id, messages, watch)
        thoughts = ""
        if self._settings.thinking:
            seconds = watch.left - RESERVE * self._settings.limit
            thoughts = self._dialogue.think(messages, seconds)
        begun = self._dialogue.begun(thoughts)
        top = self._dialogue.score(messages, begun, watch)
        if _share_of_danger(top, self._settings.least_mass) < self._settings.threshold:
            return SlowVerdict(review_id, danger=False)
        hazard = self._describe(messages, begun, watch)
        if not hazard.text:
            hazard = replace(hazard, text=last_sentence(thoughts))
        return SlowVerdict(review_id, danger=True, hazard=hazard)

    def _asked(self, trigger: FrameRef, shots: Sequence[Shot]) -> Messages:
        pictures: list[dict[str, Any]] = []
        for shot in shots[-self._settings.pictures :]:
            jpeg = encode_jpeg(shot.rgb, self._settings.jpeg_quality)
            pictures += text_part(picture_name(shot, jpeg)), picture_part(jpeg)
        return self._dialogue.messages(pictures, f"{trigger.media_time:.2f} s")

    def _describe(self, messages: Messages, begun: str, watch: Stopwatch) -> Hazard:
        """Category, severity and sentence of a danger; what comes too late stays empty."""
        seconds = min(self._settings.describe, watch.left)
        if seconds <= 0.0:
            return NO_HAZARD
        text, ended = described(BEGUN), "length"
        try:
            with closing(self._dialogue.describe(messages, begun, seconds)) as pieces:
                for piece in pieces:
                    text += piece.words.text
                    ended = piece.finish_reason or ended
        except BrainError as error:
            # The verdict stands, and its words are not worth losing it.
            log.info("%s: the danger is not described: %s", self.name, error)
        return parse_hazard(text, ended)

    def _written(self, review_id: int, messages: Messages, watch: Stopwatch) -> SlowVerdict:
        """The verdict of an answer in words."""
        text, ended = self._dialogue.write(messages, watch.left)
        danger = parse_slow(text, ended)
        if danger is None:
            shown = f"{text[-200:]!r}" if text else "no answer after the thoughts"
            raise BrainError(f"unparsed review ({ended or 'no finish reason'}): {shown}")
        return SlowVerdict(review_id, danger, parse_hazard(text, ended))

    def _check_health(self) -> float:
        """Ask for real; returns the longest that a full window took, in seconds."""
        watch = Stopwatch(LOADING)
        listed: set[bool] = set()

        def look(rgb: Rgb) -> tuple[float, ...] | None:
            picture = picture_part(encode_jpeg(rgb, self._settings.jpeg_quality))
            asked = self._dialogue.messages([text_part("Picture at 0.00 s:"), picture], "0.00 s")
            top = self._first_look(asked, watch)
            if top is None:
                return None
            logs, (danger, _) = label_logs(top, VERDICT, lenient=1)
            listed.add(danger)
            return logs

        try:
            check_sight(look, self.spec)
            if listed == {False}:
                raise BrainError(
                    "danger is never among the likeliest tokens, so it may be no single token "
                    'there: set answer = "text"'
                )
            return max(self._full_window(n, watch) for n in range(ROUNDS))
        except BrainError as error:
            raise BrainError(f"server {self._settings.url} is not healthy: {error}") from error

    def _first_look(self, messages: Messages, watch: Stopwatch) -> list[Form] | None:
        """The likeliest verdicts without thoughts; None: this server is to write.

        Of a written answer one token is asked for, which says nothing of the picture.
        """
        if self._scores:
            try:
                top = self._dialogue.score_freely(messages, self._begun, watch.left)
                _share_of_danger(top, self._settings.least_mass)
                return top  # noqa: TRY300 - the checks are what may fail
            except (Refused, _Unsaid) as error:
                if isinstance(error, Refused) and error.status not in (400, 422):
                    raise
                log.warning("%s: the server cannot go on from an answer: %s", self.name, error)
                self._scores = False
        self._dialogue.touch(messages, watch.left)
        return None

    def _full_window(self, n: int, watch: Stopwatch) -> float:
        """Seconds that the longest window takes; none of its pictures was shown before."""
        most, side = self._settings.pictures, self._settings.size
        random = np.random.default_rng(n)
        shots: list[Shot] = []
        for seq in range(most):
            colours = random.integers(0, 256, (side // COARSE, side // COARSE, 3), np.uint8)
            rgb = cv2.resize(colours, (side, side)).astype(np.uint8)
            shots.append(Shot(FrameRef("canary", seq, float(seq), float(seq)), rgb))
        started = perf_counter()
        messages = self._asked(shots[-1].ref, shots)
        try:
            if self._scores:
                self._dialogue.score(messages, self._begun, watch)
            else:
                self._dialogue.touch(messages, watch.left)
        except Refused as error:
            raise BrainError(
                f"a window of {most} pictures: {error}; set pictures to as many as it takes"
            ) from error
        return perf_counter() - started


def _share_of_danger(top: Sequence[Form], least_mass: float) -> float:
    (danger, safe), _ = label_logs(top, VERDICT, lenient=1)
    mass = math.exp(danger) + math.exp(safe)
    if not mass >= least_mass:
        likeliest = [form.token for form in top[:3]]
        raise _Unsaid(f"says neither danger nor safe (mass {mass:.2g}) but {likeliest}")
    return math.exp(danger) / mass

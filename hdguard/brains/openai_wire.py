"""What goes to an OpenAI-compatible server and what comes back, as values; no connection here.

The probability of a label is read from the list of likeliest tokens that such servers return, by
the tokens' texts: their ids are the server's own affair. The list is short (20 at most), so a form
outside it is not known exactly, and a danger may hide there; see `label_logs`.
"""

import base64
import hashlib
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import cv2
import msgspec

from hdguard.brains.base import BrainError, Rgb, Shot
from hdguard.brains.labels import LabelSet, spellings
from hdguard.core.types import Scores

TOP = 20
"""Likeliest tokens to ask for: OpenAI's limit, and vLLM's unless --max-logprobs raises it."""
LEAST = math.log(1e-3)
"""What a list of fewer tokens than asked for may leave out at most, and the most that an unseen
lenient label is credited with; a choice, far below any threshold."""
IMPOSSIBLE = -9999.0
"""How vLLM writes the logarithm of zero."""
GREEDY: dict[str, Any] = {
    "temperature": 0.0,
    "top_p": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "seed": 0,
}
"""Every sampling field, because a server fills what is missing from the model's own defaults."""
GREEDY_EXTRA: dict[str, Any] = {"top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0}
"""The fields of vLLM and SGLang that OpenAI's interface does not have."""
SCORED: dict[str, Any] = {"max_tokens": 1, "logprobs": True, "top_logprobs": TOP, **GREEDY}
"""One token and how likely each other one was."""

THINKING: dict[str, Any] = {
    "temperature": 0.8,
    "top_p": 0.95,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "seed": 0,
}
"""Qwen3-VL-30B-A3B-Thinking's published sampling; thinking greedily tends not to end."""
THINKING_EXTRA: dict[str, Any] = {"top_k": 20, "min_p": 0.0, "repetition_penalty": 1.0}
CHOICES: tuple[dict[str, Any], ...] = (
    # vLLM reads the first field, SGLang the second; each ignores the other's.
    {"structured_outputs": {"choice": ["danger", "safe"]}, "regex": "(danger|safe)"},
    {"guided_choice": ["danger", "safe"]},  # vLLM before 0.12
    {},
)
"""Ways to have one of two words, best first. They do not bear on the probabilities, which vLLM
gives as they are before any choice, unless --logprobs-mode says otherwise."""


class Late(BrainError):  # noqa: N818 - what happened, not what kind of thing it is
    """The server did not answer in time."""


@dataclass(eq=False, repr=False)
class Refused(BrainError):  # noqa: N818 - likewise
    """The server answered with an HTTP status that is no success."""

    status: int = field(default=0, kw_only=True)


class Form(msgspec.Struct, frozen=True):
    """A token and the natural logarithm of its probability."""

    token: str
    logprob: float


class Position(msgspec.Struct, frozen=True):
    """The token that was chosen, and the likeliest ones there."""

    token: str
    top_logprobs: list[Form] = []


class Logprobs(msgspec.Struct, frozen=True):
    """Per written token."""

    content: list[Position] | None = None


class Words(msgspec.Struct, frozen=True):
    """A message, or a streamed piece of one. Servers differ in where thoughts stand."""

    content: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None

    @property
    def thoughts(self) -> str:
        """What stands in the fields for reasoning."""
        return self.reasoning or self.reasoning_content or ""

    @property
    def text(self) -> str:
        """What stands in the field for the answer."""
        return self.content or ""


class Choice(msgspec.Struct, frozen=True):
    """An answer, or a piece of it."""

    message: Words | None = None
    delta: Words | None = None
    logprobs: Logprobs | None = None
    finish_reason: str | None = None

    @property
    def words(self) -> Words:
        """What was said, whole or a piece."""
        return self.message or self.delta or Words()

    @property
    def top(self) -> list[Form]:
        """The likeliest first tokens; empty if the server gave none."""
        positions = self.logprobs.content if self.logprobs is not None else None
        return positions[0].top_logprobs if positions else []


class Reply(msgspec.Struct, frozen=True):
    """A completion, or a streamed piece of one."""

    model: str = ""
    choices: list[Choice] = []
    error: Any = None


class Listed(msgspec.Struct, frozen=True):
    """One entry of the list of models."""

    id: str


class Models(msgspec.Struct, frozen=True):
    """The models that the server has."""

    data: list[Listed] = []


ReadT = TypeVar("ReadT", Reply, Models)


def read(data: bytes, kind: type[ReadT], who: str) -> ReadT:
    """Decode what `who` sent.

    Raises:
        BrainError: it is nothing of that kind.
    """
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise BrainError(f"{who}: the answer is not what was asked for: {error}") from error


def lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The lines of a stream, without their ends.

    Only a line feed ends one: text may hold what Python also takes for an end, such as U+2028.
    """
    begun = bytearray()
    for chunk in chunks:
        *ended, last = chunk.split(b"\n")
        for end in ended:
            yield bytes(begun + end)
            begun.clear()
        begun += last
    yield bytes(begun)


def label_logs(
    top: Sequence[Form], labels: LabelSet, lenient: int
) -> tuple[tuple[float, ...], tuple[bool, ...]]:
    """Natural logarithms of p(label), and which labels were seen at all.

    Per label the sum over those of its forms that are listed. Each form outside the list is at most
    as likely as the least likely token in it, and all of them together at most what the list leaves
    of 1. A severe label is credited with as much, so it is never less likely than here; the lenient
    one with nothing, or with `LEAST` at most if no form of it is listed.

    Args:
        top: the likeliest tokens at the answer's place.
        labels: the set.
        lenient: index of the label that lets the robot go on; every other one is severe.

    Raises:
        BrainError: the list is empty, holds what is no probability, or is shorter than was asked
            for and leaves more than `LEAST`, so that a danger may be missing from it.
    """
    if not top:
        raise BrainError("the answer has no logprobs")
    if not all(math.isfinite(f.logprob) and f.logprob < 1e-3 for f in top):  # 1e-3: rounding
        raise BrainError("the answer's logprobs are no logarithms of probabilities")
    rest = max(0.0, 1.0 - math.fsum(math.exp(f.logprob) for f in top))
    if len(top) < TOP and rest > math.exp(LEAST):
        raise BrainError(
            f"the answer lists {len(top)} tokens instead of {TOP}, and {rest:.2g} of the "
            "probability is elsewhere: have the server list more (vLLM: --max-logprobs)"
        )
    smallest = min(f.logprob for f in top)
    values: list[float] = []
    seen: list[bool] = []
    for n, words in enumerate(labels.words):
        forms = {spelling for word in words for spelling in spellings(word)}
        found = [f for f in top if _plain(f.token) in forms]
        total = math.fsum(math.exp(f.logprob) for f in found)
        if n != lenient:
            missing = len(forms - {_plain(f.token) for f in found})
            total += min(missing * math.exp(smallest), rest)
        elif not found:
            total = math.exp(min(LEAST, smallest))
        seen.append(bool(found))
        values.append(math.log(total) if total > 0.0 else IMPOSSIBLE)
    return tuple(values), tuple(seen)


def light_scores(top: Sequence[Form], labels: LabelSet) -> tuple[Scores, tuple[bool, ...]]:
    """`label_logs` of a set for GREEN, YELLOW, RED, as scores.

    Raises:
        BrainError: `label_logs`'s.
    """
    (green, yellow, red), seen = label_logs(top, labels, lenient=0)
    return Scores(green, yellow, red), seen


def _plain(token: str) -> str:
    """Some servers show a token's space as its vocabulary writes it."""
    return token.replace("Ġ", " ").replace("▁", " ")


def text_part(text: str) -> dict[str, Any]:
    """Text in a message."""
    return {"type": "text", "text": text}


def picture_part(jpeg: bytes) -> dict[str, Any]:
    """A picture in a message: its bytes, and no name by which a server could cache another."""
    data = base64.b64encode(jpeg).decode()
    return {"type": "image_url", "image_url": {"url": f"data:image/jpeg;base64,{data}"}}


def picture_name(shot: Shot, jpeg: bytes) -> str:
    """The text before a picture: its time, and words that no other picture has.

    Caches keyed by the text before a picture have answered for the picture of the call before.
    The digest differs wherever the pictures do, even over restarts and equal times.
    """
    digest = hashlib.sha256(jpeg).hexdigest()[:8]
    return f"Picture {digest}, frame {shot.ref.seq}, at {shot.ref.media_time:.2f} s:"


def encode_jpeg(rgb: Rgb, quality: int) -> bytes:
    """The picture as JPEG; `rgb` is uint8, (height, width, 3).

    Raises:
        BrainError: it cannot be encoded.
    """
    done, data = cv2.imencode(
        ".jpg", cv2.cvtColor(rgb, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_JPEG_QUALITY, quality]
    )
    if not done:
        raise BrainError(f"a picture of shape {rgb.shape} cannot be made a JPEG")
    return bytes(data)

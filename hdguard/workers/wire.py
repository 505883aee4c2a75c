"""What a worker and its supervisor say to each other, and how it is written: msgpack, typed.

Pixels never travel here; a `Picture` says where in the shared ring they lie.
"""

from typing import Any, Literal, TypeVar

import msgspec

from hdguard.brains.base import BrainError
from hdguard.core import events
from hdguard.core.events import CannotSee, FastVerdict, SlowVerdict
from hdguard.core.types import FrameRef, ImageSpec, Scores

PROTOCOL = 4  # raised when the messages change; a worker may run in another environment
LIMIT = 1 << 20  # bytes; the longest honest message is a review of 32 frames, a few KiB
PREFIX = 4  # bytes: the message's length, big-endian

Role = Literal["fast", "slow"]
MessageT = TypeVar("MessageT")


class Picture(msgspec.Struct, frozen=True):
    """One frame: its name, and where its RGB pixels lie in the ring."""

    ref: FrameRef
    slot: int
    height: int
    width: int


class Load(msgspec.Struct, frozen=True, tag=True):
    """To the worker: build this brain. The ring has `slots` slots of `slot_bytes` bytes."""

    role: Role
    target: str
    settings: dict[str, Any]
    slots: int
    slot_bytes: int


class Assess(msgspec.Struct, frozen=True, tag=True):
    """To the worker: judge this frame."""

    call_id: int
    picture: Picture


class Review(msgspec.Struct, frozen=True, tag=True):
    """To the worker: answer this review, pictures oldest first."""

    call_id: int
    review_id: int
    trigger: FrameRef
    pictures: tuple[Picture, ...]


class Ping(msgspec.Struct, frozen=True, tag=True):
    """To the worker: say that you are there."""


class Stop(msgspec.Struct, frozen=True, tag=True):
    """To the worker: end."""


class Hello(msgspec.Struct, frozen=True, tag=True):
    """From the worker, first of all: the messages that it speaks."""

    protocol: int


class Ready(msgspec.Struct, frozen=True, tag=True):
    """From the worker: the brain is loaded, and this is what it says of itself."""

    name: str
    spec: ImageSpec
    fingerprint: str = ""
    warm_p99: float | None = None
    interruptible: bool = False


class Assessed(msgspec.Struct, frozen=True, tag=True):
    """From the worker: a verdict; `goes_on`: the brain thinks on about it until `Settled`."""

    call_id: int
    verdict: FastVerdict
    goes_on: bool = False


class Remarked(msgspec.Struct, frozen=True, tag=True):
    """From the worker: what a FastBrain adds to the answer that it gave to this call."""

    call_id: int
    remark: events.Remarked


class Settled(msgspec.Struct, frozen=True, tag=True):
    """From the worker: the afterthought about this call is at its end; it is idle."""

    call_id: int


class Unseen(msgspec.Struct, frozen=True, tag=True):
    """From the worker: this frame cannot be judged."""

    call_id: int
    blind: CannotSee


class Reviewed(msgspec.Struct, frozen=True, tag=True):
    """From the worker: a review's answer."""

    call_id: int
    verdict: SlowVerdict


class Failed(msgspec.Struct, frozen=True, tag=True):
    """From the worker: a BrainError; call 0 is the loading."""

    call_id: int
    reason: str
    scores: Scores | None = None


class Numbers(msgspec.Struct, frozen=True):
    """What a worker takes, in bytes; None where it is not told, or there is none.

    Attributes:
        resident: of the machine's memory, as the kernel counts it.
        gpu: what PyTorch has reserved on the GPUs of this process; the driver's own is not in it.
    """

    resident: int | None = None
    gpu: int | None = None


class Pong(msgspec.Struct, frozen=True, tag=True):
    """From the worker: I am here, and this is what I take."""

    numbers: Numbers = Numbers()


Call = Assess | Review
Request = Load | Assess | Review | Ping | Stop
Answer = Assessed | Unseen | Reviewed | Failed
Word = Answer | Remarked
Reply = Hello | Ready | Assessed | Unseen | Reviewed | Remarked | Settled | Failed | Pong

_encoder = msgspec.msgpack.Encoder()
_requests: msgspec.msgpack.Decoder[Request] = msgspec.msgpack.Decoder(Request)
_replies: msgspec.msgpack.Decoder[Reply] = msgspec.msgpack.Decoder(Reply)


def encode(message: Request | Reply) -> bytes:
    """The message with its length in front.

    Raises:
        BrainError: it is too long, or holds a value that is not plain data.
    """
    try:
        body = _encoder.encode(message)
    except (TypeError, ValueError, OverflowError) as error:
        what = f"a worker's {type(message).__name__} message holds more than plain data"
        raise BrainError(f"{what}: {error}") from error
    return check_length(len(body)).to_bytes(PREFIX, "big") + body


def check_length(length: int) -> int:
    """The length of a message's body in bytes, if that is allowed.

    Raises:
        BrainError: it is not.
    """
    if length > LIMIT:
        raise BrainError(f"a worker's message of {length} bytes is over the limit of {LIMIT}")
    return length


def decode_request(body: bytes) -> Request:
    """What the supervisor says.

    Raises:
        BrainError: it is no such message.
    """
    return _decode(_requests, body)


def decode_reply(body: bytes) -> Reply:
    """What the worker says.

    Raises:
        BrainError: it is no such message.
    """
    return _decode(_replies, body)


def _decode(decoder: "msgspec.msgpack.Decoder[MessageT]", body: bytes) -> MessageT:
    try:
        return decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BrainError(f"a worker's message cannot be read: {error}") from error

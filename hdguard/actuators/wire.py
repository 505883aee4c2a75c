"""What guard and robot say to each other over MQTT 3.1.1, byte for byte; no sockets here.

Every topic is `hdguard/<robot>/<name>` (DESIGN section 5). `boot` is raised on disk before a
party's first publish and `seq` counts per topic, so a receiver that keeps the `Newest` pair is safe
from replays, from what a thawed broker still had, and from clocks: none are compared.
Times of the guard are seconds on its own clock; only their differences mean anything.

A report may carry fields that this version does not know; a command may not. A payload may begin
with a signature: see `hdguard.actuators.signing`.
"""

import re
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta

from hdguard.core.types import HaltCause, HaltClass, State

LIMIT = 4096  # bytes of a payload: DESIGN section 5
TEXT = 500  # characters of free text; four bytes each, so that LIMIT always holds
WORD = 64  # characters of a name
PAIR = Meta(ge=0, le=2**53 - 1)  # every JSON reader keeps integers up to here exact

Count = Annotated[int, PAIR]
Word = Annotated[str, Meta(max_length=WORD)]
Text = Annotated[str, Meta(max_length=TEXT)]
Seconds = Annotated[float, Meta(ge=0, le=1e9)]
Moment = Annotated[float, Meta(ge=-1e15, le=1e15)]
HaltId = Annotated[str, Meta(pattern=r"^[0-9]{1,16}-[0-9]{1,16}$", max_length=33)]
LightName = Literal["GREEN", "YELLOW", "RED"]
SpeedName = Literal["none", "reduced", "full"]
Availability = Literal["online", "offline"]


class WireError(Exception):
    """A payload that cannot be used: names the topic and says why."""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """Says how things stand; unknown fields are passed over."""


class Command(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Asks for something; an unknown field may be the one that matters, so it is refused."""


class RobotMessage(Report, frozen=True):
    """`robot`: QoS 0, ten a second. `speed` in m/s, null if unknown."""

    boot: Count
    seq: Count
    moving: bool
    speed: Annotated[float, Meta(ge=-100, le=100)] | None


class RobotEcho(Command, frozen=True):
    """The newest robot message that the guard has seen."""

    boot: Count
    seq: Count


class PermitMessage(Command, frozen=True):
    """`permit`: QoS 0, five a second. Ages in seconds, null before the first frame or verdict."""

    boot: Count
    seq: Count
    light: LightName
    speed: SpeedName
    state: State
    frame_age: Seconds | None
    verdict_age: Seconds | None
    robot: RobotEcho | None


class HazardField(Command, frozen=True):
    """What a brain said; an empty field is "not given"."""

    category: Annotated[str, Meta(max_length=16)] = ""
    severity: Annotated[str, Meta(max_length=16)] = ""
    text: Text = ""


class HaltMessage(Command, frozen=True, rename={"halt_class": "class"}):
    """`halt`: QoS 1, retained. The newest one says whether a halt is in force, and which.

    `captured_at` (of the causing frame, if any) and `decided_at` are the guard's seconds;
    `stop_category` is IEC 60204-1's; `evidence_id` names what the incident recorder keeps.
    """

    boot: Count
    seq: Count
    active: bool
    halt_id: HaltId
    halt_class: HaltClass
    cause: HaltCause
    latched: bool
    source: Word
    brain: Word
    light: LightName | None
    hazard: HazardField
    stop_category: Literal[1, 2]
    captured_at: Moment | None
    decided_at: Moment
    evidence_id: HaltId


class AckMessage(Report, frozen=True):
    """`ack`: QoS 1. Answers every accepted halt message; `guard_boot` is that message's `boot`."""

    halt_id: HaltId
    guard_boot: Count
    stopped: bool


class StateMessage(Report, frozen=True):
    """`state`: QoS 1, retained. `nonce` and `halt_id`, for a reset, are null unless halted."""

    boot: Count
    seq: Count
    state: State
    why: Text
    sources: tuple[Word, ...]
    brains: tuple[Word, ...]
    halt_id: HaltId | None
    nonce: Word | None


class ResetMessage(Command, frozen=True):
    """`reset`: QoS 1, never retained, always signed."""

    halt_id: HaltId
    nonce: Word
    operator: Annotated[str, Meta(min_length=1, max_length=WORD)]


Message = RobotMessage | PermitMessage | HaltMessage | AckMessage | StateMessage | ResetMessage
MessageT = TypeVar("MessageT", bound=Message)


@dataclass(frozen=True, slots=True)
class Topics:
    """The topics of one robot.

    Raises:
        ValueError: the robot's name cannot be one level of a topic.
    """

    robot_name: str

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", self.robot_name):
            msg = f"robot: {self.robot_name!r} must be 1 to 64 of the characters A-Z a-z 0-9 _ -"
            raise ValueError(msg)

    def __getitem__(self, name: str) -> str:
        """The topic of that name."""
        return f"hdguard/{self.robot_name}/{name}"


class Newest:
    """Drops what is not newer than the newest seen on its topic."""

    def __init__(self) -> None:
        self.pair = (-1, -1)

    def admits(self, boot: int, seq: int) -> bool:
        """True, once, for a pair above all before it."""
        if (boot, seq) <= self.pair:
            return False
        self.pair = (boot, seq)
        return True


# Writing and reading.

_encoder = msgspec.json.Encoder()


def encode(message: Message) -> bytes:
    """The message as JSON, fields in the order of this file."""
    return _encoder.encode(message)


_robot = msgspec.json.Decoder(RobotMessage)
_permit = msgspec.json.Decoder(PermitMessage)
_halt = msgspec.json.Decoder(HaltMessage)
_ack = msgspec.json.Decoder(AckMessage)
_state = msgspec.json.Decoder(StateMessage)
_reset = msgspec.json.Decoder(ResetMessage)


def _decode(decoder: "msgspec.json.Decoder[MessageT]", payload: bytes, topic: str) -> MessageT:
    if len(payload) > LIMIT:
        raise WireError(f"{topic}: {len(payload)} bytes are over the limit of {LIMIT}")
    try:
        payload.decode()  # msgspec does not look inside a field that it passes over
        return decoder.decode(payload)
    except RecursionError:
        raise WireError(f"{topic}: nested too deeply") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise WireError(f"{topic}: {error}") from None


def decode_robot(payload: bytes) -> RobotMessage:
    """Raises WireError if it is none."""
    return _decode(_robot, payload, "robot")


def decode_permit(payload: bytes) -> PermitMessage:
    """Raises WireError if it is none."""
    return _decode(_permit, payload, "permit")


def decode_halt(payload: bytes) -> HaltMessage:
    """Raises WireError if it is none."""
    return _decode(_halt, payload, "halt")


def decode_ack(payload: bytes) -> AckMessage:
    """Raises WireError if it is none."""
    return _decode(_ack, payload, "ack")


def decode_state(payload: bytes) -> StateMessage:
    """Raises WireError if it is none."""
    return _decode(_state, payload, "state")


def decode_reset(payload: bytes) -> ResetMessage:
    """Raises WireError if it is none."""
    return _decode(_reset, payload, "reset")


def decode_availability(payload: bytes) -> Availability:
    """Raises WireError if it is neither word."""
    if payload == b"online":
        return "online"
    if payload == b"offline":
        return "offline"
    raise WireError("availability: neither online nor offline")


def schemas() -> dict[str, dict[str, Any]]:
    """The JSON Schema of every topic's payload, by the topic's name."""
    kinds: dict[str, type[Message]] = {
        "robot": RobotMessage,
        "permit": PermitMessage,
        "halt": HaltMessage,
        "ack": AckMessage,
        "state": StateMessage,
        "reset": ResetMessage,
    }
    found = {name: _schema(kind, signed=name == "reset") for name, kind in kinds.items()}
    plain = "Retained, QoS 1; offline is also the Last Will. The bare word, not JSON."
    found["availability"] = {"description": plain, "enum": ["online", "offline"]}
    return found


def _schema(kind: type[Message], *, signed: bool) -> dict[str, Any]:
    (schema,), parts = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
    top: dict[str, Any] = parts.pop(kind.__name__)
    assert "$ref" in schema  # every message is a struct, and structs are components
    top["properties"]["signature"] = {
        "type": "string",
        "pattern": "^[0-9a-f]{64}$",
        "description": "HMAC-SHA256, the first member: see hdguard.actuators.signing",
    }
    if signed:
        top["required"] = [*top["required"], "signature"]
    return {**top, "$defs": parts} if parts else top

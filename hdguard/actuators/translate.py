"""The guard's values as wire messages, and back. A halt must never fail for its words."""

from typing import Literal

from hdguard.actuators import wire
from hdguard.core.actions import Halt, Permit
from hdguard.core.types import Hazard, Light, Speed

_LIGHTS: dict[Light, wire.LightName] = {
    Light.GREEN: "GREEN",
    Light.YELLOW: "YELLOW",
    Light.RED: "RED",
}
_SPEEDS: dict[Speed, wire.SpeedName] = {
    Speed.NONE: "none",
    Speed.REDUCED: "reduced",
    Speed.FULL: "full",
}
_CONTROLS = dict.fromkeys((*range(32), *range(127, 160)), " ")


def clip(text: str, length: int) -> str:
    """The text made fit to be sent and shown, whatever a model wrote.

    No longer than that many characters, no control characters, no half surrogate pairs.
    """
    return text[:length].translate(_CONTROLS).encode("utf-8", "replace").decode()


def permit_message(permit: Permit, boot: int, seq: int) -> wire.PermitMessage:
    """The guard's permit as it is sent."""
    robot = permit.robot
    return wire.PermitMessage(
        boot=boot,
        seq=seq,
        light=_LIGHTS[permit.light],
        speed=_SPEEDS[permit.speed],
        state=permit.state,
        frame_age=_age(permit.frame_age),
        verdict_age=_age(permit.verdict_age),
        robot=None if robot is None else wire.RobotEcho(boot=robot[0], seq=robot[1]),
    )


def _age(seconds: float | None) -> float | None:
    return None if seconds is None else min(max(round(seconds, 6), 0.0), 1e9)


def halt_message(halt: Halt, stop_category: Literal[1, 2], boot: int, seq: int) -> wire.HaltMessage:
    """The guard's halt as it is sent."""
    hazard = halt.hazard
    return wire.HaltMessage(
        boot=boot,
        seq=seq,
        active=True,
        halt_id=halt.halt_id,
        halt_class=halt.halt_class,
        cause=halt.cause,
        latched=halt.latched,
        source=clip(halt.source_id, wire.WORD),
        brain=clip(halt.brain, wire.WORD),
        light=None if halt.light is None else _LIGHTS[halt.light],
        hazard=wire.HazardField(
            category=clip(hazard.category, 16),
            severity=clip(hazard.severity, 16),
            text=clip(hazard.text, wire.TEXT),
        ),
        stop_category=stop_category,
        captured_at=None if halt.ref is None else halt.ref.captured_at,
        decided_at=halt.decided_at,
        evidence_id=halt.halt_id,
    )


def restored_halt(message: wire.HaltMessage, now: float) -> Halt:
    """The halt that an earlier guard left in force, for a guard that starts `now`."""
    hazard = message.hazard
    return Halt(
        message.halt_id,
        message.halt_class,
        message.cause,
        message.source,
        message.brain,
        light=None if message.light is None else Light[message.light],
        hazard=Hazard(hazard.category, hazard.severity, hazard.text),
        decided_at=now,
        latched=message.latched,
    )

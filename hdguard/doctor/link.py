"""Whether the broker lets us in, brings back what we say in time, and whether the robot is heard.

The guard's name for the broker is not used, so a guard that runs is not thrown out. Where none
runs, permits go round: of boot 0 and speed `none`, which a robot that knows a guard drops as old,
and which let no robot move.
"""

import asyncio
import secrets
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from time import perf_counter

from hdguard.actuators import wire
from hdguard.actuators.base import ActuatorError
from hdguard.actuators.connection import Connection
from hdguard.actuators.mqtt import MqttSettings
from hdguard.actuators.signing import seal, unseal
from hdguard.core.types import State
from hdguard.doctor.findings import Finding, fail, ok, warn

CONNECTS_WITHIN = 5.0
LISTENED = 1.0
"""Seconds; a robot's report is due ten times in it, a guard's permit five times."""
FEW_REPORTS = 7.0  # a second, of ten; with fewer, echoes are older than the lease allows for
ROUNDS = 20
ECHO_WARN, ECHO_FAIL = 0.1, 0.3
"""Seconds. The lease is 0.6; without the round trip an echo is up to 0.3 old, and 0.5 if one permit
is lost: DESIGN section 5."""
NAGLE = 0.03
"""Seconds by which the first message after a subscribe was later than the others: over 40 ms in
nine of nine runs with mosquitto's defaults, below 10 with `set_tcp_nodelay true`."""


@dataclass(slots=True)
class Heard:
    """What came on the robot's topics."""

    robots: list[wire.RobotMessage] = field(default_factory=list)
    permits: Counter[int] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    echo: asyncio.Event = field(default_factory=asyncio.Event)


class Ear:
    """Somebody who reads permits and reports, under a name of its own."""

    def __init__(self, settings: MqttSettings) -> None:
        self.heard = Heard()
        self.up = asyncio.Event()
        self._topics = settings.topics
        self._key = settings.keys.robot
        name = f"hdguard-{settings.robot}-doctor-{secrets.token_hex(4)}"
        self.connection = Connection(
            replace(settings, client_id=name),
            name,
            {self._topics["permit"]: 0, self._topics["robot"]: 0},
            self._greet,
            self._on_message,
        )

    async def say_nothing(self, seq: int) -> None:
        """Publish a permit that permits nothing, and that no robot takes for a newer one.

        Raises:
            ActuatorError: it did not leave.
        """
        permit = wire.PermitMessage(
            boot=0,
            seq=seq,
            light="YELLOW",
            speed="none",
            state=State.STARTING,
            frame_age=None,
            verdict_age=None,
            robot=None,
        )
        topic = self._topics["permit"]
        await self.connection.publish(topic, seal(topic, wire.encode(permit), self._key))

    async def _greet(self) -> None:
        self.up.set()

    def _on_message(self, topic: str, payload: bytes, retained: bool) -> None:
        name = topic.rpartition("/")[2]
        try:
            body = unseal(topic, payload, self._key)
            if name == "robot" and not retained:
                self.heard.robots.append(wire.decode_robot(body))
            elif name == "permit" and not retained:
                self.heard.permits[wire.decode_permit(body).boot] += 1
                self.heard.echo.set()
        except wire.WireError as error:
            self.heard.refused[f"{name}: {error}"] += 1


@asynccontextmanager
async def ear(settings: MqttSettings) -> AsyncIterator[Ear]:
    """A connected one.

    Raises:
        ActuatorError: the broker does not let us in; says why.
    """
    listener = Ear(settings)
    async with asyncio.TaskGroup() as group:
        listener.connection.start(group)
        try:
            await _up(settings, listener)
            yield listener
        finally:
            await listener.connection.close()


async def _up(settings: MqttSettings, listener: Ear) -> None:
    try:
        async with asyncio.timeout(CONNECTS_WITHIN):
            await listener.up.wait()
    except TimeoutError:
        msg = f"{settings.host}:{settings.port}: {listener.connection.trouble}"
        raise ActuatorError(msg) from None


async def check_link(settings: MqttSettings, listen: float = LISTENED) -> list[Finding]:
    """Connect, listen for so many seconds, and send permits round.

    Raises:
        ActuatorError: the broker does not let us in, or the connection broke.
    """
    loop = asyncio.get_running_loop()
    start = loop.time()
    async with ear(settings) as speaker:
        took = loop.time() - start
        await asyncio.sleep(listen)
        heard = replace(speaker.heard, robots=[*speaker.heard.robots])
        found = [_broker(settings, took)]
        guards = [boot for boot in heard.permits if boot]
        if guards:
            said = f"a guard (boot {max(guards)}) is running and its permits arrive"
            found.append(ok("echo", f"{said}; nothing was published"))
        else:
            found += await _echo(settings, speaker)
        found.append(_robot(heard, listen))
    return found


def _broker(settings: MqttSettings, took: float) -> Finding:
    said = f"{settings.host}:{settings.port} took us in within {took * 1e3:.0f} ms"
    loopback = settings.host in {"127.0.0.1", "::1", "localhost"}
    if settings.username is None:
        how = "set mqtt.username, mqtt.password and the broker's password and ACL files"
        return warn("broker", f"{said} without asking who we are", how)
    if not settings.tls and not loopback:
        how = "set mqtt.tls and mqtt.ca_file, and a TLS listener in the broker"
        return warn("broker", f"{said}, over the network without TLS", how)
    return ok("broker", said)


async def _echo(settings: MqttSettings, speaker: Ear) -> list[Finding]:
    """How long our own permits take to come back, the first after a subscribe on its own."""
    firsts: list[float] = []
    later: list[float] = []
    seq = 0
    for attempt in range(3):
        async with ear(settings) as listener:
            for _ in range(1 + (ROUNDS if attempt == 0 else 1)):
                round_trip = await _round(speaker, listener, seq)
                if round_trip is None:
                    how = (
                        "the broker's ACL must let this user write and read hdguard/+/permit; "
                        "it refuses without a word (systemd/mosquitto/hdguard.acl)"
                    )
                    return [fail("echo", "our own permits do not come back in 1 s", how)]
                (firsts if len(firsts) == attempt else later).append(round_trip)
                seq += 1
    return _echoed(firsts, later)


async def _round(speaker: Ear, listener: Ear, seq: int) -> float | None:
    """Seconds from a permit's leaving to its arrival; None if it does not arrive."""
    listener.heard.echo.clear()
    start = perf_counter()  # measures work; the loop's clock may count in milliseconds
    await speaker.say_nothing(seq)
    try:
        async with asyncio.timeout(1.0):
            await listener.heard.echo.wait()
    except TimeoutError:
        return None
    return perf_counter() - start


def _echoed(firsts: list[float], later: list[float]) -> list[Finding]:
    middle, worst = sorted(later)[len(later) // 2], max(later)
    said = f"permits come back in {middle * 1e3:.1f} ms, {worst * 1e3:.1f} ms at worst"
    if worst >= ECHO_WARN:
        how = (
            f"the robot's lease of 0.6 s bears {ECHO_WARN:g} s, and {ECHO_FAIL:g} s if no permit "
            "is ever lost: bring broker and robot nearer, use a cable"
        )
        found = [(fail if middle >= ECHO_FAIL else warn)("echo", said, how)]
    else:
        found = [ok("echo", said)]
    # The smallest of three: one late first message may have any reason.
    if min(firsts) - middle >= NAGLE:
        slow = f"the first message after a subscribe takes {min(firsts) * 1e3:.0f} ms"
        how = "set_tcp_nodelay true in mosquitto.conf: the one halt that matters pays for it"
        found.append(warn("first message", slow, how))
    return found


def _robot(heard: Heard, listened: float) -> Finding:
    count = len(heard.robots)
    refused = [why for why in heard.refused if why.startswith("robot:")]
    if refused:
        how = "give robot and guard the same robot_key, and the same version of the contract"
        return fail("robot", f"its reports are refused: {refused[-1]}", how)
    if not count:
        how = (
            "start the robot's half (`hdguard robot --check` tests it); check its broker, its "
            "user and the name mqtt.robot"
        )
        return fail("robot", f"no report in {listened:g} s", how)
    last = heard.robots[-1]
    how_fast = "" if last.speed is None else f" at {last.speed:g} m/s"
    said = (
        f"{count} reports in {listened:g} s; "
        f"it {'moves' if last.moving else 'stands'}{how_fast} (boot {last.boot})"
    )
    if count < FEW_REPORTS * listened:
        return warn("robot", said, "ten a second are due: the lease counts from its reports")
    return ok("robot", said)

"""What the guard believes of what arrives: everything is checked here, without a socket.

Nothing is true because it arrived: the broker may deliver what was sent long ago, to anyone, twice.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from hdguard.actuators import wire
from hdguard.actuators.signing import Nonces, unseal
from hdguard.actuators.wire import WireError
from hdguard.core.events import Event, HaltAcknowledged, HaltConfirmed, ResetRequested, RobotSeen

RobotEvents = RobotSeen | HaltAcknowledged | HaltConfirmed | ResetRequested

LINK_LOST_AFTER = 1.0
"""Seconds: DESIGN section 6, broker frozen or half open."""


@dataclass(frozen=True, slots=True)
class Keys:
    """What is signed with what; None: not signed.

    Attributes:
        robot: shared by guard and robot.
        reset: shared by guard and operators. Without it no reset is accepted.
    """

    robot: bytes | None = None
    reset: bytes | None = None


class Echo:
    """Whether the guard's own permits come back: the one proof that the link works.

    As with the robot's lease, age counts from when the permit was sent, so that what a thawed
    broker still had proves nothing.
    """

    def __init__(self, boot: int, now: float) -> None:
        self._boot = boot
        self._sent: dict[int, float] = {}
        self._returned_at = now
        self.lost = False

    def sent(self, seq: int, now: float) -> None:
        """A permit leaves."""
        self._sent = {s: at for s, at in self._sent.items() if at > now - LINK_LOST_AFTER}
        self._sent[seq] = now

    def returned(self, message: wire.PermitMessage) -> bool:
        """A permit came back; True if it is ours and was sent just now."""
        sent_at = self._sent.get(message.seq)
        if message.boot != self._boot or sent_at is None:
            return False
        self._returned_at = max(self._returned_at, sent_at)
        return True

    def restart(self, now: float) -> None:
        """Count from now: nobody has listened before."""
        self._returned_at = max(self._returned_at, now)

    @property
    def deadline(self) -> float:
        """When the link counts as lost unless another permit comes back."""
        return self._returned_at + LINK_LOST_AFTER

    def changed(self, now: float) -> bool:
        """True if the link was lost, or came back, since the last call; `lost` says which."""
        before, self.lost = self.lost, now >= self.deadline
        return self.lost is not before


class Intake:
    """Turns payloads of the robot and of operators into events, or refuses them.

    Args:
        robot: the robot's name.
        boot: the guard's.
        keys: what must be signed.
        nonces: what a reset must quote.
        in_force: the id of the halt in force, or None.
    """

    def __init__(
        self,
        topics: wire.Topics,
        boot: int,
        keys: Keys,
        nonces: Nonces,
        in_force: Callable[[], str | None],
    ) -> None:
        self._topics = topics
        self._boot = boot
        self._keys = keys
        self._nonces = nonces
        self._in_force = in_force
        self._robots = wire.Newest()

    def take(self, name: str, payload: bytes, now: float, *, retained: bool) -> RobotEvents | None:
        """The event that the payload is, or None if it is in order but says nothing new.

        Args:
            name: the topic's last level: robot, ack or reset.
            payload: as it came.
            now: seconds on the loop's clock.
            retained: the broker had kept it, so it may be of any age.

        Raises:
            WireError: it is refused; says why.
        """
        if retained:
            raise WireError(f"{name}: retained")
        match name:
            case "robot":
                return self._on_robot(wire.decode_robot(self._open(name, payload)))
            case "ack":
                return self._on_ack(wire.decode_ack(self._open(name, payload)))
            case "reset":
                return self._on_reset(payload, now)
            case _:
                raise WireError(f"{name}: nobody sends us this")

    def permit(self, payload: bytes) -> wire.PermitMessage:
        """A permit that came back.

        Raises:
            WireError: it is none, or not signed by us.
        """
        return wire.decode_permit(self._open("permit", payload))

    def halt(self, payload: bytes) -> wire.HaltMessage:
        """The halt that the broker keeps.

        Raises:
            WireError: it is none, or not signed by a guard.
        """
        return wire.decode_halt(self._open("halt", payload))

    def _open(self, name: str, payload: bytes) -> bytes:
        try:
            return unseal(self._topics[name], payload, self._keys.robot)
        except WireError as error:
            raise WireError(f"{name}: {error}") from None

    def _on_robot(self, message: wire.RobotMessage) -> RobotSeen:
        if not self._robots.admits(message.boot, message.seq):
            newest = "{}, {}".format(*self._robots.pair)
            raise WireError(f"robot: ({message.boot}, {message.seq}) is not above ({newest})")
        return RobotSeen(message.boot, message.seq, message.moving, message.speed)

    def _on_ack(self, message: wire.AckMessage) -> HaltAcknowledged | HaltConfirmed | None:
        if message.guard_boot != self._boot:
            raise WireError(f"ack: answers the guard of boot {message.guard_boot}, not ours")
        if message.halt_id != self._in_force():
            return None  # the answer to a release, or to a halt that another one has replaced
        kind = HaltConfirmed if message.stopped else HaltAcknowledged
        return kind(message.halt_id)

    def _on_reset(self, payload: bytes, now: float) -> ResetRequested:
        if self._keys.reset is None:
            raise WireError("reset: no key is configured (reset_key), so no reset can be believed")
        try:
            body = unseal(self._topics["reset"], payload, self._keys.reset)
        except WireError as error:
            raise WireError(f"reset: {error}") from None
        message = wire.decode_reset(body)
        if message.halt_id != self._in_force():
            raise WireError(f"reset: {message.halt_id} is not the halt in force")
        if not self._nonces.spend(message.nonce, now):
            raise WireError("reset: the nonce is unknown, used or expired; take a new one")
        return ResetRequested(message.halt_id, message.operator)


class Inbox:
    """Events on their way to the guard; of the robot's reports only the newest waits."""

    def __init__(self) -> None:
        self.closed = False
        self._events: deque[Event] = deque()
        self._woken = asyncio.Event()

    def put(self, event: Event) -> None:
        """Add an event."""
        if (
            self._events
            and isinstance(event, RobotSeen)
            and isinstance(self._events[-1], RobotSeen)
        ):
            self._events.pop()
        self._events.append(event)
        self._woken.set()

    def take(self) -> Event | None:
        """The oldest, if there is one."""
        return self._events.popleft() if self._events else None

    def wake(self) -> None:
        """Something else has changed."""
        self._woken.set()

    def close(self) -> None:
        """Nothing more will come."""
        self.closed = True
        self._woken.set()

    async def wait(self, until: float | None) -> None:
        """Wait for something to look at, or for that time."""
        try:
            async with asyncio.timeout_at(until):
                await self._woken.wait()
        except TimeoutError:
            return
        finally:
            self._woken.clear()

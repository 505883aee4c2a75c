"""When the robot may move, and what it owes the guard; pure: every time is an argument.

No clock is read and no two are compared. Age counts from when the robot sent the report that a
permit echoes, so a permit that waited in a frozen broker is worth nothing, however many arrive at
once.
"""

import math

from hdguard.actuators import wire
from hdguard.core.types import Speed

LEASE = 0.6
"""Seconds that the robot may move after it sent the newest report that a permit has echoed: DESIGN
section 5."""

REPORT_VALID = 0.5
"""Seconds that a report of the robot's motion is believed: DESIGN section 5, `robot`."""

SPEEDS = {"none": Speed.NONE, "reduced": Speed.REDUCED, "full": Speed.FULL}


class Lease:
    """Whether the robot may move, and how fast. A lapsed lease is not latched.

    Args:
        boot: the robot's.

    Attributes:
        halt: the one in force.
        deadline: when the lease ends, unless another permit comes.
        permits: how many were accepted.
    """

    def __init__(self, boot: int) -> None:
        self.boot = boot
        self.halt: wire.HaltMessage | None = None
        self.deadline = -math.inf
        self.permits = 0
        self._seq = 0
        self._sent: dict[int, float] = {}
        self._speed = Speed.NONE
        self._permits = wire.Newest()
        self._halts = wire.Newest()
        self._guard = -1  # the newest boot of a guard, on either topic

    def send(self, now: float) -> int:
        """The number of the report that is sent now."""
        self._seq += 1
        self._sent = {seq: at for seq, at in self._sent.items() if now < at + LEASE}
        self._sent[self._seq] = now
        return self._seq

    def on_permit(self, permit: wire.PermitMessage) -> bool:
        """A permit arrived; False if it is an old one, and dropped."""
        if not self._admits(self._permits, permit):
            return False
        self.permits += 1
        self._speed = SPEEDS[permit.speed]
        if permit.robot is not None and permit.robot.boot == self.boot:
            sent_at = self._sent.get(permit.robot.seq, -math.inf)
            self.deadline = max(self.deadline, sent_at + LEASE)
        return True

    def on_halt(self, halt: wire.HaltMessage) -> bool:
        """A halt or its end arrived, retained or not; False if it is an old one, and dropped.

        The guard has one halt in force at most, so the newest message tells all.
        """
        if not self._admits(self._halts, halt):
            return False
        self.halt = halt if halt.active else None
        return True

    def _admits(self, newest: wire.Newest, message: wire.PermitMessage | wire.HaltMessage) -> bool:
        """New on its topic, and from the newest guard on either.

        A guard that lost its boot number must not have its permits heard and its halts dropped.
        """
        if message.boot < self._guard or not newest.admits(message.boot, message.seq):
            return False
        self._guard = message.boot
        return True

    def speed(self, now: float) -> Speed:
        """What the robot may do now."""
        if self.halt is not None or now >= self.deadline:
            return Speed.NONE
        return self._speed


class Standing:
    """Whether the robot stands still, and the acknowledgements that follow from it.

    A halt is confirmed only by a report that was made after it arrived.
    """

    def __init__(self) -> None:
        self._moving = True
        self._speed: float | None = None
        self._at = -math.inf
        self._halt: wire.HaltMessage | None = None
        self._halted_at = math.inf
        self._answered = self._confirmed = True

    def report(self, *, moving: bool, speed: float | None, now: float) -> None:
        """The robot says so; m/s."""
        self._moving, self._speed, self._at = moving, speed, now

    def motion(self, now: float) -> tuple[bool, float | None]:
        """Moving, and m/s or None; without a fresh report it moves at an unknown speed."""
        if now >= self._at + REPORT_VALID:
            return True, None
        return self._moving, self._speed

    def on_halt(self, halt: wire.HaltMessage, now: float) -> None:
        """The lease has accepted this message: it is to be answered."""
        last = self._halt
        if last is None or (last.halt_id, last.active) != (halt.halt_id, halt.active):
            self._halted_at = now
        self._halt = halt
        self._answered = self._confirmed = False

    def answer(self, now: float) -> wire.AckMessage | None:
        """The acknowledgement that is due: one per message, and one when the robot stands."""
        halt = self._halt
        stopped = not self.motion(now)[0] and self._at > self._halted_at
        said_all = self._confirmed or not stopped
        if halt is None or (self._answered and (said_all or not halt.active)):
            return None
        self._answered, self._confirmed = True, stopped
        return wire.AckMessage(halt_id=halt.halt_id, guard_boot=halt.boot, stopped=stopped)

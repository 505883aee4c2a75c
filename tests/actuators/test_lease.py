"""The lease, told in literal times, and every short script against a plain restatement of it."""

import itertools
import math
from dataclasses import dataclass, field

import msgspec
import pytest

from hdguard.actuators import wire
from hdguard.actuators.lease import LEASE, REPORT_VALID, Lease, Standing
from hdguard.actuators.translate import halt_message
from hdguard.core.types import Speed
from tests.actuators.support import HALT, permit

BOOT = 3


def halt(seq: int, *, active: bool = True, boot: int = 7, halt_id: str = "7-1") -> wire.HaltMessage:
    message = halt_message(HALT, 1, boot, seq)
    return msgspec.structs.replace(message, active=active, halt_id=halt_id)


def test_a_robot_without_permits_never_moves() -> None:
    lease = Lease(BOOT)
    for step in range(100):
        lease.send(step * 0.1)
        assert lease.speed(step * 0.1) is Speed.NONE
    assert lease.deadline == -math.inf


def test_it_moves_until_600_ms_after_it_sent_the_report_that_was_echoed() -> None:
    lease = Lease(BOOT)
    seq = lease.send(10.0)
    lease.on_permit(permit(1, (BOOT, seq)))
    assert lease.speed(10.599) is Speed.FULL
    assert lease.speed(10.6) is Speed.NONE


def test_the_lease_counts_from_the_report_however_late_its_permit_comes() -> None:
    lease = Lease(BOOT)
    old, new = lease.send(0.0), lease.send(0.5)
    lease.on_permit(permit(1, (BOOT, old)))
    assert lease.deadline == LEASE
    lease.on_permit(permit(2, (BOOT, new)))
    assert lease.deadline == 0.5 + LEASE
    lease.on_permit(permit(3, (BOOT, old)))
    assert lease.deadline == 0.5 + LEASE


def test_a_burst_of_twenty_old_permits_does_not_move_it() -> None:
    lease = Lease(BOOT)
    seqs = [lease.send(n * 0.2) for n in range(20)]
    for n, seq in enumerate(seqs[:18]):
        lease.on_permit(permit(n + 1, (BOOT, seq)))
    assert lease.permits == 18
    assert lease.speed(4.1) is Speed.NONE
    assert lease.speed(4.0) is Speed.NONE


def test_a_lapsed_lease_is_not_latched() -> None:
    lease = Lease(BOOT)
    lease.on_permit(permit(1, (BOOT, lease.send(0.0))))
    assert lease.speed(1.0) is Speed.NONE
    lease.on_permit(permit(2, (BOOT, lease.send(1.0))))
    assert lease.speed(1.1) is Speed.FULL


@pytest.mark.parametrize("echo", [None, (BOOT - 1, 1), (BOOT + 1, 1), (BOOT, 2), (BOOT, 0)])
def test_an_echo_of_what_it_never_sent_lets_nothing_move(echo: tuple[int, int] | None) -> None:
    lease = Lease(BOOT)
    lease.send(0.0)
    assert lease.on_permit(permit(1, echo))
    assert lease.speed(0.0) is Speed.NONE


def test_speed_is_that_of_the_newest_permit() -> None:
    lease = Lease(BOOT)
    seq = lease.send(0.0)
    for n, (word, speed) in enumerate(
        [("full", Speed.FULL), ("reduced", Speed.REDUCED), ("none", Speed.NONE)]
    ):
        lease.on_permit(permit(n, (BOOT, seq), word))  # type: ignore[arg-type]
        assert lease.speed(0.1) is speed


def test_an_old_or_repeated_permit_is_dropped() -> None:
    lease = Lease(BOOT)
    seq = lease.send(0.0)
    assert lease.on_permit(permit(5, (BOOT, seq), "none"))
    for number, boot in ((5, 7), (4, 7), (9, 6)):
        assert not lease.on_permit(permit(number, (BOOT, seq), boot=boot))
    assert lease.speed(0.0) is Speed.NONE
    assert lease.on_permit(permit(1, (BOOT, seq), boot=8))
    assert lease.speed(0.0) is Speed.FULL


def test_a_halt_stops_it_whatever_the_lease_says_and_its_end_lets_the_lease_rule() -> None:
    lease = Lease(BOOT)
    lease.on_permit(permit(1, (BOOT, lease.send(0.0))))
    assert lease.on_halt(halt(1))
    assert lease.halt is not None
    lease.on_permit(permit(2, (BOOT, lease.send(0.1))))
    assert lease.speed(0.1) is Speed.NONE
    assert lease.on_halt(halt(2, active=False))
    assert lease.speed(0.1) is Speed.FULL
    assert not lease.on_halt(halt(2))
    assert not lease.on_halt(halt(1, boot=6))
    assert lease.halt is None


def test_halts_and_permits_are_numbered_apart() -> None:
    lease = Lease(BOOT)
    assert lease.on_permit(permit(50, None))
    assert lease.on_halt(halt(1))


def test_a_guard_that_lost_its_boot_number_is_heard_on_no_topic() -> None:
    """Else its permits would be honoured while every halt of it was dropped as old."""
    lease = Lease(BOOT)
    assert lease.on_halt(halt(40, boot=10, active=False))
    seq = lease.send(0.0)
    assert not lease.on_permit(permit(1, (BOOT, seq), boot=1))
    assert lease.speed(0.1) is Speed.NONE
    seq = lease.send(0.2)
    assert lease.on_permit(permit(1, (BOOT, seq), boot=11))
    assert lease.speed(0.3) is not Speed.NONE
    assert not lease.on_halt(halt(41, boot=10))
    assert lease.on_halt(halt(1, boot=11))


def test_the_release_by_a_restarted_guard_ends_the_halt_that_it_superseded() -> None:
    lease = Lease(BOOT)
    lease.on_halt(halt(9, halt_id="7-1"))
    lease.on_halt(halt(2, active=False, boot=8, halt_id="8-1"))
    assert lease.halt is None


@dataclass
class Restated:
    """The lease as DESIGN says it, over the whole history, without any state of its own."""

    sent: dict[int, float] = field(default_factory=dict)
    permits: list[tuple[wire.PermitMessage, float | None]] = field(default_factory=list)
    halts: list[wire.HaltMessage] = field(default_factory=list)

    def permit(self, message: wire.PermitMessage) -> None:
        """Take it if it is newer than all before, with when the robot sent what it echoes."""
        if all(message.seq > before.seq for before, _ in self.permits):
            assert message.robot is not None
            ours = message.robot.boot == BOOT
            self.permits.append((message, self.sent.get(message.robot.seq) if ours else None))

    def halt(self, message: wire.HaltMessage) -> None:
        if all(message.seq > before.seq for before in self.halts):
            self.halts.append(message)

    def may_move(self, now: float) -> bool:
        if not self.permits or (self.halts and self.halts[-1].active):
            return False
        echoed = [at for _, at in self.permits if at is not None]
        return self.permits[-1][0].speed != "none" and any(now < at + LEASE for at in echoed)


STEPS = ("send", "fresh", "first", "none", "foreign", "replayed", "halt", "release", "old halt")


def play(script: tuple[str, ...], gaps: tuple[float, ...]) -> None:
    lease, truth = Lease(BOOT), Restated()
    now, newest = 0.0, 0
    for number, (step, gap) in enumerate(zip(script, gaps, strict=True), start=2):
        now += gap
        if step == "send":
            newest = lease.send(now)
            truth.sent[newest] = now
        elif step in {"halt", "release", "old halt"}:
            order = halt(1 if step == "old halt" else number, active=step != "release")
            lease.on_halt(order)
            truth.halt(order)
        else:
            echo = (BOOT + (step == "foreign"), 1 if step == "first" else newest)
            said = permit(1 if step == "replayed" else number, echo)
            said = msgspec.structs.replace(said, speed="none") if step == "none" else said
            lease.on_permit(said)
            truth.permit(said)
        for ahead in (0.0, 0.3, 0.55, 0.65):
            moves = lease.speed(now + ahead) is not Speed.NONE
            assert moves is truth.may_move(now + ahead), (script, gaps, ahead)


def test_every_short_script_gives_what_the_rule_says() -> None:
    played = 0
    for script in itertools.product(STEPS, repeat=4):
        for gaps in itertools.product((0.05, 0.4), repeat=3):
            play(script, (0.0, *gaps))
            played += 1
    assert played == 9**4 * 8


# The robot's word about itself.


def standing(*, moving: bool, at: float) -> Standing:
    robot = Standing()
    robot.report(moving=moving, speed=0.5 if moving else 0.0, now=at)
    return robot


def said(robot: Standing, now: float) -> bool | None:
    """What the acknowledgement that is due says, if one is."""
    ack = robot.answer(now)
    return None if ack is None else ack.stopped


def test_a_robot_that_says_nothing_of_itself_may_be_moving() -> None:
    assert Standing().motion(0.0) == (True, None)
    robot = standing(moving=False, at=1.0)
    assert robot.motion(1.0 + REPORT_VALID - 0.001) == (False, 0.0)
    assert robot.motion(1.0 + REPORT_VALID) == (True, None)


def test_a_halt_is_acknowledged_at_once_and_confirmed_once_it_stands() -> None:
    robot = standing(moving=True, at=0.9)
    robot.on_halt(halt(1), 1.0)
    assert [said(robot, 1.0), said(robot, 1.0)] == [False, None]
    robot.report(moving=True, speed=0.1, now=1.1)
    assert said(robot, 1.1) is None
    robot.report(moving=False, speed=0.0, now=1.2)
    assert [said(robot, 1.2), said(robot, 1.2)] == [True, None]


def test_every_repeat_is_answered() -> None:
    robot = standing(moving=True, at=0.9)
    for n in range(3):
        robot.on_halt(halt(n + 1), 1.0)
        ack = robot.answer(1.0)
        assert ack is not None
        assert (ack.halt_id, ack.guard_boot, ack.stopped) == ("7-1", 7, False)
    robot.report(moving=False, speed=0.0, now=1.2)
    assert said(robot, 1.2) is True
    robot.on_halt(halt(4), 1.3)
    assert said(robot, 1.3) is True


def test_a_report_from_before_the_halt_does_not_confirm_it() -> None:
    robot = standing(moving=False, at=0.99)
    robot.on_halt(halt(1), 1.0)
    assert said(robot, 1.0) is False
    robot.report(moving=False, speed=0.0, now=1.01)
    assert said(robot, 1.01) is True
    robot.on_halt(halt(2, halt_id="7-2"), 1.02)
    assert said(robot, 1.02) is False


def test_a_robot_whose_report_is_old_does_not_confirm() -> None:
    robot = standing(moving=True, at=0.9)
    robot.on_halt(halt(1), 1.0)
    assert said(robot, 1.0) is False
    robot.report(moving=False, speed=0.0, now=1.1)
    assert said(robot, 1.1 + REPORT_VALID) is None


def test_a_release_is_answered_once() -> None:
    robot = standing(moving=True, at=0.9)
    robot.on_halt(halt(1, active=False), 1.0)
    assert said(robot, 1.0) is False
    robot.report(moving=False, speed=0.0, now=1.1)
    assert said(robot, 1.1) is None

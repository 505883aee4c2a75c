"""What the guard believes: nothing retained, replayed, unsigned, late or malformed."""

import itertools
import random

import pytest

from hdguard.actuators import wire
from hdguard.actuators.intake import Echo, Inbox, Intake, Keys
from hdguard.actuators.signing import Nonces, check_key, seal
from hdguard.actuators.wire import WireError
from hdguard.core.events import HaltAcknowledged, HaltConfirmed, ResetRequested, RobotSeen
from tests.actuators.support import RESET_KEY, ROBOT_KEY, permit

TOPICS = wire.Topics("rosie")
RESET, ROBOT = check_key(RESET_KEY, "key"), check_key(ROBOT_KEY, "key")


class Door:
    """An intake of the guard of boot 7, whose halt 7-1 is in force."""

    def __init__(self, keys: Keys | None = None) -> None:
        count = itertools.count()
        self.nonces = Nonces(lambda: f"nonce {next(count)}")
        self.in_force: str | None = "7-1"
        keys = keys or Keys(reset=RESET)
        self.intake = Intake(TOPICS, 7, keys, self.nonces, lambda: self.in_force)

    def take(
        self, name: str, payload: bytes, now: float = 0.0, *, retained: bool = False
    ) -> object:
        return self.intake.take(name, payload, now, retained=retained)

    def refuses(
        self, name: str, payload: bytes, now: float = 0.0, *, retained: bool = False
    ) -> str:
        with pytest.raises(WireError) as refused:
            self.take(name, payload, now, retained=retained)
        return str(refused.value)


def robot(boot: int, seq: int, speed: float | None = 0.5) -> bytes:
    return wire.encode(wire.RobotMessage(boot=boot, seq=seq, moving=True, speed=speed))


def ack(halt_id: str = "7-1", boot: int = 7, *, stopped: bool = True) -> bytes:
    return wire.encode(wire.AckMessage(halt_id=halt_id, guard_boot=boot, stopped=stopped))


def reset(nonce: str, halt_id: str = "7-1", key: bytes | None = RESET) -> bytes:
    message = wire.ResetMessage(halt_id=halt_id, nonce=nonce, operator="ada")
    return seal(TOPICS["reset"], wire.encode(message), key)


def test_the_robot_is_seen_and_its_old_messages_are_not() -> None:
    door = Door()
    assert door.take("robot", robot(3, 5)) == RobotSeen(3, 5, moving=True, speed=0.5)
    assert "(3, 5) is not above (3, 5)" in door.refuses("robot", robot(3, 5))
    assert "(3, 4) is not above" in door.refuses("robot", robot(3, 4))
    assert "(2, 9) is not above" in door.refuses("robot", robot(2, 9))
    assert door.take("robot", robot(4, 1, None)) == RobotSeen(4, 1, moving=True)


@pytest.mark.parametrize("name", ["robot", "ack", "reset"])
def test_nothing_retained_is_believed(name: str) -> None:
    door = Door()
    good = {"robot": robot(3, 1), "ack": ack(), "reset": reset(door.nonces.issue(0.0))}
    assert door.refuses(name, good[name], retained=True) == f"{name}: retained"
    assert door.take(name, good[name]) is not None


def test_only_stopped_true_confirms() -> None:
    door = Door()
    assert door.take("ack", ack(stopped=False)) == HaltAcknowledged("7-1")
    assert door.take("ack", ack()) == HaltConfirmed("7-1")


def test_the_answer_to_another_guard_or_another_halt_counts_for_nothing() -> None:
    door = Door()
    assert "boot 6, not ours" in door.refuses("ack", ack(boot=6))
    assert door.take("ack", ack("7-2")) is None
    door.in_force = None
    assert door.take("ack", ack()) is None


def test_a_reset_with_a_signature_and_a_nonce_is_accepted_once() -> None:
    door = Door()
    payload = reset(door.nonces.issue(0.0))
    assert door.take("reset", payload, 1.0) == ResetRequested("7-1", "ada")
    assert "unknown, used or expired" in door.refuses("reset", payload, 1.0)


def test_a_reset_is_refused_for_whatever_is_wrong_with_it() -> None:
    door = Door()
    nonce = door.nonces.issue(0.0)
    assert "not signed" in door.refuses("reset", reset(nonce, key=None))
    assert "wrong signature" in door.refuses("reset", reset(nonce, key=ROBOT))
    assert "not the halt in force" in door.refuses("reset", reset(nonce, "7-2"))
    assert "unknown, used or expired" in door.refuses("reset", reset("nonce 9"))
    assert "unknown, used or expired" in door.refuses("reset", reset(nonce), 5.0)
    # A refusal for another reason has not used the nonce up.
    late = door.nonces.issue(5.0)
    assert "wrong signature" in door.refuses("reset", reset(late, key=ROBOT), 5.0)
    assert door.take("reset", reset(late), 5.0)


def test_without_a_key_no_reset_is_believed() -> None:
    door = Door(Keys())
    nonce = door.nonces.issue(0.0)
    for payload in (reset(nonce), reset(nonce, key=None)):
        assert "no key is configured (reset_key)" in door.refuses("reset", payload)


def test_not_one_of_ten_thousand_forged_or_replayed_resets_is_accepted() -> None:
    door, chance = Door(), random.Random(3)
    used = reset(door.nonces.issue(0.0))
    assert door.take("reset", used)
    live = door.nonces.issue(0.0)
    good = reset(live)
    for _ in range(10_000):
        payload = bytearray(chance.choice([used, good, reset(live, key=None), reset("nonce 77")]))
        if bytes(payload) == good:
            payload[chance.randrange(len(payload))] ^= 1 << chance.randrange(8)
        assert door.refuses("reset", bytes(payload))
    assert door.take("reset", good)


def test_with_a_robot_key_unsigned_reports_are_refused() -> None:
    door = Door(Keys(robot=ROBOT, reset=RESET))
    for name, body in (("robot", robot(3, 1)), ("ack", ack())):
        assert door.refuses(name, body) == f"{name}: not signed"
        assert door.take(name, seal(TOPICS[name], body, ROBOT))
    body = wire.encode(permit(1, None))
    with pytest.raises(WireError, match="permit: not signed"):
        door.intake.permit(body)
    assert door.intake.permit(seal(TOPICS["permit"], body, ROBOT)).seq == 1
    with pytest.raises(WireError, match="halt: not signed"):
        door.intake.halt(b"{}")


def test_a_topic_that_nobody_writes_to_us_is_refused() -> None:
    assert "nobody sends us this" in Door().refuses("state", b"{}")


def test_the_link_is_lost_one_second_after_the_newest_permit_that_came_back_was_sent() -> None:
    echo = Echo(7, 0.0)
    for seq, at in enumerate((0.0, 0.2, 0.4, 0.6)):
        echo.sent(seq, at)
    for seq in (0, 1, 2):
        echo.returned(permit(seq, None))
    assert echo.deadline == pytest.approx(1.4)
    assert (echo.changed(1.399), echo.lost) == (False, False)
    assert (echo.changed(1.4), echo.lost) == (True, True)
    assert not echo.changed(2.0)


def test_old_permits_from_a_thawed_broker_do_not_bring_the_link_back() -> None:
    echo = Echo(7, 0.0)
    for seq in range(20):
        echo.sent(seq, seq * 0.2)
    assert echo.changed(4.1)
    for seq in range(15):
        echo.returned(permit(seq, None))
    assert not echo.changed(4.1)
    echo.returned(permit(19, None))
    assert (echo.changed(4.1), echo.lost) == (True, False)


def test_another_guards_permits_prove_nothing() -> None:
    echo = Echo(7, 0.0)
    echo.sent(1, 0.9)
    echo.returned(permit(1, None, boot=6))
    assert echo.deadline == 1.0


def test_of_the_robots_reports_only_the_newest_waits_and_every_ack_does() -> None:
    inbox = Inbox()
    seen = [RobotSeen(3, n, moving=True) for n in range(4)]
    for event in (seen[0], seen[1], HaltAcknowledged("7-1"), seen[2], seen[3]):
        inbox.put(event)
    assert [inbox.take() for _ in range(4)] == [seen[1], HaltAcknowledged("7-1"), seen[3], None]

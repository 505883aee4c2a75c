"""A real halt to a real robot over a real broker, and when it is not sent at all."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from hdguard.actuators.base import ActuatorError
from hdguard.actuators.mqtt import MqttActuator
from hdguard.actuators.signing import seal
from hdguard.actuators.translate import halt_message
from hdguard.actuators.wire import HaltMessage, decode_halt, encode
from hdguard.config import Config, LiveConfig
from hdguard.core.actions import Halt, Notify, Release
from hdguard.core.events import LinkLost
from hdguard.core.types import Speed, State
from hdguard.doctor import halting
from hdguard.doctor.findings import Finding, Status
from hdguard.doctor.halting import check_halt
from hdguard.live import LivePlan
from hdguard.runtime.lock import LockedError, locked
from hdguard.runtime.state_file import Kept, write_state
from tests.actuators.support import HALT, ROBOT_KEY, run, shepherded
from tests.e2e.stage import Driven, Stage, Topic, demo_robot, following, stage


@pytest.fixture(autouse=True)
def _briefly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two permits of a guard are due in it."""
    monkeypatch.setattr(halting, "LISTENED", 0.5)


def plan_of(at: Stage, folder: Path, **mqtt: str) -> LivePlan:
    return LivePlan(Config(mqtt=at.guard_settings(**mqtt), live=LiveConfig(state_dir=str(folder))))


@asynccontextmanager
async def scene(folder: Path) -> AsyncIterator[tuple[LivePlan, Topic]]:
    """A broker, and somebody who writes down what is said on `halt`."""
    async with stage("embedded", folder) as at, following(at, "halt") as halts:
        yield plan_of(at, folder), halts


def said(halts: Topic) -> list[HaltMessage]:
    return [decode_halt(payload) for _, payload, _ in halts.seen]


def test_a_robot_that_moves_is_halted_stands_and_the_halt_is_taken_back(tmp_path: Path) -> None:
    async def drive(at: Stage, driven: Driven) -> None:
        async with at.guard(boot=4) as guard, shepherded(guard):
            await driven.at_speed(Speed.FULL)

    async def story() -> list[Finding]:
        async with stage("embedded", tmp_path) as at, following(at, "halt") as halts:
            (tmp_path / "rosie.boot").write_text("7\n")
            async with demo_robot(at.robot_settings()) as driven:
                await drive(at, driven)
                found = await check_halt(plan_of(at, tmp_path))
                await halts.wait_for(lambda payload: not decode_halt(payload).active)
            assert {(h.halt_id, h.halt_class) for h in said(halts)} == {("8-1", "operator")}
            return found

    (found,) = run(story())
    assert found.status is Status.OK
    assert "standing after" in found.said
    assert (tmp_path / "rosie.boot").read_text() == "8\n"  # the next guard's is greater


def test_a_robot_that_never_answers_fails_and_the_halt_is_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(halting, "STOPS_WITHIN", 0.35)

    async def story() -> list[Finding]:
        async with scene(tmp_path) as (plan, halts):
            found = await check_halt(plan)
            await halts.wait_for(lambda payload: not decode_halt(payload).active)
            assert [h.active for h in said(halts)].count(True) >= 3  # it was repeated
            return found

    (found,) = run(story())
    assert (found.status, found.said) == (Status.FAIL, "no acknowledgement in 0.35 s")


@pytest.mark.parametrize("keeper", ["broker", "state file"])
def test_a_halt_in_force_is_left_alone(keeper: str, tmp_path: Path) -> None:
    async def story() -> list[Finding]:
        async with scene(tmp_path) as (plan, halts):
            if keeper == "broker":
                async with MqttActuator(plan.config.mqtt, 7) as guard:
                    await guard.ready()
                    await guard.halt(HALT)
            else:
                kept = Kept(robot="rosie", halt=HALT, newest=HALT.halt_id)
                write_state(plan.state_file("state.json"), kept)
            found = await check_halt(plan)
            assert {h.halt_id for h in said(halts)} <= {"7-1"}
            assert all(h.active for h in said(halts))
            return found

    (tmp_path / "rosie.boot").write_text("7\n")
    (found,) = run(story())
    assert found.status is Status.FAIL
    assert "halt 7-1 (fast_red) is in force" in found.said
    assert "hdguard reset 7-1" in found.do


TOPIC = "hdguard/rosie/halt"
SIGNED = seal(TOPIC, encode(halt_message(HALT, 1, 7, 3)), b"the key before it was changed")


@pytest.mark.parametrize(("kept", "why"), [(b"{}", "not signed"), (SIGNED, "signature")])
def test_what_the_broker_keeps_as_a_halt_and_nobody_can_read_is_not_written_over(
    kept: bytes, why: str, tmp_path: Path
) -> None:
    async def story() -> list[Finding]:
        async with stage("embedded", tmp_path) as at, at.client() as somebody:
            await somebody.publish(TOPIC, kept, qos=1, retain=True)
            async with following(at, "halt") as halts:
                await halts.wait_for()
                found = await check_halt(plan_of(at, tmp_path, robot_key=ROBOT_KEY))
                assert {payload for _, payload, _ in halts.seen} == {kept}  # no halt was sent
            async with following(at, "halt") as halts:
                assert (await halts.wait_for())[1:] == (kept, True)
            return found

    (found,) = run(story())
    assert found.status is Status.FAIL
    assert found.said.startswith("was not sent: the halt that the broker keeps cannot be read (")
    assert why in found.said
    assert "mqtt.robot_key" in found.do
    assert f"publish an empty retained message on {TOPIC}" in found.do


def test_while_a_guard_runs_nothing_is_sent_and_no_boot_number_is_spent(tmp_path: Path) -> None:
    async def story() -> None:
        async with scene(tmp_path) as (plan, halts):
            with locked(plan.state_file("lock")), pytest.raises(LockedError, match="guards this"):
                await check_halt(plan)
            assert said(halts) == []

    run(story())
    assert not (tmp_path / "rosie.boot").exists()


def test_a_guard_that_runs_elsewhere_is_not_thrown_off_the_broker(tmp_path: Path) -> None:
    async def story() -> list[Finding]:
        async with stage("embedded", tmp_path) as at, following(at, "halt") as halts:
            async with at.guard(boot=400) as guard, shepherded(guard) as shepherd:
                await guard.ready()
                found = await check_halt(plan_of(at, tmp_path))
                assert guard.connected
                assert shepherd.all(LinkLost) == []
            assert said(halts) == []
            return found

    (found,) = run(story())
    assert found.status is Status.FAIL
    assert found.said == "was not sent: a guard (boot 400) of robot rosie runs elsewhere"
    assert not (tmp_path / "rosie.boot").exists()


def test_a_robot_that_heeds_a_later_guard_would_drop_our_halt_so_none_is_sent(
    tmp_path: Path,
) -> None:
    async def story() -> list[Finding]:
        async with stage("embedded", tmp_path) as at, following(at, "halt") as halts:
            async with at.guard(boot=400) as guard:
                await guard.ready()
                await guard.notify(Notify(State.MONITORING, "all is well"))
            found = await check_halt(plan_of(at, tmp_path))
            assert said(halts) == []
            return found

    (found,) = run(story())
    assert found.status is Status.FAIL
    assert found.said == "was not sent: the robot heeds guard 400, we are number 1"
    assert found.do == f"write 400 into {tmp_path / 'rosie.boot'} and try again"


@pytest.mark.parametrize("fails", [1, 2, 1000])
def test_a_halt_whose_connection_breaks_is_taken_back_on_another_or_said_to_be_kept(
    fails: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(halting, "STOPS_WITHIN", 0.2)
    monkeypatch.setattr(halting, "RELEASED_WITHIN", 5.0 if fails < 10 else 0.5)
    whole = MqttActuator.halt
    left = iter(range(fails))

    async def breaking(self: MqttActuator, action: Halt | Release) -> None:
        if isinstance(action, Release) and next(left, None) is not None:
            raise ActuatorError("hdguard/rosie/halt: no receipt in 1 s")
        await whole(self, action)

    monkeypatch.setattr(MqttActuator, "halt", breaking)

    async def story() -> list[Finding]:
        async with scene(tmp_path) as (plan, halts):
            found = await check_halt(plan)
            if fails < 10:
                await halts.wait_for(lambda payload: not decode_halt(payload).active)
            assert {h.halt_id for h in said(halts)} == {"1-1"}
            return found

    (found,) = run(story())
    assert found.status is Status.FAIL
    if fails < 10:
        assert found.said == "no acknowledgement in 0.2 s"
    else:
        assert found.said.startswith(
            "halt 1-1 was not taken back and is still kept by the broker: "
        )
        assert "no receipt" in found.said
        assert "hdguard reset 1-1" in found.do


def test_another_user_than_the_guards_leaves_no_file_that_the_guard_could_not_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 54321)
    plan = LivePlan(Config(live=LiveConfig(state_dir=str(tmp_path))))
    (found,) = run(check_halt(plan))
    assert (found.status, "sudo -u" in found.do) == (Status.FAIL, True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("acknowledged", "confirmed", "status"),
    [
        (0.02, 0.7, Status.OK),
        (0.6, 0.7, Status.WARN),
        (0.02, None, Status.FAIL),
        (None, None, Status.FAIL),
    ],
)
def test_an_answer_counts_by_what_a_guard_would_do(
    acknowledged: float | None, confirmed: float | None, status: Status
) -> None:
    assert halting._judged(halting.Answers(acknowledged, confirmed)).status is status

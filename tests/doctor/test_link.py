"""What is said of broker and robot, over real brokers: mosquitto where its rules matter."""

from pathlib import Path
from typing import Any

import pytest

from hdguard.actuators.base import ActuatorError
from hdguard.actuators.wire import RobotMessage, decode_permit
from hdguard.doctor import link
from hdguard.doctor.findings import Finding, Status
from hdguard.doctor.link import check_link
from tests.actuators.support import ROBOT_KEY, run, shepherded
from tests.e2e.stage import Stage, demo_robot, following, stage
from tests.mosquitto import Mosquitto, free_port

BRIEFLY = 0.4  # seconds that are listened
OK, WARN, FAIL = Status.OK, Status.WARN, Status.FAIL


def found_of(
    broker: str, folder: Path, *, robot_has: str | None = None, **changes: Any
) -> dict[str, Finding]:
    """With a robot that has this key, and a guard whose settings are changed so."""

    async def story() -> list[Finding]:
        async with stage(broker, folder) as at, demo_robot(at.robot_settings(robot_key=robot_has)):
            return await check_link(at.guard_settings(**changes), BRIEFLY)

    return {finding.step: finding for finding in run(story())}


def found_with(folder: Path, file: str, line: str) -> dict[str, Finding]:
    """Without a robot, and with a mosquitto whose file lacks that line."""
    broker = Mosquitto(folder)
    text = (folder / file).read_text()
    assert line in text
    (folder / file).write_text(text.replace(line, ""))
    broker.start()
    try:
        at = Stage(broker.port, passwords=True, process=broker)
        return {f.step: f for f in run(check_link(at.guard_settings(), BRIEFLY))}
    finally:
        broker.kill()


def test_a_good_chain_is_well(tmp_path: Path) -> None:
    found = found_of("mosquitto", tmp_path)
    assert [*found] == ["broker", "echo", "robot"]
    assert FAIL not in {f.status for f in found.values()}  # a busy machine may be warned of
    assert found["broker"].status is OK
    assert "it stands at 0 m/s (boot 3)" in found["robot"].said


def test_without_the_brokers_nodelay_line_the_first_message_is_late_and_it_says_so(
    tmp_path: Path,
) -> None:
    found = found_with(tmp_path, "mosquitto.conf", "set_tcp_nodelay true\n")
    assert found["first message"].status is WARN
    assert "set_tcp_nodelay true" in found["first message"].do


def test_a_robot_that_is_silent_fails_and_an_access_list_that_swallows_permits_too(
    tmp_path: Path,
) -> None:
    """The broker says nothing to a client that may not publish."""
    found = found_with(tmp_path, "access", "topic write hdguard/+/permit\n")
    assert (found["robot"].status, found["robot"].said) == (FAIL, "no report in 0.4 s")
    assert (found["echo"].status, "hdguard.acl" in found["echo"].do) == (FAIL, True)


@pytest.mark.parametrize(
    ("key", "why"), [(None, "not signed"), (ROBOT_KEY[::-1], "wrong signature")]
)
def test_a_robot_without_our_key_is_named_as_that(
    key: str | None, why: str, tmp_path: Path
) -> None:
    found = found_of("embedded", tmp_path, robot_has=key, robot_key=ROBOT_KEY)
    assert (found["robot"].status, why in found["robot"].said) == (FAIL, True)
    assert "robot_key" in found["robot"].do


def test_a_broker_that_asks_nobody_who_they_are_is_warned_of(tmp_path: Path) -> None:
    found = found_of("embedded", tmp_path)
    assert found["broker"].status is WARN
    assert "without asking who we are" in found["broker"].said


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "CONNECTS_WITHIN", 0.5)


@pytest.mark.usefixtures("hasty")
def test_a_wrong_password_is_told_in_the_brokers_words(tmp_path: Path) -> None:
    with pytest.raises(ExceptionGroup) as caught:
        found_of("mosquitto", tmp_path, password="wrong")
    told = only_error(caught.value)
    assert "127.0.0.1:" in told
    assert "Not authorized" in told


@pytest.mark.usefixtures("hasty")
def test_no_broker_is_told_with_its_address() -> None:
    port = free_port()
    with pytest.raises(ExceptionGroup) as caught:
        run(check_link(Stage(port, passwords=False).guard_settings(), BRIEFLY))
    assert f"127.0.0.1:{port}: " in only_error(caught.value)


def only_error(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        (error,) = error.exceptions
    assert isinstance(error, ActuatorError)
    return str(error)


def test_a_guard_that_runs_is_neither_thrown_out_nor_talked_over(tmp_path: Path) -> None:
    async def story() -> None:
        async with (
            stage("mosquitto", tmp_path) as at,
            following(at, "permit") as permits,
            at.guard(boot=9) as guard,
            shepherded(guard),
        ):
            await guard.ready()
            found = {f.step: f for f in await check_link(at.guard_settings(), BRIEFLY)}
            assert "a guard (boot 9) is running" in found["echo"].said
            assert {decode_permit(payload).boot for _, payload, _ in permits.seen} == {9}
            assert guard.connected

    run(story())


def test_what_goes_round_lets_no_robot_move(tmp_path: Path) -> None:
    async def story() -> None:
        async with (
            stage("embedded", tmp_path) as at,
            following(at, "permit") as permits,
            demo_robot(at.robot_settings()) as driven,
        ):
            await check_link(at.guard_settings(), BRIEFLY)
            sent = [decode_permit(payload) for _, payload, _ in permits.seen]
            assert {(p.boot, p.speed, p.robot) for p in sent} == {(0, "none", None)}
            assert driven.told.said == []

    run(story())


@pytest.mark.parametrize(("later", "status"), [(0.002, OK), (0.15, WARN), (0.35, FAIL)])
def test_the_round_trip_is_held_against_the_lease(later: float, status: Status) -> None:
    (found,) = link._echoed([later] * 3, [later] * 10)
    assert found.status is status


def test_one_late_first_message_has_any_reason() -> None:
    assert len(link._echoed([0.05, 0.002, 0.05], [0.001] * 10)) == 1
    assert len(link._echoed([0.05, 0.041, 0.05], [0.001] * 10)) == 2


def test_a_robot_that_reports_seldom_is_warned_of() -> None:
    reports = [RobotMessage(boot=3, seq=n, moving=True, speed=None) for n in range(5)]
    found = link._robot(link.Heard(robots=reports), 1.0)
    assert found.status is WARN
    assert found.said == "5 reports in 1 s; it moves (boot 3)"

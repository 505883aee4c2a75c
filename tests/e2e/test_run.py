"""`hdguard run` beside a robot, a broker and operators: everything is a real process or socket."""

import asyncio
import signal
import socket
import sys
from pathlib import Path

import pytest

from hdguard.actuators.lease import LEASE
from hdguard.core.actions import Halt
from hdguard.core.types import HaltCause, HaltClass, Speed
from hdguard.runtime.state_file import Kept, write_state
from tests.actuators.support import HALT, RESET_KEY, run
from tests.e2e.sidecar import TOKEN, Setup, in_state, json_of, running, still
from tests.e2e.stage import REPOSITORY, Stage, Watched, demo_robot, following, measured, stage
from tests.mosquitto import PASSWORD, Mosquitto

BUSY = 0.1  # seconds that a busy machine may add to what a clock decides


async def command(*words: str) -> tuple[int, str]:
    """One of the other commands: its exit code and what it said."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "hdguard",
        *words,
        cwd=REPOSITORY,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, said.decode()


def test_the_robot_moves_while_guarded_a_second_guard_is_refused_and_sigterm_stops_it(
    tmp_path: Path,
) -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        async with stage("mosquitto", tmp_path) as at:
            setup = Setup(tmp_path, at.port, still(tmp_path))
            async with (
                demo_robot(at.robot_settings()) as driven,
                following(at, "halt") as halts,
                running(setup) as guard,
            ):
                await driven.at_speed(Speed.FULL)
                code, ready = await setup.asked("/readyz")
                assert (code, ready["state"]) == (200, "monitoring")
                async with running(setup) as second:
                    assert await second.ended() == 78
                assert f"process {guard.process.pid} guards this robot" in second.lines[0]
                asked = loop.time()
                guard.send(signal.SIGTERM)
                stopped, halt, _ = await halts.wait_for()
                assert await guard.ended() == 0
                ended = loop.time()
                assert json_of(halt)["cause"] == "stopping"
                assert not driven.robot.link.may_move
        measured("halt after SIGTERM", stopped - asked)
        measured("end after SIGTERM", ended - asked)
        assert stopped - asked < 0.5
        assert ended - asked < 3.0
        assert (setup.state / "rosie.boot").read_text() == "1\n"  # the second one did not count

    run(story())


def test_a_guard_that_is_killed_while_halted_comes_back_halted_until_an_operator_resets_it(
    tmp_path: Path,
) -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        (tmp_path / "token").write_text(TOKEN)
        (tmp_path / "key").write_text(RESET_KEY)
        (tmp_path / "password").write_text(PASSWORD)
        async with stage("mosquitto", tmp_path) as at:
            setup = Setup(tmp_path, at.port, still(tmp_path))
            url = f"http://127.0.0.1:{setup.http}"
            async with demo_robot(at.robot_settings()) as driven, following(at, "state") as states:
                async with running(setup) as guard:
                    await driven.at_speed(Speed.FULL)
                    code, said = await command(
                        *("halt", "--url", url, "--operator", "ada"),
                        *("--token-file", str(tmp_path / "token")),
                    )
                    assert (code, said) == (0, "halt 1-1 is in force: operator, operator\n")
                    await driven.at_speed(Speed.NONE)
                    await states.wait_for(in_state("halted"))
                    guard.send(signal.SIGKILL)
                    await guard.ended()
                states.seen.clear()
                began = loop.time()
                async with running(setup):
                    back, _, _ = await states.wait_for(
                        lambda p: json_of(p)["halt_id"] == "1-1" and json_of(p)["boot"] == 2
                    )
                    _, status = await setup.asked("/api/v1/status")
                    assert status["halt"]["cause"] == "operator"
                    assert status["halt"]["hazard"]["text"] == "asked by ada"
                    code, said = await command(
                        *("reset", "1-1", "--port", str(at.port), "--robot", "rosie"),
                        *("--username", "operator", "--key-file", str(tmp_path / "key")),
                        *("--password-file", str(tmp_path / "password")),
                    )
                    assert (code, said) == (0, "halt 1-1: released\n")
                    await driven.at_speed(Speed.FULL)
        measured("halted again after the start", back - began)
        assert back - began < 2.0
        audit = (setup.state / "rosie.audit.jsonl").read_text()
        assert '"halt asked","operator":"ada"' in audit
        assert '"reset asked","halt_id":"1-1"' in audit

    run(story())


def test_a_guard_that_is_killed_stops_the_robot_within_600_ms(tmp_path: Path) -> None:
    async def story() -> float:
        loop = asyncio.get_running_loop()
        async with stage("mosquitto", tmp_path) as at:
            robot = Watched(at.robot_settings())
            async with robot.link, running(Setup(tmp_path, at.port, still(tmp_path))) as guard:
                await robot.moves.wait()
                struck = loop.time()
                guard.send(signal.SIGKILL)
                return await robot.stops.wait() - struck

    took = run(story())
    measured("stopped after SIGKILL", took)
    assert took < LEASE + BUSY


def test_without_a_broker_it_stays_up_unready_and_the_state_is_out_at_once_when_it_comes(
    tmp_path: Path,
) -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        broker = Mosquitto(tmp_path)
        at = Stage(broker.port, passwords=True, process=broker)
        relay = tmp_path / "relay"
        relay.touch()
        setup = Setup(tmp_path, at.port, still(tmp_path), f'[live.hook]\ngpio = "{relay}"')
        async with running(setup) as guard:
            for came in range(1, 3):  # at the start, and when it has died
                await guard.says("fall-back hook: on: the broker does not return our permits")
                code, ready = await setup.asked("/readyz")
                assert code == 503
                assert "the broker does not return our permits" in ready["unready"]
                async with asyncio.timeout(5):
                    while relay.read_text() != "1":  # said before it is done
                        await setup.asked("/livez")
                guard.lines.clear()
                began = loop.time()
                broker.start()
                try:
                    async with demo_robot(at.robot_settings(boot=came)) as driven:
                        async with following(at, "state") as states:
                            seen, _, _ = await states.wait_for()
                        await driven.at_speed(Speed.FULL)
                        await guard.says("fall-back hook: off")
                finally:
                    broker.kill()
                measured("state after the broker's start", seen - began)
                assert seen - began < 0.5 + 2 * BUSY  # the broker's own start takes 40 ms
            assert guard.process.returncode is None

    run(story())


@pytest.mark.parametrize("stopped_before", [False, True])
def test_a_halt_that_only_a_broker_that_comes_late_knows_of_is_restored(
    tmp_path: Path, *, stopped_before: bool
) -> None:
    """The state was lost or is an older one: the broker's word must come before the robot moves."""
    leave = Halt("6-1", HaltClass.FAULT, HaltCause.STOPPING)

    async def story() -> None:
        async with stage("mosquitto", tmp_path) as at:
            setup = Setup(tmp_path, at.port, still(tmp_path))
            setup.state.mkdir()
            (setup.state / "rosie.boot").write_text("7\n")
            if stopped_before:
                kept = Kept(robot="rosie", halt=leave, newest="6-1")
                write_state(setup.state / "rosie.state.json", kept)
            async with (
                demo_robot(at.robot_settings()) as driven,
                at.guard(7, client_id="before") as before,
            ):
                await before.ready()
                await before.halt(HALT)
                at.mosquitto.freeze()
                async with running(setup) as guard:
                    await guard.says("http: listening")
                    _, status = await setup.asked("/api/v1/status")
                    assert status["halt"] is None  # it cannot know
                    at.mosquitto.thaw()
                    await guard.says("the broker keeps halt 7-1 of an earlier life: restored")
                    async with following(at, "state") as states:
                        await states.wait_for(lambda p: json_of(p)["halt_id"] == HALT.halt_id)
                    assert driven.told.said == []  # it never moved

    run(story())


def test_a_halt_that_only_the_broker_knows_outlives_a_start_that_never_heard_of_it(
    tmp_path: Path,
) -> None:
    """Its `stopping` would have taken the place of the halt, and cleared itself."""

    async def story() -> None:
        async with stage("mosquitto", tmp_path) as at:
            setup = Setup(tmp_path, at.port, still(tmp_path))
            setup.state.mkdir()
            (setup.state / "rosie.boot").write_text("7\n")
            async with at.guard(7, client_id="before") as before:
                await before.ready()
                await before.halt(HALT)
            at.mosquitto.freeze()
            async with running(setup) as guard:
                await guard.says("http: listening")
                guard.send(signal.SIGTERM)
                assert await guard.ended() == 0
            at.mosquitto.thaw()
            async with running(setup), following(at, "state") as states:
                await states.wait_for(
                    lambda p: json_of(p)["boot"] == 9 and json_of(p)["halt_id"] == HALT.halt_id
                )

    run(story())


def test_a_halt_that_was_released_while_the_broker_was_away_does_not_hold_the_robot(
    tmp_path: Path,
) -> None:
    async def story() -> None:
        async with stage("mosquitto", tmp_path) as at:
            setup = Setup(tmp_path, at.port, still(tmp_path))
            setup.state.mkdir()
            (setup.state / "rosie.boot").write_text("7\n")
            write_state(setup.state / "rosie.state.json", Kept(robot="rosie", newest="7-1"))
            async with at.guard(7, client_id="before") as before:
                await before.ready()
                await before.halt(HALT)
            async with demo_robot(at.robot_settings()) as driven, running(setup):
                await driven.at_speed(Speed.FULL)

    run(story())


def test_a_lost_boot_number_ends_the_start_and_says_which_to_write(tmp_path: Path) -> None:
    async def story() -> None:
        async with stage("mosquitto", tmp_path) as at:
            setup = Setup(tmp_path, at.port, still(tmp_path))
            setup.state.mkdir()
            (setup.state / "rosie.boot").write_text("6\n")
            async with at.guard(7, client_id="before") as before:
                await before.ready()  # and leaves nothing but its state
            async with running(setup) as guard:
                assert await guard.ended() == 78
                said = "".join(guard.lines)
                assert "this start is number 7, and the broker keeps what guard 7 said" in said
                assert "write 7 into the file and start again" in said
            async with demo_robot(at.robot_settings()) as driven, running(setup):
                await driven.at_speed(Speed.FULL)  # it has counted on

    run(story())


def test_a_retained_halt_that_cannot_be_read_is_not_taken_for_none(tmp_path: Path) -> None:
    async def story() -> None:
        async with stage("mosquitto", tmp_path) as at:
            setup = Setup(tmp_path, at.port, still(tmp_path))
            async with at.client("guard") as before:
                await before.publish("hdguard/rosie/halt", b'{"active": true', qos=1, retain=True)
            async with following(at, "state") as states, running(setup) as guard:
                await guard.says("publish an empty retained message on hdguard/rosie/halt")
                why = "the retained halt cannot be read; "
                await states.wait_for(lambda p: json_of(p).get("why", "").startswith(why))
                assert (await setup.asked("/readyz"))[0] == 503
                guard.send(signal.SIGTERM)
                assert await guard.ended() == 0
            async with running(setup) as guard:  # nothing has taken its place
                await guard.says("the halt that the broker keeps cannot be read")

    run(story())


def test_sigterm_ends_it_in_time_while_a_camera_accepts_and_never_answers(tmp_path: Path) -> None:
    async def story() -> float:
        loop = asyncio.get_running_loop()
        async with stage("mosquitto", tmp_path) as at:
            with socket.create_server(("127.0.0.1", 0)) as mute:
                url = f"rtsp://user:hunter2@127.0.0.1:{mute.getsockname()[1]}/stream"
                setup = Setup(tmp_path, at.port, url)
                async with following(at, "state") as states, running(setup) as guard:
                    await states.wait_for(lambda p: "kitchen is lost" in json_of(p)["why"])
                    asked = loop.time()
                    guard.send(signal.SIGTERM)
                    assert await guard.ended() == 0
                    assert "hunter2" not in "".join(guard.lines)
                    return loop.time() - asked

    took = run(story())
    measured("end after SIGTERM with a mute camera", took)
    assert took < 3.0


def test_sigterm_ends_it_in_time_while_the_broker_is_frozen(tmp_path: Path) -> None:
    async def story() -> float:
        loop = asyncio.get_running_loop()
        async with stage("mosquitto", tmp_path) as at:
            setup = Setup(tmp_path, at.port, still(tmp_path))
            async with following(at, "state") as states, running(setup) as guard:
                await states.wait_for(in_state("monitoring"))
                at.mosquitto.freeze()
                asked = loop.time()
                guard.send(signal.SIGTERM)
                assert await guard.ended() == 0
                at.mosquitto.thaw()
                return loop.time() - asked

    took = run(story())
    measured("end after SIGTERM with a frozen broker", took)
    assert took < 3.0

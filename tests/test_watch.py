"""One guard among real cameras, brains and a broker, inside the test's own process."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from hdguard.actuators.broker import EmbeddedBroker
from hdguard.actuators.mqtt import MqttActuator, MqttSettings
from hdguard.config import CameraConfig, Config, FastConfig, LiveConfig
from hdguard.core.types import Speed
from hdguard.live import LivePlan
from hdguard.observe.server import HttpServer
from hdguard.observe.settings import HttpError, HttpSettings
from hdguard.past import Life, Past
from hdguard.robot import RobotLink, RobotSettings
from hdguard.runtime.halt_log import read_halt_log
from hdguard.runtime.hooks import HookSettings
from hdguard.runtime.pipeline import Pipeline
from hdguard.runtime.state_file import Kept, read_state
from hdguard.runtime.watchdog import Systemd
from hdguard.watch import Aides, Watch
from tests.actuators.support import HALT, Signal, run
from tests.e2e.sidecar import still


@asynccontextmanager
async def watched(
    folder: Path, kept: Kept | None = None, http: int = 0
) -> AsyncIterator[tuple[Watch, RobotLink, Signal, Aides]]:
    """A guard that is about to work, and a robot."""
    camera = CameraConfig("kitchen", still(folder))
    (folder / "gpio").touch()
    hook = HookSettings(gpio=str(folder / "gpio"))
    async with EmbeddedBroker() as broker:
        config = Config(
            fast=(FastConfig("reflex"),),
            camera=(camera,),
            mqtt=MqttSettings(port=broker.port, robot="rosie"),
            http=HttpSettings(port=http),
            live=LiveConfig(state_dir=str(folder), hook=hook),
        )
        plan, life, moves = LivePlan(config), Life(8, kept), Signal()
        aides = Aides(plan, life, Systemd(""))
        link = RobotLink(RobotSettings(port=broker.port, robot="rosie", boot=1), on_move=moves)
        async with (
            plan.seating.crew() as crew,
            MqttActuator(config.mqtt, life.boot) as actuator,
            link,
            asyncio.TaskGroup() as group,
        ):
            tasks = aides.start(group)
            past = Past(actuator, kept)
            await past.asked()
            yield Watch(plan, crew, actuator, aides, life, past), link, moves, aides
            for task in tasks:
                task.cancel()


def test_the_robot_moves_once_the_self_test_is_passed_and_is_halted_before_the_end(
    tmp_path: Path,
) -> None:
    async def story() -> None:
        stop = asyncio.Event()
        async with watched(tmp_path) as (watch, _, moves, aides), asyncio.TaskGroup() as group:
            working = group.create_task(watch.run(stop))
            await moves.wait()
            assert moves.said == [Speed.FULL]
            stop.set()
            await working
            assert watch._guard.halt is not None
            assert watch._guard.halt.cause == "stopping"
            assert aides.hook.is_on in {False, None}
            assert aides.audit.failures == 0
            await aides.halts.flush()
        (told,) = read_halt_log(tmp_path / "rosie.halts.jsonl").stories
        assert (told.halt_id, told.cause, told.boot) == ("8-1", "stopping", 8)
        assert told.stamps.delivered is not None
        kept = read_state(tmp_path / "rosie.state.json", "rosie")
        assert kept is not None
        assert kept.newest == "8-1"

    run(story())


def test_a_state_that_cannot_be_written_stops_no_robot_and_is_shown(tmp_path: Path) -> None:
    (tmp_path / "rosie.state.json.new").mkdir()  # a file of that name is to be written

    async def story() -> None:
        stop = asyncio.Event()
        async with watched(tmp_path) as (watch, _, moves, aides), asyncio.TaskGroup() as group:
            working = group.create_task(watch.run(stop))
            await moves.wait()
            assert moves.said == [Speed.FULL]
            report = watch._shown.status.report()
            assert ["state file" in warning for warning in report["warnings"]] == [True]
            assert report["keeping"]["state_file"]["failing"] is True
            assert report["keeping"]["hook"] is not None
            shown = watch._metrics.text().decode()
            failures = f"{float(aides.keeper.failures)}"
            assert f'hdguard_write_failures_total{{file="state"}} {failures}\n' in shown
            stop.set()
            await working

    run(story())


def test_a_restored_halt_is_in_force_from_the_first_step(tmp_path: Path) -> None:
    async def story() -> None:
        stop = asyncio.Event()
        kept = Kept(robot="rosie", halt=HALT, newest="7-1")
        async with watched(tmp_path, kept) as (watch, link, moves, _), asyncio.TaskGroup() as group:
            working = group.create_task(watch.run(stop))
            while link.halt is None:  # noqa: ASYNC110 - the link tells of moves only
                await asyncio.sleep(0.01)
            assert (link.halt.halt_id, link.halt.boot) == ("7-1", 8)
            stop.set()
            await working
            assert watch._guard.halt is not None
            assert watch._guard.halt.halt_id == "7-1"  # a halt that is there is not replaced
            assert moves.said == []

    run(story())


def test_no_halt_is_taken_from_an_operator_once_nothing_is_sent_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        stop, closed = asyncio.Event(), asyncio.Event()
        close = HttpServer.close

        def closing(server: HttpServer) -> None:
            close(server)
            closed.set()

        async def leave(_: Pipeline, until: Callable[[], Awaitable[None]]) -> None:
            await until()
            async with asyncio.timeout(2.0):  # the cameras are being closed
                await closed.wait()

        monkeypatch.setattr(HttpServer, "close", closing)
        monkeypatch.setattr(Pipeline, "run", leave)
        async with watched(tmp_path) as (watch, *_):
            stop.set()
            await watch.run(stop)

    run(story())


def test_a_port_that_is_taken_is_named_before_a_camera_is_opened(tmp_path: Path) -> None:
    async def story() -> None:
        taken = await asyncio.start_server(lambda _, __: None, "127.0.0.1", 0)
        async with taken:
            port = taken.sockets[0].getsockname()[1]
            async with watched(tmp_path, http=port) as (watch, _, _, _):
                with pytest.raises(HttpError, match=rf"127\.0\.0\.1:{port} cannot be listened on"):
                    await watch.run(asyncio.Event())

    run(story())

"""A worker that dies, hangs, stops or never gets ready is found, told of and replaced."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from hdguard.brains.base import BrainError
from hdguard.core.events import BrainDown, BrainUp, FastVerdict
from hdguard.core.types import ImageSpec
from hdguard.workers.base import Notice
from hdguard.workers.budget import RestartBudget
from hdguard.workers.process import WorkerProcess
from hdguard.workers.seats import WorkerFastBrain
from hdguard.workers.supervisor import WorkerSettings
from tests.workers import command_brain
from tests.workers.command_brain import EXIT, GATE, GREEN, HANG, RAISE
from tests.workers.support import LOOPS, Ear, children, fast, open_fds, reason, run, shot

UP, DOWN, LATCHED = BrainUp("command"), BrainDown("command"), BrainDown("command", latched=True)
every_loop = pytest.mark.parametrize("loop", LOOPS)


async def started(seat: WorkerFastBrain) -> Ear:
    ear = Ear()
    seat.listen(ear)
    await seat.start()
    return ear


def pid_of(seat: WorkerFastBrain) -> int:
    assert seat.pid is not None
    return seat.pid


@every_loop
def test_a_worker_killed_in_mid_call_is_noticed_at_once_and_its_successor_answers(
    loop: str,
) -> None:
    async def story() -> float:
        clock = asyncio.get_running_loop().time
        seat = fast()
        ear = await started(seat)
        async with asyncio.TaskGroup() as tasks:
            call = tasks.create_task(reason(seat.assess(shot(HANG))))
            await asyncio.sleep(0)  # the call is on its way
            before = clock()
            os.kill(pid_of(seat), signal.SIGKILL)
            assert await ear.next() == DOWN
            noticed = clock() - before
            assert await call == "worker died: killed by SIGKILL"
        assert "worker is down" in await reason(seat.assess(shot(GREEN)))
        assert await ear.next() == UP
        assert isinstance(await seat.assess(shot(GREEN)), FastVerdict)
        await seat.close()
        return noticed

    noticed = run(story(), loop)
    print(f"noticed after {1000 * noticed:.0f} ms; 200 ms on a machine of its own")  # noqa: T201
    assert noticed < 0.5


@every_loop
def test_an_idle_worker_that_is_killed_is_noticed_as_well(loop: str) -> None:
    async def story() -> None:
        seat = fast()
        ear = await started(seat)
        os.kill(pid_of(seat), signal.SIGKILL)
        assert [await ear.next(), await ear.next()] == [DOWN, UP]
        await seat.close()

    run(story(), loop)


class Numbered(Ear):
    """Hears, and looks at once whether it is known what the worker takes."""

    def __init__(self, seat: WorkerFastBrain) -> None:
        super().__init__()
        self.seat = seat
        self.known: list[bool] = []

    def __call__(self, event: Notice) -> None:
        self.look()
        super().__call__(event)

    def look(self) -> bool:
        self.known.append(self.seat.numbers is not None)
        return self.known[-1]

    async def until_known(self) -> None:
        while not self.look():
            await self.seat.assess(shot(GREEN))


@every_loop
def test_what_a_worker_takes_is_known_while_it_lives_and_not_of_a_dead_one(loop: str) -> None:
    async def story() -> None:
        seat = fast(worker=WorkerSettings(ping_interval=0.02))
        ear = Numbered(seat)
        assert not ear.look()
        await seat.start()
        await ear.until_known()
        ear.known.clear()
        seat.listen(ear)
        os.kill(pid_of(seat), signal.SIGKILL)
        assert [await ear.next(), await ear.next()] == [DOWN, UP]
        assert ear.known == [False, False]  # its successor has not been asked yet
        await ear.until_known()
        await seat.close()
        assert not ear.look()

    run(story(), loop)


@pytest.mark.parametrize(
    ("command", "how"), [(EXIT, "exit status 7"), (RAISE, "exit status 1")], ids=["exit", "raise"]
)
def test_a_brain_that_crashes_is_replaced(
    command: float, how: str, capfd: pytest.CaptureFixture[str]
) -> None:
    async def story() -> None:
        seat = fast()
        ear = await started(seat)
        assert await reason(seat.assess(shot(command))) == f"worker died: {how}"
        assert [await ear.next(), await ear.next()] == [DOWN, UP]
        assert isinstance(await seat.assess(shot(GREEN)), FastVerdict)
        await seat.close()

    run(story())
    assert ("ZeroDivisionError: a defect of the brain" in capfd.readouterr().err) is (
        command == RAISE
    )


@every_loop
def test_a_hung_worker_can_be_killed_and_is_gone_when_kill_returns(loop: str) -> None:
    async def story() -> None:
        seat = fast()
        ear = await started(seat)
        old = pid_of(seat)
        async with asyncio.TaskGroup() as tasks:
            call = tasks.create_task(reason(seat.assess(shot(HANG))))
            await asyncio.sleep(0)
            await seat.kill("late")
            with pytest.raises(ProcessLookupError):
                os.kill(old, 0)
            assert await call == "worker killed: late"
        assert [await ear.next(), await ear.next()] == [DOWN, UP]
        assert pid_of(seat) != old
        await seat.close()

    run(story(), loop)


def test_a_second_kill_while_the_successor_loads_changes_nothing() -> None:
    async def story() -> None:
        seat = fast()
        ear = await started(seat)
        await seat.kill("late")
        await seat.kill("late again")
        assert [await ear.next(), await ear.next()] == [DOWN, UP]
        assert isinstance(await seat.assess(shot(GREEN)), FastVerdict)
        await seat.close()
        assert ear.heard.empty()

    run(story())


@every_loop
def test_a_stopped_idle_worker_is_found_by_its_missing_pong(loop: str) -> None:
    async def story() -> None:
        seat = fast(worker=WorkerSettings(ping_interval=0.2))
        ear = await started(seat)
        os.kill(pid_of(seat), signal.SIGSTOP)
        assert await ear.next() == DOWN
        assert "answered no ping for 0.2 s" in await reason(seat.assess(shot(GREEN)))
        assert await ear.next() == UP
        await seat.close()

    run(story(), loop)


def test_a_busy_worker_is_not_pinged_to_death(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)

    async def story() -> None:
        stopped = fast(worker=WorkerSettings(ping_interval=0.2, restarts_per_minute=0))
        stopped_ear = await started(stopped)
        busy = fast({"gate": str(gate)}, worker=WorkerSettings(ping_interval=0.02))
        busy_ear = await started(busy)
        async with asyncio.TaskGroup() as tasks:
            call = tasks.create_task(busy.assess(shot(GATE)))
            os.kill(pid_of(stopped), signal.SIGSTOP)
            assert await stopped_ear.next() == LATCHED  # the time of twenty pings to the busy one
            assert busy_ear.heard.empty()
            await asyncio.to_thread(gate.write_text, "open")
            answer = await call
        assert isinstance(answer, FastVerdict)
        assert answer.hazard.text == "open"
        await busy.close()
        await stopped.close()
        assert busy_ear.heard.empty()

    run(story())


@every_loop
def test_the_answer_to_a_cancelled_call_is_dropped(loop: str, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)

    async def story() -> None:
        seat = fast({"gate": str(gate)})
        ear = await started(seat)
        async with asyncio.TaskGroup() as tasks:
            stale = tasks.create_task(seat.assess(shot(GATE, 1)))
            await asyncio.sleep(0)
            stale.cancel()
            fresh = tasks.create_task(seat.assess(shot(GREEN, 2)))
            await asyncio.to_thread(gate.write_text, "open")
            answer = await fresh
        assert stale.cancelled()
        assert isinstance(answer, FastVerdict)
        assert answer.ref.seq == 2
        await seat.close()
        assert ear.heard.empty()

    run(story(), loop)


def test_the_fourth_death_in_a_minute_latches() -> None:
    async def story() -> None:
        seat = fast()
        ear = await started(seat)
        for _ in range(3):
            await reason(seat.assess(shot(EXIT)))
            assert [await ear.next(), await ear.next()] == [DOWN, UP]
        await reason(seat.assess(shot(EXIT)))
        assert await ear.next() == LATCHED
        assert "worker is down: command: died: exit status 7" in await reason(
            seat.assess(shot(GREEN))
        )
        await seat.kill("nothing to kill")
        await seat.close()
        assert ear.heard.empty()

    run(story())


def test_restarts_that_succeed_long_apart_never_latch() -> None:
    async def story() -> None:
        seat = fast()
        seat._supervisor._budget = RestartBudget(1, window=0.0)  # every restart is long ago
        ear = await started(seat)
        for _ in range(2):
            await seat.kill("late")
            assert [await ear.next(), await ear.next()] == [DOWN, UP]
        await seat.close()

    run(story())


def test_a_close_starts_nothing_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        seat = fast()
        ear = await started(seat)
        await seat.kill("late")
        assert [await ear.next(), await ear.next()] == [DOWN, UP]
        monkeypatch.setattr(WorkerProcess, "spawn", None)
        await seat.close()

    run(story())


def test_kills_count_as_restarts() -> None:
    async def story() -> None:
        seat = fast(worker=WorkerSettings(restarts_per_minute=0))
        ear = await started(seat)
        await seat.kill("late")
        assert await ear.next() == LATCHED
        assert seat.pid is None
        await seat.close()

    run(story())


def test_a_brain_that_cannot_be_loaded_again_latches_after_its_restarts(tmp_path: Path) -> None:
    async def story() -> None:
        seat = fast({"once": str(tmp_path / "loaded")})
        ear = await started(seat)
        await seat.kill("late")
        assert [await ear.next(), await ear.next()] == [DOWN, LATCHED]
        assert "cannot be restarted: loaded once already" in await reason(seat.assess(shot(GREEN)))
        await seat.close()

    run(story())


@pytest.mark.parametrize(
    ("target", "settings", "says"),
    [
        ("command_brain", {}, "must be named as module:Class"),
        ("tests.workers.nowhere:Brain", {}, "cannot import tests.workers.nowhere"),
        ("tests.workers.command_brain:Nobody", {}, "has no class Nobody"),
        (command_brain.SLOW, {}, "is no fast brain, it has no assess"),
        (command_brain.FAST, {"nmae": "x"}, "CommandSettings has no field nmae"),
        (command_brain.FAST, {"name": 3}, "Expected `str`, got `int`"),
        (command_brain.FAST, {"name": object()}, "holds more than plain data"),
        (command_brain.FAST, {"load": "refuse"}, "no weights here"),
        (command_brain.FAST, {"load": "exit"}, "worker died while loading: exit status 9"),
        (command_brain.FAST, {"name": "else"}, "is 'else', .*; its settings say 'command'"),
    ],
)
def test_a_brain_that_cannot_be_loaded_is_a_clear_error_and_not_tried_again(
    target: str, settings: dict[str, object], says: str
) -> None:
    async def story() -> None:
        seat, ear = fast(settings, target), Ear()
        seat.listen(ear)
        with pytest.raises(BrainError, match=says):
            await seat.start()
        assert "not started" in await reason(seat.assess(shot(GREEN)))
        await seat.close()
        assert ear.heard.empty()

    before = open_fds()
    run(story())
    assert open_fds() == before


def test_a_brain_of_another_spec_than_its_settings_say_is_an_error() -> None:
    async def story() -> None:
        other = ImageSpec(9, 9)
        seat = WorkerFastBrain(command_brain.FAST, {}, "command", other, WorkerSettings())
        with pytest.raises(BrainError, match=r"width=8.* its settings say .*width=9"):
            await seat.start()

    run(story())


@every_loop
def test_a_brain_that_is_not_ready_in_time_is_ended(loop: str) -> None:
    async def story() -> None:
        seat = fast({"load": "hang"}, worker=WorkerSettings(ready_timeout=0.3))
        assert "was not ready within 0.3 s" in await reason(seat.start())

    run(story(), loop)


@every_loop
@pytest.mark.parametrize("turns", [0, 1, 2, 3, 4, 5, 10])
def test_a_start_that_is_cancelled_leaves_nothing(loop: str, turns: int) -> None:
    async def story() -> None:
        seat = fast({"load": "hang"})
        async with asyncio.TaskGroup() as tasks:
            start = tasks.create_task(seat.start())
            for _ in range(turns):
                await asyncio.sleep(0)
            start.cancel()
        await seat.close()

    before = open_fds()
    run(story(), loop)
    assert open_fds() == before


@every_loop
@pytest.mark.parametrize("turns", [0, 1, 2, 3, 4, 5, 10])
def test_a_close_while_the_successor_loads_leaves_nothing(loop: str, turns: int) -> None:
    async def story() -> None:
        seat = fast()
        await started(seat)
        await seat.kill("late")
        for _ in range(turns):
            await asyncio.sleep(0)
        await seat.close()

    before = open_fds()
    run(story(), loop)
    assert open_fds() == before


@every_loop
@pytest.mark.parametrize("turns", [0, 1, 2, 3, 4, 5, 10])
def test_a_program_that_ends_without_closing_leaves_no_child(loop: str, turns: int) -> None:
    async def story() -> None:
        seat = fast()
        await started(seat)
        await seat.kill("late")
        for _ in range(turns):
            await asyncio.sleep(0)

    run(story(), loop, tidy=False)
    assert children() == []


@every_loop
def test_a_close_while_a_worker_is_being_killed_leaves_nothing(loop: str) -> None:
    async def story() -> None:
        seat = fast()
        await started(seat)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(seat.kill("late"))
            await asyncio.sleep(0)
            await seat.close()

    run(story(), loop)


def test_a_close_ends_a_call_that_hangs() -> None:
    async def story() -> None:
        seat = fast()
        await started(seat)
        async with asyncio.TaskGroup() as tasks:
            call = tasks.create_task(reason(seat.assess(shot(HANG))))
            await asyncio.sleep(0)
            await seat.close()
        assert call.result() == "worker closed"

    run(story())


def test_a_seat_cannot_be_started_twice() -> None:
    async def story() -> None:
        seat = fast()
        await seat.start()
        assert "was started before" in await reason(seat.start())
        assert isinstance(await seat.assess(shot(GREEN)), FastVerdict)
        await seat.close()

    run(story())


@every_loop
def test_twenty_restarts_leave_no_file_memory_or_process(loop: str) -> None:
    async def story() -> None:
        seat = fast(worker=WorkerSettings(restarts_per_minute=100))
        ear = await started(seat)
        before = len(open_fds())
        for _ in range(20):
            await seat.kill("again")
            assert [await ear.next(), await ear.next()] == [DOWN, UP]
        assert len(open_fds()) == before
        assert children() == [str(seat.pid)]
        await seat.close()

    outside = open_fds()
    run(story(), loop)
    assert open_fds() == outside


def test_a_listener_that_fails_ends_the_supervisor_and_not_in_silence() -> None:
    async def story() -> None:
        seat, ear = fast(), Ear()

        def listener(event: Notice) -> None:
            ear(event)
            if isinstance(event, BrainUp):
                raise ZeroDivisionError

        seat.listen(listener)
        await seat.start()
        await seat.kill("late")
        assert [await ear.next() for _ in range(3)] == [DOWN, UP, LATCHED]
        assert "supervisor failed" in await reason(seat.assess(shot(GREEN)))
        with pytest.raises(ZeroDivisionError):
            await seat.close()

    run(story())

"""How the daemon ends: on a signal at once, whatever it is doing, and never by hanging."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hdguard import sidecar
from hdguard.config import CameraConfig, Config, ConfigError, LiveConfig
from hdguard.live import LivePlan
from hdguard.observe.settings import HttpError
from hdguard.seating import with_brains
from hdguard.sidecar import Stop, run_sidecar


def test_a_signal_while_the_brains_are_loading_breaks_that_off_and_is_no_failure() -> None:
    async def story() -> bool:
        stop = Stop(print)
        with stop.on_signals():
            asyncio.get_running_loop().call_soon(os.kill, os.getpid(), signal.SIGTERM)
            async with asyncio.timeout(10.0):
                await asyncio.Event().wait()  # a model that loads for minutes
        return stop.asked.is_set()

    assert asyncio.run(story())


def test_a_signal_to_a_guard_at_work_lets_it_take_its_leave() -> None:
    async def story() -> None:
        stop = Stop(print)
        with stop.on_signals(), stop.awaited():
            asyncio.get_running_loop().call_soon(os.kill, os.getpid(), signal.SIGINT)
            async with asyncio.timeout(10.0):
                await stop.asked.wait()
            await asyncio.sleep(0)  # not cancelled

    asyncio.run(story())


def test_the_time_to_leave_runs_from_the_first_signal_and_a_defect_has_its_own_exit_code() -> None:
    codes: list[int] = []

    async def story(*numbers: int) -> None:
        stop = Stop(codes.append)
        with stop.on_signals(), stop.awaited():
            for number in numbers:
                signal.raise_signal(number)
                async with asyncio.timeout(10.0):
                    await stop.asked.wait()
        stop.leave()

    asyncio.run(story(signal.SIGTERM, signal.SIGTERM))
    asyncio.run(story())
    assert codes == [0, 1]


HELD_UP = {
    "the loop in a disk that hangs": "open(fifo)",
    "a thread that the interpreter waits for": (
        "import concurrent.futures as f; f.ThreadPoolExecutor().submit(open, fifo)"
    ),
    "the log that nobody reads": (
        "import logging, os; end = os.pipe()[1]; os.set_blocking(end, False);"
        "os.write(end, bytes(1 << 20)); os.set_blocking(end, True);"
        "logging.basicConfig(stream=os.fdopen(end, 'w')); open(fifo)"
    ),
}


@pytest.mark.parametrize("code", HELD_UP.values(), ids=HELD_UP.keys())
def test_what_does_not_end_is_left_behind_in_time(code: str, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)  # to open it blocks until there is another end
    begin = (
        "import hdguard.sidecar as s; s.GONE_WITHIN = s.SAID_WITHIN = 0.05; s.leave_in_time(7)\n"
    )
    program = f"{begin}fifo = {str(fifo)!r}\n{code}"
    ended = subprocess.run([sys.executable, "-c", program], check=False, timeout=20.0)
    assert ended.returncode == (-signal.SIGALRM if "log" in code else 7)


def test_a_cancellation_that_nobody_asked_for_is_not_taken_for_a_signal() -> None:
    async def story() -> None:
        with pytest.raises(asyncio.CancelledError), Stop(print).on_signals():
            raise asyncio.CancelledError

    asyncio.run(story())


@pytest.fixture
def plan(tmp_path: Path) -> LivePlan:
    camera = CameraConfig("kitchen", "rtsp://127.0.0.1/live")
    live = LiveConfig(state_dir=str(tmp_path))
    return LivePlan(with_brains(Config(camera=(camera,), live=live)))


def test_the_error_that_people_can_mend_is_told_and_not_the_group_that_it_came_in(
    plan: LivePlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object) -> None:
        raise ExceptionGroup("", [ExceptionGroup("", [HttpError("http: taken")])])

    monkeypatch.setattr(sidecar, "_live", fail)
    with pytest.raises(HttpError, match="http: taken"):
        run_sidecar(plan)


def test_a_defect_ends_the_process_and_is_no_configuration_error(
    plan: LivePlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object) -> None:
        raise ExceptionGroup("", [ValueError("a defect")])

    monkeypatch.setattr(sidecar, "_live", fail)
    with pytest.raises(ExceptionGroup):
        run_sidecar(plan)


def test_nothing_is_claimed_for_a_configuration_that_is_wrong(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    with pytest.raises(ConfigError):
        run_sidecar(LivePlan(Config(live=LiveConfig(state_dir=str(folder)))))
    assert not folder.exists()

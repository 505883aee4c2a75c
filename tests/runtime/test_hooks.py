"""When broker or robot do not answer, the robot team's own stop is called, and let go again."""

import asyncio
import os
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from hdguard.core.actions import Action, Escalate, Halt, Release
from hdguard.core.events import (
    DeadlineReached,
    Event,
    HaltConfirmed,
    LinkLost,
    LinkUp,
    SelfTestPassed,
)
from hdguard.core.types import HaltCause, HaltClass
from hdguard.runtime import hooks
from hdguard.runtime.hooks import FallBackHook, HookSettings

TICK = DeadlineReached()
STALE = Halt("7-1", HaltClass.FAULT, HaltCause.STALE_FRAME)
RED = Halt("7-2", HaltClass.DANGER, HaltCause.FAST_RED)


def reason(*steps: tuple[Event, tuple[Action, ...]]) -> str:
    async def story() -> str:
        hook = FallBackHook(HookSettings(gpio="nowhere"))
        for event, actions in steps:
            hook.stepped(1.0, event, actions)
        return hook.reason

    return asyncio.run(story())


ESCALATED = ((TICK, (STALE,)), (TICK, (Escalate("7-1"),)))
WORDS = "the robot has not acknowledged halt {}"


def test_a_halt_calls_it_only_when_the_robot_does_not_answer() -> None:
    assert reason((TICK, (STALE,))) == ""
    assert reason(*ESCALATED) == WORDS.format("7-1")


def test_it_lets_go_when_the_robot_stands_or_the_halt_is_released() -> None:
    assert reason(*ESCALATED, (HaltConfirmed("7-1"), ())) == ""
    assert reason(*ESCALATED, (TICK, (Release("7-1"),))) == ""
    assert reason(*ESCALATED, (HaltConfirmed("6-9"), ())) == WORDS.format("7-1")


def test_a_halt_that_takes_the_place_of_one_that_was_not_answered_keeps_it_on() -> None:
    assert reason(*ESCALATED, (TICK, (RED,)), (HaltConfirmed("7-1"), ())) == WORDS.format("7-2")
    assert reason(*ESCALATED, (TICK, (RED,)), (HaltConfirmed("7-2"), ())) == ""


def test_a_lost_link_calls_it_too_and_both_reasons_must_end() -> None:
    lost = "the broker does not return our permits"
    assert reason((LinkLost(), ())) == lost
    assert reason((LinkLost(), ()), (LinkUp(), ())) == ""
    assert reason(*ESCALATED, (LinkLost(), ())) == f"{WORDS.format('7-1')}; {lost}"
    assert reason(*ESCALATED, (LinkLost(), ()), (HaltConfirmed("7-1"), ())) == lost


def test_a_robot_that_stands_when_the_loop_wakes_up_late_lets_go_in_that_step() -> None:
    """The escalation was due before the answer was read: both are of one step."""
    repeat = replace(STALE, repeat=5)
    late = (HaltConfirmed("7-1"), (repeat, Escalate("7-1")))
    assert reason((TICK, (STALE,)), late) == ""
    released = (TICK, (repeat, Release("7-1"), Escalate("7-1")))  # halts and releases come first
    assert reason((TICK, (STALE,)), released) == ""
    replaced = (TICK, (repeat, RED, Escalate("7-1")))
    assert reason((TICK, (STALE,)), replaced) == WORDS.format("7-2")
    assert reason((TICK, (STALE,)), replaced, (HaltConfirmed("7-2"), ())) == ""


async def _when(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10.0):
        while not condition():  # noqa: ASYNC110 - no event tells of a process's end
            await asyncio.sleep(0.005)


def script(tmp_path: Path, code: str) -> tuple[str, ...]:
    """A command that does this with its words."""
    file = tmp_path / "hook.py"
    file.write_text(
        f"import pathlib, sys, time\nlog = pathlib.Path({str(tmp_path / 'log')!r})\n{code}"
    )
    return (sys.executable, "-S", "-E", str(file))


def test_command_and_line_are_switched_on_and_off(tmp_path: Path) -> None:
    note = "log.open('a').write('|'.join(sys.argv[1:]) + chr(10))\n"
    (tmp_path / "gpio").touch()
    settings = HookSettings(script(tmp_path, note), str(tmp_path / "gpio"))

    async def story() -> None:
        hook = FallBackHook(settings)
        async with asyncio.TaskGroup() as group:
            work = group.create_task(hook.work())
            hook.stepped(1.0, LinkLost(), ())
            await _when(lambda: hook.is_on is True)
            assert (tmp_path / "gpio").read_text() == "1"
            hook.stepped(2.0, SelfTestPassed(), ())
            hook.stepped(3.0, LinkUp(), ())
            await _when(lambda: hook.is_on is False)
            assert (tmp_path / "gpio").read_text() == "0"
            work.cancel()

    asyncio.run(story())
    said = (tmp_path / "log").read_text().splitlines()
    assert said == ["on|the broker does not return our permits", "off"]


def test_what_an_earlier_life_left_on_is_switched_off_with_the_self_test_and_not_before(
    tmp_path: Path,
) -> None:
    gpio = tmp_path / "gpio"
    gpio.write_text("1")

    async def story() -> None:
        hook = FallBackHook(HookSettings(gpio=str(gpio)))
        async with asyncio.TaskGroup() as group:
            work = group.create_task(hook.work())
            hook.stepped(1.0, TICK, ())
            await asyncio.sleep(0)
            assert hook.calls == 0
            hook.stepped(2.0, SelfTestPassed(), ())
            await _when(lambda: hook.is_on is False)
            work.cancel()

    asyncio.run(story())
    assert gpio.read_text() == "0"


@pytest.mark.parametrize(
    ("begun", "stands"),
    [
        ((SelfTestPassed(), (STALE,)), (HaltConfirmed("7-1"), ())),  # restored
        ((SelfTestPassed(), (STALE,)), (TICK, (Release("7-1"),))),
        ((LinkLost(), (STALE,)), (HaltConfirmed("7-1"), ())),
    ],
)
def test_it_is_not_let_go_of_while_the_robot_has_not_confirmed_the_halt_in_force(
    tmp_path: Path,
    begun: tuple[Event, tuple[Action, ...]],
    stands: tuple[Event, tuple[Action, ...]],
) -> None:
    gpio = tmp_path / "gpio"
    gpio.write_text("1")

    async def story() -> None:
        hook = FallBackHook(HookSettings(gpio=str(gpio)))
        async with asyncio.TaskGroup() as group:
            work = group.create_task(hook.work())
            hook.stepped(1.0, *begun)
            switched_on = isinstance(begun[0], LinkLost)
            await _when(lambda: hook.is_on is (True if switched_on else None))
            for event in (SelfTestPassed(), LinkUp(), HaltConfirmed("6-9")):
                hook.stepped(1.1, event, ())
                await asyncio.sleep(0)
                await asyncio.sleep(0)
            assert hook.calls == switched_on
            hook.stepped(1.2, *stands)
            await _when(lambda: hook.is_on is False)
            work.cancel()

    asyncio.run(story())
    assert gpio.read_text() == "0"


def test_a_file_that_is_not_there_is_not_made_for_nobody_would_read_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    wrong = tmp_path / "gpio17" / "valu"
    wrong.parent.mkdir()

    async def story() -> None:
        assert not await FallBackHook(HookSettings(gpio=str(wrong)))._call("the broker is gone")

    asyncio.run(story())
    assert not wrong.exists()
    assert "No such file" in caplog.text


def test_a_command_that_may_not_be_killed_is_logged_and_takes_nothing_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(hooks, "HOOK_WITHIN", 0.05)
    kill = os.killpg

    def refuse(group: int, number: int) -> None:  # as where sudo made it another user's
        kill(group, number)  # so that none is left
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "killpg", refuse)

    async def story() -> None:
        hook = FallBackHook(HookSettings((sys.executable, "-c", "import time; time.sleep(60)")))
        async with asyncio.TaskGroup() as group:
            work = group.create_task(hook.work())
            hook.stepped(1.0, LinkLost(), ())
            await _when(lambda: hook.failures == 1)
            assert not work.done()
            work.cancel()

    asyncio.run(story())
    assert "not killed: Operation not permitted" in caplog.text


def test_a_command_that_hangs_is_killed_and_called_again_one_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(hooks, "HOOK_WITHIN", 0.4)
    monkeypatch.setattr(hooks, "RETRY_AFTER", 0.0)
    hang = "first = not log.exists()\nlog.open('a').write('called\\n')\nif first: time.sleep(60)\n"

    async def story() -> FallBackHook:
        hook = FallBackHook(HookSettings(script(tmp_path, hang)))
        async with asyncio.TaskGroup() as group:
            work = group.create_task(hook.work())
            hook.stepped(1.0, LinkLost(), ())
            await _when(lambda: hook.is_on is True)
            work.cancel()
        return hook

    hook = asyncio.run(story())
    assert (hook.calls, hook.failures) == (2, 1)
    assert "not done in 0.4 s; killing it" in caplog.text


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (HookSettings(command=("/no/such/program",)), "No such file"),
        (HookSettings(command=(sys.executable, "-c", "raise SystemExit(3)")), "exit code 3"),
        (HookSettings(gpio="/no/such/gpio"), "No such file"),
    ],
)
def test_a_hook_that_cannot_be_called_is_logged_and_takes_nothing_down(
    settings: HookSettings, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        hook = FallBackHook(settings)
        async with asyncio.TaskGroup() as group:
            work = group.create_task(hook.work())
            hook.stepped(1.0, LinkLost(), ())
            await _when(lambda: hook.failures == 1)
            work.cancel()

    asyncio.run(story())
    assert words in caplog.text


class Relay:
    """A hook at work whose command notes its first word and then fails or hangs as told."""

    def __init__(self, tmp_path: Path, trouble: str) -> None:
        self.log = tmp_path / "log"
        note = f"log.open('a').write(sys.argv[1] + ' ')\n{trouble}\n"
        self.hook = FallBackHook(HookSettings(script(tmp_path, note)))

    def said(self) -> list[str]:
        return self.log.read_text().split() if self.log.exists() else []

    def story(self, *steps: tuple[Event, list[str]]) -> None:
        """Each event, and what must have been called by then."""

        async def called(words: list[str]) -> None:
            await _when(lambda: self.said() == words)

        async def told() -> None:
            async with asyncio.TaskGroup() as group:
                work = group.create_task(self.hook.work())
                for event, said in steps:
                    self.hook.stepped(1.0, event, ())
                    await called(said)
                work.cancel()

        asyncio.run(told())


def test_a_relay_that_was_switched_off_by_a_call_that_failed_is_switched_on_again(
    tmp_path: Path,
) -> None:
    relay = Relay(tmp_path, "raise SystemExit(sys.argv[1] == 'off')")
    relay.story(
        (LinkLost(), ["on"]),
        (SelfTestPassed(), ["on"]),
        (LinkUp(), ["on", "off"]),
        (LinkLost(), ["on", "off", "on"]),
    )


def test_an_on_that_failed_may_have_switched_it_on_and_is_followed_by_an_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hooks, "RETRY_AFTER", 60.0)  # and the pause ends with a new wish
    relay = Relay(tmp_path, "raise SystemExit(sys.argv[1] == 'on')")
    relay.story(
        (SelfTestPassed(), ["off"]), (LinkLost(), ["off", "on"]), (LinkUp(), ["off", "on", "off"])
    )


def test_an_on_does_not_wait_for_an_off_that_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hooks, "HOOK_WITHIN", 60.0)
    monkeypatch.setattr(hooks, "RETRY_AFTER", 60.0)
    relay = Relay(tmp_path, "if sys.argv[1] == 'off': time.sleep(60)")
    relay.story((SelfTestPassed(), ["off"]), (LinkLost(), ["off", "on"]))
    assert (relay.hook.calls, relay.hook.failures) == (2, 1)


def test_a_line_that_hangs_takes_one_thread_and_leaves_the_disk_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hooks, "HOOK_WITHIN", 0.01)
    monkeypatch.setattr(hooks, "RETRY_AFTER", 0.0)
    gpio = tmp_path / "gpio"
    os.mkfifo(gpio)  # to open it for writing blocks until somebody reads

    async def story() -> None:
        hook = FallBackHook(HookSettings(gpio=str(gpio)))
        async with asyncio.TaskGroup() as group:
            before = threading.active_count()
            work = group.create_task(hook.work())
            hook.stepped(1.0, LinkLost(), ())
            await _when(lambda: hook.failures == 50)
            assert threading.active_count() == before + 1
            reader = os.open(gpio, os.O_RDONLY | os.O_NONBLOCK)
            await _when(lambda: hook.is_on is True)
            work.cancel()
        assert os.read(reader, 9) in {b"1", b"11"}
        os.close(reader)

    asyncio.run(story())


def test_a_command_without_a_program_is_refused() -> None:
    with pytest.raises(ValueError, match="command: must begin with a program"):
        HookSettings(command=("", "on"))
    assert not HookSettings().is_set

"""A disk that is full and a hook that fails are seen before anybody needs them."""

import asyncio
import errno
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hdguard.core.actions import Halt
from hdguard.core.events import HaltRequested, LinkLost, LinkUp, SelfTestPassed
from hdguard.core.types import HaltCause, HaltClass
from hdguard.observe.keeping import Keeping
from hdguard.runtime import audit, halt_log, state_file
from hdguard.runtime.audit import AuditLog
from hdguard.runtime.halt_log import HaltLog
from hdguard.runtime.halt_stories import HaltStories
from hdguard.runtime.hooks import FallBackHook, HookSettings
from hdguard.runtime.state_file import Kept, StateKeeper, write_state
from tests.observe.support import Watched, run, scraped

STATE = "hdguard_write_failures_total{file=state}"
AUDIT = "hdguard_write_failures_total{file=audit}"


@dataclass
class Disk:
    """One that is full until somebody makes room."""

    full: bool = True

    def write(self, path: Path, kept: Kept) -> None:
        if self.full:
            raise OSError(errno.ENOSPC, "No space left on device")
        write_state(path, kept)


def keeping(
    folder: Path,
    write: Callable[[Path, Kept], None] = write_state,
    hook: HookSettings | None = None,
) -> Keeping:
    """In a running loop."""
    return Keeping(
        StateKeeper(folder / "state.json", Kept(robot="rosie"), write),
        AuditLog(folder / "audit.jsonl"),
        HaltLog(folder / "halts.jsonl"),
        None if hook is None else FallBackHook(hook),
    )


async def working(job: Coroutine[Any, Any, None], until: Callable[[], bool]) -> None:
    """Work until that is so."""
    async with asyncio.timeout(10.0), asyncio.TaskGroup() as group:
        task = group.create_task(job)
        while not until():  # noqa: ASYNC110 - a counter tells nobody
            await asyncio.sleep(0.005)
        task.cancel()


def test_where_all_is_well_there_is_nothing_to_see_to(tmp_path: Path) -> None:
    async def story() -> None:
        kept = keeping(tmp_path)
        kept.audit.note("start")
        kept.audit.flush()
        watched = Watched(keeping=kept)
        report = watched.status.report()
        assert report["warnings"] == []
        assert report["keeping"] == {
            "state_file": {"failing": False, "failures": 0},
            "audit_log": {"failing": False, "failures": 0, "dropped": 0},
            "halt_log": {"failing": False, "failures": 0, "dropped": 0},
            "hook": None,
        }
        found = scraped(watched)
        assert (found[STATE], found[AUDIT], found["hdguard_audit_dropped_total"]) == (0, 0, 0)
        assert found["hdguard_hook_calls_total"] == found["hdguard_hook_failures_total"] == 0
        assert "hdguard_hook_on" not in found

    run(story())


def test_a_guard_of_which_nothing_is_kept_shows_none_of_it() -> None:
    watched = Watched()
    assert watched.status.report()["keeping"] is None
    assert not any(name.startswith("hdguard_hook") for name in scraped(watched))


def test_a_state_that_cannot_be_written_is_warned_of_until_it_can_and_the_robot_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_file, "RETRY_AFTER", 0.0)

    async def story() -> None:
        disk = Disk()
        kept = keeping(tmp_path, disk.write)
        watched = Watched(keeping=kept)
        watched.starts()
        await working(kept.state.work(), lambda: kept.state.failures > 1)
        report = watched.status.report()
        assert report["warnings"] == [
            "the state file cannot be written: only the broker keeps the newest halt"
        ]
        assert report["keeping"]["state_file"] == {"failing": True, "failures": kept.state.failures}
        assert report["ready"] is True
        assert scraped(watched)[STATE] == kept.state.failures

        disk.full = False
        await working(kept.state.work(), lambda: not kept.state.failing)
        assert watched.status.report()["warnings"] == []
        assert scraped(watched)[STATE] > 1  # what failed stays counted

    run(story())


def test_lines_of_the_audit_log_that_are_lost_are_said_even_when_it_is_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "MOST_WAITING", 2)

    async def story() -> None:
        kept = keeping(tmp_path / "not there yet")
        watched = Watched(keeping=kept)
        for _ in range(5):
            kept.audit.note("halt asked")
        kept.audit.flush()
        lost = "lines of the audit log that were lost: 3"
        assert watched.status.report()["warnings"] == ["the audit log cannot be written", lost]
        found = scraped(watched)
        assert (found[AUDIT], found["hdguard_audit_dropped_total"]) == (1, 3)

        (tmp_path / "not there yet").mkdir()
        kept.audit.flush()
        report = watched.status.report()
        assert report["warnings"] == [lost]
        assert report["keeping"]["audit_log"] == {"failing": False, "failures": 1, "dropped": 3}

    run(story())


def test_halts_whose_stories_cannot_be_written_are_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(halt_log, "MOST_WAITING", 2)

    async def story() -> None:
        kept = keeping(tmp_path / "not there yet")
        watched = Watched(keeping=kept)
        stories = HaltStories(7)
        stories.on_change(kept.halts.note)
        for number in (1, 2, 3):
            halt = Halt(f"7-{number}", HaltClass.OPERATOR, HaltCause.OPERATOR)
            stories.stepped(1.0, HaltRequested("ann"), (halt,))
        await kept.halts.flush()
        lost = "stories of halts that were lost: 1"
        failing = "the halt log cannot be written: hdguard explain lacks the newest halts"
        assert watched.status.report()["warnings"] == [failing, lost]
        assert scraped(watched)["hdguard_write_failures_total{file=halts}"] == 1

        (tmp_path / "not there yet").mkdir()
        await kept.halts.flush()
        report = watched.status.report()
        assert report["warnings"] == [lost]
        assert report["keeping"]["halt_log"] == {"failing": False, "failures": 1, "dropped": 1}

    run(story())


def test_whether_the_hook_is_on_is_shown_when_it_is_known_and_a_failed_call_is_warned_of(
    tmp_path: Path,
) -> None:
    async def story() -> None:
        kept = keeping(tmp_path, hook=HookSettings(gpio=str(tmp_path / "line" / "value")))
        hook = kept.hook
        assert hook is not None
        watched = Watched(keeping=kept)
        assert watched.status.report()["warnings"] == []  # it was not called yet
        assert "hdguard_hook_on" not in scraped(watched)

        hook.stepped(1.0, LinkLost(), ())
        await working(hook.work(), lambda: hook.failures == 1)
        report = watched.status.report()
        assert report["warnings"] == [
            "the last call of the fall-back hook failed: whether it is on is unknown"
        ]
        assert report["keeping"]["hook"] == {"on": None, "calls": 1, "failures": 1}
        assert "hdguard_hook_on" not in scraped(watched)

        (tmp_path / "line").mkdir()
        (tmp_path / "line" / "value").touch()
        await working(hook.work(), lambda: hook.is_on is True)
        assert watched.status.report()["warnings"] == []
        assert scraped(watched)["hdguard_hook_on"] == 1
        hook.stepped(2.0, LinkUp(), ())
        hook.stepped(2.0, SelfTestPassed(), ())
        await working(hook.work(), lambda: hook.is_on is False)
        found = scraped(watched)
        names = ("hdguard_hook_on", "hdguard_hook_calls_total", "hdguard_hook_failures_total")
        assert tuple(found[name] for name in names) == (0, 3, 1)

    run(story())


def test_what_was_refused_is_counted_by_topic_and_shows_before_the_first(tmp_path: Path) -> None:
    async def story() -> None:
        kept = keeping(tmp_path)
        watched = Watched(keeping=kept)
        name = "hdguard_refused_total{{topic={}}}"
        assert [scraped(watched)[name.format(t)] for t in ("halt", "reset", "whip")] == [0, 0, 0]
        for topic in ("reset", "reset", "ack"):
            kept.audit.rejected(topic, "signature: is not that of the key")
        assert [scraped(watched)[name.format(t)] for t in ("reset", "ack")] == [2, 1]

    run(story())

"""What was asked, refused and decided can be read afterwards."""

import asyncio
import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest

from hdguard.core.actions import Escalate, Halt, Release
from hdguard.core.events import (
    DeadlineReached,
    HaltConfirmed,
    HaltRequested,
    ResetRequested,
    StopRequested,
)
from hdguard.core.types import HaltCause, HaltClass, Hazard
from hdguard.runtime import audit
from hdguard.runtime.audit import MOST_WAITING, REFUSED_PER_MINUTE, AuditLog
from hdguard.runtime.virtual_time import run_virtual

TICK = DeadlineReached()
RED = Halt(
    "7-1", HaltClass.DANGER, HaltCause.FAST_RED, "kitchen", "reflex", hazard=Hazard(text="x")
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "audit.jsonl"


def lines(path: Path) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in path.read_text().splitlines()]
    return [{k: v for k, v in line.items() if k != "at"} for line in found]


def test_a_halt_and_all_that_became_of_it_is_written_for_people_to_read(path: Path) -> None:
    async def story() -> None:
        log = AuditLog(path)
        async with asyncio.TaskGroup() as group:
            work = group.create_task(log.work())
            log.stepped(1.0, HaltRequested("ada"), (RED,))
            log.stepped(1.1, TICK, (Halt("7-1", HaltClass.DANGER, HaltCause.FAST_RED, repeat=1),))
            log.stepped(1.5, TICK, (Escalate("7-1"),))
            log.stepped(2.0, HaltConfirmed("7-1"), ())
            log.stepped(9.0, ResetRequested("7-1", "ada"), (Release("7-1"),))
            log.stepped(9.5, StopRequested(), ())
            await asyncio.sleep(0)
            work.cancel()
        log.flush()

    asyncio.run(story())
    assert lines(path) == [
        {"what": "halt asked", "operator": "ada"},
        {
            "what": "halt",
            "halt_id": "7-1",
            "class": "danger",
            "cause": "fast_red",
            "source": "kitchen",
            "brain": "reflex",
            "hazard": "x",
        },
        {"what": "escalated", "halt_id": "7-1"},
        {"what": "confirmed", "halt_id": "7-1"},
        {"what": "reset asked", "halt_id": "7-1", "operator": "ada"},
        {"what": "released", "halt_id": "7-1"},
        {"what": "stopping"},
    ]
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_flood_of_refused_messages_is_counted_and_fills_no_disk(path: Path) -> None:
    async def story() -> None:
        log = AuditLog(path)
        for _ in range(1000):
            log.rejected("reset", "wrong signature")
        log.rejected("halt", "401 not admitted")
        await asyncio.sleep(60.0)
        log.rejected("reset", "wrong signature")
        log.flush()

    run_virtual(story())
    found = lines(path)
    assert len(found) == REFUSED_PER_MINUTE + 2
    assert found[0] == {
        "what": "refused",
        "topic": "reset",
        "reason": "wrong signature",
        "so_far": 1,
    }
    assert found[-1]["so_far"] == 1001


def test_a_full_disk_loses_lines_and_nothing_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        log = AuditLog(tmp_path / "gone" / "audit.jsonl")
        for _ in range(MOST_WAITING + 5):
            log.stepped(1.0, StopRequested(), ())
        log.flush()
        log.flush()
        assert (log.dropped, log.failures) == (5, 2)
        (tmp_path / "gone").mkdir()
        log.flush()
        (tmp_path / "gone").rename(tmp_path / "here")
        log.note("later")
        log.flush()
        log.flush()

    run_virtual(story())
    assert len(lines(tmp_path / "here" / "audit.jsonl")) == MOST_WAITING
    warnings = [record for record in caplog.records if record.levelname == "WARNING"]
    assert len(warnings) == 2  # once each time that it begins to fail


def test_a_disk_that_takes_a_part_of_a_line_gets_the_rest_when_it_has_room(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, room = os.write, 100

    def short(file: int, data: bytes) -> int:
        nonlocal room
        if room == 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        done = write(file, data[: min(room, 30)])
        room -= done
        return done

    async def story() -> None:
        nonlocal room
        log = AuditLog(path)
        log.note("halt asked", operator="ada")
        log.note("released", halt_id="7-1")
        monkeypatch.setattr(os, "write", short)
        log.flush()
        assert log.failures == 1
        assert room == 0
        room = 1000
        log.note("later")
        log.flush()

    run_virtual(story())
    assert [line["what"] for line in lines(path)] == ["halt asked", "released", "later"]


def test_the_file_is_replaced_before_it_grows_for_ever(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "MOST_BYTES", 200)

    async def story() -> None:
        log = AuditLog(path)
        for number in range(13):
            log.note("start", boot=number)
            log.flush()

    run_virtual(story())
    kept = [line["boot"] for line in (*lines(path.with_name("audit.jsonl.1")), *lines(path))]
    assert kept == list(range(13 - len(kept), 13))
    assert len(kept) < 13

"""What hurt users of other systems with their disks, each named by its thread."""

import asyncio
import os
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from hdguard.actuators.recording import RecordingActuator
from hdguard.core.actions import Action, Halt, Permit
from hdguard.core.events import Event, HaltRequested
from hdguard.core.guard import Guard
from hdguard.core.policy import SIDECAR, BrainPlan, SourcePlan
from hdguard.runtime.audit import AuditLog
from hdguard.runtime.lag import watch_lag
from hdguard.runtime.observer import Judged, Reviewed
from hdguard.runtime.pipeline import Parts, Pipeline
from hdguard.runtime.state_file import Kept, StateKeeper, read_state
from tests.actuators.support import PATIENCE, run


class Permits:
    """An observer that tells of every permit."""

    def __init__(self) -> None:
        self.came: asyncio.Queue[Permit] = asyncio.Queue()

    def judged(self, stamps: Judged | Reviewed) -> None:
        """Nobody judges."""

    def stepped(self, now: float, event: Event, actions: tuple[Action, ...]) -> None:
        for action in actions:
            if isinstance(action, Permit):
                self.came.put_nowait(action)


def test_hermes_90502_a_disk_that_takes_for_ever_freezes_no_decision(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_disk, disk_goes_on, fsync = threading.Event(), threading.Event(), os.fsync

    def stuck(number: int) -> None:
        at_disk.set()
        disk_goes_on.wait(PATIENCE)
        fsync(number)

    monkeypatch.setattr(os, "fsync", stuck)
    path, lags = tmp_path / "state.json", list[float]()

    async def story() -> None:
        loop = asyncio.get_running_loop()
        keeper = StateKeeper(path, Kept(robot="rosie"))
        audit = AuditLog(tmp_path / "audit.jsonl")
        policy = replace(SIDECAR, sources=(SourcePlan("kitchen"),), brains=(BrainPlan("eyes"),))
        robot, permits = RecordingActuator(), Permits()
        pipeline = Pipeline(
            Guard(policy, loop.time(), boot=7), Parts((), {}, None, robot, (keeper, audit, permits))
        )

        async def until() -> None:
            async with asyncio.TaskGroup() as group:
                jobs = [keeper.work(), audit.work(), watch_lag(lags.append, every=0.005)]
                tasks = [group.create_task(job, name="disk") for job in jobs]
                pipeline.dispatch(HaltRequested("ada"))
                await loop.run_in_executor(None, at_disk.wait, PATIENCE)
                # The disk holds up the first halt's file; decisions, halts and permits go on.
                async with asyncio.timeout(PATIENCE):
                    for _ in range(5):
                        await permits.came.get()
                assert {a.halt_id for _, a in robot.sent if isinstance(a, Halt)} == {"7-1"}
                assert not path.exists()
                disk_goes_on.set()
                async with asyncio.timeout(PATIENCE):
                    await keeper.written()
                for task in tasks:
                    task.cancel()

        await pipeline.run(until)

    run(story())
    assert max(lags) < 0.1
    kept = read_state(path, "rosie")
    assert kept is not None
    assert kept.newest == "7-1"

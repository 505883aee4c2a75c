"""The stack: configurations that the guard takes, and errors that say what is wrong."""

from pathlib import Path
from typing import get_args

import pytest

from hdguard.config import load_config
from hdguard.faults.rows import FaultError, Kind
from hdguard.faults.stack import running_stack
from hdguard.live import LivePlan
from hdguard.seating import with_brains
from tests.actuators.support import run


@pytest.mark.parametrize("kind", get_args(Kind))
def test_every_configuration_is_one_that_the_guard_takes(kind: Kind, tmp_path: Path) -> None:
    async def story() -> None:
        async with running_stack(tmp_path, kind, embedded=True) as stack:
            LivePlan(with_brains(load_config(stack.config))).check()

    run(story(), "asyncio")


def test_a_number_that_the_guard_did_not_tell_is_not_taken_for_none_counted(tmp_path: Path) -> None:
    async def story() -> None:
        async with running_stack(tmp_path, "reflex", embedded=True) as stack:
            with pytest.raises(FaultError, match="GET /metrics: no answer"):
                await stack.metric("hdguard_frames_total")

    run(story(), "asyncio")


def test_a_guard_that_does_not_start_is_told_with_its_own_words(tmp_path: Path) -> None:
    async def story() -> list[str]:
        async with running_stack(tmp_path, "reflex", embedded=True) as stack:
            stack.config.write_text("camera = 1\n")
            with pytest.raises(FaultError) as told:
                await stack.ready()
            return [str(told.value)]

    (words,) = run(story(), "asyncio")
    assert words.startswith("the guard does not run")
    assert "camera" in words

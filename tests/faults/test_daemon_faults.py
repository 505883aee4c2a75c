"""A stalled loop, and a configuration that is wrong."""

import pytest

from hdguard.faults import daemon_faults
from hdguard.faults.rows import FaultError
from tests.actuators.support import run
from tests.faults.support import ToldStack, injected


def test_a_robot_that_stands_though_the_loop_was_never_late_is_no_stall_met() -> None:
    async def story() -> None:
        for late in (0.1, 1.0):
            stack = ToldStack([3.0, 3.0 + late])
            stack.permits(1.1, 0.1)
            if late < 1.0:
                with pytest.raises(FaultError, match=r"its loop was late by 0.10 s, not by 1"):
                    await injected(daemon_faults.stalled, stack)
            else:
                assert await injected(daemon_faults.stalled, stack) == pytest.approx((0.5,))

    run(story(), "asyncio")

"""A loop that is held up is seen."""

import asyncio

from hdguard.runtime.lag import LOOK_EVERY, watch_lag
from hdguard.runtime.virtual_time import VirtualLoop, run_virtual


async def _looks(stall: float) -> list[float]:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    seen: list[float] = []
    async with asyncio.TaskGroup() as group:
        watch = group.create_task(watch_lag(seen.append))
        await asyncio.sleep(2.5 * LOOK_EVERY)
        loop._now += stall  # somebody works for so long
        await asyncio.sleep(2 * LOOK_EVERY)
        watch.cancel()
    return [round(each, 6) for each in seen]


def test_a_free_loop_is_never_late_and_a_stall_is_seen_once_as_long_as_it_was() -> None:
    assert run_virtual(_looks(0.0)) == [0.0, 0.0, 0.0, 0.0]
    first, second, stalled, *after = run_virtual(_looks(0.3))
    assert (first, second) == (0.0, 0.0)
    assert 0.3 - LOOK_EVERY <= stalled <= 0.3  # it began between two looks
    assert after
    assert set(after) == {0.0}

"""Between producer and consumer: the newest frame, the oldest source, every drop counted."""

import asyncio

from hdguard.core.types import FrameRef
from hdguard.ingest.base import Frame
from hdguard.runtime.mailbox import Mailbox, Outbox, Sampled
from hdguard.runtime.virtual_time import run_virtual
from tests.fakes import FakeImage


def sampled(at: float, source_id: str = "cam") -> Sampled:
    ref = FrameRef(source_id, round(at * 10), at, at)
    return Sampled(Frame(ref, FakeImage()), at)


async def now_or_never(waiting: asyncio.Task[None]) -> bool:
    """Whether it is done without any time passing."""
    for _ in range(5):
        await asyncio.sleep(0)
    return waiting.done()


def test_a_brain_that_comes_back_gets_the_newest_frame_and_the_others_are_counted() -> None:
    async def story() -> None:
        box = Mailbox()
        for at in (0.0, 0.2, 0.4):
            box.put(sampled(at))
        assert (await box.get()).at == 0.4
        assert box.dropped == 2
        box.put(sampled(0.6))
        assert (await box.get()).at == 0.6
        assert box.dropped == 2

    run_virtual(story())


def test_the_source_that_waits_longest_is_next_however_often_another_is_renewed() -> None:
    async def story() -> None:
        box = Mailbox()
        box.put(sampled(0.0, "hall"))
        box.put(sampled(0.1, "stove"))
        box.put(sampled(0.2, "hall"))
        got = [(await box.get()).frame.ref for _ in range(2)]
        assert [(r.source_id, r.media_time) for r in got] == [("hall", 0.2), ("stove", 0.1)]
        assert box.dropped == 1

    run_virtual(story())


def test_a_busy_source_cannot_starve_another() -> None:
    async def story() -> None:
        box = Mailbox()
        seen: list[str] = []
        for n in range(6):
            box.put(sampled(float(n), "busy"))
            if n == 0:
                box.put(sampled(0.5, "calm"))
            seen.append((await box.get()).frame.ref.source_id)
            box.put(sampled(n + 0.7, "busy"))
        assert seen[:2] == ["busy", "calm"]

    run_virtual(story())


def test_get_waits_for_the_first_frame() -> None:
    async def story() -> float:
        loop = asyncio.get_running_loop()
        box = Mailbox()
        loop.call_at(3.0, lambda: box.put(sampled(3.0)))
        await box.get()
        return loop.time()

    assert run_virtual(story()) == 3.0


def test_settled_waits_for_the_frame_in_hand_and_for_the_one_behind_it() -> None:
    async def story() -> None:
        box = Mailbox()
        async with asyncio.TaskGroup() as group:
            await box.settled()  # nothing came yet
            box.put(sampled(0.0))
            waiting = group.create_task(box.settled())
            assert not await now_or_never(waiting)
            await box.get()
            assert not await now_or_never(waiting)
            box.put(sampled(0.2))
            box.done()
            assert not await now_or_never(waiting)
            await box.get()
            assert not await now_or_never(waiting)
            box.done()
            assert await now_or_never(waiting)

    run_virtual(story())


def test_an_outbox_keeps_order_and_replaces_only_a_neighbour_that_says_the_same() -> None:
    async def story() -> list[str]:
        box: Outbox[str] = Outbox(lambda new, last: new[0] == last[0])
        for item in ("a1", "a2", "b1", "a3", "a4"):
            box.put(item)
        return [await box.get() for _ in range(3)]

    assert run_virtual(story()) == ["a2", "b1", "a4"]


def test_an_outbox_that_is_full_of_repeats_does_not_grow() -> None:
    async def story() -> None:
        box: Outbox[int] = Outbox(lambda _, __: True)
        for n in range(1000):
            box.put(n)
        assert await box.get() == 999
        async with asyncio.TaskGroup() as group:
            more = group.create_task(box.get())
            await asyncio.sleep(1.0)
            assert not more.done()
            box.put(7)
            assert await more == 7

    run_virtual(story())

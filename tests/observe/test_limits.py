"""How much one client may ask: rates and bodies."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from hdguard.observe.limits import READ_AWAY, Bucket, Gone, TooLong, TooSlow, read_body
from hdguard.runtime.virtual_time import run_virtual


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_few_at_once_and_then_so_many_a_second() -> None:
    clock = Clock()
    bucket = Bucket(10.0, 3, clock)
    assert [bucket.take() for _ in range(5)] == [True, True, True, False, False]
    clock.now += 0.25
    assert [bucket.take() for _ in range(3)] == [True, True, False]


def test_a_long_rest_saves_up_no_more_than_a_few() -> None:
    clock = Clock()
    bucket = Bucket(10.0, 3, clock)
    clock.now += 1000.0
    assert sum(bucket.take() for _ in range(10)) == 3


def test_who_waits_for_a_turn_gets_so_many_a_second() -> None:
    async def story() -> list[float]:
        loop = asyncio.get_running_loop()
        bucket, times = Bucket(10.0, 2, loop.time), []
        for _ in range(5):
            await bucket.turn()
            times.append(round(loop.time(), 6))
        return times

    assert run_virtual(story()) == [0.0, 0.0, 0.1, 0.2, 0.3]


async def chunks(*parts: bytes, pause: float = 0.0, leaves: bool = False) -> AsyncIterator[bytes]:
    for part in parts:
        await asyncio.sleep(pause)
        yield part
    if leaves:
        raise Gone


def test_a_body_of_just_the_limit_is_read_whole() -> None:
    assert run_virtual(read_body(chunks(b"12", b"34"), 4)) == b"1234"


def test_one_byte_more_is_too_long() -> None:
    with pytest.raises(TooLong):
        run_virtual(read_body(chunks(b"12", b"345"), 4))


def test_a_body_without_end_is_not_read_to_its_end() -> None:
    read = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal read
        while True:
            read += 1 << 16
            yield b"x" * (1 << 16)

    with pytest.raises(TooLong):
        run_virtual(read_body(endless(), 4))
    assert read <= READ_AWAY + (1 << 16)


def test_a_byte_now_and_then_does_not_stretch_the_limit() -> None:
    with pytest.raises(TooSlow):
        run_virtual(read_body(chunks(*[b"x"] * 100, pause=1.0), 1000))


def test_a_client_that_leaves_is_told_apart() -> None:
    with pytest.raises(Gone):
        run_virtual(read_body(chunks(b"x", leaves=True), 4))

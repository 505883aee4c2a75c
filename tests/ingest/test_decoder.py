import asyncio
import threading
from collections.abc import Awaitable, Callable, Generator, Iterator
from contextlib import aclosing
from itertools import islice
from pathlib import Path
from typing import cast

import av
import pytest
import uvloop
from av.container import InputContainer
from av.packet import Packet
from av.video.stream import VideoStream

from hdguard.ingest.decoder import Tally, clean_frames, in_thread, prepare
from tests.ingest.media import Clip, write_video

Loops = pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
NewLoop = Callable[[], asyncio.AbstractEventLoop]


def run(new_loop: NewLoop, main: Callable[[], Awaitable[None]]) -> None:
    async def whole() -> None:
        await main()

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(whole())


def decoder_threads() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name == "decoder under test"]


class Numbers:
    """Counts up in the decoder's thread and remembers where it ran."""

    def __init__(self, end: int = 1_000_000) -> None:
        self.end = end
        self.made = 0
        self.made_enough = threading.Event()
        self.enough = 0
        self.closed_by = ""

    def __call__(self) -> Generator[int, None, None]:
        try:
            for n in range(self.end):
                self.made += 1
                if self.made == self.enough:
                    self.made_enough.set()
                yield n
        finally:
            self.closed_by = threading.current_thread().name


@Loops
def test_every_item_arrives_once_and_in_order(new_loop: NewLoop) -> None:
    async def main() -> None:
        numbers = Numbers(500)
        got = [n async for n in in_thread(numbers, name="decoder under test")]
        assert got == list(range(500))
        assert numbers.closed_by == "decoder under test"
        assert decoder_threads() == []

    run(new_loop, main)


@Loops
def test_it_reads_ahead_but_only_by_a_few(new_loop: NewLoop) -> None:
    async def main() -> None:
        numbers = Numbers()
        numbers.enough = 6  # one taken, four waiting, one in the thread's hand
        async with aclosing(in_thread(numbers, name="decoder under test", ahead=4)) as items:
            assert await anext(items) == 0
            assert await asyncio.to_thread(numbers.made_enough.wait, 20)
            for expected in range(1, 50):
                assert await anext(items) == expected
                assert numbers.made <= expected + 1 + 4 + 1

    run(new_loop, main)


@Loops
def test_closing_early_ends_the_thread(new_loop: NewLoop) -> None:
    async def main() -> None:
        numbers = Numbers()
        async with aclosing(in_thread(numbers, name="decoder under test")) as items:
            await anext(items)
            assert decoder_threads()
        assert decoder_threads() == []
        assert numbers.closed_by == "decoder under test"

    run(new_loop, main)


def test_an_iterator_that_was_never_started_has_no_thread() -> None:
    async def main() -> None:
        numbers = Numbers()
        await in_thread(numbers, name="decoder under test").aclose()
        assert numbers.made == 0

    run(asyncio.new_event_loop, main)


@Loops
def test_cancelling_the_reader_joins_the_thread_without_blocking_the_loop(
    new_loop: NewLoop,
) -> None:
    blocked, gate = threading.Event(), threading.Event()
    opened_in_time: list[bool] = []

    def stuck() -> Generator[int, None, None]:
        blocked.set()
        opened_in_time.append(gate.wait(20))
        yield 0

    async def read() -> None:
        async with aclosing(in_thread(stuck, name="decoder under test")) as items:
            async for _ in items:
                pass

    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            reader = group.create_task(read())
            assert await asyncio.to_thread(blocked.wait, 20)
            reader.cancel()
            for _ in range(5):  # the reader now waits for its thread, and the loop goes on
                await asyncio.sleep(0)
            assert not reader.done()
            gate.set()
        assert reader.cancelled()
        assert opened_in_time == [True]
        assert decoder_threads() == []

    run(new_loop, main)


@Loops
def test_the_decoder_s_exception_arrives_as_it_is_after_the_items_before_it(
    new_loop: NewLoop,
) -> None:
    error = LookupError("disk pulled out")

    def breaks() -> Generator[int, None, None]:
        yield 1
        yield 2
        raise error

    async def main() -> None:
        items = in_thread(breaks, name="decoder under test")
        assert [await anext(items), await anext(items)] == [1, 2]
        with pytest.raises(LookupError) as caught:
            await anext(items)
        assert caught.value is error
        assert decoder_threads() == []

    run(new_loop, main)


def test_a_generator_that_cannot_be_made_is_an_error_and_not_a_hang() -> None:
    def refuses() -> Generator[int, None, None]:
        msg = "no such camera"
        raise OSError(msg)

    async def main() -> None:
        with pytest.raises(OSError, match="no such camera"):
            await anext(in_thread(refuses, name="decoder under test"))

    run(asyncio.new_event_loop, main)


def test_a_thread_given_up_by_a_second_cancellation_ends_quietly_after_the_loop() -> None:
    blocked, gate = threading.Event(), threading.Event()

    def stuck() -> Generator[int, None, None]:
        blocked.set()
        gate.wait(20)
        yield 0

    async def read() -> None:
        async with aclosing(in_thread(stuck, name="decoder under test")) as items:
            await anext(items)

    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            reader = group.create_task(read())
            assert await asyncio.to_thread(blocked.wait, 20)
            for _ in range(2):
                reader.cancel()
                await asyncio.sleep(0)

    run(asyncio.new_event_loop, main)
    thread = next(t for t in threading.enumerate() if t.name == "decoder under test")
    gate.set()
    thread.join(20)
    assert not thread.is_alive()


@Loops
def test_where_the_newest_wins_the_thread_never_waits_and_every_drop_is_counted(
    new_loop: NewLoop,
) -> None:
    dropped: list[str] = []

    async def main() -> None:
        numbers = Numbers(1000)
        items = in_thread(
            numbers,
            name="decoder under test",
            superseded=lambda: dropped.append(threading.current_thread().name),
        )
        async with aclosing(items):
            got = [await anext(items)]
            await asyncio.to_thread(join_decoder)  # it ends though nobody takes anything
            got += [n async for n in items]
        assert got[-1] == 999
        assert got == sorted(set(got))
        assert len(got) + len(dropped) == 1000
        assert len(got) <= 3
        assert set(dropped) == {"decoder under test"}

    run(new_loop, main)


def join_decoder() -> None:
    for thread in threading.enumerate():
        if thread.name == "decoder under test":
            thread.join(20)


@Loops
def test_a_generator_without_items_is_told_when_to_stop(new_loop: NewLoop) -> None:
    closing, begun = threading.Event(), threading.Event()

    def mute() -> Generator[int, None, None]:
        begun.set()
        closing.wait(20)
        yield from ()

    async def read() -> None:
        async with aclosing(in_thread(mute, name="decoder under test", closing=closing)) as items:
            await anext(items)

    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            reader = group.create_task(read())
            assert await asyncio.to_thread(begun.wait, 20)
            reader.cancel()
        assert closing.is_set()
        assert decoder_threads() == []

    run(new_loop, main)


def test_a_thread_that_hangs_is_waited_for_only_so_long() -> None:
    gate = threading.Event()

    def hangs() -> Generator[int, None, None]:
        yield 1
        gate.wait(20)

    async def main() -> None:
        items = in_thread(hangs, name="decoder under test", patience=0.1)
        async with aclosing(items):
            assert await anext(items) == 1
        assert decoder_threads()

    run(uvloop.new_event_loop, main)
    gate.set()
    join_decoder()
    assert decoder_threads() == []


def test_the_tally_keeps_one_line_per_kind_with_its_first_time() -> None:
    tally = Tally("clip.ts")
    tally.frames = 7
    for n in range(1000):
        tally.left_out("packet that does not decode", n + 0.25, why=f"reason {n}")
    tally.repaired("stamp missing", 3.0)
    tally.note("ends at 3.000 s", left_out=2)
    report = tally.report
    assert (report.frames, report.corrupt, report.repaired) == (7, 1002, 1)
    assert report.problems == (
        "clip.ts: 1000 x packet that does not decode, first at 0.250 s (reason 0)",
        "clip.ts: 1 x stamp missing, first at 3.000 s",
        "clip.ts: ends at 3.000 s",
    )


def test_decoding_starts_no_threads_of_its_own(tmp_path: Path) -> None:
    path = write_video(tmp_path / "clip.mp4", Clip(size=(640, 480)))
    with av.open(path) as container:
        stream = container.streams.video[0]
        prepare(stream.codec_context)
        before = len(list(Path("/proc/self/task").iterdir()))
        frames = clean_frames(container, stream, Tally("clip"))
        next(frames)
        assert len(list(Path("/proc/self/task").iterdir())) == before
        assert len(list(frames)) == 9


class FlakyContainer:
    """A container whose reading breaks after each few packets."""

    def __init__(self, container: InputContainer, errors: list[Exception]) -> None:
        self._container = container
        self._errors = errors
        self._rest: Iterator[Packet[VideoStream]] | None = None

    def demux(self, stream: VideoStream) -> "Iterator[Packet[VideoStream]]":
        if self._rest is None:
            self._rest = self._container.demux(stream)
        if not self._errors:
            yield from self._rest
            return
        yield from islice(self._rest, 2)
        raise self._errors.pop()


def read_flaky(path: Path, errors: list[Exception]) -> tuple[int, Tally]:
    tally = Tally("clip")
    with av.open(path) as container:
        stream = container.streams.video[0]
        flaky = cast("InputContainer", FlakyContainer(container, errors))
        return len(list(clean_frames(flaky, stream, tally))), tally


@pytest.mark.parametrize(
    "error", [av.error.InvalidDataError(1, "damaged"), IndexError("list index out of range")]
)
def test_reading_goes_on_after_an_error_of_the_container(tmp_path: Path, error: Exception) -> None:
    count, tally = read_flaky(write_video(tmp_path / "clip.mp4"), [error, error])
    assert count == 10
    assert tally.report.problems == ("clip: 2 x error in the container, read on, first at 0.100 s",)


def test_reading_gives_up_when_the_container_only_errs(tmp_path: Path) -> None:
    errors: list[Exception] = [av.error.InvalidDataError(1, "damaged") for _ in range(100)]
    count, tally = read_flaky(write_video(tmp_path / "clip.mp4"), errors)
    assert count == 10  # what was read is given, and the rest is not waited for
    assert 70 < len(errors) < 100
    assert len(tally.report.problems) == 1

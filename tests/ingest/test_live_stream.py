import asyncio
import gc
import threading
import traceback
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from hdguard.core.types import ImageSpec
from hdguard.ingest import live_clock, live_stream
from hdguard.ingest.base import SourceError
from hdguard.ingest.rtsp import RtspSettings, RtspSource
from tests.ingest.live import decoder_threads, run, watch, watch_to_the_end
from tests.ingest.media import _moving
from tests.ingest.ts_server import Sender, for_ever, number_of, numbered, ts_chunks, ts_server

FPS = 20
PERIOD = 1 / FPS
SOON = 0.035  # s; a busy machine's delay between two ends of a loopback connection


def source_at(url: str, **more: Any) -> RtspSource:
    return RtspSource(RtspSettings(url, "kitchen", **more), Random(1))


# How old a picture is.


def test_a_picture_is_as_old_as_its_bytes_though_the_parser_holds_it_back() -> None:
    senders: list[Sender] = []

    async def play(sender: Sender) -> None:
        senders.append(sender)
        await sender.paced(ts_chunks([numbered(n) for n in range(30)]))

    async def main() -> None:
        async with ts_server(play) as url:
            got = await watch(source_at(url), 12)
        sent = senders[0].sent
        for frame, at in got:
            number = number_of(frame)
            assert abs(frame.ref.captured_at - sent[number]) < SOON
            assert at - sent[number] > 1.5 * PERIOD  # so much is hidden from who trusts arrival
        assert [f.ref.seq for f, _ in got] == list(range(12))
        assert got[0][0].ref.media_time == 0.0
        steps = [b.ref.media_time - a.ref.media_time for (a, _), (b, _) in pairwise(got)]
        assert steps == pytest.approx([PERIOD] * 11, abs=0.001)

    run(main())


def test_f3_pictures_held_back_and_released_at_once_keep_their_age() -> None:
    chunks = ts_chunks([numbered(n) for n in range(45)])
    begun: list[float] = []

    async def play(sender: Sender) -> None:
        begun.append(asyncio.get_running_loop().time())
        await sender.paced(chunks[:18])  # long enough to be believed
        await asyncio.sleep(10 * PERIOD)  # something on the way holds them
        await sender.burst(chunks[18:28])
        await asyncio.sleep(PERIOD)
        await sender.paced(chunks[28:])

    async def main() -> None:
        async with ts_server(play) as url:
            got, _ = await watch_to_the_end(source_at(url))
        taken = {number_of(f): (f.ref.captured_at, at) for f, at in got}
        assert min(taken) < 18
        assert max(taken) > 38
        for number, (captured_at, at) in taken.items():
            assert captured_at - (begun[0] + number * PERIOD) < SOON
            if number >= 28:
                assert at - captured_at < 4 * PERIOD  # the first new one is fresh

    run(main())


def test_a_backlog_that_awaits_us_at_the_door_is_never_handed_over() -> None:
    chunks = ts_chunks([numbered(n) for n in range(40)])

    async def play(sender: Sender) -> None:
        await sender.burst(chunks[:20])
        await asyncio.sleep(PERIOD)
        await sender.paced(chunks[20:])

    async def main() -> None:
        async with ts_server(play) as url:
            got = await watch(source_at(url), 8)
        assert min(number_of(f) for f, _ in got) >= 19

    run(main())


def test_opencv_24393_f1_f4_a_silent_camera_is_lost_and_nothing_comes_of_what_was_stuck() -> None:
    senders: list[Sender] = []

    async def play(sender: Sender) -> None:
        senders.append(sender)
        await sender.paced(ts_chunks([numbered(n) for n in range(15)]))
        await for_ever()

    async def main() -> None:
        loop = asyncio.get_running_loop()
        async with ts_server(play) as url:
            source = source_at(url, read_timeout=0.4)
            got, why = await watch_to_the_end(source)
            lost = loop.time()
        sent = senders[0].sent
        assert why == "kitchen: silent for 0.4 s"
        assert 0.4 <= lost - sent[-1] < 0.4 + 0.25
        assert all(at - sent[-1] < SOON for _, at in got)
        assert 0.5 <= source.retry_after() <= 1.0
        assert decoder_threads() == []

    run(main())


def test_aiortc_1192_a_slow_reader_gets_the_newest_picture_and_never_a_queue() -> None:
    async def play(sender: Sender) -> None:
        await sender.paced(ts_chunks([numbered(n) for n in range(40)]))

    async def main() -> None:
        loop = asyncio.get_running_loop()
        async with ts_server(play) as url:
            source = source_at(url)
            ages, numbers = [], []
            async with aclosing(source.frames()) as frames:
                async for frame in frames:
                    ages.append(loop.time() - frame.ref.captured_at)
                    numbers.append(number_of(frame))
                    if len(ages) == 4:
                        break
                    await asyncio.sleep(6 * PERIOD)
        assert max(ages) < 4 * PERIOD
        assert [b - a for a, b in pairwise(numbers)] == pytest.approx([6, 6, 6], abs=1)
        assert source.dropped == pytest.approx(15, abs=4)

    run(main())


# Damage.


def test_frigate_27_f5_pictures_after_flipped_bytes_are_sound_or_left_out() -> None:
    pictures = [_moving(n, (160, 120)) for n in range(100)]
    sound = ts_chunks(pictures, 60, group=10)
    rng = Random(5)
    damaged = [bytearray(chunk) for chunk in sound]
    for _ in range(400):
        chunk = damaged[rng.randrange(45, 80)]
        chunk[rng.randrange(len(chunk))] ^= rng.randrange(1, 256)

    async def pictures_of(chunks: list[bytes]) -> tuple[dict[int, np.ndarray[Any, Any]], int]:
        async def play(sender: Sender) -> None:
            await sender.paced(chunks, fps=60)

        async with ts_server(play) as url:
            source = source_at(url)
            got, _ = await watch_to_the_end(source)
        shown = {}
        for frame, _ in got:
            rgb = frame.image.rgb(ImageSpec(160)).astype(int)
            shown[int(np.argmin([np.abs(p - rgb).mean() for p in pictures]))] = rgb
        return shown, source.report.corrupt

    async def main() -> None:
        expected, none = await pictures_of(sound)
        got, corrupt = await pictures_of([bytes(chunk) for chunk in damaged])
        assert none == 0
        assert corrupt > 5
        assert max(got) > 90
        for number in got.keys() & expected.keys():
            assert np.abs(got[number] - expected[number]).mean() < 1.0

    run(main())


def test_f6_another_size_and_other_stamps_amid_the_stream_are_taken_as_they_come() -> None:
    wide = [np.full((96, 160, 3), 20 + 4 * n, np.uint8) for n in range(36)]

    async def play(sender: Sender) -> None:
        await sender.paced(ts_chunks([numbered(n) for n in range(20)]))
        await asyncio.sleep(PERIOD)
        await sender.paced(ts_chunks(wide))

    async def main() -> None:
        async with ts_server(play) as url:
            got, _ = await watch_to_the_end(source_at(url))
        heights = [f.image.rgb(ImageSpec(80)).shape[0] for f, _ in got]
        assert heights == sorted(heights, reverse=True)
        assert {60, 48} == set(heights)
        assert heights.count(48) >= 12
        for (a, _), (b, at) in pairwise(got):
            assert a.ref.media_time < b.ref.media_time
            assert 0.0 <= b.ref.captured_at - a.ref.captured_at < 1.0
            assert at - b.ref.captured_at < 0.5

    run(main())


def test_f6_a_stream_that_changes_its_codec_is_opened_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(live_stream, "_NO_PICTURE", 0.4)
    sound = ts_chunks([numbered(n) for n in range(24)])
    other = ts_chunks([numbered(n) for n in range(40)], codec="mpeg2video")

    async def play(sender: Sender) -> None:
        await sender.paced(sound)
        await sender.paced(other)

    async def main() -> None:
        async with ts_server(play) as url:
            got, why = await watch_to_the_end(source_at(url))
        assert why == "kitchen: sends data, but no picture comes of it"
        assert 5 < len(got) < 25

    run(main())


async def _rubbish(sender: Sender) -> None:
    await sender.burst([b"HTTP/1.1 404 Not Found\r\n\r\n" * 400])
    await for_ever()


async def _hang_up(sender: Sender) -> None:
    await sender.paced(ts_chunks([numbered(n) for n in range(10)]))


@pytest.mark.parametrize(
    ("play", "said"),
    [
        (for_ever, "kitchen: no answer in 0.5 s"),
        (_rubbish, "kitchen: no answer in 0.5 s"),
        (_hang_up, "kitchen: the stream ended"),
    ],
)
def test_each_way_to_fail_is_told_in_words(
    play: Callable[[Sender], Awaitable[None]], said: str
) -> None:
    async def main() -> None:
        async with ts_server(play) as url:
            _, why = await watch_to_the_end(source_at(url, open_timeout=0.5))
        assert why == said

    run(main())


# Coming and going.


def test_frames_and_time_count_on_over_a_lost_connection() -> None:
    async def play(sender: Sender) -> None:
        await sender.paced(ts_chunks([numbered(n) for n in range(18)]))

    async def main() -> None:
        async with ts_server(play) as url:
            source = source_at(url)
            got = [f.ref for _ in range(3) for f, _ in (await watch_to_the_end(source))[0]]
        assert [ref.seq for ref in got] == list(range(len(got)))
        assert source.report.frames == len(got)
        assert len(got) >= 6
        for a, b in pairwise(got):
            assert a.captured_at <= b.captured_at
            assert a.media_time < b.media_time

    run(main())


@pytest.mark.parametrize("read_timeout", [0.5, 1.0])
def test_frigate_8227_leaving_a_silent_camera_takes_its_read_timeout_at_most(
    read_timeout: float,
) -> None:
    silent = asyncio.Event()

    async def play(sender: Sender) -> None:
        await sender.paced(ts_chunks([numbered(n) for n in range(18)]))
        await asyncio.sleep(2 * PERIOD)  # now the decoder waits for more
        silent.set()
        await for_ever()

    async def main() -> None:
        loop = asyncio.get_running_loop()
        async with ts_server(play) as url:
            async with aclosing(source_at(url, read_timeout=read_timeout).frames()) as frames:
                await anext(frames)
                await silent.wait()
                left = loop.time()
            assert read_timeout - 0.2 < loop.time() - left < read_timeout + 0.3
        assert decoder_threads() == []

    run(main())


def open_files() -> int:
    gc.collect()
    return len(list(Path("/proc/self/fd").iterdir()))


def test_a_dead_port_tried_a_hundred_times_leaves_no_thread_and_no_file_open() -> None:
    async def main() -> None:
        async with ts_server(for_ever) as url:
            pass  # nobody listens there any more
        source = source_at(url)
        await watch_to_the_end(source)
        before = open_files(), threading.active_count()
        for _ in range(100):
            _, why = await watch_to_the_end(source)
            assert why == "kitchen: cannot be opened: Connection refused"
            assert 0.5 <= source.retry_after() <= 5.0
        assert (open_files(), threading.active_count()) == before

    run(main())


def test_frigate_6502_pyav_1117_a_stream_up_and_down_many_times_leaves_nothing_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(live_clock, "SETTLING", 0.02)
    chunks = ts_chunks([numbered(n) for n in range(6)], 50)

    async def play(sender: Sender) -> None:
        await sender.paced(chunks, 50)

    async def main() -> None:
        async with ts_server(play) as url:
            source = source_at(url)
            await watch_to_the_end(source)
            files = open_files()
            for _ in range(12):
                before = source.report.frames
                await watch_to_the_end(source)
                assert source.report.frames > before
            assert open_files() == files
        assert decoder_threads() == []

    run(main())


def test_pyav_751_eight_noisy_streams_at_once_do_not_lock_each_other_out() -> None:
    rng = Random(2)
    chunks = [bytearray(c) for c in ts_chunks([_moving(n, (160, 120)) for n in range(20)], 50)]
    for chunk in chunks[3:]:
        for _ in range(20):
            chunk[rng.randrange(len(chunk))] ^= rng.randrange(1, 256)

    async def play(sender: Sender) -> None:
        await sender.paced([bytes(chunk) for chunk in chunks], 50)

    async def main() -> None:
        async with ts_server(play) as url:
            sources = [source_at(url) for _ in range(8)]
            ends = await asyncio.gather(*(watch_to_the_end(source) for source in sources))
        assert len({why for _, why in ends}) <= 2  # ended, or nothing of it was left to decode
        assert all(source.report.corrupt for source in sources)

    run(main())


def test_no_password_is_in_the_error_or_anything_behind_it() -> None:
    async def main() -> None:
        async with ts_server(for_ever) as url:
            pass
        url = url.replace("tcp://", "rtsp://guard:hush@") + "/live?token=hush"
        source = RtspSource(RtspSettings(url))
        with pytest.raises(SourceError) as caught:
            await anext(source.frames())
        told = "".join(traceback.format_exception(caught.value))
        assert "cannot be opened" in told
        for text in (told, source.source_id, repr(RtspSettings(url)), str(source.report)):
            assert "hush" not in text
            assert "guard" not in text.replace("hdguard", "")

    run(main())

"""One suite for the protocol `FrameSource`, run over every source."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import cast

import numpy as np
import pytest
import uvloop

from hdguard.core.types import ImageSpec
from hdguard.ingest.base import Frame, FrameSource
from hdguard.ingest.file import FileSettings, FileSource
from hdguard.ingest.rtsp import RtspSettings, RtspSource
from tests.ingest.media import Clip, write_folder, write_video
from tests.rtsp_server import RtspServer, rtsp_server

# Frames looked at; a source may go on after them.
ENOUGH = 8


Request = pytest.FixtureRequest


def file_video(_: Request, folder: Path) -> FrameSource:
    path = write_video(folder / "clip.mp4", Clip(stamps=range(ENOUGH), base=Fraction(1, 50)))
    return FileSource(FileSettings(str(path), "kitchen"))


def looped_video(_: Request, folder: Path) -> FrameSource:
    path = write_video(folder / "clip.mp4", Clip(stamps=range(3), base=Fraction(1, 50)))
    return FileSource(FileSettings(str(path), "kitchen", loop=True))


def image_folder(_: Request, folder: Path) -> FrameSource:
    path = write_folder(folder / "shots", ENOUGH)
    return FileSource(FileSettings(str(path), "kitchen", image_fps=50.0))


def rtsp_camera(request: Request, _: Path) -> FrameSource:
    server: RtspServer = request.getfixturevalue("server")
    return RtspSource(RtspSettings(server.url, "kitchen"))


# A new source is one line here; it names itself "kitchen".
SOURCES: dict[str, Callable[[Request, Path], FrameSource]] = {
    "file video": file_video,
    "looped video": looped_video,
    "image folder": image_folder,
    "rtsp camera": rtsp_camera,
}


@pytest.fixture
def server() -> Iterator[RtspServer]:
    with rtsp_server(fps=50) as server:
        yield server


@pytest.fixture(params=SOURCES)
def source(request: Request, tmp_path: Path) -> FrameSource:
    return SOURCES[request.param](request, tmp_path)


def opened(source: FrameSource) -> aclosing[AsyncGenerator[Frame, None]]:
    """The source's frames; left, it is closed."""
    return aclosing(cast("AsyncGenerator[Frame, None]", source.frames()))


def watch(source: FrameSource, count: int = ENOUGH) -> list[tuple[Frame, float]]:
    """The first frames and the loop's time at which each came."""

    async def main() -> list[tuple[Frame, float]]:
        loop = asyncio.get_running_loop()
        got: list[tuple[Frame, float]] = []
        async with opened(source) as frames:
            async for frame in frames:
                got.append((frame, loop.time()))
                if len(got) == count:
                    break
        return got

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main())


def test_every_frame_carries_the_name_and_the_next_number(source: FrameSource) -> None:
    refs = [frame.ref for frame, _ in watch(source)]
    assert source.source_id == "kitchen"
    assert [(ref.source_id, ref.seq) for ref in refs] == [("kitchen", n) for n in range(ENOUGH)]


def test_times_rise_from_zero_and_no_frame_comes_before_its_time(source: FrameSource) -> None:
    got = watch(source)
    refs = [frame.ref for frame, _ in got]
    assert refs[0].media_time == 0.0
    for before, after in pairwise(refs):
        assert before.media_time < after.media_time
        assert before.captured_at <= after.captured_at
    assert all(at >= frame.ref.captured_at for frame, at in got)


def test_pictures_come_as_each_brain_asked(source: FrameSource) -> None:
    frame, _ = watch(source, 1)[0]
    for spec, height in ((ImageSpec(32), None), (ImageSpec(48, 48), 48)):
        rgb = frame.image.rgb(spec)
        assert rgb.shape == (height or rgb.shape[0], spec.width, 3)
        assert rgb.shape[0] >= 1
        assert rgb.dtype == np.uint8
        assert rgb.flags.c_contiguous
        assert not rgb.flags.writeable
        assert rgb.nbytes <= spec.max_bytes
        assert frame.image.rgb(spec) is rgb


def test_pictures_outlive_their_source(source: FrameSource) -> None:
    got = watch(source)
    assert all(frame.image.rgb(ImageSpec(16)).shape[1] == 16 for frame, _ in got)


def test_closing_early_releases_every_thread(source: FrameSource) -> None:
    async def main() -> None:
        before = threading.active_count()
        async with opened(source) as frames:
            await anext(frames)
        assert threading.active_count() == before

    asyncio.run(main())


def test_cancelling_the_watcher_releases_every_thread(source: FrameSource) -> None:
    async def watcher(first: asyncio.Event) -> None:
        async with opened(source) as frames:
            await anext(frames)
            first.set()
            await asyncio.Event().wait()

    async def main() -> None:
        before = threading.active_count()
        first = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            task = group.create_task(watcher(first))
            await first.wait()
            task.cancel()
        assert threading.active_count() == before

    asyncio.run(main())


def test_the_report_counts_what_was_handed_over(source: FrameSource) -> None:
    assert source.report.frames == 0
    watch(source, 3)
    assert source.report.frames == 3
    assert (source.report.corrupt, source.report.repaired) == (0, 0)
    assert source.report.problems == ()


def test_the_interval_is_known_once_frames_flow(source: FrameSource) -> None:
    got = watch(source)
    step = (got[-1][0].ref.media_time - got[0][0].ref.media_time) / (len(got) - 1)
    assert source.interval in (0.0, pytest.approx(step, rel=0.1))

"""The camera, seen by the source that the guard uses."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest

from hdguard.core.types import ImageSpec
from hdguard.faults.camera import FaultyCamera, faulty_camera
from hdguard.ingest.base import Frame, SourceError
from hdguard.ingest.rtsp import RtspSettings, RtspSource
from tests.actuators.support import run


def source(camera: FaultyCamera) -> RtspSource:
    settings = RtspSettings(camera.url, source_id="k", open_timeout=1.0, read_timeout=0.3)
    return RtspSource(settings)


async def some(camera: FaultyCamera, count: int) -> list[Frame]:
    found = []
    async with aclosing(source(camera).frames()) as frames:
        async for frame in frames:
            found.append(frame)
            if len(found) == count:
                break
    return found


async def _all(frames: AsyncIterator[Frame]) -> None:
    async for _ in frames:
        pass


def test_its_frames_are_taken_when_it_says() -> None:
    async def story() -> None:
        async with faulty_camera() as camera:
            frames = await some(camera, 10)
            for frame in frames:
                assert min(abs(frame.ref.captured_at - at) for at in camera.taken) < 0.03

    run(story(), "asyncio")


def test_silent_sends_nothing_over_a_connection_that_stays_open() -> None:
    async def story() -> None:
        async with faulty_camera() as camera:
            async with aclosing(source(camera).frames()) as frames:
                await anext(frames)
                camera.mode = "silent"
                with pytest.raises(SourceError, match="silent"):
                    await _all(frames)
            # It is the guard's side that has given up.
            while not camera.closed:
                await camera.changed()
            assert camera.closed[-1] > camera.taken[-1] + 0.25

    run(story(), "asyncio")


def test_what_was_held_back_is_sent_late_and_all_at_once() -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        async with faulty_camera() as camera:
            settings = RtspSettings(camera.url, source_id="k", read_timeout=2.0)
            async with aclosing(RtspSource(settings).frames()) as frames:
                async for frame in frames:
                    if frame.ref.seq == 3:
                        break
                camera.mode = "holding"
                sent = len(camera.taken)
                await asyncio.sleep(0.4)
                assert len(camera.taken) == sent
                camera.mode = "sending"
                released = loop.time()
                while len(camera.taken) < sent + 6:
                    await anext(frames)
                late = [at for at in camera.taken[sent:] if at < released]
                assert len(late) >= 6

    run(story(), "asyncio")


def test_mended_it_sends_nothing_of_the_past_to_whoever_connects() -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        async with faulty_camera() as camera:
            async with aclosing(source(camera).frames()) as frames:
                await anext(frames)
                camera.covered, camera.deaf, camera.mode = True, True, "holding"
                await asyncio.sleep(0.2)
            sent, mended = len(camera.taken), loop.time()
            await camera.mend()
            bright = [
                frame.image.rgb(ImageSpec(64)).mean() > 50 for frame in await some(camera, 12)
            ]
            assert all(bright)
            assert min(camera.taken[sent:]) > mended

    run(story(), "asyncio")


def test_it_comes_back_on_the_same_port_after_it_has_gone() -> None:
    async def story() -> None:
        async with faulty_camera() as camera:
            port = camera.port
            await some(camera, 1)
            await camera.go()
            with pytest.raises(SourceError, match="cannot be opened"):
                await some(camera, 1)
            await camera.come()
            assert camera.port == port
            await some(camera, 1)
            assert len(camera.accepted) == 2

    run(story(), "asyncio")


def test_deaf_accepts_and_answers_nothing() -> None:
    async def story() -> None:
        async with faulty_camera() as camera:
            camera.deaf = True
            with pytest.raises(SourceError, match="no answer in 1 s"):
                await some(camera, 1)
            assert len(camera.accepted) == 1

    run(story(), "asyncio")

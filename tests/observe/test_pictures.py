"""The newest picture of a camera: once per frame, for however many look, and never on the loop."""

import asyncio
import threading

import cv2
import numpy as np
import pytest

from hdguard.core.types import FrameRef, ImageSpec
from hdguard.ingest.base import Frame, Rgb, SourceError
from hdguard.observe.pictures import ENCODED_EVERY, NewestPictures
from tests.observe.support import run


class Counted:
    """A picture that counts how often it is converted, and waits if it is told to."""

    def __init__(self, colour: tuple[int, int, int] = (250, 10, 10)) -> None:
        self.colour = colour
        self.converted = 0
        self.error: SourceError | None = None
        self.go = threading.Event()
        self.go.set()
        self.threads: set[int] = set()

    def rgb(self, spec: ImageSpec) -> Rgb:
        self.go.wait(10.0)
        self.converted += 1
        self.threads.add(threading.get_ident())
        if self.error is not None:
            raise self.error
        return np.full((360, spec.width, 3), self.colour, np.uint8)


class Desk:
    def __init__(self) -> None:
        self.now = 100.0
        self.pictures = NewestPictures(lambda: self.now)

    def sees(self, image: Counted, source: str = "kitchen") -> None:
        self.pictures.saw(Frame(FrameRef(source, 1, self.now, 0.0), image), kept=True)


def test_there_is_none_before_the_first_frame_and_none_of_others() -> None:
    async def story() -> None:
        desk = Desk()
        assert await desk.pictures.jpeg("kitchen") is None
        desk.sees(Counted(), "hall")
        assert await desk.pictures.jpeg("kitchen") is None

    run(story())


def test_it_is_the_frame_640_wide_in_its_own_colours_with_its_own_time() -> None:
    async def story() -> None:
        desk = Desk()
        desk.sees(Counted())
        desk.now += 0.4
        picture = await desk.pictures.jpeg("kitchen")
        assert picture is not None
        assert picture.captured_at == 100.0
        shown = cv2.imdecode(np.frombuffer(picture.jpeg, np.uint8), cv2.IMREAD_COLOR)
        assert shown is not None
        assert shown.shape == (360, 640, 3)
        assert shown[100, 100].tolist() == pytest.approx([10, 10, 250], abs=8)  # BGR

    run(story())


def test_all_who_look_at_one_frame_cost_one_conversion_in_a_thread() -> None:
    async def story() -> None:
        desk, image = Desk(), Counted()
        desk.sees(image)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(desk.pictures.jpeg("kitchen")) for _ in range(20)]
        assert len({task.result() for task in tasks}) == 1
        await desk.pictures.jpeg("kitchen")
        assert image.converted == 1
        assert threading.get_ident() not in image.threads

    run(story())


def test_newer_frames_are_encoded_only_so_often() -> None:
    async def story() -> None:
        desk, images = Desk(), [Counted() for _ in range(3)]
        for image in images:
            desk.sees(image)
            await desk.pictures.jpeg("kitchen")
            desk.now += ENCODED_EVERY * 0.6
        assert [image.converted for image in images] == [1, 0, 1]

    run(story())


def test_one_who_leaves_does_not_take_it_from_the_others() -> None:
    async def story() -> None:
        desk, image = Desk(), Counted()
        image.go.clear()
        desk.sees(image)
        async with asyncio.TaskGroup() as group:
            leaves = group.create_task(desk.pictures.jpeg("kitchen"))
            stays = group.create_task(desk.pictures.jpeg("kitchen"))
            await asyncio.sleep(0)
            leaves.cancel()
            await asyncio.sleep(0)
            image.go.set()
        assert stays.result() is not None
        assert image.converted == 1

    run(story())


def test_a_picture_that_cannot_be_made_says_so_to_all_and_the_next_can() -> None:
    async def story() -> None:
        desk, broken = Desk(), Counted()
        broken.error = SourceError("kitchen: cannot convert")
        desk.sees(broken)
        with pytest.raises(SourceError, match="cannot convert"):
            await desk.pictures.jpeg("kitchen")
        desk.now += 1.0
        desk.sees(Counted())
        assert await desk.pictures.jpeg("kitchen") is not None

    run(story())

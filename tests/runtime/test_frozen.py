"""A stuck picture is told from one that a moving camera makes, whatever a codec does to it."""

import io
from pathlib import Path

import av
import numpy as np
import pytest
from numpy.typing import NDArray

from hdguard.core.types import FrameRef, ImageSpec
from hdguard.ingest.base import Frame, Image, Rgb, SourceError
from hdguard.ingest.image import VideoImage, View
from hdguard.runtime.frozen import FrozenWatch
from hdguard.runtime.scenes import THUMBNAIL

VIDEOS = Path(__file__).resolve().parents[3] / "shared" / "data" / "homesafe-bench" / "videos"
WIDTH, HEIGHT, FPS = 640, 360, 10

Picture = NDArray[np.uint8]


class Still:
    """A picture that is its own thumbnail, and counts how often it is asked for."""

    def __init__(self, grey: NDArray[np.generic]) -> None:
        self.asked = 0
        self._rgb = np.repeat(np.clip(grey, 0, 255).astype(np.uint8)[..., None], 3, axis=2)

    def rgb(self, spec: ImageSpec) -> Rgb:
        assert spec == THUMBNAIL
        self.asked += 1
        return self._rgb


class Broken:
    def rgb(self, spec: ImageSpec) -> Rgb:
        raise SourceError("the picture is broken")


def frozen(*images: Image, fps: float = 5.0) -> list[bool]:
    """What the watch says of each, one after the other."""
    watch = FrozenWatch()
    refs = [FrameRef("cam", n, n / fps, n / fps) for n in range(len(images))]
    return [watch.frozen(Frame(ref, image)) for ref, image in zip(refs, images, strict=True)]


def room(turned: int = 0, size: int = 32) -> NDArray[np.int64]:
    """Furniture in greys, seen by a camera that has turned by so many pixels."""
    cell = size // 4
    panorama = np.random.default_rng(1).integers(40, 216, (4, 40))
    seen = np.kron(panorama, np.ones((cell, cell), np.int64))
    return seen[:, turned : turned + size]


def kitchen() -> Picture:
    """A picture with large and small things in it, as a camera would see it."""
    random = np.random.default_rng(7)
    picture = np.full((HEIGHT, WIDTH, 3), 120, np.uint8)
    for size in (160, 80, 40, 20, 8):
        for _ in range(25):
            x, y = random.integers(0, WIDTH), random.integers(0, HEIGHT)
            picture[y : y + size, x : x + size] = random.integers(20, 236, 3)
    return picture


def filmed(pictures: list[Picture], codec: str, options: dict[str, str]) -> list[VideoImage]:
    """The pictures as they come out of a decoder."""
    buffer = io.BytesIO()
    with av.open(buffer, "w", format="matroska") as container:
        stream = container.add_stream(codec, rate=FPS, options=options)
        assert isinstance(stream, av.VideoStream)
        stream.width, stream.height = WIDTH, HEIGHT
        stream.pix_fmt = "yuvj420p" if codec == "mjpeg" else "yuv420p"
        for n, picture in enumerate(pictures):
            frame = av.VideoFrame.from_ndarray(picture, format="rgb24")
            frame.pts = n
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    buffer.seek(0)
    with av.open(buffer, "r") as container:
        return [VideoImage(f, View("cam")) for f in container.decode(video=0)]


CODECS = {
    "H.264, fine": ("libx264", {"crf": "18", "preset": "ultrafast", "g": "10"}),
    "H.264, coarse": ("libx264", {"crf": "38", "preset": "veryfast", "g": "10"}),
    "MPEG-4": ("mpeg4", {"qscale": "20", "g": "12"}),
    "MJPEG": ("mjpeg", {"qscale": "8"}),
}


@pytest.mark.parametrize("noise", [0, 8], ids=["one still", "a quiet room with sensor noise"])
@pytest.mark.parametrize("codec", CODECS)
def test_a_picture_that_stands_still_is_still_whatever_the_codec_makes_of_it(
    codec: str, noise: int
) -> None:
    random, still = np.random.default_rng(3), kitchen().astype(float)
    pictures = [
        np.clip(still + (random.normal(0, noise, still.shape) if noise else 0), 0, 255)
        for _ in range(25)
    ]
    images = filmed([p.astype(np.uint8) for p in pictures], *CODECS[codec])
    assert frozen(*images, fps=FPS) == [False, False, *[True] * 23]  # every other is looked at


@pytest.mark.parametrize("codec", CODECS)
def test_a_camera_that_turns_slowly_is_not_stuck(codec: str) -> None:
    wide = np.hstack([kitchen(), kitchen()[:, ::-1]])
    pictures = [wide[:, 6 * n : 6 * n + WIDTH].copy() for n in range(25)]  # under 1 % a frame
    said = frozen(*filmed(pictures, *CODECS[codec]), fps=FPS)
    assert longest(said) <= 0.4 * FPS


def longest(said: list[bool]) -> int:
    """Most frames in a row in which nothing changed."""
    runs = "".join("x" if each else " " for each in said).split()
    return max(map(len, runs), default=0)


def test_a_motion_too_slow_for_two_frames_adds_up() -> None:
    fading = [Still(room() + 2 * n) for n in range(12)]  # 2 levels a frame, 6 are none
    assert frozen(*fading) == [n % 4 != 0 for n in range(12)]


def test_a_clock_in_the_picture_is_no_sign_of_life() -> None:
    ticking = []
    for n in range(10):
        picture = room()
        picture[0:2, 20:24] = 255 * (n % 2)
        ticking.append(Still(picture))
    assert frozen(*ticking) == [False, *[True] * 9]


def test_a_hand_in_the_picture_is_one() -> None:
    with_hand = room()
    with_hand[20:26, 10:16] = 230
    assert frozen(Still(room()), Still(room()), Still(with_hand), Still(with_hand)) == [
        False,
        True,
        False,
        True,
    ]


def test_a_covered_lens_is_a_picture_that_does_not_change() -> None:
    dark = np.random.default_rng(2)
    assert frozen(*[Still(dark.integers(0, 4, (32, 32))) for _ in range(6)]) == [
        False,
        *[True] * 5,
    ]


def test_five_frames_a_second_are_looked_at_and_those_between_say_the_same() -> None:
    images = [Still(room(n)) for n in range(30)]
    assert frozen(*images, fps=30.0) == [False] * 30
    assert [n for n, image in enumerate(images) if image.asked] == [0, 6, 12, 18, 24]


def test_a_picture_that_cannot_be_converted_shows_no_change() -> None:
    assert frozen(Still(room()), Broken(), Still(room(9)), Broken()) == [False, True, False, True]


@pytest.mark.skipif(not VIDEOS.is_dir(), reason="the benchmark's videos are not here")
def test_no_real_robots_camera_stands_still_for_half_a_second() -> None:
    for path in sorted(VIDEOS.glob("*.mp4")):
        with av.open(path) as container:
            container.streams.video[0].thread_type = "AUTO"
            watch, said = FrozenWatch(), []
            for n, frame in enumerate(container.decode(video=0)):
                ref = FrameRef("cam", n, frame.time, frame.time)
                said.append(watch.frozen(Frame(ref, VideoImage(frame, View("cam")))))
        assert longest(said) < 0.5 * n / ref.media_time

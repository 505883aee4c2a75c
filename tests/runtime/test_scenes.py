"""A new scene is noticed, however it comes; light, noise and things that move are none."""

import itertools
from pathlib import Path

import av
import numpy as np
import pytest

from hdguard.core.types import ImageSpec
from hdguard.ingest.base import Rgb, SourceError
from hdguard.ingest.image import VideoImage, View
from hdguard.runtime.scenes import THUMBNAIL, SceneWatch

VIDEOS = Path(__file__).resolve().parents[3] / "shared" / "data" / "homesafe-bench" / "videos"


class Still:
    """A picture that is its own thumbnail."""

    def __init__(self, grey: np.ndarray) -> None:
        self._rgb = np.repeat(np.clip(grey, 0, 255).astype(np.uint8)[..., None], 3, axis=2)

    def rgb(self, spec: ImageSpec) -> Rgb:
        assert spec == THUMBNAIL
        return self._rgb


class Broken:
    def rgb(self, spec: ImageSpec) -> Rgb:
        raise SourceError("the picture is broken")


def room(seed: int, turned: int = 0) -> np.ndarray:
    """Furniture in greys, seen by a camera that has turned by so many pixels."""
    panorama = np.kron(np.random.default_rng(seed).integers(40, 216, (4, 40)), np.ones((8, 8)))
    return panorama[:, turned : turned + 32]


def changes(*pictures: np.ndarray) -> list[int]:
    """Which of the pictures begin another scene."""
    watch = SceneWatch()
    return [n for n, each in enumerate(pictures) if watch.changed(Still(each))]


def test_the_first_frame_and_an_unchanged_one_begin_nothing() -> None:
    assert changes(room(1), room(1), room(1)) == []


def test_a_cut_is_noticed_once() -> None:
    assert changes(room(1), room(1), room(2), room(2), room(1)) == [2, 4]


def test_a_slow_turn_is_noticed_although_no_two_frames_differ_much() -> None:
    turning = [room(1, turned) for turned in range(64)]
    assert all(changes(*pair) == [] for pair in itertools.pairwise(turning))
    assert len(changes(*turning)) >= 3


def test_a_lamp_that_is_switched_on_is_no_other_scene() -> None:
    assert changes(room(1), room(1) * 0.5, room(1) * 0.7 + 60.0) == []


def test_a_person_who_crosses_the_picture_is_no_other_scene() -> None:
    pictures = []
    for left in range(0, 26, 2):
        picture = room(1).copy()
        picture[8:, left : left + 6] = 20.0
        pictures.append(picture)
    assert changes(*pictures) == []


def test_noise_in_the_dark_is_no_other_scene() -> None:
    noise = np.random.default_rng(3)
    assert changes(*[noise.integers(0, 8, (32, 32)) for _ in range(20)]) == []
    assert changes(noise.integers(0, 8, (32, 32)), room(1)) == [1]  # but then the light goes on


def test_a_picture_that_cannot_be_converted_is_passed_over() -> None:
    watch = SceneWatch()
    assert not watch.changed(Broken())
    assert not watch.changed(Still(room(1)))
    assert not watch.changed(Broken())
    assert watch.changed(Still(room(2)))


@pytest.mark.skipif(not VIDEOS.is_dir(), reason="the benchmark's videos are not here")
def test_no_real_video_of_one_scene_changes_and_a_cut_between_two_does() -> None:
    kept = {path.name[:3]: thumbnails(path) for path in sorted(VIDEOS.glob("*.mp4"))}
    assert len(kept) == 3
    for images in kept.values():
        watch = SceneWatch()
        assert [watch.changed(image) for image in images] == [False] * len(images)
    for before in kept.values():
        for after in kept.values():
            watch = SceneWatch()
            watch.changed(before[0])
            assert watch.changed(after[0]) is (after is not before)


def thumbnails(path: Path) -> list[VideoImage]:
    """Its frames at 5 FPS."""
    images: list[VideoImage] = []
    with av.open(path) as container:
        container.streams.video[0].thread_type = "AUTO"
        for frame in container.decode(video=0):
            if frame.time >= len(images) / 5:
                images.append(VideoImage(frame, View(path.name)))
                images[-1].rgb(THUMBNAIL)
    return images

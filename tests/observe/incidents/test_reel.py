"""The newest seconds in memory: by seconds, by bytes, by cameras."""

import cv2
import numpy as np
import pytest

from hdguard.ingest.base import SourceError
from hdguard.observe.incidents import reel
from hdguard.observe.incidents.reel import Developer, Reels
from hdguard.observe.incidents.spool import Picture
from tests.observe.incidents.support import frame, ref


def times(reels: Reels, begin: float = 0.0) -> list[float]:
    return [p.ref.captured_at for p in reels.since(begin)]


def test_a_picture_is_a_jpeg_of_even_size_in_its_own_colours() -> None:
    made = Developer(64).developed(frame(1.0, grey=200, height=37))
    decoded = cv2.imdecode(np.frombuffer(made.jpeg, np.uint8), cv2.IMREAD_COLOR)
    assert decoded is not None
    assert decoded.shape == (36, 64, 3)
    assert abs(int(decoded.mean()) - 200) < 3
    assert made.ref == ref(1.0)
    flat = Developer(64).developed(frame(1.0, height=1))
    decoded = cv2.imdecode(np.frombuffer(flat.jpeg, np.uint8), cv2.IMREAD_COLOR)
    assert decoded is not None
    assert decoded.shape[0] == 2


def test_it_goes_so_many_seconds_back_from_a_cameras_newest_picture() -> None:
    reels = Reels(1.0)
    for n in range(10):
        reels.add(Picture(ref(n * 0.5), b"x"))
    assert times(reels) == [3.5, 4.0, 4.5]
    assert times(reels, 4.0) == [4.0, 4.5]


def test_a_camera_that_is_silent_keeps_its_last_pictures() -> None:
    reels = Reels(1.0)
    reels.add(Picture(ref(1.0, source="dead"), b"x"))
    for n in range(10):
        reels.add(Picture(ref(n * 1.0), b"x"))
    assert times(reels) == [1.0, 8.0, 9.0]


def test_large_pictures_make_it_shorter_and_not_larger(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reel, "MOST_BYTES", 100)
    reels = Reels(60.0)
    for n in range(10):
        reels.add(Picture(ref(n * 1.0), b"x" * 40))
    assert times(reels) == [8.0, 9.0]
    reels.add(Picture(ref(10.0), b"x" * 400))
    assert times(reels) == [10.0]


def test_of_too_many_cameras_the_one_that_was_silent_longest_goes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reel, "MOST_CAMERAS", 2)
    reels = Reels(60.0)
    for n, camera in enumerate(["a", "b", "a", "c"]):
        reels.add(Picture(ref(float(n), source=camera), b"x"))
    assert {p.ref.source_id for p in reels.since(0.0)} == {"a", "c"}


@pytest.mark.parametrize("fails", [True, False], ids=["raises", "says no"])
def test_a_picture_that_cannot_be_encoded_is_the_cameras_and_nobody_elses_problem(
    monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    def encoded(*_: object) -> tuple[bool, object]:
        if fails:
            raise cv2.error("Insufficient memory")
        return False, np.zeros(0, np.uint8)

    made = Developer(64)
    monkeypatch.setattr(cv2, "imencode", encoded)
    with pytest.raises(SourceError, match="hall: "):
        made.developed(frame(1.0))

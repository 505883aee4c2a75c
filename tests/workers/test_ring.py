"""Pixels in shared memory."""

import os

import numpy as np
import pytest

from hdguard.brains.base import BrainError
from hdguard.workers.ring import Ring
from tests.workers.support import open_fds


def picture(value: int, height: int = 4, width: int = 5) -> np.ndarray:
    return np.full((height, width, 3), value, np.uint8)


def test_what_one_side_writes_the_other_side_reads() -> None:
    ring = Ring.create(2, 60)
    other = Ring(os.dup(ring.fd), 2, 60)
    ring.write(0, picture(1))
    ring.write(1, picture(2, 2, 3))
    assert np.array_equal(other.read(0, 4, 5), picture(1))
    assert np.array_equal(other.read(1, 2, 3), picture(2, 2, 3))
    ring.close()
    other.close()


def test_a_cancelled_call_is_noted_beside_the_pictures_and_seen_by_the_other_side() -> None:
    ring = Ring.create(2, 60)
    other = Ring(os.dup(ring.fd), 2, 60)
    ring.write(1, picture(255))
    assert other.cancelled == 0
    ring.cancel(2**40)
    assert other.cancelled == 2**40
    assert np.array_equal(other.read(1, 4, 5), picture(255))
    ring.close()
    other.close()


def test_a_picture_that_was_read_stays_when_its_slot_is_written_again() -> None:
    ring = Ring.create(1, 60)
    ring.write(0, picture(1))
    kept = ring.read(0, 4, 5)
    ring.write(0, picture(2))
    ring.close()
    assert np.array_equal(kept, picture(1))
    assert kept.flags.c_contiguous
    assert not kept.flags.writeable


def test_a_picture_whose_rows_are_not_side_by_side_is_written_right() -> None:
    ring = Ring.create(1, 60)
    wide = np.arange(120, dtype=np.uint8).reshape(4, 10, 3)
    ring.write(0, wide[:, ::2])
    assert np.array_equal(ring.read(0, 4, 5), wide[:, ::2])
    ring.close()


@pytest.mark.parametrize(("slot", "height"), [(2, 4), (-1, 4), (0, 5), (0, 0)])
def test_what_does_not_fit_is_an_error(slot: int, height: int) -> None:
    ring = Ring.create(2, 60)
    with pytest.raises(BrainError, match="does not fit into slot"):
        ring.write(slot, picture(1, height))
    with pytest.raises(BrainError, match="does not fit into slot"):
        ring.read(slot, height, 5)
    ring.close()


@pytest.mark.parametrize(
    "wrong",
    [np.zeros((4, 5), np.uint8), np.zeros((4, 5, 4), np.uint8), np.zeros((4, 5, 3), np.float32)],
    ids=["grey", "alpha", "float"],
)
def test_what_is_no_rgb_picture_is_an_error(wrong: np.ndarray) -> None:
    ring = Ring.create(1, 600)
    with pytest.raises(BrainError, match=r"must be \(height, width, 3\) uint8"):
        ring.write(0, wrong)
    ring.close()


def test_nothing_is_left_open() -> None:
    before = open_fds()
    Ring.create(2, 60).close()
    assert open_fds() == before

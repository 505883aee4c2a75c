"""The sampling grid, by hand."""

import pytest

from hdguard.core.policy import Resample
from hdguard.core.sampling import FrameSampler
from tests.core.story import frame


def taken(sampler: FrameSampler, times: list[float]) -> list[float]:
    return [t for t in times if sampler.offer(frame(t))]


def at_fps(fps: float, seconds: float, start: float = 0.0) -> list[float]:
    return [start + k / fps for k in range(round(seconds * fps))]


def test_takes_the_first_frame_at_or_after_each_multiple() -> None:
    assert taken(FrameSampler(5.0), at_fps(24.0, 1.0)) == pytest.approx(
        [0.0, 5 / 24, 10 / 24, 15 / 24, 20 / 24]
    )


def test_a_late_frame_does_not_push_the_later_samples_back() -> None:
    times = [0.0, 0.35, 0.4, 0.55, 0.6, 0.8]
    assert taken(FrameSampler(5.0), times) == [0.0, 0.35, 0.4, 0.6, 0.8]


def test_float_dust_does_not_cost_a_frame() -> None:
    start = 1234.1
    times = [start + k * 0.1 for k in range(31)]
    assert taken(FrameSampler(5.0), times) == pytest.approx([start + k * 0.2 for k in range(16)])


@pytest.mark.parametrize(
    ("resample", "after_rise"),
    [("at_once", [1.1, 1.3, 1.5]), ("released", [1.2, 1.4, 1.6])],
)
def test_rise_at_once_takes_the_next_frame_and_released_waits_a_period(
    resample: Resample, after_rise: list[float]
) -> None:
    sampler = FrameSampler(1.0)
    assert taken(sampler, at_fps(10.0, 1.1)) == pytest.approx([0.0, 1.0])
    sampler.set_rate(5.0, frame(1.0), resample)
    assert sampler.fps == 5.0
    assert taken(sampler, at_fps(10.0, 0.6, 1.1)) == pytest.approx(after_rise)


@pytest.mark.parametrize("resample", ["at_once", "released"])
def test_fall_restarts_the_grid_at_the_frame_that_caused_it(resample: Resample) -> None:
    sampler = FrameSampler(5.0)
    taken(sampler, at_fps(10.0, 0.9))
    sampler.set_rate(1.0, frame(0.8), resample)
    assert taken(sampler, at_fps(10.0, 2.0, 0.9)) == pytest.approx([1.8, 2.8])


def test_a_change_that_no_frame_caused_takes_the_next_frame() -> None:
    sampler = FrameSampler(5.0)
    taken(sampler, at_fps(10.0, 0.5))
    sampler.set_rate(1.0, None, "released")
    assert taken(sampler, at_fps(10.0, 1.5, 0.5)) == pytest.approx([0.5, 1.5])


def test_a_verdict_that_came_late_does_not_ask_for_frames_of_the_past() -> None:
    sampler = FrameSampler(1.0)
    taken(sampler, at_fps(10.0, 2.0))
    sampler.set_rate(5.0, frame(0.0), "released")
    assert taken(sampler, at_fps(10.0, 0.5, 2.0)) == pytest.approx([2.0, 2.2, 2.4])

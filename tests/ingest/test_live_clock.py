from itertools import pairwise
from random import Random

import pytest

from hdguard.ingest.live_clock import LiveClock


def read(frames: list[tuple[float | None, float]], clock: LiveClock | None = None) -> list[float]:
    clock = clock or LiveClock()
    return [clock.captured(t, arrival) for t, arrival in frames]


def test_a_picture_that_travels_as_usual_is_as_old_as_its_quickest_fellow() -> None:
    frames: list[tuple[float | None, float]] = [
        (7.00, 100.00),
        (7.10, 100.18),  # 80 ms late
        (7.20, 100.20),
        (7.30, 100.33),
    ]
    assert read(frames) == pytest.approx([100.0, 100.1, 100.2, 100.3])


def test_pictures_held_back_for_five_seconds_look_five_seconds_old() -> None:
    clock = LiveClock()
    read([(n / 10, 100.0 + n / 10) for n in range(10)], clock)
    late = [(1.0 + n / 10, 106.0 + n / 1000) for n in range(50)]
    captured = [clock.captured(t, arrival) for t, arrival in late]
    assert captured == pytest.approx([101.0 + n / 10 for n in range(50)])
    assert clock.captured(6.0, 106.05) == pytest.approx(106.0)  # the first that is new again


def test_a_stamp_from_the_future_is_not_fresh_for_ever() -> None:
    clock = LiveClock()
    assert read([(0.0, 100.0), (0.1, 100.1), (0.9, 100.2)], clock)[-1] == 100.2
    assert clock.captured(3600.0, 100.3) == 100.3
    assert clock.captured(3600.1, 103.0) == pytest.approx(100.4)


@pytest.mark.parametrize("jump", [5.0, -5.0, -0.5, 3600.0, -3600.0])
def test_nav2_4863_setting_the_camera_s_clock_changes_no_age(jump: float) -> None:
    clock = LiveClock()
    before = [(50.0 + n / 10, 100.0 + n / 10) for n in range(10)]
    after = [(51.0 + jump + n / 10, 101.0 + n / 10) for n in range(10)]
    captured = [clock.captured(t, arrival) for t, arrival in before + after]
    assert captured == pytest.approx([100.0 + n / 10 for n in range(20)])


def test_a_slow_camera_clock_is_followed_within_half_a_minute() -> None:
    clock = LiveClock()
    # One second a minute: far worse than any real one.
    captured = [clock.captured(n * 0.1 * 59 / 60, 100.0 + n * 0.1) for n in range(1200)]
    ages = [100.0 + n * 0.1 - at for n, at in enumerate(captured)]
    assert max(ages) == pytest.approx(0.5, abs=0.05)


def test_a_quick_journey_is_forgotten_after_thirty_seconds() -> None:
    clock = LiveClock()
    assert read([(0.0, 100.0)], clock) == [100.0]
    for n in range(1, 297):
        assert clock.captured(n / 10, 100.3 + n / 10) == pytest.approx(100.0 + n / 10)
    assert clock.captured(29.8, 130.1) == pytest.approx(130.1)


def test_without_stamps_the_arrival_is_all_there_is() -> None:
    assert read([(None, 100.0), (None, 100.2), (None, 100.21)]) == [100.0, 100.2, 100.21]


def test_a_picture_without_a_stamp_is_as_old_as_the_one_before_it_and_not_as_new_as_its_bytes() -> (
    None
):
    clock = LiveClock()
    read([(n / 10, 100.0 + n / 10) for n in range(10)], clock)
    assert clock.captured(1.0, 106.0) == pytest.approx(101.0)  # was held up for 5 s
    assert clock.captured(None, 106.001) == pytest.approx(101.0)
    assert clock.captured(1.2, 106.002) == pytest.approx(101.2)
    assert clock.settled


def test_a_camera_that_stops_sending_stamps_is_believed_again_by_its_pace() -> None:
    clock = LiveClock()
    read([(n / 10, 100.0 + n / 10) for n in range(10)], clock)
    believed = []
    for n in range(10, 40):
        at, arrival = clock.captured(None, 100.0 + n / 10), 100.0 + n / 10
        if clock.settled and at == arrival:
            believed.append(n)
        else:  # nobody knows how old it is: it does not look new
            assert not clock.settled or at == pytest.approx(100.9)
    assert believed == list(range(believed[0], 40))
    assert believed[0] <= 10 + 16


def test_whatever_comes_pictures_are_in_order_and_never_newer_than_their_arrival() -> None:
    rng = Random(3)
    for _ in range(200):
        clock, t, arrival, last = LiveClock(), 0.0, 100.0, 0.0
        for _ in range(60):
            t += rng.choice([0.04, 0.04, 0.2, -0.02, 2.0, -3.0, 0.0])
            arrival += rng.choice([0.0, 0.04, 0.04, 0.3])
            at = clock.captured(rng.choice([t, t, t, None]), arrival)
            assert last <= at <= arrival
            last = at


# What waited before we were connected.


class Opening:
    """Pictures of a camera as they come after we connected, and what was believed of their age."""

    def __init__(self, fps: float, interval: float = 0.0) -> None:
        self.clock = LiveClock(interval)
        self.now = 100.0
        self.settled_at: float | None = None
        self.too_young = 0.0  # s, of the worst picture that was handed over
        self._fps = fps
        self._number = 0

    def come(self, age: float, after: float) -> None:
        """The next picture, `after` s after the last, in truth `age` s old if the first was 4 s."""
        self.now += after
        at = self.clock.captured(self._number / self._fps, self.now)
        self._number += 1
        if self.clock.settled:
            self.settled_at = self.settled_at or self.now
            self.too_young = max(self.too_young, age - (self.now - at))

    def drain(self, backlog: float, rate: float, pause: tuple[int, float] = (0, 0.0)) -> None:
        """A backlog comes at `rate` times its pace, with a pause before one picture."""
        age, step = backlog, 1 / self._fps
        while age > 0.0:
            took = step / rate + (pause[1] if self._number == pause[0] else 0.0)
            age += took - step
            self.come(age, took)

    def live(self, seconds: float) -> None:
        for _ in range(round(seconds * self._fps)):
            self.come(0.0, 1 / self._fps)


@pytest.mark.parametrize("fps", [5, 10, 25, 30])
@pytest.mark.parametrize("rate", [1.25, 1.5, 2.0, 4.0, 20.0])
def test_a_backlog_is_never_handed_over_however_fast_it_comes(fps: float, rate: float) -> None:
    opening = Opening(fps)
    opening.drain(4.0, rate)
    assert opening.settled_at is None or opening.too_young < 0.1
    begun = opening.now
    opening.live(2.0)
    assert opening.too_young < 0.1
    assert opening.settled_at is not None
    assert opening.settled_at - begun < 0.9


@pytest.mark.parametrize("pause", [0.025, 0.1, 0.3, 0.6, 1.0, 2.0])
@pytest.mark.parametrize("number", [2, 20, 60])
@pytest.mark.parametrize("rate", [2.0, 4.0, 20.0])
def test_one_slow_packet_amid_a_backlog_does_not_make_the_rest_look_new(
    pause: float, number: int, rate: float
) -> None:
    opening = Opening(25)
    opening.drain(4.0, rate, (number, pause))
    assert not opening.clock.settled
    assert opening.too_young == 0.0
    opening.live(2.0)
    assert opening.settled_at is not None


@pytest.mark.parametrize("fps", [5, 10, 15, 25, 30])
def test_a_live_camera_is_believed_after_half_a_second(fps: int) -> None:
    opening, rng = Opening(fps), Random(fps)
    opening.come(0.0, 0.0)
    taken = opening.now
    for _ in range(fps * 20):
        taken += 1 / fps
        opening.come(0.0, taken + rng.uniform(0.0, 0.02) - opening.now)
        assert opening.clock.settled == (opening.settled_at is not None)  # and then for good
    assert opening.settled_at is not None
    assert opening.settled_at - 100.0 < 0.65


def test_one_quick_picture_at_the_start_does_not_cost_half_a_minute() -> None:
    opening = Opening(25)
    opening.come(0.0, 0.0)
    opening.come(0.0, 0.04 + 0.2)
    opening.live(2.0)
    assert opening.clock.settled


def test_pictures_that_the_encoder_reordered_are_believed_as_soon() -> None:
    clock = LiveClock()
    settled = []
    for group in range(8):  # its second and third are predicted from its fourth, which comes first
        for number, place in ((1, 4), (2, 5), (3, 3)):
            clock.captured((3 * group + number) * 0.04, 100.0 + (3 * group + place) * 0.04)
            settled.append(clock.settled)
    assert settled.index(True) < 0.7 * 25
    assert settled == sorted(settled)


def test_a_quicker_journey_than_was_believed_is_doubted_and_jitter_is_not() -> None:
    opening, settled = Opening(10), []

    def come(*after: float) -> None:
        for step in after:
            opening.come(0.0, step)
        settled.append(opening.clock.settled)

    come(*[0.1] * 10)
    come(0.06)
    come(0.08)  # 60 ms quicker than any before
    come(*[0.1] * 6)
    come(5.0, *[0.001] * 49)  # a hold-up on the way, and what it held up
    assert settled == [True, True, False, True, True]


def test_a_camera_clock_that_drifts_is_no_backlog() -> None:
    clock = LiveClock()
    settled = []
    for n in range(6000):  # ten minutes, 200 parts in a million fast
        clock.captured(n * 0.1 * 1.0002, 100.0 + n * 0.1)
        settled.append(clock.settled)
    assert all(settled[10:])


def test_without_stamps_a_burst_is_not_believed_but_a_camera_at_its_pace_is() -> None:
    clock = LiveClock()
    for n in range(60):
        clock.captured(None, 100.0 + n * 0.002)
    assert not clock.settled
    for n in range(1, 6):
        clock.captured(None, 101.0 + n * 0.2)
    assert clock.settled


def test_a_jump_of_the_stamps_must_settle_again() -> None:
    opening = Opening(10)
    opening.live(1.0)
    clock, now = opening.clock, opening.now
    clock.captured(40.0, now + 0.1)
    assert not clock.settled
    for n in range(1, 7):
        clock.captured(40.0 + n / 10, now + 0.1 + n / 10)
    assert clock.settled


def test_a_camera_slower_than_a_picture_a_second_settles_and_its_late_pictures_look_late() -> None:
    clock = LiveClock(interval=2.0)
    assert read([(0.0, 100.0), (2.0, 102.0), (4.0, 104.0)], clock) == [100.0, 102.0, 104.0]
    assert clock.settled
    assert clock.captured(6.0, 110.8) == pytest.approx(106.0)
    assert clock.captured(8.0, 110.81) == pytest.approx(108.0)
    assert clock.settled


def test_a_new_connection_starts_over_but_media_time_goes_on() -> None:
    clock = LiveClock()
    read([(n / 10, 100.0 + n / 10) for n in range(8)], clock)
    assert clock.media_time == pytest.approx(0.2)  # counted from the first that was settled
    clock.restart()
    settled = []
    for n in range(7):
        arrival = 108.0 + n / 10
        assert clock.captured(90.0 + n / 10, arrival) == pytest.approx(arrival)
        settled.append(clock.settled)
    assert settled == [False] * 5 + [True] * 2
    assert clock.media_time == pytest.approx(0.2 + 0.04 + 0.6)


def test_media_time_rises_over_jumps_and_repeats() -> None:
    clock, times = LiveClock(), []
    read([(n / 10, 99.4 + n / 10) for n in range(6)], clock)
    stamps = [0.6, 0.7, 0.7, 0.8, -50.0, -49.9, 70.0, 70.1, None, 70.3]
    for n, t in enumerate(stamps):
        clock.captured(t, 100.0 + n / 10)
        times.append(clock.media_time)
    assert all(a < b for a, b in pairwise(times))
    assert times[-1] < 1.2

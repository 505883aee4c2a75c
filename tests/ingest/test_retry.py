from random import Random

import pytest

from hdguard.ingest.retry import Backoff


def delays(backoff: Backoff, count: int) -> list[float]:
    got = []
    for _ in range(count):
        backoff.ended()
        got.append(backoff.delay)
    return got


def test_pauses_grow_from_half_a_second_to_five_and_stay_there() -> None:
    for seed in range(50):
        got = delays(Backoff(Random(seed)), 2000)
        for delay, top in zip(got, [1.0, 2.0, 4.0, *[5.0] * 1997], strict=True):
            assert top / 2 <= delay <= top


def test_two_cameras_of_one_switch_do_not_knock_in_step() -> None:
    assert delays(Backoff(), 5) != delays(Backoff(), 5)


def test_the_first_attempt_waits_for_nothing() -> None:
    assert Backoff().delay == 0.0


def test_asking_twice_gives_the_same_pause() -> None:
    backoff = Backoff()
    backoff.ended()
    assert backoff.delay == backoff.delay


@pytest.mark.parametrize(("seconds", "forgiven"), [(9.9, False), (10.0, True)])
def test_ten_seconds_of_frames_make_the_next_loss_the_first(seconds: float, forgiven: bool) -> None:
    backoff = Backoff(Random(1))
    delays(backoff, 5)
    backoff.frame(100.0)
    backoff.frame(100.0 + seconds)
    backoff.ended()
    assert (backoff.delay <= 1.0) is forgiven


def test_frames_of_different_connections_do_not_add_up() -> None:
    backoff = Backoff(Random(1))
    delays(backoff, 5)
    for start in (100.0, 200.0, 300.0):
        backoff.frame(start)
        backoff.frame(start + 6.0)
        backoff.ended()
    assert backoff.delay >= 2.5

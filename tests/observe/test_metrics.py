"""What is counted as it happens, as a scrape shows it."""

import time

import pytest
from prometheus_client.parser import text_string_to_metric_families

from hdguard.core import events
from hdguard.core.actions import Halt
from hdguard.core.types import FrameRef, HaltCause, HaltClass, Light
from hdguard.runtime.observer import Judged, Reviewed
from tests.observe.support import Watched, scraped

REF = FrameRef("kitchen", 41, 99.0, 1.4)


def test_verdicts_are_counted_by_brain_and_kind() -> None:
    watched = Watched()
    watched.sees()
    watched.sees(Light.YELLOW)
    watched.step(
        events.CannotSee(REF, "reflex", "dark"),
        events.BrainFailed("kitchen", "reflex", "late", REF),
        events.BrainFailed("kitchen", "reflex", "it said banana", REF),
        events.SlowVerdict(1, danger=False),
        events.SlowVerdict(2, danger=True),
        events.ReviewFailed(3, "it said nothing"),
    )
    found = scraped(watched)
    counted = {
        "brain=reflex,verdict=green": 1,
        "brain=reflex,verdict=yellow": 1,
        "brain=second,verdict=green": 1,
        "brain=reflex,verdict=cannot_see": 1,
        "brain=reflex,verdict=late": 1,
        "brain=reflex,verdict=failed": 1,
        "brain=thinker,verdict=safe": 1,
        "brain=thinker,verdict=danger": 1,
        "brain=thinker,verdict=failed": 1,
    }
    for labels, count in counted.items():
        assert found[f"hdguard_verdicts_total{{{labels}}}"] == count, labels


def test_a_halt_is_counted_once_however_often_it_is_repeated() -> None:
    watched = Watched()
    watched.starts()
    watched.sees(Light.RED)
    for _ in range(5):
        watched.step(events.DeadlineReached(), after=0.1)
    found = scraped(watched)
    assert found["hdguard_halts_total{cause=fast_red,class=danger}"] == 1
    assert found["hdguard_capture_to_halt_seconds_count"] == 1
    assert found["hdguard_capture_to_halt_seconds_sum"] == pytest.approx(0.05)


def test_a_restored_halt_is_not_counted_again() -> None:
    restored = Halt("6-4", HaltClass.DANGER, HaltCause.FAST_RED, ref=REF, decided_at=99.5)
    watched = Watched(restored=restored)
    watched.step(events.DeadlineReached())
    found = scraped(watched)
    assert "hdguard_halts_total{cause=fast_red,class=danger}" not in found
    assert found["hdguard_capture_to_halt_seconds_count"] == 0


def test_the_robots_answer_is_timed_from_the_decision_and_once() -> None:
    watched = Watched()
    watched.starts()
    watched.sees(Light.RED)
    watched.step(events.HaltDelivered("7-1"), after=0.002)
    watched.step(events.HaltAcknowledged("7-1"), after=0.018)
    watched.step(events.HaltDelivered("7-1"), events.HaltConfirmed("7-1"), after=0.3)
    found = scraped(watched)
    assert found["hdguard_halt_ack_seconds_count"] == 1
    assert found["hdguard_halt_ack_seconds_sum"] == pytest.approx(0.02)
    assert found["hdguard_stage_duration_seconds_count{stage=deliver}"] == 1
    assert found["hdguard_stage_duration_seconds_sum{stage=deliver}"] == pytest.approx(0.002)


def test_an_answer_to_another_halt_is_not_timed() -> None:
    watched = Watched()
    watched.starts()
    watched.sees(Light.RED)
    watched.step(events.HaltConfirmed("6-1"), events.HaltDelivered("6-1"))
    found = scraped(watched)
    assert found["hdguard_halt_ack_seconds_count"] == 0
    assert "hdguard_stage_duration_seconds_count{stage=deliver}" not in found


def test_a_gap_between_permits_shows() -> None:
    watched = Watched()
    for _ in range(3):
        watched.step(events.DeadlineReached(), after=0.2)
    watched.step(events.DeadlineReached(), after=0.9)
    found = scraped(watched)
    assert found["hdguard_permit_interval_seconds_count"] == 3
    over = found["hdguard_permit_interval_seconds_bucket{le=+Inf}"]
    assert over - found["hdguard_permit_interval_seconds_bucket{le=0.6}"] == 1


def test_each_stage_of_a_frame_is_timed() -> None:
    watched = Watched()
    watched.metrics.judged(Judged("reflex", REF, sampled=99.1, given=99.15, assessed=99.2))
    watched.metrics.judged(Reviewed("thinker", 1, REF, given=99.2, assessed=99.9))
    found = scraped(watched)
    stages = {"sample": 0.1, "wait": 0.05, "judge": 0.05, "review": 0.7}
    for stage, seconds in stages.items():
        name = f"hdguard_stage_duration_seconds_sum{{stage={stage}}}"
        assert found[name] == pytest.approx(seconds), stage
    assert found["hdguard_frames_total{outcome=judged}"] == 1


def test_a_worker_counts_as_restarted_when_it_is_loaded_again_not_before() -> None:
    """Frigate 3218: a child that was restarted and never became ready counted as well."""
    watched = Watched()
    name = "hdguard_worker_restarts_total{brain=reflex}"
    watched.step(events.BrainUp("reflex"))  # the first start is no restart
    watched.step(events.BrainDown("reflex"))
    assert name not in scraped(watched)
    watched.step(events.BrainUp("reflex"), events.BrainUp("reflex"))
    assert scraped(watched)[name] == 1


def test_the_loops_lag_has_buckets_around_its_limits() -> None:
    watched = Watched()
    watched.metrics.lagged(0.004)
    watched.metrics.lagged(0.049)
    found = scraped(watched)
    assert found["hdguard_event_loop_lag_seconds_bucket{le=0.005}"] == 1
    assert found["hdguard_event_loop_lag_seconds_bucket{le=0.05}"] == 2


def test_the_conventions_hold_and_two_guards_share_nothing() -> None:
    first, second = Watched(), Watched()
    first.sees()
    names = {f.name for f in text_string_to_metric_families(first.metrics.text().decode())}
    assert all(name.startswith("hdguard_") for name in names)
    assert {"hdguard_build_info", "hdguard_verdicts", "hdguard_halts"} <= names
    assert not any("created" in key for key in scraped(first))
    assert "hdguard_verdicts_total{brain=reflex,verdict=green}" not in scraped(second)


def test_looking_on_costs_the_decision_next_to_nothing() -> None:
    watched = Watched()
    event = events.FastVerdict(REF, "reflex", Light.GREEN)
    started = time.perf_counter()
    for _ in range(1000):
        watched.metrics.stepped(100.0, event, ())
    each = (time.perf_counter() - started) / 1000
    assert each < 0.0005  # 2 microseconds measured

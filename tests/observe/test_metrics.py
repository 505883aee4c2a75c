"""What is counted as it happens, as a scrape shows it."""

import asyncio
import math
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from hdguard.core import events
from hdguard.core.actions import Halt
from hdguard.core.types import FrameRef, HaltCause, HaltClass, Light, Scores
from hdguard.observe.keeping import Keeping
from hdguard.observe.metrics import CAUSES
from hdguard.runtime.audit import AuditLog
from hdguard.runtime.halt_log import HaltLog
from hdguard.runtime.observer import Judged, Reviewed
from hdguard.runtime.state_file import Kept, StateKeeper
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
    assert found["hdguard_capture_to_halt_seconds_count{cause=fast_red}"] == 1
    assert found["hdguard_capture_to_halt_seconds_sum{cause=fast_red}"] == pytest.approx(0.05)


def test_what_a_slow_brain_decides_is_no_slow_halt_of_the_fast_one() -> None:
    """Its review may take a second; the goal of half a second is for a RED."""
    watched = Watched()
    watched.starts()
    watched.now += 0.2
    watched.sees(Light.YELLOW)
    watched.step(events.SlowVerdict(1, danger=True), after=0.9)
    found = scraped(watched)
    name = "hdguard_capture_to_halt_seconds_{}{{cause={}}}"
    assert found[name.format("count", "slow_danger")] == 1
    assert found[name.format("sum", "slow_danger")] == pytest.approx(0.95)
    assert found[name.format("count", "fast_red")] == 0


def test_a_restored_halt_is_not_counted_again() -> None:
    restored = Halt("6-4", HaltClass.DANGER, HaltCause.FAST_RED, ref=REF, decided_at=99.5)
    watched = Watched(restored=restored)
    watched.step(events.DeadlineReached())
    found = scraped(watched)
    assert found["hdguard_halts_total{cause=fast_red,class=danger}"] == 0
    assert found["hdguard_capture_to_halt_seconds_count{cause=fast_red}"] == 0


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
    assert found["hdguard_stage_duration_seconds_count{stage=deliver}"] == 0


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
    assert scraped(watched)[name] == 0
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
    assert scraped(second)["hdguard_verdicts_total{brain=reflex,verdict=green}"] == 0


def test_all_that_can_happen_is_0_from_the_first_scrape_on() -> None:
    """A counter that begins with 1 has no rise: the first halt would be in no graph of a rate."""
    first, seen = scraped(Watched()), Watched()
    seen.starts()
    seen.sees(Light.YELLOW)
    seen.sees(Light.RED)
    for _ in range(6):
        seen.step(events.DeadlineReached(), after=0.1)
    seen.step(events.BrainDown("reflex"), events.BrainUp("reflex"))
    unknown = {name.partition("{")[0] for name in scraped(seen).keys() - first.keys()}
    assert unknown == {"hdguard_frame_age_seconds", "hdguard_light", "hdguard_verdict_age_seconds"}
    for name, value in first.items():
        if name.partition("{")[0].endswith(("_total", "_count")):
            assert value == 0, name
    for name in ("brain=thinker,verdict=danger", "brain=second,verdict=cannot_see"):
        assert f"hdguard_verdicts_total{{{name}}}" in first


def test_every_cause_has_one_class() -> None:
    causes = [cause for each in CAUSES.values() for cause in each]
    assert sorted(causes) == sorted(HaltCause)
    assert set(CAUSES) == set(HaltClass)
    assert HaltCause.STALE_FRAME in CAUSES[HaltClass.FAULT]


def test_a_halt_that_is_not_acknowledged_is_escalated_once_and_shows_until_it_is() -> None:
    watched = Watched()
    watched.starts()
    watched.sees(Light.RED)
    name = "hdguard_halt_unacknowledged"
    watched.step(events.DeadlineReached(), after=0.4)
    assert scraped(watched)[name] == 0  # the robot has 0.5 s
    for _ in range(5):
        watched.step(events.DeadlineReached(), after=0.1)
    found = scraped(watched)
    assert (found[name], found["hdguard_escalations_total"]) == (1, 1)
    watched.step(events.HaltAcknowledged("6-1"))
    assert scraped(watched)[name] == 1
    watched.step(events.HaltAcknowledged("7-1"))
    found = scraped(watched)
    assert (found[name], found["hdguard_escalations_total"]) == (0, 1)


def test_an_answer_that_comes_just_too_late_counts_as_an_escalation_that_is_over() -> None:
    watched = Watched()
    watched.starts()
    watched.sees(Light.RED)
    watched.step(events.HaltConfirmed("7-1"), after=0.6)  # both are decided in one step
    found = scraped(watched)
    assert found["hdguard_escalations_total"] == 1
    assert found["hdguard_halt_unacknowledged"] == 0


def test_a_restored_halt_that_nobody_acknowledges_shows_too_and_a_newer_one_begins_anew() -> None:
    restored = Halt("6-4", HaltClass.FAULT, HaltCause.STALE_FRAME, decided_at=99.5)
    watched = Watched(restored=restored)
    for _ in range(6):
        watched.step(events.DeadlineReached(), after=0.1)
    assert scraped(watched)["hdguard_halt_unacknowledged"] == 1
    watched.sees(Light.RED)
    found = scraped(watched)
    assert found["hdguard_halt_unacknowledged"] == 0
    assert found["hdguard_halt_active{class=danger}"] == 1


def test_a_halt_shows_as_unconfirmed_until_the_robot_says_that_it_stands_still() -> None:
    watched = Watched()
    watched.starts()
    name = "hdguard_halt_unconfirmed"
    assert scraped(watched)[name] == 0
    watched.sees(Light.RED)
    watched.step(events.HaltAcknowledged("7-1"))
    assert scraped(watched)[name] == 1
    watched.step(events.HaltConfirmed("6-1"))
    assert scraped(watched)[name] == 1
    watched.step(events.HaltConfirmed("7-1"))
    assert scraped(watched)[name] == 0


def test_how_sure_a_model_is_that_it_names_a_light_is_told_of_those_that_say() -> None:
    watched = Watched()
    sure = Scores(math.log(0.9), math.log(0.08), math.log(0.02 + 1e-12))  # a little above 1
    watched.step(
        events.FastVerdict(REF, "second", Light.GREEN, scores=sure),
        events.FastVerdict(REF, "reflex", Light.GREEN),
        events.BrainFailed("kitchen", "second", "no label", REF, Scores(-4.0, -5.0, -6.0)),
    )
    found = scraped(watched)
    name = "hdguard_label_mass_bucket{{brain=second,le={}}}"
    assert [found[name.format(le)] for le in ("0.1", "0.99", "1.0", "+Inf")] == [1, 1, 2, 2]
    assert "hdguard_label_mass_count{brain=reflex}" not in found


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not here")
def test_promtool_has_nothing_to_say_against_the_text(tmp_path: Path) -> None:
    async def story() -> bytes:
        keeper = StateKeeper(tmp_path / "state.json", Kept(robot="robot"))
        audit, halts = AuditLog(tmp_path / "audit.jsonl"), HaltLog(tmp_path / "halts.jsonl")
        watched = Watched(keeping=Keeping(keeper, audit, halts))
        watched.metrics.serve(lambda: 1)
        watched.starts()
        watched.sees(Light.RED)
        scores = Scores(-0.1, -3.0, -3.0)
        watched.step(events.FastVerdict(REF, "second", Light.GREEN, scores=scores))
        return watched.metrics.text()

    text = asyncio.run(story())
    done = subprocess.run(
        ["promtool", "check", "metrics"], input=text, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_looking_on_costs_the_decision_next_to_nothing() -> None:
    watched = Watched()
    event = events.FastVerdict(REF, "reflex", Light.GREEN)
    started = time.perf_counter()
    for _ in range(1000):
        watched.metrics.stepped(100.0, event, ())
    each = (time.perf_counter() - started) / 1000
    assert each < 0.0005  # a few microseconds measured

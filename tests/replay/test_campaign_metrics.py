"""A run's numbers agree with its report, and whoever asks for them disturbs nobody."""

import shutil
import socket
import subprocess
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from hdguard.observe.dashboards.campaign import FALSE_STOPS
from hdguard.observe.settings import HttpError
from hdguard.replay.annotations import Annotation
from hdguard.replay.campaign_metrics import CampaignMetrics, serving
from hdguard.replay.scoring import KeyFrames
from hdguard.replay.summary import summarise_run
from hdguard.replay.video_result import (
    FaultHalt,
    Outcome,
    Stages,
    VideoResult,
    Warned,
    video_result,
)

KEYFRAMES = KeyFrames(3.3, 4.2, 4.4, 5.1)
STAGES = Stages.between(
    captured=10.0, sampled=10.02, assessed=10.2, decided=10.25, delivered=10.251, confirmed=None
)


def result(
    video: str, issued: float | None = None, *, safe: bool = False, failed: str | None = None
) -> VideoResult:
    entry = Annotation(video=video, keyframes=None if safe else KEYFRAMES)
    warning = None
    if issued is not None:
        warning = Warned(trigger=issued - 0.25, issued=issued, stopped=issued + 0.7, cause="x")
    return video_result(
        entry,
        Outcome(
            warning=warning,
            fault_halts=(FaultHalt(at=1.0, cause="stale_frame"),) if safe else (),
            watched=0.0 if failed else 6.5,
            stages=None if warning is None else STAGES,
            verdicts={} if failed else {"green": 9, "red": 1, "blind": 2},
            failed=failed,
        ),
    )


VIDEOS = (
    result("early.mp4", 2.0),
    result("in time.mp4", 4.1),
    result("late.mp4", 4.3),
    result("too late.mp4", 5.0),
    result("after.mp4", 6.0),
    result("never.mp4"),
    result("broken.mp4", failed="no such file"),
    result("calm.mp4", safe=True),
    result("startled.mp4", 3.0, safe=True),
    result("gone.mp4", safe=True, failed="no such file"),
)


def samples(metrics: CampaignMetrics) -> dict[str, float]:
    return parsed(generate_latest(metrics.registry).decode())


def parsed(text: str) -> dict[str, float]:
    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = ",".join(f"{k}={v}" for k, v in sorted(sample.labels.items()))
            found[f"{sample.name}{{{labels}}}" if labels else sample.name] = sample.value
    return found


@pytest.fixture
def metrics() -> CampaignMetrics:
    made = CampaignMetrics()
    made.expect(12)
    for video in VIDEOS:
        made.finished(video)
    return made


def test_how_far_it_is_says_what_was_run_and_what_could_not_be(metrics: CampaignMetrics) -> None:
    found = samples(metrics)
    states = {"total": 12, "done": 8, "failed": 2}
    assert {s: found[f"hdguard_replay_videos{{state={s}}}"] for s in states} == states
    watched = "hdguard_replay_watched_seconds_total{{material={}}}"
    assert found[watched.format("unsafe")] == 6 * 6.5
    assert found[watched.format("safe")] == 2 * 6.5


def test_false_stops_an_hour_are_the_reports(metrics: CampaignMetrics) -> None:
    """Hours of unsafe material in the denominator would make the guard look calmer than it is."""
    found, report = samples(metrics), summarise_run(VIDEOS).false_stops_per_hour
    hours = found["hdguard_replay_watched_seconds_total{material=safe}"] / 3600
    assert hours == pytest.approx(report.hours)
    assert found["hdguard_replay_false_stops_total"] / hours == pytest.approx(report.rate)
    assert 'material="safe"' in FALSE_STOPS.queries[0].expr


def test_the_scores_so_far_are_those_that_the_report_would_have(metrics: CampaignMetrics) -> None:
    found, report = samples(metrics), summarise_run(VIDEOS)
    assert report.issued.n == 7
    assert found["hdguard_replay_score"] == report.issued.wss == pytest.approx(25.0)
    assert found["hdguard_replay_hdr"] == report.issued.hdr
    assert found["hdguard_replay_ewp"] == report.issued.ewp
    for when in ("trigger", "issued", "stopped"):
        summary = getattr(report, when)
        assert found[f"hdguard_replay_wss{{time={when}}}"] == summary.wss, when


def test_each_video_counts_once_by_the_phase_of_its_warning_as_issued(
    metrics: CampaignMetrics,
) -> None:
    found = samples(metrics)
    phases = {
        "premature": 1,
        "optimal": 1,
        "suboptimal": 1,
        "irreversible": 1,
        "missed": 3,  # after impact, never, and the one that failed
        "safe": 1,
        "false_stop": 1,
    }
    for phase, count in phases.items():
        assert found[f"hdguard_replay_results_total{{phase={phase}}}"] == count, phase
    assert found["hdguard_replay_false_stops_total"] == 1


def test_the_work_and_its_times_are_counted(metrics: CampaignMetrics) -> None:
    found, report = samples(metrics), summarise_run(VIDEOS)
    assert found["hdguard_replay_verdicts_total{light=green}"] == report.verdicts["green"] == 72
    assert found["hdguard_replay_verdicts_total{light=failed}"] == 0
    assert found["hdguard_replay_fault_halts_total{cause=stale_frame}"] == 3
    assert found["hdguard_replay_fault_halts_total{cause=blind}"] == 0
    assert found["hdguard_replay_warning_latency_seconds_count"] == report.latency.n == 6
    assert found["hdguard_replay_warning_latency_seconds_sum"] == pytest.approx(6 * 0.25)
    stage = "hdguard_replay_stage_duration_seconds_{}{{stage={}}}"
    assert found[stage.format("sum", "sampled_to_assessed")] == pytest.approx(6 * 0.18)
    assert found[stage.format("count", "delivered_to_confirmed")] == 0


def test_before_the_first_video_everything_is_there_and_0() -> None:
    metrics, later = CampaignMetrics(), CampaignMetrics()
    for video in VIDEOS:
        later.finished(video)
    found = samples(metrics)
    assert found.keys() == samples(later).keys()
    assert found.pop(next(k for k in found if k.startswith("hdguard_build_info"))) == 1
    assert set(found.values()) == {0}


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not here")
def test_promtool_has_nothing_to_say_against_the_text(metrics: CampaignMetrics) -> None:
    text = generate_latest(metrics.registry)
    done = subprocess.run(
        ["promtool", "check", "metrics"], input=text, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


# Being asked.


def test_it_answers_where_it_says_until_it_ends(metrics: CampaignMetrics) -> None:
    with serving(metrics, "127.0.0.1", 0) as address:
        with urlopen(address, timeout=10) as reply:
            found = parsed(reply.read().decode())
        assert found == samples(metrics)
    with pytest.raises(URLError, match="refused"):
        urlopen(address, timeout=10)


def test_a_port_that_is_taken_says_so_and_which(metrics: CampaignMetrics) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with (
            pytest.raises(HttpError, match=f"--metrics-port {port}: .*127.0.0.1: .*in use"),
            serving(metrics, "127.0.0.1", port),
        ):
            pass


def test_an_address_that_is_not_ours_says_so(metrics: CampaignMetrics) -> None:
    with pytest.raises(HttpError, match=r"192\.0\.2\.1"), serving(metrics, "192.0.2.1", 0):
        pass

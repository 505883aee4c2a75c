"""The three real videos through the whole pipeline, scores by hand, at both paces."""

import json
from pathlib import Path

import pytest

from hdguard import app
from hdguard.config import Config, FastConfig, PolicyConfig, SlowConfig
from hdguard.core import actions, events
from hdguard.core.policy import SIDECAR
from hdguard.replay.dataset import Entry, load_dataset
from hdguard.replay.folder import RunFolder
from hdguard.replay.results import Results, VideoResult
from hdguard.runtime.journal import read_journal
from hdguard.seating import Pace

# The key frames (onset, deadline, PNR, impact): 152: 3.5 4.5 4.7 8.0 / 230: 3.3 4.2 4.4 5.1 /
# 421: 3.1 3.7 3.9 7.9. Videos have 24 or 30 frames a second, so grid points of 0.2 s are met to
# within a frame.
TRACE = {
    "format": "hdguard-trace/1",
    "fast": {
        "*": {
            "latency": 0.05,
            "videos": {
                "152_C4_L4_D3": [{"t": 0, "light": "green"}, {"t": 3.0, "light": "yellow"}],
                "230_C4_L1_D1": [{"t": 0, "light": "green"}, {"t": 3.9, "light": "red"}],
                "421_C4_L1_D3": [{"t": 0, "light": "green"}],
            },
        }
    },
    "slow": {
        "*": {"latency": 0.8, "videos": {"*": [{"t": 0, "verdict": "danger", "latency": 0.8}]}}
    },
}


def plan_for(trace: Path, pace: Pace, **changes: object) -> app.ReplayPlan:
    config = Config(
        fast=(FastConfig("trace", {"path": str(trace)}),),
        slow=SlowConfig("trace", {"path": str(trace)}),
        **changes,  # type: ignore[arg-type]
    )
    return app.ReplayPlan(config, pace)


def ran(plan: app.ReplayPlan, homesafe: Path, out: Path) -> tuple[Results, RunFolder]:
    folder = RunFolder(out)
    folder.prepare(plan.header, resume=False)
    entries = load_dataset(homesafe).entries
    done: list[VideoResult] = []
    app.replay(plan, entries, folder, done.append)
    assert [v.video for v in done] == [e.video for e in entries]
    return folder.finish(entries, plan.header, ()), folder


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(TRACE))
    return path


def by_name(results: Results) -> dict[str, VideoResult]:
    return {v.video.split("_")[0]: v for v in results.videos}


@pytest.fixture(scope="module")
def both(homesafe: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Results]:
    folder = tmp_path_factory.mktemp("both")
    path = folder / "trace.json"
    path.write_text(json.dumps(TRACE))
    paces: tuple[Pace, ...] = ("virtual", "realtime")
    return {p: ran(plan_for(path, p), homesafe, folder / p)[0] for p in paces}


@pytest.mark.parametrize("pace", ["virtual", "realtime"])
def test_scores_are_what_a_hand_calculation_gives(both: dict[str, Results], pace: str) -> None:
    results = both[pace]
    slack = {"virtual": 0.001, "realtime": 0.15}[pace]
    seen = by_name(results)

    # 152: YELLOW at 3.0 is before the onset; the SlowBrain answers 0.05 + 0.8 s later.
    warning = seen["152"].warning
    assert warning is not None
    assert (warning.cause, warning.brain) == ("slow_danger", "trace-slow")
    assert warning.trigger == pytest.approx(3.0, abs=1 / 24)
    assert warning.issued == pytest.approx(warning.trigger + 0.85, abs=slack)
    # In virtual time the robot takes 0.7 s; in real time it slows down for the review, and its
    # acknowledgement says that it then needs 0.4 s.
    stop_time = {"virtual": 0.7, "realtime": 0.4}[pace]
    assert warning.stopped == pytest.approx(warning.issued + stop_time, abs=slack)
    phase = seen["152"].phase
    assert phase is not None
    last = {"virtual": "suboptimal", "realtime": "optimal"}[pace]
    assert [value for _, value in phase.items()] == ["premature", "optimal", last]

    # 230: the frame of 4.0 s is the first that the 1 FPS grid gives after 3.9.
    warning = seen["230"].warning
    assert warning is not None
    assert (warning.cause, warning.brain) == ("fast_red", "trace")
    assert warning.trigger == pytest.approx(4.0, abs=1 / 30)
    assert warning.issued == pytest.approx(warning.trigger + 0.05, abs=slack)
    score = seen["230"].score
    assert score is not None
    assert [value for _, value in score.items()] == [100, 100, 25]

    assert seen["421"].warning is None
    trigger, issued = results.summary.trigger, results.summary.issued
    assert trigger.n == 3
    assert [trigger.hdr, trigger.wss, trigger.ewp] == pytest.approx([200 / 3, 100 / 3, 50.0])
    assert [issued.hdr, issued.wss, issued.ewp] == pytest.approx([200 / 3, 200 / 3, 100.0])
    stopped = {"virtual": 50, "realtime": 100}[pace]
    assert results.summary.stopped.wss == pytest.approx((stopped + 25 + 0) / 3)
    assert [v.fault_halts for v in results.videos] == [(), (), ()]


def test_the_paces_agree(both: dict[str, Results]) -> None:
    virtual, realtime = by_name(both["virtual"]), by_name(both["realtime"])
    for name, one in virtual.items():
        other = realtime[name]
        assert (one.warning is None) == (other.warning is None)
        if one.warning is not None and other.warning is not None:
            assert (one.warning.cause, one.warning.brain) == (
                other.warning.cause,
                other.warning.brain,
            )
            assert abs(one.warning.trigger - other.warning.trigger) <= 0.2 + 1 / 24


def test_the_virtual_pace_repeats_exactly(homesafe: Path, trace: Path, tmp_path: Path) -> None:
    one, first = ran(plan_for(trace, "virtual"), homesafe, tmp_path / "one")
    two, second = ran(plan_for(trace, "virtual"), homesafe, tmp_path / "two")
    assert one == two
    for journal in sorted(first.journals.iterdir()):
        ours = journal.read_bytes().split(b"\n", 1)[1]
        assert ours == (second.journals / journal.name).read_bytes().split(b"\n", 1)[1]


def test_a_recorded_run_replays_to_the_same_warnings(
    homesafe: Path, trace: Path, tmp_path: Path
) -> None:
    first, folder = ran(plan_for(trace, "virtual"), homesafe, tmp_path / "first")
    recorded = tmp_path / "recorded.json"
    recorded.write_text(json.dumps(app.merge_traces(folder, load_dataset(homesafe).entries)))
    again, _ = ran(plan_for(recorded, "virtual"), homesafe, tmp_path / "again")
    assert again.videos == first.videos


@pytest.mark.parametrize("videos", ["230_C4_L1_D1"])
def test_paper_at_no_cost_is_the_released_loop(homesafe: Path, tmp_path: Path, videos: str) -> None:
    """Walked by hand on 230 (30 FPS, 7 s): freq 1 FPS; YELLOW 5 FPS; one SlowBrain call at a time.

    t = 0, 1, 2 GREEN. 3 YELLOW: freq 5, call A of the last four of the buffer [0 1 2 3], which
    takes 0.7 s and says safe at 3.7. 3.2 3.4 3.6 YELLOW: a call is running, dropped. 3.8 YELLOW:
    A is over, call B of [3.2 3.4 3.6 3.8]. 4.0 GREEN: freq 1. 5.0 GREEN; B has failed at 4.5
    without a verdict. 6.0 YELLOW: freq 5, call C of [3.8 4.0 5.0 6.0] says danger at 6.7, and the
    danger time is that of its trigger: 6.0.
    """
    rows = [
        {"t": 0.0, "light": "green"},
        {"t": 2.9, "light": "yellow"},
        {"t": 3.9, "light": "green"},
        {"t": 5.9, "light": "yellow"},
    ]
    slow = [
        {"t": 0.0, "verdict": "safe"},
        {"t": 3.7, "error": "format"},
        {"t": 5.9, "verdict": "danger"},
    ]
    path = tmp_path / "t.json"
    data = {
        "format": "hdguard-trace/1",
        "fast": {"*": {"latency": 9.9, "videos": {videos: rows}}},
        "slow": {"*": {"latency": 0.7, "videos": {videos: slow}}},
    }
    path.write_text(json.dumps(data))
    config = Config(
        policy=PolicyConfig(preset="paper"),
        fast=(FastConfig("trace", {"path": str(path)}),),
        slow=SlowConfig("trace", {"path": str(path)}),
    )
    plan = app.ReplayPlan(config, "virtual", cost="none", drain=0.0)
    folder = RunFolder(tmp_path / "out")
    folder.prepare(plan.header, resume=False)
    entry = next(e for e in load_dataset(homesafe).entries if e.video.startswith(videos))
    result = app.run_virtually(plan, folder, entry)
    steps = read_journal(folder.journals / f"{entry.slug}.jsonl").steps

    def times(refs: object) -> list[float]:
        return [round(r.media_time, 1) for r in refs]  # type: ignore[attr-defined]

    judged = [s.event.ref for s in steps if isinstance(s.event, events.FastVerdict)]
    assert times(judged)[:12] == [0, 1, 2, 3, 3.2, 3.4, 3.6, 3.8, 4.0, 5.0, 6.0, 6.2]
    asked = [a for s in steps for a in s.actions if isinstance(a, actions.RequestReview)]
    assert [times(a.refs) for a in asked] == [
        [0, 1, 2, 3],
        [3.2, 3.4, 3.6, 3.8],
        [3.8, 4.0, 5.0, 6.0],
    ]
    ended = [
        round(s.now, 1)
        for s in steps
        if isinstance(s.event, events.SlowVerdict | events.ReviewFailed)
    ]
    assert ended == [3.7, 4.5, 6.7]
    assert result.warning is not None
    assert (result.warning.cause, result.warning.trigger) == ("slow_danger", 6.0)
    assert result.dropped == 0


def test_at_no_cost_a_review_that_the_end_overtakes_is_dropped_or_drained(
    homesafe: Path, tmp_path: Path
) -> None:
    path = tmp_path / "t.json"
    rows = [{"t": 0.0, "light": "green"}, {"t": 5.9, "light": "yellow"}]
    data = {
        "format": "hdguard-trace/1",
        "fast": {"*": {"videos": {"*": rows}}},
        "slow": {"*": {"latency": 4.0, "videos": {"*": [{"t": 0.0, "verdict": "danger"}]}}},
    }
    path.write_text(json.dumps(data))
    config = Config(
        policy=PolicyConfig(preset="paper"),
        fast=(FastConfig("trace", {"path": str(path)}),),
        slow=SlowConfig("trace", {"path": str(path)}),
    )
    entry = entry_of(homesafe, "230")
    warned = {}
    for drain in (0.0, None):
        plan = app.ReplayPlan(config, "virtual", cost="none", drain=drain)
        folder = RunFolder(tmp_path / f"out{drain}")
        folder.prepare(plan.header, resume=False)
        warned[drain] = app.run_virtually(plan, folder, entry).warning
    assert warned[0.0] is None
    drained = warned[None]
    assert drained is not None
    assert [drained.trigger, drained.issued] == pytest.approx([6.0, 10.0], abs=0.001)


def test_a_brain_as_slow_as_the_published_one_fault_halts_under_sidecar(
    homesafe: Path, tmp_path: Path
) -> None:
    """3.07 s a frame against a deadline of 0.4 s: an honest sidecar refuses to drive by that."""
    path = tmp_path / "t.json"
    rows = [{"t": 0.0, "light": "green"}]
    fast = {"*": {"latency": 3.07, "videos": {"*": rows}}}
    path.write_text(json.dumps({"format": "hdguard-trace/1", "fast": fast, "slow": {}}))
    config = Config(fast=(FastConfig("trace", {"path": str(path)}),))
    plan = app.ReplayPlan(config, "virtual")
    folder = RunFolder(tmp_path / "out")
    folder.prepare(plan.header, resume=False)
    result = app.run_virtually(plan, folder, entry_of(homesafe, "230"))
    assert result.warning is None
    assert result.verdicts.get("green", 0) == 0
    steps = read_journal(folder.journals / "230_C4_L1_D1.mp4.jsonl").steps
    speeds = {a.speed for s in steps for a in s.actions if isinstance(a, actions.Permit)}
    assert {s.name for s in speeds} == {"NONE"}
    assert SIDECAR.fast_deadline == 0.4


def entry_of(homesafe: Path, name: str) -> Entry:
    return next(e for e in load_dataset(homesafe).entries if e.video.startswith(name))

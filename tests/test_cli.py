"""The commands as a person types them: exit codes, messages, and runs that can be gone on with."""

import json
from collections.abc import Callable
from importlib.metadata import version
from multiprocessing import resource_tracker
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner, Result

from hdguard import __version__, app, cli, seating
from hdguard.replay.dataset import Entry
from hdguard.replay.folder import RunFolder
from hdguard.replay.results import VideoResult, read_results
from tests.replay.made import KEYFRAMES, STORIES, make_dataset, triggers

COMMANDS = [
    "replay",
    "demo",
    "robot",
    "schema",
    "score",
    "compare",
    "dataset check",
    "dashboards export",
    "incidents list",
    "incidents delete",
    "explain",
    "report",
    "check-config",
    "doctor",
    "run",
    "reset",
    "halt",
    "faults",
    "models",
    "models fetch",
    "tune",
    "version",
]
WRITTEN = ("results.json", "results.csv", "predictions.json", "trace.json")


@pytest.fixture(autouse=True, scope="module")
def _tracker() -> None:
    """Python's own helper of `spawn` outlives every pool; it is not a child left behind."""
    resource_tracker.ensure_running()


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_dataset(tmp_path_factory.mktemp("set") / "data")


def call(*words: object) -> Result:
    environment = {"COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"}
    return CliRunner().invoke(cli.cli, [str(word) for word in words], env=environment)


def says(result: Result, code: int, *words: str) -> None:
    """It ended with that code and said these words on standard error."""
    assert result.exit_code == code, result.output
    for each in words:
        assert each in result.stderr, result.stderr
    assert "Traceback" not in result.output


def replay(data: Path, out: Path, *more: object, trace: Path | None = None) -> Result:
    """Replay in virtual time with the brains of the data set's own trace, or of another."""
    said = f"trace:{trace or data / 'trace.json'}"
    brains = ("--fast", said, "--slow", said)
    return call("replay", data, "--pace", "virtual", *brains, "--out", out, *more)


# Help.


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_every_command_has_an_example(command: str) -> None:
    result = call(*command.split(), "--help")
    assert result.exit_code == 0
    assert "Example" in result.output
    examples = [line for line in result.output.splitlines() if f"hdguard {command}" in line]
    assert examples


def test_no_command_is_without_a_test_of_its_help() -> None:
    def name(command: object) -> str:
        given: str | None = command.name  # type: ignore[attr-defined]
        callback: Callable[..., object] = command.callback  # type: ignore[attr-defined]
        return given or callback.__name__

    known = [name(c) for c in cli.cli.registered_commands]
    for group in cli.cli.registered_groups:
        inner = group.typer_instance
        assert inner is not None
        known += [group.name or ""] if inner.registered_callback else []
        known += [f"{group.name} {name(c)}" for c in inner.registered_commands]
    assert sorted(known) == sorted(COMMANDS)


def test_schema_prints_every_topic_or_one() -> None:
    every = msgspec.json.decode(call("schema").output)
    assert set(every) == {"robot", "permit", "halt", "ack", "state", "reset", "availability"}
    one = msgspec.json.decode(call("schema", "halt").output)
    assert one == every["halt"]
    says(call("schema", "helt"), 2, "no topic is called 'helt'")


def test_a_robot_whose_key_cannot_be_read_says_so(tmp_path: Path) -> None:
    gone = tmp_path / "gone.key"
    says(call("robot", "--key-file", gone), 78, "gone.key: cannot be read")
    says(call("robot", "--robot", "a/b", "--boot-file", tmp_path / "b"), 78, "a/b")


def test_the_version_is_the_packages() -> None:
    result = call("version")
    assert (result.exit_code, result.output.strip()) == (0, __version__)
    assert version("hdguard") == __version__


# Wrong usage: 2.


@pytest.mark.parametrize(
    "words",
    [
        ["replay"],
        ["replay", "data", "--pace", "warp"],
        ["replay", "data", "--policy", "brave"],
        ["replay", "data", "--workers", "0"],
        ["replay", "data", "--drain", "-1"],
        ["replay", "data", "--limit", "0"],
        ["replay", "data", "--no-such-option"],
        ["score", "p.json"],
        ["dance"],
    ],
)
def test_wrong_usage_is_2(words: list[str]) -> None:
    assert call(*words).exit_code == 2


# check-config: 78.


def test_a_right_configuration_is_printed_in_full(tmp_path: Path) -> None:
    file = tmp_path / "hdguard.toml"
    file.write_text('[[fast]]\nbrain = "trace"\nsettings = { path = "t.json" }')
    result = call("check-config", file)
    assert result.exit_code == 0
    effective = json.loads(result.stdout)
    assert effective["fast"][0]["settings"] == {"path": "t.json"}
    assert effective["policy"]["preset"] == "sidecar"


def test_a_secret_is_not_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HDGUARD_TEST_KEY", "hunter2")
    file = tmp_path / "hdguard.toml"
    file.write_text('[[fast]]\nbrain = "trace"\nsettings.path = { from_env = "HDGUARD_TEST_KEY" }')
    result = call("check-config", file)
    assert result.exit_code == 0
    assert "hunter2" not in result.output
    assert '"***"' in result.output


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[robot]\nstop_tme = 1", "hdguard.toml: robot.stop_tme: unknown key"),
        ("[robot]\nstop_time = -1", "robot: stop_time: -1.0 must be 0 or more"),
        ('[[fast]]\nbrain = "magic"', "fast.0.brain: no brain is called 'magic'"),
        ('[[fast]]\nbrain = "trace"', "fast.0.settings: path: "),
        ("nonsense", "hdguard.toml: not TOML"),
    ],
)
def test_a_wrong_configuration_is_78_with_file_and_key(
    tmp_path: Path, text: str, words: str
) -> None:
    file = tmp_path / "hdguard.toml"
    file.write_text(text)
    says(call("check-config", file), 78, "hdguard: ", words)


def test_a_replay_with_a_wrong_configuration_is_78_and_makes_no_folder(
    data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    says(call("replay", data, "--fast", "magic", "--out", out), 78, "no brain is called 'magic'")
    says(call("replay", data, "--fast", "trace", "--out", out), 78, "fast.0.settings: path: ")
    absent = tmp_path / "gone.toml"
    says(call("replay", data, "--config", absent, "--out", out), 78, "gone.toml: cannot be read")
    trace = f"trace:{data / 'trace.json'}"
    parallel = ("--fast", trace, "--workers", 2, "--out", out)
    says(call("replay", data, *parallel), 78, "--workers above 1 needs --pace virtual")
    assert not out.exists()


# Wrong data: 65.


def test_wrong_data_are_65_with_file_and_field(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    says(replay(tmp_path / "gone", out), 65, "gone: no such folder")
    broken = tmp_path / "broken.json"
    broken.write_text('{"annotations": [')
    says(replay(data, out, "--truth", broken), 65, "broken.json: not JSON: line 1")
    (tmp_path / "empty").mkdir()
    says(replay(tmp_path / "empty", out, "--safe", tmp_path / "empty"), 65, "nothing to replay")
    assert not out.exists()
    says(call("explain", tmp_path / "gone.jsonl"), 65, "gone.jsonl: No such file")
    says(call("explain", broken), 65, "broken.json: not a journal")
    says(call("score", broken, "--truth", broken), 65, "broken.json: not JSON")


def test_a_trace_with_a_defect_is_65_with_its_place(data: Path, tmp_path: Path) -> None:
    trace = tmp_path / "t.json"
    entry = {"t": 0.0, "light": "purple"}
    fast = {"trace": {"videos": {"red.mp4": [entry]}}}
    trace.write_text(json.dumps({"format": "hdguard-trace/1", "fast": fast}))
    result = replay(data, tmp_path / "out", trace=trace)
    says(result, 65, "t.json: fast brain 'trace', video 'red.mp4', entry 0: light must be")


# replay.


@pytest.fixture(scope="module")
def whole(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An uninterrupted run."""
    out = tmp_path_factory.mktemp("runs") / "whole"
    says(replay(data, out), 0)
    return out


def contents(out: Path) -> dict[str, bytes]:
    return {name: (out / name).read_bytes() for name in WRITTEN}


def test_a_replay_scores_every_story(whole: Path) -> None:
    results = read_results(whole)
    assert triggers(results) == {
        "red.mp4": 1.0,
        "calm.mp4": None,
        "stove.mp4": 1.0,
        "end.mp4": 3.0,
        "quiet.mp4": 2.0,
    }
    stove = next(v for v in results.videos if v.video == "stove.mp4")
    assert stove.warning is not None
    assert (stove.warning.cause, stove.warning.issued) == ("slow_danger", 1.65)
    assert results.summary.trigger.n == 4
    assert results.run["policy"] == "sidecar"
    assert {p.name for p in (whole / "journals").iterdir()} == {f"{n}.jsonl" for n in STORIES}


def test_what_is_printed_names_videos_figures_and_the_folder(data: Path, tmp_path: Path) -> None:
    result = replay(data, tmp_path / "out")
    for words in ("red.mp4", "stove.mp4", "HDR", f"results: {tmp_path / 'out'}"):
        assert words in result.stdout
    assert "5/5" in result.stderr


def test_the_same_replay_gives_the_same_files(data: Path, whole: Path, tmp_path: Path) -> None:
    says(replay(data, tmp_path / "again"), 0)
    assert contents(tmp_path / "again") == contents(whole)


def test_two_workers_give_the_same_files(data: Path, whole: Path, tmp_path: Path) -> None:
    says(replay(data, tmp_path / "two", "--workers", 2), 0)
    assert contents(tmp_path / "two") == contents(whole)


def test_an_interrupted_run_is_gone_on_with_to_the_same_results(
    data: Path, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, run, began = tmp_path / "out", app.run_virtually, list[str]()

    def interrupted(plan: app.ReplayPlan, folder: RunFolder, entry: Entry) -> VideoResult:
        began.append(entry.video)
        if len(began) == 3:
            raise KeyboardInterrupt
        return run(plan, folder, entry)

    with monkeypatch.context() as patched:
        patched.setattr(app, "run_virtually", interrupted)
        result = replay(data, out)
    assert result.exit_code == 130
    assert f"--out {out} --resume" in result.stdout
    assert began == ["red.mp4", "calm.mp4", "stove.mp4"]
    partly = read_results(out)
    assert [v.video for v in partly.videos] == began[:2]
    assert partly.left_out == ["3 videos not run yet: go on with --resume"]

    began.clear()

    def counted(plan: app.ReplayPlan, folder: RunFolder, entry: Entry) -> VideoResult:
        began.append(entry.video)
        return run(plan, folder, entry)

    monkeypatch.setattr(app, "run_virtually", counted)
    says(replay(data, out, "--resume"), 0)
    assert began == ["stove.mp4", "end.mp4", "quiet.mp4"]
    assert contents(out) == contents(whole)


def test_a_finished_run_that_is_resumed_runs_nothing(
    data: Path, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    says(replay(data, tmp_path / "out"), 0)

    def never(*_: object) -> VideoResult:
        raise AssertionError("it was run again")

    monkeypatch.setattr(app, "run_virtually", never)
    says(replay(data, tmp_path / "out", "--resume"), 0)
    assert contents(tmp_path / "out") == contents(whole)


def test_a_limited_run_is_widened_by_resuming_it(data: Path, whole: Path, tmp_path: Path) -> None:
    says(replay(data, tmp_path / "out", "--limit", 2), 0)
    assert list(triggers(read_results(tmp_path / "out"))) == ["red.mp4", "calm.mp4"]
    says(replay(data, tmp_path / "out", "--resume"), 0)
    assert contents(tmp_path / "out") == contents(whole)


def test_a_run_is_neither_overwritten_nor_resumed_with_other_settings(
    data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    says(replay(data, out, "--limit", 1), 0)
    says(replay(data, out), 65, "holds a run already; give --resume")
    says(replay(data, out, "--resume", "--policy", "paper"), 65, "another policy: 'sidecar'")
    says(
        replay(data, out, "--resume", "--stop-time", 2), 65, "another settings.robot.stop_time: 0.7"
    )
    says(replay(data, out, "--resume", "--cost", "none"), 65, "another cost: 'declared'")
    trace = f"trace:{data / 'trace.json'}"
    says(call("replay", data, "--fast", trace, "--resume"), 65, "say which run with --out DIR")


def test_options_change_what_the_configuration_says(data: Path, tmp_path: Path) -> None:
    file = tmp_path / "hdguard.toml"
    file.write_text(
        '[policy]\npreset = "paper"\nreview_deadline = 4.0\n'
        f'[[fast]]\nbrain = "trace"\nsettings.path = "{data / "trace.json"}"\n'
    )
    common = ("replay", data, "--config", file, "--pace", "virtual", "--limit", 1)
    says(call(*common, "--out", tmp_path / "a"), 0)
    assert read_results(tmp_path / "a").run["policy"] == "paper"
    assert read_results(tmp_path / "a").run["drain"] == 4.0
    more = ("--policy", "sidecar", "--stop-time", 2, "--drain", 0, "--cost", "none")
    says(call(*common, *more, "--out", tmp_path / "b"), 0)
    results = read_results(tmp_path / "b")
    assert [results.run[key] for key in ("policy", "drain", "cost")] == ["sidecar", 0.0, "none"]
    (video,) = results.videos
    assert video.warning is not None
    assert (video.warning.trigger, video.warning.issued, video.warning.stopped) == (1.0, 1.0, 3.0)


def test_a_drain_of_zero_drops_the_review_at_the_end(data: Path, tmp_path: Path) -> None:
    says(replay(data, tmp_path / "out", "--drain", 0), 0)
    assert triggers(read_results(tmp_path / "out"))["end.mp4"] is None


def test_the_trace_of_a_run_replays_it(data: Path, whole: Path, tmp_path: Path) -> None:
    says(replay(data, tmp_path / "out", trace=whole / "trace.json"), 0)
    assert triggers(read_results(tmp_path / "out")) == triggers(read_results(whole))


def test_a_video_that_cannot_be_read_has_failed_and_the_code_is_1(tmp_path: Path) -> None:
    data = make_dataset(tmp_path / "data", ["red.mp4", "calm.mp4"])
    (data / "red.mp4").write_bytes(b"not a video")
    result = replay(data, tmp_path / "out")
    says(result, 1)
    red, calm = read_results(tmp_path / "out").videos
    assert red.failed is not None
    assert "red.mp4: cannot be opened as a video" in red.failed
    assert calm.failed is None
    assert "red.mp4" in result.stdout
    says(replay(data, tmp_path / "out", "--resume"), 1)  # it is not tried again, and still failed


def test_strict_refuses_what_is_otherwise_left_out_and_named(tmp_path: Path) -> None:
    data = make_dataset(tmp_path / "data", ["red.mp4"])
    truth = {"annotations": [{"video_name": n, "keyframes": KEYFRAMES} for n in ("red.mp4", "x")]}
    (data / "anno_truth.json").write_text(json.dumps(truth))
    says(replay(data, tmp_path / "out", "--strict"), 65, "x: video_name: video absent")
    assert not (tmp_path / "out").exists()
    says(replay(data, tmp_path / "out"), 0)
    (left,) = read_results(tmp_path / "out").left_out
    assert "x: video_name: video absent" in left


def test_unlisted_and_safe_material(tmp_path: Path) -> None:
    data = make_dataset(tmp_path / "data", ["red.mp4", "quiet.mp4"])
    (data / "stray.mp4").write_bytes((data / "red.mp4").read_bytes())
    aside = make_dataset(tmp_path / "aside", ["calm.mp4"])
    says(replay(data, tmp_path / "a"), 0)
    results = read_results(tmp_path / "a")
    assert list(triggers(results)) == ["red.mp4", "quiet.mp4"]
    assert results.left_out == [f"{data / 'stray.mp4'}: in no truth file"]
    (data / "trace.json").write_text((data / "trace.json").read_text().replace('"calm.mp4"', '"*"'))
    seating._brain.cache_clear()  # another process would read the file anew
    says(replay(data, tmp_path / "b", "--unlisted", "safe", "--safe", aside), 0)
    results = read_results(tmp_path / "b")
    assert {v.video: v.safe for v in results.videos} == {
        "red.mp4": False,
        "quiet.mp4": True,
        "stray.mp4": True,
        "calm.mp4": True,
    }
    assert results.summary.trigger.n == 1


def test_a_stop_time_that_is_no_number_is_78(data: Path, tmp_path: Path) -> None:
    says(replay(data, tmp_path / "out", "--stop-time", "inf"), 78, "--stop-time inf")
    assert not (tmp_path / "out").exists()


def test_a_video_that_failed_is_tried_again_on_resume(tmp_path: Path) -> None:
    """The first time its trace was broken; whoever mends it must not start the run anew."""
    data = make_dataset(tmp_path / "data", ["red.mp4", "calm.mp4"])
    calm = data / "calm.mp4"
    whole = calm.read_bytes()
    calm.write_bytes(b"")
    says(replay(data, tmp_path / "out"), 1)
    assert list(read_results(tmp_path / "out").summary.failed) == ["calm.mp4"]
    calm.write_bytes(whole)
    says(replay(data, tmp_path / "out", "--resume"), 0)
    assert read_results(tmp_path / "out").summary.failed == {}


def test_another_trace_or_another_dataset_is_another_run(tmp_path: Path) -> None:
    data = make_dataset(tmp_path / "data", ["red.mp4"])
    says(replay(data, tmp_path / "out"), 0)
    trace = data / "trace.json"
    trace.write_text(trace.read_text() + "\n")
    words = "another files.fast.0.settings.path"
    says(replay(data, tmp_path / "out", "--resume"), 65, words)
    other = make_dataset(tmp_path / "other", ["red.mp4"])
    resumed = replay(other, tmp_path / "out", "--resume", trace=trace)
    says(resumed, 65, "--resume, but the run there was made with another")


def test_limit_names_how_many_it_leaves_out(data: Path, tmp_path: Path) -> None:
    says(replay(data, tmp_path / "out", "--limit", "1"), 0)
    assert read_results(tmp_path / "out").left_out[-1].endswith("videos: --limit 1")


# The other commands.


def test_every_journal_of_the_run_steps_to_the_same_decisions(whole: Path) -> None:
    for journal in (whole / "journals").iterdir():
        assert call("explain", journal).exit_code == 0
    said = call("explain", whole / "journals" / "stove.mp4.jsonl").stdout
    assert "stove.mp4.jsonl: policy sidecar, written 20" in said
    assert "SlowVerdict: review_id 1, danger True" in said
    assert "said danger after" in said


def test_predictions_are_scored_and_written(whole: Path, data: Path, tmp_path: Path) -> None:
    truth, scores = data / "anno_truth.json", tmp_path / "scores.json"
    result = call("score", whole / "predictions.json", "--truth", truth, "--json", scores)
    assert result.exit_code == 0
    summary = read_results(whole).summary.trigger
    written = json.loads(scores.read_bytes())["total"]["summary"]
    assert written["n"] == summary.n
    predictions = tmp_path / "p.json"
    predictions.write_text(json.dumps({"red": {"status": "red", "timestamp": 1.0}}))
    result = call("score", predictions, "--truth", truth)
    assert result.exit_code == 0
    assert "not predicted; counted as missed: 3" in result.stdout
    predictions.write_text(json.dumps({"who": {"status": "red", "timestamp": 1.0}}))
    assert call("score", predictions, "--truth", truth).exit_code == 1


def test_a_dataset_is_checked(data: Path, tmp_path: Path) -> None:
    result = call("dataset", "check", data)
    assert result.exit_code == 0
    assert "safe videos: 1" in result.stdout
    assert "problems: 0" in result.stdout
    wrong = make_dataset(tmp_path / "wrong", ["red.mp4"])
    truth = {"annotations": [{"video_name": "red.mp4", "keyframes": {**KEYFRAMES, "pnr": 0.1}}]}
    (wrong / "anno_truth.json").write_text(json.dumps(truth))
    result = call("dataset", "check", wrong)
    assert result.exit_code == 1
    assert "red.mp4: keyframes" in result.stdout
    says(call("dataset", "check", tmp_path / "gone"), 65, "gone: no such folder")

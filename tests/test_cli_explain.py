"""`hdguard explain` as a person types it: a journal, a halt of an earlier life, an incident."""

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import msgspec
import pytest
from typer.testing import CliRunner, Result

from hdguard import cli
from hdguard.core import events
from hdguard.core.types import HaltCause, Hazard
from hdguard.observe.incidents import record
from hdguard.runtime.halt_story import HaltStory, Stamps, encode
from tests.core.story import RED, frame
from tests.observe.incidents.support import DECISION, INCIDENT
from tests.runtime.test_explain import Kept, told
from tests.runtime.test_halt_words import RED as STORY
from tests.runtime.test_halt_words import REVIEWED

STAMPS = replace(REVIEWED.stamps, confirmed=None, released=None)


def call(*words: object) -> Result:
    environment = {"COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"}
    return CliRunner().invoke(cli.cli, ["explain", *map(str, words)], env=environment)


def says(result: Result, code: int, *words: str) -> None:
    """It ended with that code and said these words on standard error."""
    assert result.exit_code == code, result.output
    for each in words:
        assert each in result.stderr, result.stderr


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """Two halts: an operator's, reset by ada, and a RED."""
    path = tmp_path / "j.jsonl"
    story = Kept()
    story.monitoring()
    story.at(0.65, events.HaltRequested("bob"))
    story.at(0.66, events.HaltDelivered("7-1"), events.HaltConfirmed("7-1"))
    story.watch(1.45)
    story.at(1.5, events.ResetRequested("7-1", "ada"))
    story.at(1.6, events.FrameSeen(frame(1.6)), events.FastVerdict(frame(1.6), "fast", RED))
    story.until(2.2)
    told(path, story)
    return path


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A state folder with two halts of one life, of which the next has restored one."""
    folder = tmp_path / "state"
    folder.mkdir()
    later = replace(REVIEWED, halt_id="7-4", released_by="", stamps=STAMPS)
    restored = HaltStory("7-4", later.halt_class, later.cause, 8, stamps=Stamps(decided=0.1))
    released = replace(restored, stamps=Stamps(decided=0.1, released=7.1), released_by="bob")
    lines = [encode(each) for each in (STORY, later, restored, released)]
    (folder / "rosie.halts.jsonl").write_bytes(b"\n".join([*lines, b""]))
    return folder


# A journal.


def test_the_halts_stand_before_what_happened(journal: Path) -> None:
    result = call(journal)
    assert result.exit_code == 0, result.output
    first, second, then = (
        result.stdout.index(words)
        for words in ("halt 7-1: operator", "halt 7-2: danger", "SelfTestPassed")
    )
    assert first < second < then
    for words in (
        "an operator halted the robot: asked by bob",
        "released after 0.8 s: reset by ada",
        "fast called frame 1600 of cam RED, no reason given",
        "escalated after 500 ms: the robot had not acknowledged it",
        "     1.600 FastVerdict: ref cam at 1.600 s",
    ):
        assert words in result.stdout, words


def test_one_halt_is_told_alone(journal: Path) -> None:
    result = call(journal, "7-2")
    assert result.exit_code == 0
    assert "halt 7-2" in result.stdout
    assert "halt 7-1" not in result.stdout
    assert "SelfTestPassed" not in result.stdout
    says(call(journal, "7-9"), 65, "j.jsonl: no halt 7-9; there are: 7-1 7-2")


def test_a_guard_that_decides_otherwise_today_is_1_in_json_too(journal: Path) -> None:
    journal.write_text(journal.read_text().replace('"fast_red"', '"slow_danger"'))
    result = call(journal)
    assert result.exit_code == 1
    assert "steps are decided otherwise today" in result.stdout
    assert "\n! " in result.stdout
    result = call(journal, "--json")
    assert result.exit_code == 1
    assert any(line["differs"] for line in json.loads(result.stdout)["timeline"])


def test_a_journal_that_is_cut_short_is_told_as_far_as_it_goes(journal: Path) -> None:
    journal.write_text(journal.read_text()[:-9])
    result = call(journal)
    assert result.exit_code == 0
    assert "the last line is cut short" in result.stdout


def test_as_json_every_number_is_there(journal: Path) -> None:
    data = json.loads(call(journal, "--json").stdout)
    first, second = data["halts"]
    assert first["story"]["released_by"] == "ada"
    assert second["story"]["stamps"]["decided"] == 1.6
    assert [stage["name"] for stage in second["stages"]] == ["captured", "decided"]
    assert second["because"].startswith("fast called frame 1600")
    assert second["ending"][-1] == "still in force when last heard of"
    assert data["timeline"][0]["text"].startswith("SourceUp")
    assert data["remark"] == ""


def test_a_drawing_needs_one_halt(journal: Path, tmp_path: Path) -> None:
    svg = tmp_path / "halt.svg"
    says(call(journal, "--svg", svg), 2, "--svg: name one of its halts: 7-1 7-2")
    assert not svg.exists()
    assert call(journal, "7-2", "--svg", svg).exit_code == 0
    assert "Halt 7-2" in (ET.parse(svg).getroot()[0].text or "")
    quiet = tmp_path / "quiet.jsonl"
    told(quiet, Kept().monitoring())  # type: ignore[arg-type]
    says(call(quiet, "--svg", svg), 2, "--svg: there is no halt in it")
    says(call(journal, "7-2", "--svg", tmp_path / "no" / "halt.svg"), 65, "No such file")


# A halt of an earlier life.


def test_a_halt_is_found_in_the_state_folder(state: Path) -> None:
    result = call("7-3", "--state-dir", state, "--robot", "rosie")
    assert result.exit_code == 0, result.output
    assert "reflex called frame 92 of kitchen RED: contact in 0.4 s" in result.stdout
    assert "confirmed                 0.7290 s               0.7000 s" in result.stdout
    data = json.loads(call("7-3", "--state-dir", state, "--robot", "rosie", "--json").stdout)
    assert msgspec.convert(data["halts"][0]["story"], HaltStory) == STORY


def test_a_halt_is_found_by_the_guards_configuration(state: Path, tmp_path: Path) -> None:
    file = tmp_path / "hdguard.toml"
    file.write_text(f'[mqtt]\nrobot = "rosie"\n[live]\nstate_dir = "{state}"\n')
    result = call("7-3", "--config", file)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith(f"{state / 'rosie.halts.jsonl'}\n")


def test_a_halt_that_outlived_its_guard_is_told_by_each_of_its_lives(
    state: Path, tmp_path: Path
) -> None:
    svg = tmp_path / "7-4.svg"
    result = call("7-4", "--state-dir", state, "--robot", "rosie", "--svg", svg)
    assert result.exit_code == 0, result.output
    first, second = result.stdout.split("halt 7-4: ")[1:]
    assert "said danger" in first
    assert "taken over by start 8 of the guard" in second
    assert "released after 7.0 s: reset by bob" in second
    assert "said danger" in svg.read_text()


def test_an_unknown_halt_is_65_and_says_which_there_are(state: Path) -> None:
    result = call("6-1", "--state-dir", state, "--robot", "rosie")
    says(result, 65, "rosie.halts.jsonl: no halt 6-1; there are: 7-3 7-4")
    says(call("7-3", "--state-dir", state, "--robot", "otto"), 65, "otto.halts.jsonl: no such file")


def test_where_to_look_must_be_said(state: Path) -> None:
    for words in (("7-3",), ("7-3", "--state-dir", state), ("7-3", "--robot", "rosie")):
        says(call(*words), 2, "needs --config FILE, or --state-dir DIR with --robot NAME")


def test_what_a_model_wrote_makes_no_line_and_moves_no_cursor(state: Path) -> None:
    hazard = Hazard("C2", "L2", "fire\x1b[2J\nhalt 9-9: all is well\u202e")
    with (state / "rosie.halts.jsonl").open("ab") as file:
        file.write(encode(replace(STORY, hazard=hazard)) + b"\n")
    result = call("7-3", "--state-dir", state, "--robot", "rosie")
    assert r"RED: fire\x1b[2J\nhalt 9-9: all is well\u202e" in result.stdout


def test_only_of_a_journal_can_one_halt_be_picked(state: Path) -> None:
    found = call("7-3", "7-4", "--state-dir", state, "--robot", "rosie")
    says(found, 2, "7-4: 7-3 is no journal")
    says(call(state, "7-4"), 2, "is no journal")


def test_a_torn_line_is_mentioned(state: Path) -> None:
    with (state / "rosie.halts.jsonl").open("ab") as file:
        file.write(encode(STORY)[:40])
    result = call("7-3", "--state-dir", state, "--robot", "rosie")
    assert result.exit_code == 0
    assert "lines that cannot be read were left out: 1" in result.stdout


# An incident.


def incident(folder: Path, **changes: object) -> Path:
    """Its folder."""
    stamps = {
        name: record.Moment(at, at - 20.0)
        for name, at in {"captured": 20.0, "assessed": 20.05, "decided": 20.05}.items()
    }
    made = msgspec.structs.replace(INCIDENT, **{"stamps": stamps, "complete": True, **changes})
    folder.mkdir()
    record.write_private(folder / record.FILE, record.encode(made))
    return folder


def test_an_incident_is_told_from_its_folder_or_its_file(tmp_path: Path) -> None:
    folder = incident(tmp_path / "7-1")
    for path in (folder, folder / "incident.json"):
        result = call(path)
        assert result.exit_code == 0, result.output
        assert "decided 2026-05-01 10:00:00 UTC" in result.stdout
        assert "reflex called frame 100 of hall RED: contact in 0.3 s" in result.stdout
        assert "assessed                  0.0500 s               0.0500 s" in result.stdout
        assert "still being recorded" not in result.stdout


def test_the_story_that_an_incident_carries_counts(tmp_path: Path) -> None:
    file = incident(tmp_path / "7-1", complete=False) / "incident.json"
    data = json.loads(file.read_bytes())
    data["story"] = json.loads(encode(REVIEWED))
    file.write_text(json.dumps(data))
    result = call(file, "--json")
    (halt,) = json.loads(result.stdout)["halts"]
    assert msgspec.convert(halt["story"], HaltStory) == REVIEWED
    assert "review 3 by reflex-slow said danger" in halt["because"]
    assert "still being recorded" in call(file).stdout


def test_an_incident_about_no_halt_or_none_at_all_is_65(tmp_path: Path) -> None:
    decision = msgspec.structs.replace(
        DECISION, kind="review", halt_id="", review_id=5, cause=HaltCause.SLOW_DANGER
    )
    folder = incident(tmp_path / "review-7-5", decision=decision)
    says(call(folder), 65, "review-7-5: is about review 5, which led to no halt of its own")
    says(call(tmp_path), 65, "incident.json: No such file")
    (folder / "incident.json").write_text("{")
    says(call(folder), 65, "incident.json: not a record of an incident")

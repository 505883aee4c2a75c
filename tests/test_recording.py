"""Who recorded, told by hashes; and what cannot be recorded is refused early."""

import hashlib
import importlib.util
import json
from dataclasses import replace
from pathlib import Path

import pytest

from hdguard import __version__, recording
from hdguard.app import ReplayPlan, check_workers
from hdguard.config import Config, ConfigError, FastConfig, SlowConfig, shown
from hdguard.observe.incidents.record import read_incident
from hdguard.observe.incidents.settings import IncidentSettings
from hdguard.recording import check_recording, make_recorder
from hdguard.replay.runner import Crew
from hdguard.seating import Seating
from tests.fakes import ScriptedFastSeat, ScriptedSlowSeat
from tests.observe.incidents.support import halt, red, run


def config(tmp_path: Path) -> Config:
    trace = tmp_path / "trace.json"
    trace.write_text("{}")
    path = {"path": str(trace)}
    return Config(
        fast=(FastConfig("trace", {**path, "name": "fast"}),),
        slow=SlowConfig("trace", {**path, "name": "slow"}),
        incidents=IncidentSettings(keep_days=1.0, after=0.0),
    )


def test_a_record_names_the_brains_files_and_the_configuration(tmp_path: Path) -> None:
    made = config(tmp_path)

    async def story() -> None:
        seating = Seating(made, "realtime")
        crew = Crew({"fast": ScriptedFastSeat()}, ScriptedSlowSeat())
        recorder = make_recorder(seating, seating.policy, crew, tmp_path / "i", boot=7)
        async with recording.recording(recorder):
            recorder.stepped(20.05, red(), (halt(),))
        assert recorder.outcomes["kept"] == 1

    run(story())
    about = read_incident(tmp_path / "i" / "7-1").about
    assert (about.hdguard, about.robot) == (__version__, "robot")
    text = json.dumps(shown(made), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert about.configuration == hashlib.sha256(text.encode()).hexdigest()
    digest = hashlib.sha256(b"{}").hexdigest()
    assert {brain.files["path"] for brain in about.brains.values()} == {digest}


def test_a_replay_that_is_broken_off_has_its_clips_made_all_the_same(tmp_path: Path) -> None:
    class BrokenOffError(Exception):
        """As by Ctrl-C."""

    async def story() -> None:
        made = config(tmp_path)
        seating = Seating(made, "realtime")
        crew = Crew({"fast": ScriptedFastSeat()}, ScriptedSlowSeat())
        recorder = make_recorder(seating, seating.policy, crew, tmp_path / "i", boot=7)

        async def broken_off() -> None:
            async with recording.recording(recorder):
                recorder.stepped(20.05, red(), (halt(),))
                raise BrokenOffError

        with pytest.raises(ExceptionGroup):
            await broken_off()
        assert recorder.outcomes["kept"] == 1

    run(story())


def test_mcap_without_its_package_is_refused_before_anything_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    check_recording(Config())
    with pytest.raises(ConfigError, match=r"incidents\.mcap: needs the package mcap"):
        check_recording(Config(incidents=IncidentSettings(mcap=True)))


def test_the_virtual_pace_has_no_thread_to_record_with() -> None:
    plan = ReplayPlan(Config(), "virtual", incidents=True)
    with pytest.raises(ConfigError, match="--incidents needs --pace realtime"):
        check_workers(plan, 1)
    check_workers(replace(plan, incidents=False), 1)

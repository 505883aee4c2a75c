"""The README's tables say what the code does."""

import re
import tomllib
from pathlib import Path
from typing import get_args

from hdguard import app, cli_errors
from hdguard.actuators.lease import LEASE
from hdguard.actuators.mqtt import INCOMING
from hdguard.actuators.wire import schemas
from hdguard.brains.reflex import ReflexSettings
from hdguard.config import load_config
from hdguard.core.halts import FAULT_CLEARS_AFTER, REPEAT_EVERY
from hdguard.core.policy import PAPER, PRESETS, SIDECAR
from hdguard.models_report import profile_rows
from hdguard.profiles import PROFILES, Robot
from hdguard.seating import FAST_BRAINS, SLOW_BRAINS, Pace
from hdguard.workers.inline import Cost

README = (Path(__file__).resolve().parent.parent / "README.md").read_text(encoding="utf-8")


def table(heading: str) -> dict[str, list[str]]:
    """The rows of the table whose first cell of the head is this: first cell -> other cells."""
    head = README.index(f"| {heading} |")
    rows = {}
    for line in README[head:].splitlines()[2:]:
        if not line.startswith("|"):
            break
        first, *rest = [cell.strip() for cell in line.strip("|").split("|")]
        rows[first] = rest
    return rows


def test_the_policy_table_is_the_presets() -> None:
    rows = table("setting")

    def words(name: str) -> list[str]:
        return [str(getattr(p, name)) for p in (PAPER, SIDECAR)]

    assert rows["start_greens / release_greens"] == [
        f"{p.start_greens} / {p.release_greens}" for p in (PAPER, SIDECAR)
    ]
    for row, name in {
        "review overdue": "review_overdue",
        "trigger while a review is open": "pending",
        "first danger halt": "first_danger",
        "resample": "resample",
        "window": "window",
        "fault clear": "fault_clear",
    }.items():
        assert rows[row] == words(name), row
    assert rows["review deadline"] == [f"{p.review_deadline:g} s" for p in (PAPER, SIDECAR)]
    assert rows["FastBrain deadline"] == ["none", f"{SIDECAR.fast_deadline} s, or the brain's"]
    assert rows["failed or unparsed FastBrain"] == [
        "counts as YELLOW",
        f"speed reduced; {SIDECAR.failures_to_halt} in a row: fault halt",
    ]
    assert (PAPER.fast_deadline, PAPER.failures_to_halt) == (None, None)
    halts = {True: "fault halt", False: "reported only"}
    faults = [halts[p.fault_halts] for p in (PAPER, SIDECAR)]
    assert rows["stale frame or verdict, frozen picture, blind"] == faults
    assert set(PRESETS) == {"paper", "sidecar"}


def test_the_paces_and_costs_are_those_of_the_command() -> None:
    assert [name.split("`")[1] for name in table("`--pace`")] == list(get_args(Pace))
    assert {name.strip("`") for name in table("`--cost`")} == set(get_args(Cost))


def test_the_brains_are_those_of_the_tables() -> None:
    assert {name.strip("`") for name in table("`--fast NAME:VALUE`")} == set(FAST_BRAINS)
    assert {name.strip("`") for name in table("`--slow NAME:VALUE`")} == set(SLOW_BRAINS)


def test_the_profiles_are_the_codes() -> None:
    rows = {name.strip("`"): cells for name, cells in table("profile").items()}
    assert list(rows) == list(PROFILES)
    shown = {row["name"]: row for row in profile_rows(Robot())}
    for name, profile in PROFILES.items():
        fast, slow, deadlines, speeds = rows[name]
        models = [f for f in profile.fast if f.brain != "reflex"]
        assert fast == ", ".join(str(f.settings.get("path", f.brain)) for f in models) or "-"
        assert slow == str(profile.slow.settings.get("path", profile.slow.brain))
        assert deadlines == f"{profile.fast_deadline:g} s, {profile.review_deadline:g} s"
        assert speeds == f"{shown[name]['speed_red']:.2f}, {shown[name]['speed_review']:.2f} m/s"


def test_the_example_configuration_is_valid(tmp_path: Path) -> None:
    (text,) = re.findall(r"```toml\n(.*?)```", README, re.DOTALL)
    assert tomllib.loads(text)
    file = tmp_path / "hdguard.toml"
    file.write_text(text)
    config = load_config(file)
    app.check_brains(app.ReplayPlan(config))
    assert config.policy.policy().review_deadline == 2.0


def test_the_topics_are_those_of_the_wire_and_their_qos_is_what_the_ends_ask_for() -> None:
    rows = {name.strip("`"): cells for name, cells in table("topic").items()}
    assert set(rows) == set(schemas())
    for name, (how, _) in rows.items():
        qos, retained = how.split(", ")
        if name in {"robot", "permit", "ack", "reset"}:
            assert INCOMING[name] == int(qos), name
        assert (retained == "yes") == (name in {"halt", "state", "availability"}), name


def test_the_numbers_of_the_embedded_brains_and_the_lease_are_the_codes() -> None:
    reflex = ReflexSettings()
    words = re.sub(r"\s+", " ", README)
    assert f"margin = {reflex.red:.1f} s by default" in words
    assert f"a review + one frame = {reflex.yellow:.1f} s" in words
    assert f"stops when {LEASE * 1000:.0f} ms have passed since *it sent*" in words
    assert f"repeated every {REPEAT_EVERY * 1000:.0f} ms until the robot confirms" in words
    assert f"after {FAULT_CLEARS_AFTER:.0f} s of fresh GREEN" in words


def test_the_exit_codes_are_those_of_the_commands() -> None:
    said = re.sub(r"\s+", " ", README[README.index("## Exit codes") :].split("##")[1])
    assert [int(n) for n in re.findall(r"\b(\d+) ", said)] == [
        0,
        1,
        2,
        cli_errors.DATA_ERROR,
        cli_errors.CONFIG_ERROR,
        cli_errors.INTERRUPTED,
    ]

"""`hdguard doctor` as a person types it: lines, JSON, exit codes."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from hdguard import cli_doctor
from hdguard.doctor.findings import Finding, fail, ok, warn

ASKED: list[bool] = []


def call(*words: object) -> Result:
    app = typer.Typer()
    app.command(epilog=cli_doctor.DOCTOR_EXAMPLES)(cli_doctor.doctor)
    environment = {"COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"}
    return CliRunner().invoke(app, [str(word) for word in words], env=environment)


def finds(monkeypatch: pytest.MonkeyPatch, *findings: Finding) -> None:
    async def diagnose(file: Path, tell: Callable[[Finding], None], *, halt_robot: bool) -> None:
        ASKED.append(halt_robot)
        for finding in findings:
            await asyncio.sleep(0)
            tell(finding)

    monkeypatch.setattr(cli_doctor, "diagnose", diagnose)


def test_every_finding_is_a_line_with_what_to_do_below_it(monkeypatch: pytest.MonkeyPatch) -> None:
    finds(monkeypatch, ok("clock", "on time"), warn("disk", "50 MiB free", "make room"))
    result = call("--config", "x.toml")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "ok   clock              on time",
        "warn disk               50 MiB free",
        "                        -> make room",
        "2 findings: 0 fail, 1 warn",
    ]


def test_one_failure_is_1_and_every_line_of_it_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    finds(monkeypatch, fail("configuration", "x: unknown\ny: unknown", "correct it"))
    result = call("--config", "x.toml")
    assert result.exit_code == 1
    assert "x: unknown\n" in result.stdout
    assert "y: unknown\n" in result.stdout


def test_json_is_one_document_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    finds(monkeypatch, ok("clock", "on time"), fail("echo", "none", "see the ACL"))
    result = call("--config", "x.toml", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout) == {
        "ok": False,
        "findings": [
            {"step": "clock", "status": "ok", "said": "on time", "do": ""},
            {"step": "echo", "status": "fail", "said": "none", "do": "see the ACL"},
        ],
    }


def test_the_robot_is_halted_only_by_its_option(monkeypatch: pytest.MonkeyPatch) -> None:
    ASKED.clear()
    finds(monkeypatch)
    call("--config", "x.toml")
    call("--config", "x.toml", "--halt-robot")
    assert ASKED == [False, True]


def test_a_file_that_is_not_there_is_a_finding(tmp_path: Path) -> None:
    result = call("--config", tmp_path / "gone.toml")
    assert result.exit_code == 1
    assert result.stdout.startswith("fail configuration")
    assert "gone.toml: cannot be read" in result.stdout
    assert "Traceback" not in result.output


def test_ctrl_c_is_130(monkeypatch: pytest.MonkeyPatch) -> None:
    async def diagnose(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli_doctor, "diagnose", diagnose)
    assert call("--config", "x.toml").exit_code == 130


def test_the_help_has_an_example() -> None:
    result = call("--help")
    assert result.exit_code == 0
    assert "--halt-robot" in result.output
    assert "Examples" in result.output

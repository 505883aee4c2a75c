"""`hdguard models` and `hdguard models fetch` as a person types them."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import ClassVar

import pytest
from typer.testing import CliRunner, Result

from hdguard import cli_models
from hdguard.brains.base import BrainError
from hdguard.brains.catalogue import MODELS, model_folder
from hdguard.hub import Hub
from hdguard.profiles import PROFILES
from tests.hub_server import COMMIT, LATER, HubState, real_library

NAME = "smolvlm2-500m"


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path / "data" / "hdguard" / "models"


@pytest.fixture
def state(monkeypatch: pytest.MonkeyPatch) -> Iterator[HubState]:
    with real_library(monkeypatch) as running:
        monkeypatch.setattr(cli_models, "Hub", partial(Hub, running.endpoint))
        yield running


def call(*words: object, typed: str = "") -> Result:
    environment = {"COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"}
    return CliRunner().invoke(
        cli_models.models, [str(word) for word in words], input=typed, env=environment
    )


def says(result: Result, code: int, *words: str) -> None:
    """It ended with that code and said these words on standard error."""
    assert result.exit_code == code, result.output
    for each in words:
        assert each in result.stderr, result.stderr
    assert "Traceback" not in result.output


# models.


def test_models_lists_models_and_profiles() -> None:
    result = call()
    assert result.exit_code == 0
    for name in (*MODELS, *PROFILES):
        assert name in result.stdout


def test_json_has_both_tables_whole() -> None:
    report = json.loads(call("--json", "--distance", 2).stdout)
    assert [row["name"] for row in report["models"]] == [*MODELS]
    embedded = report["profiles"][0]
    assert (embedded["name"], embedded["fast"]) == ("embedded", ["reflex"])
    assert embedded["speed_red"] == 1.08  # sqrt(1.3^2 + 2 * 2) - 1.3


def test_the_help_of_both_has_an_example() -> None:
    for words in (["--help"], ["fetch", "--help"]):
        result = call(*words)
        assert result.exit_code == 0
        assert "Example" in result.output


def test_wrong_options_are_78(tmp_path: Path) -> None:
    says(call("--distance", "nan"), 78, "distance: nan must be")
    says(call("--python", tmp_path / "gone"), 78, "gone: does not answer")


# --measure.


@dataclass(frozen=True)
class MeasuredSettings:
    path: str
    device: str


class MeasuredBrain:
    """Stands in for a model that takes 0.6 s."""

    Settings: ClassVar[type] = MeasuredSettings
    warm_p99 = 0.6

    def __init__(self, settings: MeasuredSettings) -> None:
        if settings.path == "gone":
            raise BrainError("path: gone: no such folder")


def test_a_measured_model_is_judged_by_the_load_check(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli_models, "MEASURED", f"{__name__}:MeasuredBrain")
    report = json.loads(call("--measure", NAME, "--device", "cpu", "--json").stdout)
    measured = report["measured"][0]
    assert (measured["model"], measured["device"], measured["p99"]) == (NAME, "cpu", 0.6)
    assert measured["profiles"]["laptop"] == ""
    assert "takes 0.60 s here" in measured["profiles"]["workstation"]
    assert "embedded" not in measured["profiles"]
    says(call("--measure", "gone"), 65, "path: gone: no such folder")


# fetch.


def test_fetch_shows_licence_size_and_commit_before_it_asks(state: HubState, root: Path) -> None:
    result = call("fetch", NAME, typed="n\n")
    assert result.exit_code == 1
    for words in (f"at commit {COMMIT}", "licence: apache-2.0", "0.00 GB in 4 files", "fetch it?"):
        assert words in result.stdout
    assert state.asked == []
    assert not root.exists()


def test_fetch_fetches_once(state: HubState, root: Path) -> None:
    result = call("fetch", NAME, typed="y\n")
    assert result.exit_code == 0, result.output
    assert model_folder(NAME) == root / NAME
    state.asked.clear()
    again = call("fetch", NAME, "--yes")
    assert again.exit_code == 0
    assert f"has commit {COMMIT} already" in again.stdout
    assert state.asked == []
    says(call("fetch", NAME, "--yes", "--revision", LATER), 78, "--force replaces it")
    assert call("fetch", NAME, "--yes", "--revision", LATER, "--force").exit_code == 0


def test_the_commit_that_we_have_run_is_fetched_unless_another_is_asked_for(
    state: HubState, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert LATER != COMMIT  # which is the newest here
    monkeypatch.setitem(MODELS, NAME, replace(MODELS[NAME], revision=LATER))
    assert f"at commit {LATER}" in call("fetch", NAME, typed="n\n").stdout
    result = call("fetch", NAME, "--revision", "main", typed="n\n")
    assert f"at commit {COMMIT}" in result.stdout


def test_another_folder_is_shown_as_the_setting_to_use(state: HubState, tmp_path: Path) -> None:
    result = call("fetch", NAME, "--yes", "--dir", tmp_path / "disk")
    assert f'path = "{tmp_path}/disk/{NAME}"' in result.stdout
    assert model_folder(str(tmp_path / "disk" / NAME)) == tmp_path / "disk" / NAME


def test_a_licence_that_has_changed_is_pointed_out(state: HubState) -> None:
    state.licence = "other"
    result = call("fetch", NAME, typed="n\n")
    assert "licence: other (was apache-2.0 when listed here)" in result.stdout


def test_code_is_refused_without_asking_the_hub_and_listed_before_it_comes(
    state: HubState,
) -> None:
    name = "minicpm-o-4.5"
    says(call("fetch", name, "--yes"), 78, "--allow-remote-code --revision COMMIT")
    vague = ("fetch", name, "--yes", "--allow-remote-code")
    says(call(*vague), 78, "only at one exact commit")
    says(call(*vague, "--revision", "main"), 78, "only at one exact commit", "not main")
    assert state.asked == []
    result = call("fetch", name, "--allow-remote-code", "--revision", COMMIT, typed="n\n")
    assert "code that will run when it is loaded: code/modeling.py" in result.stdout


def test_an_unknown_name_is_78_and_lists_the_known(state: HubState) -> None:
    says(call("fetch", "gpt"), 78, "no model is called 'gpt'; there are", "qwen3-vl-2b")


def test_a_hub_that_is_down_is_1_and_says_to_try_again(state: HubState) -> None:
    state.status = 503
    says(call("fetch", NAME, "--yes"), 1, "503", "goes on where this one stopped")


def test_ctrl_c_is_130_and_says_that_nothing_is_lost(
    state: HubState, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Hub, "download", interrupted)
    says(call("fetch", NAME, "--yes"), 130, "interrupted; the same command again goes on")

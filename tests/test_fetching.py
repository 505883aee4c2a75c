"""A model's folder is whole or known not to be: interrupted, damaged, replaced, refused."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from hdguard.brains.base import BrainError
from hdguard.brains.catalogue import MANIFEST, MODELS, model_folder, read_manifest
from hdguard.config import ConfigError
from hdguard.fetching import SPARE, UNFINISHED, check_request, check_space, fetch, finished
from hdguard.hub import FetchError, FetchPlan, Hub
from tests.hub_server import COMMIT, FILES, LATER, WEIGHTS, HubState, real_library

PLAIN = MODELS["smolvlm2-500m"]
CODED = MODELS["minicpm-o-4.5"]


@pytest.fixture
def state(monkeypatch: pytest.MonkeyPatch) -> Iterator[HubState]:
    with real_library(monkeypatch) as running:
        yield running


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    return tmp_path / "hdguard" / "models" / PLAIN.name


def bring(
    state: HubState, folder: Path, revision: str | None = None, *, force: bool = False
) -> list[str]:
    """Fetch as the command does; what was told."""
    told: list[str] = []
    hub = Hub(state.endpoint)
    plan = hub.look_up(PLAIN, revision)
    if finished(plan, folder, force=force) is None:
        fetch(hub, plan, folder, told.append)
    return told


def test_a_fetched_model_is_found_by_its_name_and_says_where_it_is_from(
    state: HubState, folder: Path
) -> None:
    told = bring(state, folder)
    assert told == ["1/4 LICENSE", "2/4 config.json", "3/4 merges.txt", "4/4 model.safetensors"]
    assert model_folder(PLAIN.name) == folder
    manifest = read_manifest(folder)
    assert manifest is not None
    assert (manifest.repo, manifest.revision) == (PLAIN.repo, COMMIT)
    assert manifest.files["model.safetensors"].size == len(WEIGHTS)
    there = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}
    assert there == {MANIFEST, "LICENSE", "config.json", "merges.txt", "model.safetensors"}


def test_a_second_fetch_of_the_same_commit_downloads_nothing(state: HubState, folder: Path) -> None:
    bring(state, folder)
    state.asked.clear()
    assert bring(state, folder) == []
    assert state.asked == []


def test_an_interrupted_fetch_is_no_model_and_is_gone_on_with(
    state: HubState, folder: Path
) -> None:
    state.cut["model.safetensors"], state.down_after_cut = [4321], True
    with pytest.raises(FetchError, match="goes on where this one stopped"):
        bring(state, folder)
    with pytest.raises(BrainError, match="its download was not finished"):
        model_folder(PLAIN.name)
    with pytest.raises(BrainError, match="its download was not finished"):
        model_folder(str(folder))
    state.status = 200
    told = bring(state, folder)
    assert told[1] == "2/4 config.json: is there"
    assert state.bytes_asked("model.safetensors") == [0, 4000]
    assert state.bytes_asked("config.json") == [0]
    assert (model_folder(PLAIN.name) / "model.safetensors").read_bytes() == WEIGHTS


def test_a_process_killed_in_mid_file_loses_no_more_than_a_chunk(
    state: HubState, folder: Path
) -> None:
    weights = WEIGHTS * 300  # so that a chunk is larger than any buffer of a file
    state.files[COMMIT]["model.safetensors"] = weights
    state.hold["model.safetensors"] = 1_000_000
    code = (
        "import huggingface_hub.constants as c; c.DOWNLOAD_CHUNK_SIZE = 300_000\n"
        "from hdguard.cli_models import models; models(['fetch', 'smolvlm2-500m', '--yes'])"
    )
    environment = {**os.environ, "HF_ENDPOINT": state.endpoint, "HF_HUB_OFFLINE": "0"}
    child = subprocess.Popen(
        [sys.executable, "-c", code], env=environment, stdout=subprocess.DEVNULL
    )
    try:
        assert state.holding.wait(30)
        part = folder / Hub(state.endpoint).look_up(PLAIN, None).files[-1].part
        while part.stat().st_size < 900_000:  # what was sent is on its way to the disk
            assert child.poll() is None
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
    bring(state, folder)
    assert state.bytes_asked("model.safetensors") == [0, 900_000]
    assert (model_folder(PLAIN.name) / "model.safetensors").read_bytes() == weights


def test_damaged_bytes_are_thrown_away_and_never_become_a_model(
    state: HubState, folder: Path
) -> None:
    whole = state.files[COMMIT]
    plan = Hub(state.endpoint).look_up(PLAIN, None)
    for name in ("merges.txt", "model.safetensors"):
        state.files[COMMIT] = {**whole, name: bytes(len(whole[name]))}
        with pytest.raises(FetchError, match=f"{name}: arrived damaged"):
            fetch(Hub(state.endpoint), plan, folder, lambda _: None)
        assert not (folder / name).exists()
        assert [*folder.glob("*.part")] == [folder / UNFINISHED]
    state.files[COMMIT] = whole
    bring(state, folder)
    assert model_folder(PLAIN.name) == folder


def test_another_commit_replaces_only_when_forced_and_leaves_nothing_of_the_old(
    state: HubState, folder: Path
) -> None:
    state.files[COMMIT]["old.json"] = b"{}"
    bring(state, folder)
    (folder / "calibration.json").write_text("mine")
    with pytest.raises(ConfigError, match=f"at {COMMIT}: --force replaces it"):
        bring(state, folder, LATER)
    state.asked.clear()
    bring(state, folder, LATER, force=True)
    assert {path for _, path, _ in state.asked} == {"merges.txt"}
    assert not (folder / "old.json").exists()
    assert (folder / "calibration.json").read_text() == "mine"
    manifest = read_manifest(folder)
    assert manifest is not None
    assert manifest.revision == LATER


def test_weights_of_an_abandoned_commit_do_not_stay_beside_the_new_ones(
    state: HubState, folder: Path
) -> None:
    state.files[COMMIT] = {**FILES, "a.safetensors": WEIGHTS}
    state.cut["merges.txt"], state.down_after_cut = [1], True
    with pytest.raises(FetchError):
        bring(state, folder)
    assert (folder / "a.safetensors").exists()
    state.status = 200
    bring(state, folder, LATER)
    assert not (folder / "a.safetensors").exists()
    assert not [*folder.glob("*.part")]


def test_a_file_that_changed_later_is_named_and_repaired_by_force(
    state: HubState, folder: Path
) -> None:
    bring(state, folder)
    (folder / "model.safetensors").write_bytes(WEIGHTS[:-1])
    with pytest.raises(BrainError, match=r"model\.safetensors: has 10239 bytes instead of 10240"):
        model_folder(PLAIN.name)
    bring(state, folder, force=True)
    assert model_folder(PLAIN.name) == folder


def test_a_damaged_manifest_is_repaired_by_force(state: HubState, folder: Path) -> None:
    bring(state, folder)
    (folder / MANIFEST).write_text("{")
    with pytest.raises(BrainError, match="is damaged"):
        model_folder(PLAIN.name)
    with pytest.raises(ConfigError, match=r"is damaged: .* with --force"):
        bring(state, folder)
    bring(state, folder, force=True)
    assert model_folder(PLAIN.name) == folder


@pytest.mark.parametrize("force", [False, True])
def test_a_folder_of_somebodys_own_files_is_left_alone(
    state: HubState, folder: Path, *, force: bool
) -> None:
    folder.mkdir(parents=True)
    (folder / "thesis.txt").write_text("years of work")
    with pytest.raises(ConfigError, match="files that no fetch has put there"):
        bring(state, folder, force=force)
    assert (folder / "thesis.txt").read_text() == "years of work"


def test_a_full_disk_is_known_before_the_download(
    state: HubState, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = Hub(state.endpoint).look_up(PLAIN, None)
    check_space(plan, folder)
    huge = replace(plan, files=tuple(replace(f, size=10**18) for f in plan.files))
    with pytest.raises(FetchError, match=r"GB are free, 4000000001\.1 GB are needed: --dir DIR"):
        check_space(huge, folder)


def test_what_is_there_already_needs_no_room(
    state: HubState, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Usage:
        free = 2**30

    bring(state, folder)
    plan = Hub(state.endpoint).look_up(PLAIN, None)
    monkeypatch.setattr("hdguard.fetching.shutil.disk_usage", lambda _: Usage)
    check_space(plan, folder)
    (folder / "model.safetensors").unlink()
    with pytest.raises(FetchError, match="are needed"):
        check_space(plan, folder)


def test_a_file_that_will_come_again_is_no_room_saved(
    state: HubState, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old one lies there until the new one is whole, even if it has the same size."""
    bring(state, folder)
    plan = Hub(state.endpoint).look_up(PLAIN, None)
    other = tuple(replace(f, sha256=f.sha256 and "0" * 64) for f in plan.files)
    monkeypatch.setattr(
        "hdguard.fetching.shutil.disk_usage", lambda _: SimpleNamespace(free=SPARE + 10_000)
    )
    check_space(plan, folder)
    with pytest.raises(FetchError, match="are needed"):
        check_space(replace(plan, files=other), folder)


def test_an_interrupted_fetch_needs_room_only_for_the_rest(
    state: HubState, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state.files[COMMIT] = {**FILES, "second.safetensors": WEIGHTS}
    state.cut["second.safetensors"], state.down_after_cut = [4321], True
    with pytest.raises(FetchError):
        bring(state, folder)
    state.status = 200
    plan = Hub(state.endpoint).look_up(PLAIN, None)
    rest = len(WEIGHTS) - 4000
    monkeypatch.setattr(
        "hdguard.fetching.shutil.disk_usage", lambda _: SimpleNamespace(free=SPARE + rest)
    )
    check_space(plan, folder)
    monkeypatch.setattr(
        "hdguard.fetching.shutil.disk_usage", lambda _: SimpleNamespace(free=SPARE + rest - 1)
    )
    with pytest.raises(FetchError, match="are needed"):
        check_space(plan, folder)


def test_code_needs_the_opt_in_and_one_exact_commit() -> None:
    check_request(PLAIN, None, allow_remote_code=False)
    with pytest.raises(ConfigError, match="--allow-remote-code --revision COMMIT"):
        check_request(CODED, COMMIT, allow_remote_code=False)
    for vague in (None, "main", "", "a" * 39, "A" * 40, "a" * 40 + "\n"):
        with pytest.raises(ConfigError, match="code is fetched only at one exact commit"):
            check_request(CODED, vague, allow_remote_code=True)
    check_request(CODED, COMMIT, allow_remote_code=True)


def test_a_missing_library_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hdguard.fetching.importlib.util.find_spec", lambda _: None)
    with pytest.raises(ConfigError, match=r"pip install 'hdguard\[models\]'"):
        check_request(PLAIN, None, allow_remote_code=False)


def test_code_that_is_not_what_was_fetched_is_never_loaded(state: HubState, folder: Path) -> None:
    hub, place = Hub(state.endpoint), folder.parent / CODED.name
    plan: FetchPlan = hub.look_up(CODED, COMMIT)
    fetch(hub, plan, place, lambda _: None)
    code = model_folder(CODED.name) / "code" / "modeling.py"
    assert code.read_bytes() == FILES["code/modeling.py"]
    code.write_bytes(b"print('HELLO')\n")
    with pytest.raises(BrainError, match=r"modeling\.py: is not what was fetched at aaa"):
        model_folder(CODED.name)
    code.write_bytes(FILES["code/modeling.py"])
    (place / "sitecustomize.py").write_text("")
    with pytest.raises(BrainError, match=r"sitecustomize\.py: this code was not fetched at aaa"):
        model_folder(str(place))

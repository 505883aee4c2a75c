"""The catalogue's rows are right in themselves, and a path or a name becomes a folder."""

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from hdguard.brains.base import BrainError
from hdguard.brains.catalogue import (
    GIB,
    MANIFEST,
    MODELS,
    ROOM_GIB,
    FileRecord,
    Manifest,
    model_folder,
    models_root,
    read_manifest,
)
from hdguard.brains.families import FAMILIES
from hdguard.brains.model import Model
from hdguard.fetching import fetch
from hdguard.hub import Hub
from tests.brains.conftest import tiny_settings
from tests.hub_server import COMMIT, real_library

EMPTY = hashlib.sha256(b"{}").hexdigest()


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path / "data" / "hdguard" / "models"


@pytest.mark.parametrize("name", MODELS)
def test_every_model_has_a_family_a_publisher_and_a_size(name: str) -> None:
    entry = MODELS[name]
    assert entry.name == name
    assert entry.family in FAMILIES
    assert entry.repo.count("/") == 1
    assert 0.1 < entry.billions < 1000
    assert entry.stored_bytes in {2, 4}
    assert entry.remote_code == (entry.extra == "minicpmo")


def test_only_whole_commits_are_pinned() -> None:
    assert all(e.revision is None or len(e.revision) == 40 for e in MODELS.values())


def test_memory_is_computed_from_the_parameters() -> None:
    entry = MODELS["qwen3-vl-4b"]
    assert entry.weights_gib == pytest.approx(2 * 4.438e9 / GIB)
    assert entry.gpu_gib == pytest.approx(8.266 + ROOM_GIB, abs=0.001)
    stored_in_float32 = MODELS["smolvlm2-500m"]
    assert stored_in_float32.download_gib == pytest.approx(2 * stored_in_float32.weights_gib)


def test_a_relative_data_home_is_ignored_as_its_specification_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for value in ("", "data"):
        monkeypatch.setenv("XDG_DATA_HOME", value)
        assert models_root() == Path.home() / ".local" / "share" / "hdguard" / "models"


def test_any_folder_of_ones_own_is_taken_as_it_is(tmp_path: Path) -> None:
    assert model_folder(str(tmp_path)) == tmp_path


def test_a_name_that_is_not_fetched_says_how_to_fetch_it() -> None:
    with pytest.raises(BrainError, match="not fetched: hdguard models fetch qwen3-vl-2b"):
        model_folder("qwen3-vl-2b")


def test_neither_a_folder_nor_a_name_lists_the_names(tmp_path: Path) -> None:
    with pytest.raises(BrainError, match=r"no such folder, and no model .* qwen3-vl-2b"):
        model_folder(str(tmp_path / "gone"))


def test_a_folder_in_the_working_directory_does_not_stand_in_for_a_fetched_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "qwen3-vl-2b").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BrainError, match="not fetched"):
        model_folder("qwen3-vl-2b")
    assert model_folder("./qwen3-vl-2b") == Path("qwen3-vl-2b")


def test_a_folder_under_a_models_name_without_its_manifest_is_unfinished(root: Path) -> None:
    (root / "qwen3-vl-2b").mkdir(parents=True)
    with pytest.raises(BrainError, match="its download was not finished"):
        model_folder("qwen3-vl-2b")


def test_a_file_that_is_gone_is_named(root: Path) -> None:
    folder = root / "qwen3-vl-2b"
    folder.mkdir(parents=True)
    (folder / MANIFEST).write_text(
        '{"name": "qwen3-vl-2b", "repo": "Qwen/Qwen3-VL-2B-Instruct", "revision": "'
        + "a" * 40
        + '",'
        ' "family": "qwen3_vl", "licence": "apache-2.0", "remote_code": false,'
        f' "files": {{"config.json": {{"size": 2, "sha256": "{EMPTY}"}}}}}}'
    )
    assert read_manifest(folder) == Manifest(
        name="qwen3-vl-2b",
        repo="Qwen/Qwen3-VL-2B-Instruct",
        revision="a" * 40,
        family="qwen3_vl",
        licence="apache-2.0",
        remote_code=False,
        files={"config.json": FileRecord(2, EMPTY)},
    )
    with pytest.raises(BrainError, match=r"config\.json: is gone: hdguard models fetch .* --force"):
        model_folder("qwen3-vl-2b")
    (folder / "config.json").write_text("{}")
    assert model_folder("qwen3-vl-2b") == folder
    (folder / "config.json").write_text("[]")
    with pytest.raises(
        BrainError, match=r"config\.json: is not what was fetched at a{40}: hdguard"
    ):
        model_folder("qwen3-vl-2b")


def test_a_manifest_of_another_format_is_refused(tmp_path: Path) -> None:
    (tmp_path / MANIFEST).write_text('{"format": "hdguard-model/2"}')
    with pytest.raises(BrainError, match=r"is damaged: .*fetch the model again"):
        model_folder(str(tmp_path))


def test_a_fetched_model_loads_when_the_hub_is_gone(
    tiny_folder: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = tiny_folder("smolvlm")
    files = {p.relative_to(made).as_posix(): p.read_bytes() for p in made.rglob("*") if p.is_file()}
    entry = MODELS["smolvlm2-500m"]
    with real_library(monkeypatch) as state:
        state.files[COMMIT] = files
        hub = Hub(state.endpoint)
        fetch(hub, hub.look_up(entry, None), models_root() / entry.name, lambda _: None)
    folder = model_folder(entry.name)
    model = Model(tiny_settings(folder))
    assert model.family.name == entry.family

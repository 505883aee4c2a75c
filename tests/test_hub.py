"""What a hub says of a model, with the library's own code over loopback; and how it fails."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from hdguard.brains.catalogue import MODELS, ModelEntry
from hdguard.hub import FetchError, FetchPlan, Hub, HubFile
from tests.hub_server import COMMIT, FILES, LATER, WEIGHTS, HubState, real_library

huggingface_hub = pytest.importorskip("huggingface_hub")

ENTRY = ModelEntry("tiny", "smolvlm", "some/tiny", "apache-2.0", 0.001)
CODED = ModelEntry("coded", "minicpmo", "some/coded", "apache-2.0", 0.001, remote_code=True)


@pytest.fixture
def state(monkeypatch: pytest.MonkeyPatch) -> Iterator[HubState]:
    with real_library(monkeypatch) as running:
        yield running


def test_a_look_up_names_the_commit_the_licence_and_the_size(state: HubState) -> None:
    plan = Hub(state.endpoint).look_up(ENTRY, None)
    wanted = ["LICENSE", "config.json", "merges.txt", "model.safetensors"]
    assert (plan.revision, plan.licence) == (COMMIT, "apache-2.0")
    assert [file.path for file in plan.files] == wanted
    assert plan.size == sum(len(FILES[name]) for name in wanted)
    assert state.asked == []


def test_a_branch_becomes_its_commit_and_a_commit_stays_one(state: HubState) -> None:
    hub = Hub(state.endpoint)
    assert hub.look_up(ENTRY, "main").revision == COMMIT
    assert hub.look_up(ENTRY, LATER).revision == LATER


def test_code_is_listed_only_for_a_model_that_is_known_to_bring_its_own(state: HubState) -> None:
    hub = Hub(state.endpoint)
    assert "code/modeling.py" not in {f.path for f in hub.look_up(ENTRY, None).files}
    assert "code/modeling.py" in {f.path for f in hub.look_up(CODED, COMMIT).files}


def test_pickled_weights_alone_are_no_model(state: HubState) -> None:
    del state.files[COMMIT]["model.safetensors"]
    with pytest.raises(FetchError, match=r"has no config\.json with safetensors weights"):
        Hub(state.endpoint).look_up(ENTRY, None)


@pytest.mark.parametrize("path", ["../config.json", "/etc/config.json", "a/../../config.json"])
def test_a_path_that_leaves_the_folder_is_refused(state: HubState, path: str) -> None:
    state.files[COMMIT][path] = b"{}"
    with pytest.raises(FetchError, match="refuses the path"):
        Hub(state.endpoint).look_up(ENTRY, None)


def test_a_file_without_size_or_digest_is_refused(state: HubState) -> None:
    state.said["merges.txt"] = {"size": None}
    with pytest.raises(FetchError, match=r"states no size or digest of merges\.txt"):
        Hub(state.endpoint).look_up(ENTRY, None)
    state.said["merges.txt"] = {"blobId": None}
    with pytest.raises(FetchError, match=r"states no size or digest of merges\.txt"):
        Hub(state.endpoint).look_up(ENTRY, None)


def test_what_the_hub_can_answer_wrongly_is_put_into_words(state: HubState) -> None:
    hub = Hub(state.endpoint)
    with pytest.raises(FetchError, match="some/tiny: has no such revision"):
        hub.look_up(ENTRY, "c" * 40)
    gone = ModelEntry("gone", "smolvlm", "some/gone", "apache-2.0", 0.001)
    with pytest.raises(FetchError, match="some/gone: the hub has no such model"):
        hub.look_up(gone, None)
    state.status = 403
    with pytest.raises(FetchError, match=r"some/tiny: .*403"):
        hub.look_up(ENTRY, None)


def test_no_network_is_an_error_in_one_line_and_no_traceback(state: HubState) -> None:
    with pytest.raises(FetchError, match=r"some/tiny: .*goes on where this one stopped") as failed:
        Hub("http://127.0.0.1:9").look_up(ENTRY, None)
    assert "\n" not in str(failed.value)


def test_an_environment_that_forbids_the_network_is_named(
    state: HubState, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(FetchError, match="some/tiny: HF_HUB_OFFLINE forbids the network: fetch"):
        Hub(state.endpoint).look_up(ENTRY, None)


def weights(plan: FetchPlan) -> HubFile:
    return next(file for file in plan.files if file.path == "model.safetensors")


def test_a_cut_connection_is_gone_on_with_at_once(state: HubState, tmp_path: Path) -> None:
    hub, part = Hub(state.endpoint), tmp_path / "part"
    plan = hub.look_up(ENTRY, None)
    state.cut["model.safetensors"] = [4321, 2500]
    hub.download(plan, weights(plan), part)
    assert part.read_bytes() == WEIGHTS
    assert state.bytes_asked("model.safetensors") == [0, 4000, 6000]


def test_a_hub_that_goes_down_in_mid_file_leaves_what_came_for_the_next_attempt(
    state: HubState, tmp_path: Path
) -> None:
    hub, part = Hub(state.endpoint), tmp_path / "part"
    plan = hub.look_up(ENTRY, None)
    state.cut["model.safetensors"], state.down_after_cut = [4321], True
    with pytest.raises(FetchError, match=r"503.*goes on where this one stopped"):
        hub.download(plan, weights(plan), part)
    assert part.stat().st_size == 4000
    state.status = 200
    hub.download(plan, weights(plan), part)
    assert part.read_bytes() == WEIGHTS
    assert state.bytes_asked("model.safetensors") == [0, 4000]


def test_a_whole_file_is_not_asked_for_again(state: HubState, tmp_path: Path) -> None:
    hub, part = Hub(state.endpoint), tmp_path / "part"
    plan = hub.look_up(ENTRY, None)
    part.write_bytes(WEIGHTS)
    hub.download(plan, weights(plan), part)
    assert state.bytes_asked("model.safetensors") == []
    assert part.read_bytes() == WEIGHTS


def test_parts_of_two_contents_have_two_names() -> None:
    assert HubFile("a", 1, sha256="1" * 64).part != HubFile("a", 1, sha256="2" * 64).part
    assert HubFile("a/b.txt", 1, blob="3" * 40).part == "a/b.txt.333333333333.part"


def test_every_repository_of_the_catalogue_is_a_name_that_the_library_accepts() -> None:
    for entry in MODELS.values():
        huggingface_hub.utils.validate_repo_id(entry.repo)

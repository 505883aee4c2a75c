import json
import shutil
from pathlib import Path

import pytest

from hdguard.brains.base import BrainError
from hdguard.brains.fingerprint import PIECE, PIECES, fingerprint, read_json


def write_weights(path: Path, header: bytes, weights: bytes) -> None:
    path.write_bytes(len(header).to_bytes(8, "little") + header + weights)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text(json.dumps({"model_type": "qwen3_vl"}))
    (model / "tokenizer.json").write_text("{}")
    write_weights(model / "model-1.safetensors", b'{"a": 1}', b"1234")
    write_weights(model / "model-2.safetensors", b'{"b": 1}', b"5678")
    return model


def test_the_same_model_has_the_same_fingerprint_anywhere(folder: Path, tmp_path: Path) -> None:
    found = fingerprint(folder, dtype="bfloat16", prompt="0123")
    assert len(found) == 16
    assert int(found, 16) >= 0
    copy = shutil.copytree(folder, tmp_path / "elsewhere")
    assert fingerprint(copy, prompt="0123", dtype="bfloat16") == found


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("config.json", b'{"model_type": "other"}'),
        ("tokenizer.json", b'{"changed": 1}'),
        ("preprocessor_config.json", b"{}"),
        ("chat_template.jinja", b"{{ x }}"),
        ("modeling_minicpmo.py", b"pass"),
        ("code/modeling.py", b"pass"),
        ("hdguard-model.json", b"{}"),
    ],
)
def test_any_file_that_decides_what_the_weights_are_given_counts(
    folder: Path, name: str, content: bytes
) -> None:
    before = fingerprint(folder)
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_bytes(content)
    assert fingerprint(folder) != before


@pytest.mark.parametrize("name", ["README.md", "calibration.json", "results.json"])
def test_what_no_loader_reads_does_not_count(folder: Path, name: str) -> None:
    before = fingerprint(folder)
    (folder / name).write_text("{}")
    assert fingerprint(folder) == before


def test_weights_count_by_name_size_and_head(folder: Path) -> None:
    found = {fingerprint(folder)}
    write_weights(folder / "model-2.safetensors", b'{"b": 2}', b"5678")
    found.add(fingerprint(folder))
    write_weights(folder / "model-2.safetensors", b'{"b": 2}', b"56789")
    found.add(fingerprint(folder))
    (folder / "model-2.safetensors").rename(folder / "model-3.safetensors")
    found.add(fingerprint(folder))
    assert len(found) == 4


def test_another_training_of_the_same_model_is_another_model(folder: Path) -> None:
    """Same names, sizes and tables of contents; only the numbers differ."""
    before = fingerprint(folder)
    write_weights(folder / "model-2.safetensors", b'{"b": 1}', b"5679")
    assert fingerprint(folder) != before


@pytest.mark.parametrize("at", [0.0, 0.25, 0.5, 0.999, 1.0])
def test_weights_that_were_trained_on_in_a_stretch_of_them_are_noticed(
    folder: Path, at: float
) -> None:
    path, size = folder / "model-2.safetensors", 16 * 2**30
    stretch = size // PIECES + PIECE  # a piece lies in it wherever it is
    with path.open("r+b") as file:
        file.truncate(size)  # a hole, which takes up no disk
    before = fingerprint(folder)
    with path.open("r+b") as file:
        # The disk gets a byte in each piece's length of it, not all 16 MiB.
        first = 16 + int(at * (size - 16 - stretch))
        for place in range(first, first + stretch, PIECE // 2):
            file.seek(place)
            file.write(b"1")
    assert fingerprint(folder) != before


def test_gigabytes_of_weights_are_not_read(folder: Path) -> None:
    path = folder / "model-2.safetensors"
    with path.open("r+b") as file:
        file.truncate(200 * 2**30)  # a hole: reading it would take minutes
    assert len(fingerprint(folder)) == 16


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"dtype": "bfloat16"}, {"dtype": "float32"}),
        ({"dtype": "bfloat16"}, {}),
        ({"a": "bc"}, {"ab": "c"}),
        ({"prompt": "1", "labels": "2"}, {"prompt": "2", "labels": "1"}),
    ],
)
def test_choices_count_each_by_its_name(
    folder: Path, one: dict[str, str], other: dict[str, str]
) -> None:
    assert fingerprint(folder, **one) != fingerprint(folder, **other)


# What is no model.


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BrainError, match=r"nowhere/config\.json: cannot be read"):
        fingerprint(tmp_path / "nowhere")


def test_a_config_that_is_no_object_is_named(folder: Path) -> None:
    for text, why in (("[]", "is no JSON object"), ("{", "is no JSON"), ("\xff", "is no JSON")):
        (folder / "config.json").write_bytes(text.encode("latin-1"))
        with pytest.raises(BrainError, match=rf"config\.json: {why}"):
            read_json(folder, "config.json")


def test_a_folder_without_weights_is_not_wholly_fetched(folder: Path) -> None:
    for path in folder.glob("*.safetensors"):
        path.unlink()
    with pytest.raises(BrainError, match="not wholly fetched"):
        fingerprint(folder)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x08\0\0\0\0\0\0\0",
        b"\xff" * 8 + b"{}",
        b"version https://git-lfs.github.com/spec/v1",
    ],
    ids=["empty", "cut off", "no length", "a pointer to the file"],
)
def test_a_weight_file_that_is_none_is_named(folder: Path, content: bytes) -> None:
    (folder / "model-2.safetensors").write_bytes(content)
    with pytest.raises(BrainError, match=r"model-2\.safetensors: is no safetensors file"):
        fingerprint(folder)

"""Tiny models of random weights, each made once and loaded once for all tests."""

import gc
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks import random_models
from hdguard.brains.model import Model, ModelSettings

# The library's loading threads end in their own time, and a test that leaves a thread behind fails.
os.environ.setdefault("HF_DEACTIVATE_ASYNC_LOAD", "1")

Folder = Callable[[str], Path]
Loaded = Callable[[str], Model]


def _keep() -> None:
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """Folder of a family's tiny model; "NAME+thinks" is one with a thinking block."""
    made: dict[str, Path] = {}

    def folder(name: str) -> Path:
        if name not in made:
            family, _, thinks = name.partition("+")
            path = tmp_path_factory.mktemp("models") / name
            made[name] = random_models.build(family, "tiny", path, thinks=bool(thinks))
            _keep()
        return made[name]

    return folder


@pytest.fixture(scope="session")
def tiny_model(tiny_folder: Folder) -> Loaded:
    """A family's tiny model, loaded on the CPU in float32; shared, so leave it as it is."""
    loaded: dict[str, Model] = {}

    def model(name: str) -> Model:
        if name not in loaded:
            loaded[name] = Model(tiny_settings(tiny_folder(name)))
            _keep()
        return loaded[name]

    return model


def tiny_settings(folder: Path) -> ModelSettings:
    """Settings of a tiny model."""
    return ModelSettings(str(folder), "tiny", "cpu", "float32", allow_remote_code=True)

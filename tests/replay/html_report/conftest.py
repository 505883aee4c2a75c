"""One real run, of five short videos in virtual time, for all that reads a run."""

from pathlib import Path

import pytest

from tests.replay.made import make_dataset
from tests.test_cli import replay


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run's folder; do not write into it."""
    folder = tmp_path_factory.mktemp("run")
    result = replay(make_dataset(folder / "data"), folder / "run")
    assert result.exit_code == 0, result.output
    return folder / "run"

"""Lets the children of these tests import the tests' own brains, wherever pytest was started."""

from collections.abc import Iterator

import pytest

from tests.workers.command_brain import RELEASE
from tests.workers.support import REPOSITORY, let_brains_go


@pytest.fixture(autouse=True)
def _tests_importable(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))
    RELEASE.clear()
    yield
    let_brains_go()

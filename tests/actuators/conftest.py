"""The option that writes golden files anew, on purpose."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    try:
        parser.addoption("--update-golden", action="store_true", help="write golden files anew")
    except ValueError:
        return  # another package's tests have added it


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--update-golden", default=False))

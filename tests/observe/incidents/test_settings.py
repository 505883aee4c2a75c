"""What may be said in `[incidents]`."""

import pytest

from hdguard.observe.incidents.settings import IncidentSettings


def test_nothing_is_recorded_until_somebody_says_how_long_it_is_kept() -> None:
    assert not IncidentSettings().is_on
    assert IncidentSettings(keep_days=0.5).is_on


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("keep_days", -1.0),
        ("max_bytes", 1000),
        ("before", 61.0),
        ("before", -0.1),
        ("after", 61.0),
        ("width", 641),
        ("width", 32),
        ("width", 4000),
    ],
)
def test_what_cannot_be_is_named(key: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"^{key}: "):
        IncidentSettings(**{key: value})  # type: ignore[arg-type]

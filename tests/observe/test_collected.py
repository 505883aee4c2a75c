"""What is read off when Prometheus asks."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from hdguard.ingest.base import SourceReport
from tests.observe.support import Watched, scraped


def test_the_age_of_a_frame_grows_while_none_comes() -> None:
    """prometheus/client_python 495: a number that nobody renews must not stay young."""
    watched = Watched()
    assert "hdguard_frame_age_seconds{source=kitchen}" not in scraped(watched)
    watched.sees()
    watched.now += 3.0
    assert scraped(watched)["hdguard_frame_age_seconds{source=kitchen}"] == pytest.approx(3.05)


@dataclass
class Pipes:
    """What the metrics read of a pipeline."""

    stale: int = 2
    mailboxes: dict[str, Any] = field(
        default_factory=lambda: {"a": SimpleNamespace(dropped=3), "b": SimpleNamespace(dropped=4)}
    )
    parts: Any = field(
        default_factory=lambda: SimpleNamespace(
            sources=(SimpleNamespace(report=SourceReport(corrupt=5)),)
        )
    )


def test_frames_that_were_left_out_are_told_apart() -> None:
    watched = Watched()
    assert scraped(watched)["hdguard_frames_total{outcome=dropped_busy}"] == 0
    watched.metrics.watch(Pipes())  # type: ignore[arg-type]
    found = scraped(watched)
    outcomes = {"judged": 0, "dropped_stale": 2, "dropped_busy": 7, "corrupt": 5}
    for outcome, count in outcomes.items():
        assert found[f"hdguard_frames_total{{outcome={outcome}}}"] == count


def test_the_state_and_the_connection_are_those_of_the_moment() -> None:
    watched = Watched()
    assert scraped(watched)["hdguard_state{state=starting}"] == 1
    watched.starts()
    watched.connected = False
    found = scraped(watched)
    states = {k: v for k, v in found.items() if k.startswith("hdguard_state")}
    assert sum(states.values()) == 1
    assert found["hdguard_state{state=monitoring}"] == 1
    assert found["hdguard_mqtt_connected"] == 0

"""systemd hears from the decision step alone."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from hdguard.core.actions import Notify
from hdguard.core.events import DeadlineReached, StopRequested
from hdguard.core.types import State
from hdguard.runtime.watchdog import FEED_EVERY, Systemd, Watchdog

TICK = DeadlineReached()


class Manager:
    """Plays systemd."""

    def __init__(self, address: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(address)
        self._socket.setblocking(False)

    def heard(self) -> list[str]:
        found = []
        while True:
            try:
                found.append(self._socket.recv(4096).decode())
            except BlockingIOError:
                return found

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[Manager]:
    manager = Manager(str(tmp_path / "notify"))
    yield manager
    manager.close()


@pytest.fixture
def systemd(manager: Manager, tmp_path: Path) -> Iterator[Systemd]:
    systemd = Systemd(str(tmp_path / "notify"))
    yield systemd
    systemd.close()


def test_it_is_ready_with_the_first_decision_and_lives_only_as_long_as_there_are_more(
    manager: Manager, systemd: Systemd
) -> None:
    watchdog = Watchdog(systemd)
    assert manager.heard() == []
    watchdog.stepped(10.0, TICK, ())
    assert manager.heard() == ["READY=1", "WATCHDOG=1"]
    watchdog.stepped(10.0 + FEED_EVERY - 0.1, TICK, ())
    assert manager.heard() == []  # a datagram for each of 30 frames a second would be a waste
    watchdog.stepped(10.0 + FEED_EVERY, TICK, ())
    assert manager.heard() == ["WATCHDOG=1"]
    watchdog.stepped(30.0, TICK, ())
    assert manager.heard() == ["WATCHDOG=1"]


def test_people_see_the_state_and_why(manager: Manager, systemd: Systemd) -> None:
    watchdog = Watchdog(systemd)
    watchdog.stepped(1.0, TICK, (Notify(State.HALTED, "halted:\nstale_frame"),))
    watchdog.stepped(1.1, StopRequested(), (Notify(State.MONITORING, ""),))
    assert manager.heard()[2:] == [
        "STATUS=halted: halted: stale_frame",
        "STOPPING=1",
        "STATUS=monitoring",
    ]


def test_a_manager_that_does_not_read_holds_up_no_decision(
    manager: Manager, systemd: Systemd, caplog: pytest.LogCaptureFixture
) -> None:
    watchdog = Watchdog(systemd)
    for second in range(2000):
        watchdog.stepped(float(second), TICK, ())
    assert systemd.unsent > 0
    assert len(caplog.records) == 1
    manager.close()


def test_without_systemd_nothing_is_said() -> None:
    systemd = Systemd("")
    Watchdog(systemd).stepped(1.0, StopRequested(), ())
    assert systemd.unsent == 0
    systemd.close()


def test_the_socket_is_not_left_to_children(
    monkeypatch: pytest.MonkeyPatch, manager: Manager, tmp_path: Path
) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
    systemd = Systemd.of_environment()
    systemd.status("loading")
    systemd.close()
    assert manager.heard() == ["STATUS=loading"]
    assert "NOTIFY_SOCKET" not in os.environ


def test_an_abstract_name_is_understood() -> None:
    manager = Manager(f"\0hdguard-test-{os.getpid()}")
    systemd = Systemd(f"@hdguard-test-{os.getpid()}")
    systemd.say("READY=1")
    assert manager.heard() == ["READY=1"]
    systemd.close()
    manager.close()

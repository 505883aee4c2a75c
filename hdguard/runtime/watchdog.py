"""Tells systemd that decisions are made, from the decision step itself.

A beat from a thread or task of its own would go on while nothing is decided any more. To send one
datagram to a local socket takes some microseconds and never waits.
"""

import logging
import os
import socket

from hdguard.core import actions, events
from hdguard.core.actions import Action
from hdguard.core.events import Event
from hdguard.runtime.observer import Judged, Reviewed

log = logging.getLogger(__name__)

FEED_EVERY = 0.5
"""Seconds between two beats, a quarter of the unit's WatchdogSec=2."""


class Systemd:
    """The service manager, if it started us: else every call does nothing.

    Args:
        address: systemd's NOTIFY_SOCKET; a name that begins with `@` is abstract. Empty: nobody.
    """

    def __init__(self, address: str) -> None:
        self._address = "\0" + address[1:] if address.startswith("@") else address
        self._socket: socket.socket | None = None
        if address:
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
            self._socket.setblocking(False)
        self.unsent = 0

    @classmethod
    def of_environment(cls) -> "Systemd":
        """The one that started us. The name is taken out, so that no child speaks for us."""
        return cls(os.environ.pop("NOTIFY_SOCKET", ""))

    def say(self, *lines: str) -> None:
        """Send these assignments, or drop them if it does not listen."""
        if self._socket is None:
            return
        try:
            self._socket.sendto("\n".join(lines).encode(), self._address)
        except OSError as error:  # its buffer is full, or it is gone: then it will end us
            self.unsent += 1
            if self.unsent == 1:
                log.warning("systemd does not hear us: %s", error)

    def status(self, words: str) -> None:
        """What `systemctl status` shows."""
        self.say("STATUS=" + " ".join(words.split()))

    def close(self) -> None:
        """Say nothing more."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None


class Watchdog:
    """An observer that is fed by every step: READY at the first, then beats and the state."""

    def __init__(self, systemd: Systemd) -> None:
        self._systemd = systemd
        self._next: float | None = None

    def judged(self, stamps: Judged | Reviewed) -> None:
        """A brain that answers is no proof that anything is decided."""

    def stepped(self, now: float, event: Event, actions: tuple[Action, ...]) -> None:
        """Something was decided."""
        if self._next is None:
            self._systemd.say("READY=1")
        if self._next is None or now >= self._next:
            self._next = now + FEED_EVERY
            self._systemd.say("WATCHDOG=1")
        if isinstance(event, events.StopRequested):
            self._systemd.say("STOPPING=1")
        for action in actions:
            self._decided(action)

    def _decided(self, action: Action) -> None:
        if isinstance(action, actions.Notify):
            self._systemd.status(f"{action.state}: {action.why}" if action.why else action.state)

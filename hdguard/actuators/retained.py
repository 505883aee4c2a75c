"""What the broker kept of the guards before this one: read once, before the robot may move.

What cannot be read may have been a halt. It is never taken for none.
"""

import asyncio
from dataclasses import replace

from hdguard.actuators import wire
from hdguard.actuators.signing import unseal
from hdguard.core.actions import Notify
from hdguard.core.types import State


class Retained:
    """The retained halt and state, as they come on the first connection.

    Args:
        topics: the robot's.
        boot: this guard's number.
        key: shared with the robot; None: nothing is signed.

    Attributes:
        complete: set once the broker has brought all that it kept.
        halt: the newest halt or its end.
        unread: why what it kept as a halt cannot be read; empty: it can, or there was none.
        newest_boot: the greatest number of another guard in all this.
        greetings: connections on which this guard has spoken.
    """

    def __init__(self, topics: wire.Topics, boot: int, key: bytes | None) -> None:
        self.complete = asyncio.Event()
        self.halt: wire.HaltMessage | None = None
        self.unread = ""
        self.newest_boot = 0
        self.greetings = 0
        self._topics = topics
        self._boot = boot
        self._key = key
        self._note = Notify(State.STARTING, "")

    def take(self, name: str, payload: bytes) -> None:
        """Read what the broker kept on the topic `halt` or `state`.

        Raises:
            WireError: it cannot be read.
        """
        try:
            body = unseal(self._topics[name], payload, self._key)
            message = wire.decode_halt(body) if name == "halt" else wire.decode_state(body)
        except wire.WireError as error:
            if name == "halt":
                self.unread = str(error)
            raise wire.WireError(f"{name}: {error}") from None
        if message.boot == self._boot and self.greetings > 1:
            return  # our own, of a connection that broke
        self.newest_boot = max(self.newest_boot, message.boot)
        if isinstance(message, wire.HaltMessage):
            self.halt = message

    def explained(self, note: Notify | None = None) -> Notify:
        """The note, or the last one, with what is wrong before it."""
        self._note = note or self._note
        if not self.unread:
            return self._note
        return replace(self._note, why=f"the retained halt cannot be read; {self._note.why}")

"""What the guard says to the robot, in numbered payloads; no sockets here.

It remembers what the broker should be keeping: the newest halt or release, and the state.
"""

from collections import Counter
from collections.abc import Callable
from typing import Literal

import msgspec

from hdguard.actuators import wire
from hdguard.actuators.signing import Nonces, seal
from hdguard.actuators.translate import clip, halt_message, permit_message
from hdguard.core.actions import Escalate, Halt, Notify, Permit, Release
from hdguard.core.types import HaltCause, HaltClass, State


class Statements:
    """The guard's side of the contract.

    Args:
        topics: the robot's.
        boot: the guard's.
        key: shared with the robot; None: nothing is signed.
        stop_category: see `MqttSettings`.
        names: of the sources and of the brains, for people.
        token: makes a nonce that nobody can guess.

    Raises:
        ValueError: the names are too long to be sent.
    """

    def __init__(
        self,
        topics: wire.Topics,
        boot: int,
        key: bytes | None,
        stop_category: Literal[1, 2],
        names: tuple[tuple[str, ...], tuple[str, ...]],
        token: Callable[[], str],
    ) -> None:
        if sum(len(name.encode()) + 3 for group in names for name in group) > 1024:
            msg = "the names of the sources and brains are longer than 1 KiB; shorten them"
            raise ValueError(msg)
        self.topics = topics
        self.nonces = Nonces(token)
        self.halt: wire.HaltMessage | None = None
        self.found: wire.HaltMessage | None = None
        self.boot = boot
        self._key = key
        self._stop_category: Literal[1, 2] = stop_category
        self._names = names
        self._noted = Notify(State.STARTING, "")
        self._seqs: Counter[str] = Counter()

    @property
    def in_force(self) -> str | None:
        """The id of the halt in force."""
        return self.halt.halt_id if self.halt is not None and self.halt.active else None

    @property
    def halted(self) -> bool:
        """True while the state shows a nonce."""
        return self._noted.state is State.HALTED and self.in_force is not None

    def on_halt(self, action: Halt | Release) -> None:
        """From now on this is what `halt_payload` says."""
        before = self.in_force
        if isinstance(action, Halt):
            self.halt = halt_message(action, self._stop_category, self.boot, 0)
        elif before not in {None, action.halt_id}:
            return  # the end of another halt than the one in force: that one stays
        else:
            self.halt = msgspec.structs.replace(self._known(action.halt_id), active=False)
        if self.in_force != before:
            self.nonces.clear()

    def on_note(self, action: Notify | Escalate) -> None:
        """From now on this is what `state_payload` says."""
        if isinstance(action, Notify):
            self._noted = action
        else:
            why = f"the robot has not acknowledged halt {action.halt_id}; {self._noted.why}"
            self._noted = Notify(self._noted.state, why)

    def permit_payload(self, action: Permit) -> tuple[int, bytes]:
        """The permit's number and payload."""
        message = permit_message(action, self.boot, self._next("permit"))
        return message.seq, self._seal("permit", message)

    def halt_payload(self) -> bytes | None:
        """The newest halt or release, with a number of its own each time; None before the first."""
        if self.halt is None:
            return None
        numbers = {"boot": self.boot, "seq": self._next("halt")}
        return self._seal("halt", msgspec.structs.replace(self.halt, **numbers))

    def state_payload(self, now: float) -> bytes:
        """The state; while halted with a nonce that is not due for renewal."""
        return self._seal(
            "state",
            wire.StateMessage(
                boot=self.boot,
                seq=self._next("state"),
                state=self._noted.state,
                why=clip(self._noted.why, wire.TEXT),
                sources=tuple(clip(name, wire.WORD) for name in self._names[0]),
                brains=tuple(clip(name, wire.WORD) for name in self._names[1]),
                halt_id=self.in_force if self.halted else None,
                nonce=self.nonces.current(now) if self.halted else None,
            ),
        )

    def _next(self, name: str) -> int:
        self._seqs[name] += 1
        return self._seqs[name]

    def _seal(self, name: str, message: wire.Message) -> bytes:
        return seal(self.topics[name], wire.encode(message), self._key)

    def _known(self, halt_id: str) -> wire.HaltMessage:
        """The halt that ends, as far as it is known."""
        for known in (self.halt, self.found):
            if known is not None and known.halt_id == halt_id:
                return known
        # Only what an earlier life said on its way out is released without having been said again.
        stopping = Halt(halt_id, HaltClass.FAULT, HaltCause.STOPPING)
        return halt_message(stopping, self._stop_category, self.boot, 0)

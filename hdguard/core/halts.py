"""One halt's life: raised, repeated until the robot confirms, escalated once, released.

A broker's receipt is not a confirmation, and a repeat is not a new halt.
"""

import math
from dataclasses import replace
from typing import Literal

from hdguard.core.actions import Escalate, Halt
from hdguard.core.debounce import Hold
from hdguard.core.types import NO_HAZARD, FrameRef, HaltCause, HaltClass, Hazard

REPEAT_EVERY = 0.1
ESCALATE_AFTER = 0.5
FAULT_CLEARS_AFTER = 3.0
"""Seconds: DESIGN section 3, rules 4 and 5."""


def danger(cause: HaltCause, brain: str, ref: FrameRef, hazard: Hazard = NO_HAZARD) -> Halt:
    """A danger halt to be: `ref` is the RED frame, or the one that opened the review."""
    return Halt("", HaltClass.DANGER, cause, ref.source_id, brain, ref, hazard=hazard)


def fault(cause: HaltCause, source_id: str = "", brain: str = "", text: str = "") -> Halt:
    """A fault halt to be; a brain that will not be restarted any more latches it."""
    latched = cause is HaltCause.BRAIN_LATCHED
    hazard = Hazard(text=text)
    return Halt("", HaltClass.FAULT, cause, source_id, brain, hazard=hazard, latched=latched)


def operator(name: str) -> Halt:
    """An operator's halt to be."""
    return Halt("", HaltClass.OPERATOR, HaltCause.OPERATOR, hazard=Hazard(text=f"asked by {name}"))


class HaltLedger:
    """The active halt and what is still to be said about it."""

    def __init__(self, boot: int) -> None:
        self._boot = boot
        self._count = 0
        self.active: Halt | None = None
        self.raised_at = -math.inf
        self.clear = Hold(FAULT_CLEARS_AFTER)
        self._repeat_at = math.inf
        self._escalate_at = math.inf

    def next_id(self) -> str:
        """An id that no halt of this or an earlier boot has."""
        self._count += 1
        return f"{self._boot}-{self._count}"

    def raise_(self, halt: Halt, now: float) -> None:
        """Put this halt in force; whatever was in force is superseded."""
        self.active = halt
        self.raised_at = now
        self.clear.since = None
        self._repeat_at = now + REPEAT_EVERY
        self._escalate_at = now + ESCALATE_AFTER

    def acknowledged(self, halt_id: str) -> None:
        """The robot has it: no need to escalate."""
        if self.active is not None and self.active.halt_id == halt_id:
            self._escalate_at = math.inf

    def confirmed(self, halt_id: str) -> None:
        """The robot stands still: no need to repeat."""
        if self.active is not None and self.active.halt_id == halt_id:
            self._repeat_at = self._escalate_at = math.inf

    def release(self) -> None:
        """The halt is over."""
        self.active = None
        self.clear.since = None
        self._repeat_at = self._escalate_at = math.inf

    def overdue(self, now: float) -> tuple[Halt | Escalate, ...]:
        """What is to be said again by now."""
        said: list[Halt | Escalate] = []
        if self.active is not None and now >= self._repeat_at:
            self.active = replace(self.active, repeat=self.active.repeat + 1)
            self._repeat_at = now + REPEAT_EVERY
            said.append(self.active)
        if self.active is not None and now >= self._escalate_at:
            self._escalate_at = math.inf
            said.append(Escalate(self.active.halt_id))
        return tuple(said)

    def supersedes(self, new: Halt) -> bool:
        """True if this halt says more than the one in force."""
        if self.active is None:
            return True
        if self.active.halt_class is not HaltClass.FAULT:
            return False
        return new.halt_class is not HaltClass.FAULT or (new.latched and not self.active.latched)

    def clears_itself(self, fault_clear: Literal["auto", "reset"]) -> bool:
        """True if the halt in force may end without a reset. Stopping ends with the process."""
        return (
            self.active is not None
            and self.active.halt_class is HaltClass.FAULT
            and not self.active.latched
            and self.active.cause is not HaltCause.STOPPING
            and fault_clear == "auto"
        )

    @property
    def deadlines(self) -> tuple[float, float, float]:
        """Times at which something is to be said or may end."""
        return (self._repeat_at, self._escalate_at, self.clear.due)

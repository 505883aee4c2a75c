"""Breaks off a call that nobody waits for, in the middle of whatever the brain is doing.

The supervisor writes the call's number into the shared ring and then sends SIGUSR1, whose
handler compares it with the call in hand and raises `Cancelled` in the main thread, where the
brain works. The number names the call and the signal only makes us look, so whatever the two meet
with is harmless:

- The signal comes before the call is in hand: the handler finds none. The number stands in the
  ring by then, and is looked at once more when the call begins.
- It comes when the call is answered: nothing is in hand, or another call, which the number does
  not name.
- It comes between the brain's return and our own last line: `Cancelled` takes the answer's place,
  for which nobody waits.
- It comes twice, or while `Cancelled` is on its way: the call is no longer in hand once it has been
  raised, so it is raised once.
- It interrupts a system call: Python looks at signals there, and repeats the call unless the
  handler raises; if it raises, the call is to be left, which is what is wanted.
- It is raised in a `finally`, a `with` or a callback of the brain's: that may not be completed,
  which a brain accepts by declaring itself interruptible. If it swallows the exception it goes on
  to its answer, as one that is not interruptible, and its deadline still ends it.
- A long call into a library is not left before it returns: Python runs handlers between bytecodes.
"""

import signal
from collections.abc import Callable
from types import FrameType
from typing import TypeVar

from hdguard.workers.ring import Ring

T = TypeVar("T")


class Cancelled(BaseException):
    """Nobody waits for this call. No `Exception`, so that a brain's own handlers let it pass."""


class Interruption:
    """Lets one call at a time be broken off. Belongs to the main thread."""

    def __init__(self, ring: Ring) -> None:
        self._ring = ring
        self._call_id: int | None = None

    def install(self) -> None:
        """Listen to the signal from now on; without it the signal would end the process."""
        signal.signal(signal.SIGUSR1, self._on_signal)

    def run(self, call_id: int, work: Callable[[], T]) -> T:
        """Do the work of this call.

        Raises:
            Cancelled: nobody waits for it any more.
        """
        try:
            self._call_id = call_id
            self._look()  # the signal may have come before the call was in hand
            return work()
        finally:
            self._call_id = None

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self._look()

    def _look(self) -> None:
        if self._call_id is not None and self._call_id == self._ring.cancelled:
            self._call_id = None
            raise Cancelled

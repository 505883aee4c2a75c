"""One of our own commands, but that a signal holds its event loop up, as a slow callback does.

To stop the process would not show it: then every thread stands still, and permits that came from a
thread beside the loop would end with it.
"""

import runpy
import signal
import sys
import time

HOLD_UP = signal.SIGUSR2
STALL = 1.0
"""Seconds for which it does: DESIGN section 6."""


def stalling(*words: str) -> tuple[str, ...]:
    """The command line of one of our own commands, run so."""
    return (sys.executable, "-m", __name__, *words)


def _hold_up(_number: int, _frame: object) -> None:
    """Python runs this in the main thread, whose loop it interrupts; others go on."""
    time.sleep(STALL)  # noqa: TID251 - the fault itself


if __name__ == "__main__":
    signal.signal(HOLD_UP, _hold_up)
    runpy.run_module("hdguard", run_name="__main__", alter_sys=True)

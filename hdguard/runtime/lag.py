"""How late the event loop is: whatever holds it up holds up decisions too."""

import asyncio
from collections.abc import Callable

LOOK_EVERY = 0.05
"""Seconds between two looks; a stall of 50 ms is seen, and 20 looks a second cost nothing."""


async def watch_lag(told: Callable[[float], None], every: float = LOOK_EVERY) -> None:
    """Tell how many seconds late each look is, until cancelled."""
    loop = asyncio.get_running_loop()
    due = loop.time() + every
    while True:
        await asyncio.sleep(due - loop.time())
        now = loop.time()
        told(max(0.0, now - due))
        due = max(due + every, now)

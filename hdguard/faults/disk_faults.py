"""What a full disk costs: clips, and nothing else."""

from hdguard.faults.disk import Ballast, missing
from hdguard.faults.rows import FaultError, Row, Scenario
from hdguard.faults.stack import Stack

ROUNDS = 3
"""With room and without, in turn. The quietest round of each counts: others use the machine too."""

HALTS = 8
"""In a round; a choice: of so few the 99th percentile is the largest."""

KEPT, DROPPED = (f'hdguard_incidents_total{{outcome="{each}"}}' for each in ("kept", "dropped"))


async def disk_full(stack: Stack) -> tuple[float]:
    """How much later halts come, the 99th percentile from the request to the broker's message."""
    ballast = Ballast(stack.guard.pid, stack.state)
    slowest: dict[bool, list[float]] = {False: [], True: []}
    kept = await stack.metric(KEPT)
    try:
        for full in [False, True] * ROUNDS:
            dropped = await stack.metric(DROPPED)
            if full:
                await ballast.fill()
            slowest[full].append(max([await _halt(stack) for _ in range(HALTS)]))
            if full:
                await stack.counts(DROPPED, dropped + HALTS)
                await ballast.empty()
    finally:
        await ballast.empty()
    if await stack.metric(KEPT) == kept:
        raise FaultError("no clip was kept while there was room")
    return (max(0.0, min(slowest[True]) - min(slowest[False])),)


async def _halt(stack: Stack) -> float:
    """Seconds from an operator's request until the halt is on the broker; it is reset then."""
    asked = stack.now()
    took = await stack.operator_halts() - asked
    await stack.ready()
    return took


SCENARIOS = (
    Scenario(
        (Row("disk-full", "disk full, clips dropped: halts later than with room, p99", 0.005),),
        disk_full,
        kind="recording",
        needs=missing,
    ),
)

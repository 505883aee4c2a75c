"""Which faults time alone has brought: what was seen or judged has become too old to move on."""

from collections.abc import Iterator

from hdguard.core.actions import Halt
from hdguard.core.halts import fault
from hdguard.core.roster import Roster
from hdguard.core.types import HaltCause


def expired(roster: Roster, now: float) -> Iterator[Halt]:
    """A draft for every limit of a required source or brain that has been reached by now."""
    for watched in roster.sources.values():
        if watched.plan.required and now >= watched.frame.halt_at:
            yield fault(HaltCause.STALE_FRAME, watched.plan.source_id)
    for _, lane in roster.required_lanes():
        if now >= lane.verdict.blind.due:
            yield fault(HaltCause.BLIND, lane.source_id, lane.brain.name)
        if now >= lane.verdict.halt_at:
            if roster.sources[lane.source_id].frame.fresh(now):
                yield fault(HaltCause.STALE_VERDICT, lane.source_id, lane.brain.name)
            else:  # nothing was there to be judged: not the brain's fault
                yield fault(HaltCause.STALE_FRAME, lane.source_id)

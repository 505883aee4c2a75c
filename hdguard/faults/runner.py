"""Every fault so many times, one after the other, on stacks that start once per kind of brain."""

import asyncio
import random
import tempfile
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from pathlib import Path

from hdguard.actuators.wire import WireError
from hdguard.faults import (
    brain_faults,
    broker_faults,
    camera_faults,
    daemon_faults,
    disk_faults,
    hostile_faults,
)
from hdguard.faults.rows import FaultError, Outcome, Scenario
from hdguard.faults.stack import Stack, running_stack

SCENARIOS = (
    *camera_faults.SCENARIOS,
    *broker_faults.SCENARIOS,
    *brain_faults.SCENARIOS,
    *daemon_faults.SCENARIOS,
    *hostile_faults.SCENARIOS,
    *disk_faults.SCENARIOS,
)

INJECTION_WITHIN = 30.0
"""Seconds for one injection, with its mending; well above every limit."""

Told = Callable[[Outcome], None]


def chosen(only: Iterable[str]) -> tuple[Scenario, ...]:
    """The scenarios of these rows; none named: all.

    Raises:
        ValueError: there is no row of that name.
    """
    wanted = set(only)
    known = {row.name for scenario in SCENARIOS for row in scenario.rows}
    if missing := sorted(wanted - known):
        msg = f"no fault is called {missing[0]!r}; there are {', '.join(sorted(known))}"
        raise ValueError(msg)
    named = (s for s in SCENARIOS if not wanted or wanted & {row.name for row in s.rows})
    return tuple(named)


async def inject(
    scenarios: Sequence[Scenario], repeat: int, told: Told, *, embedded: bool = False
) -> list[Outcome]:
    """Inject each so many times; one outcome per row, in the order of the scenarios.

    Args:
        scenarios: what to inject.
        repeat: how often.
        told: called with every row that is finished.
        embedded: use the embedded broker even if mosquitto is installed.

    Raises:
        FaultError: the test broker cannot be started.
    """
    outcomes = {id(s): tuple(map(Outcome, s.rows)) for s in scenarios}
    for kind, group in groupby(sorted(scenarios, key=lambda s: s.kind), key=lambda s: s.kind):
        todo = [s for s in group if _can_be_run(s, outcomes[id(s)], told)]
        if not todo:
            continue
        with tempfile.TemporaryDirectory(prefix="hdguard-faults-") as folder:
            async with running_stack(Path(folder), kind, embedded=embedded) as stack:
                for scenario in todo:
                    await _repeat(stack, scenario, outcomes[id(scenario)], repeat)
                    for outcome in outcomes[id(scenario)]:
                        told(outcome)
    return [outcome for s in scenarios for outcome in outcomes[id(s)]]


def _can_be_run(scenario: Scenario, outcomes: Sequence[Outcome], told: Told) -> bool:
    """True if nothing is lacking; else that is told."""
    why = scenario.needs()
    for outcome in outcomes if why else ():
        outcome.not_run = why
        told(outcome)
    return not why


async def _repeat(
    stack: Stack, scenario: Scenario, outcomes: tuple[Outcome, ...], repeat: int
) -> None:
    for _ in range(repeat):
        try:
            if scenario.fresh:
                stack.guard.end()
            await stack.ready()
            # Not in step with the permits and frames, else every injection would be the same one.
            await asyncio.sleep(random.uniform(0.0, 0.2))
            async with asyncio.timeout(INJECTION_WITHIN):
                measured = await scenario.inject(stack)
        except (FaultError, WireError, TimeoutError, OSError) as error:
            for outcome in outcomes:
                outcome.failures.append(str(error) or f"nothing in {INJECTION_WITHIN:g} s")
            await stack.anew()
        else:
            for outcome, seconds in zip(outcomes, measured, strict=True):
                outcome.seconds.append(seconds)

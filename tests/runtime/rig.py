"""Runs a pipeline of doubles in virtual time and keeps what happened, with literal times."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from hdguard.actuators.recording import RecordingActuator
from hdguard.core import actions
from hdguard.core.events import Event, SelfTestPassed
from hdguard.core.guard import Guard
from hdguard.core.policy import SIDECAR, BrainPlan, Policy, SourcePlan
from hdguard.runtime.observer import Judged, Observer
from hdguard.runtime.pipeline import Parts, Pipeline
from hdguard.runtime.virtual_time import run_virtual
from hdguard.workers.base import SlowSeat
from tests.fakes import ListSource, ScriptedFastSeat, Witness

EventT = TypeVar("EventT", bound=Event)
ActionT = TypeVar("ActionT", bound=actions.Action)

REFLEX = BrainPlan("fast", adaptive=False)
"""Samples at 5 FPS at any light."""


def policy_for(
    sources: Sequence[ListSource],
    brains: Sequence[BrainPlan],
    slow: SlowSeat | None,
    /,
    **changes: object,
) -> Policy:
    """`sidecar`, with somebody to watch something; the pictures of doubles may stand still."""
    plans = tuple(SourcePlan(s.source_id, when_frozen="ignore") for s in sources)
    policy = replace(SIDECAR, sources=plans, brains=tuple(brains), slow=slow.name if slow else "")
    return replace(policy, **changes)  # type: ignore[arg-type]


@dataclass
class Played:
    """A run that is over; `quiet`: nothing happened in the 5 s after its end."""

    pipeline: Pipeline
    actuator: RecordingActuator
    witness: Witness
    tasks_left: int
    quiet: bool

    def events(self, kind: type[EventT]) -> list[tuple[float, EventT]]:
        """Every event of that kind with its time."""
        return [(t, e) for t, e, _ in self.witness.steps if isinstance(e, kind)]

    def actions(self, kind: type[ActionT]) -> list[tuple[float, ActionT]]:
        """Every action of that kind with its time."""
        return [(t, a) for t, _, out in self.witness.steps for a in out if isinstance(a, kind)]

    def halts(self) -> list[tuple[float, str]]:
        """Time and cause of every halt when it was first said."""
        return [(t, str(h.cause)) for t, h in self.actions(actions.Halt) if h.repeat == 0]

    def judged(self) -> list[Judged]:
        """The stamps of every frame that a brain answered."""
        return [s for s in self.witness.stamps if isinstance(s, Judged)]

    def sent(self, kind: type[object]) -> list[float]:
        """Times at which the actuator delivered something of that kind."""
        return [round(t, 6) for t, what in self.actuator.sent if isinstance(what, kind)]


def play(
    until: float,
    *sources: ListSource,
    fast: Sequence[ScriptedFastSeat] = (),
    brains: Sequence[BrainPlan] = (REFLEX,),
    slow: SlowSeat | None = None,
    actuator: Callable[[], RecordingActuator] = RecordingActuator,
    observers: Sequence[Observer] = (),
    script: Callable[[Pipeline], None] | None = None,
    **changes: object,
) -> Played:
    """Run in virtual time until that time.

    `script` is called once at the start; it may set timers. `changes` change the policy.
    """
    seats = fast or (ScriptedFastSeat(),)

    async def story() -> Played:
        loop = asyncio.get_running_loop()
        guard = Guard(policy_for(sources, brains, slow, **changes), loop.time())
        witness, way = Witness(), actuator()
        looking = (witness, *observers)
        parts = Parts(sources, {s.name: s for s in seats}, slow, way, looking)
        pipeline = Pipeline(guard, parts)

        async def over() -> None:
            if script is not None:
                script(pipeline)
            await asyncio.sleep(until)

        pipeline.dispatch(SelfTestPassed())
        await pipeline.run(over)
        left = asyncio.all_tasks() - {asyncio.current_task()}
        before = (len(witness.steps), len(way.sent), way._seq)
        await asyncio.sleep(5.0)
        quiet = before == (len(witness.steps), len(way.sent), way._seq)
        return Played(pipeline, way, witness, len(left), quiet)

    return run_virtual(story())

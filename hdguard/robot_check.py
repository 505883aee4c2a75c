"""Plays the guard against a robot, to see whether it keeps its half of the contract (DESIGN, wire).

The robot really moves meanwhile: give it room, and somebody at its stop. It must want to move
whenever it may, else nothing is proven of how it stops.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

from hdguard.actuators import wire
from hdguard.actuators.connection import MqttEndpoint
from hdguard.actuators.lease import LEASE
from hdguard.actuators.signing import unseal
from hdguard.played_guard import CheckError, PlayedGuard

REPORTS_FOR = 1.0
FEWEST_REPORTS = 8
LONGEST_GAP = 0.5
"""Of ten reports a second, in so many seconds; and DESIGN's age at which none is believed."""

MOVES_WITHIN = 5.0
"""Seconds for a robot that may move to say that it does; a choice, it may have to think first."""

DRIVES_FOR = 1.0
"""Seconds that it then drives on, for a robot at speed brakes longest; a choice."""

ACK_WITHIN = 0.5
"""Seconds after which the guard escalates: DESIGN section 3, rule 5."""

SAID_WITHIN = 0.2
"""Seconds for what the robot does to stand in its next report and reach us: twice its period."""

IGNORES_FOR = LEASE + 0.3
"""Seconds of wrong messages: a robot that took one for good would move by then."""


@dataclass(frozen=True, slots=True)
class Row:
    """One thing that was tried.

    Attributes:
        what: in words, as it should be.
        ok: it was so.
        took: seconds, where a time was measured.
        limit: seconds that it may take.
        words: what was seen instead.
    """

    what: str
    ok: bool
    took: float | None = None
    limit: float | None = None
    words: str = ""


class RobotCheck:
    """The rows, one after the other.

    Args:
        endpoint: the broker, as the guard reaches it.
        boot: of the guard that is played, above every guard's that the robot has heard; None: above
            what the broker keeps.
        stop_within: seconds that the robot may brake from full speed.
        told: each row, as soon as it is known.
    """

    def __init__(
        self,
        endpoint: MqttEndpoint,
        boot: int | None,
        stop_within: float,
        told: Callable[[Row], None] = lambda _: None,
    ) -> None:
        self.rows: list[Row] = []
        self._guard = PlayedGuard(endpoint, boot)
        self._loop = asyncio.get_running_loop()
        self._stop_within = stop_within
        self._told = told

    async def run(self) -> tuple[Row, ...]:
        """Try everything; about 13 s with the demo robot.

        Raises:
            CheckError: it cannot be tried.
        """
        guard = self._guard
        async with asyncio.TaskGroup() as group:
            guard.connection.start(group)
            beat = None
            failed: CheckError | None = None
            try:
                await guard.found()
                beat = group.create_task(guard.beat(), name="permits")
                await self._all()
            except CheckError as error:
                failed = error
            if beat is not None:
                beat.cancel()
            await guard.connection.close()
        if failed is not None:
            raise failed
        return tuple(self.rows)

    async def _all(self) -> None:
        await self._reports()
        if not await self._moves("it moves while it may"):
            self._row("the rest", ok=False, words="not tried: a robot that stands proves nothing")
            return
        await self._stops_without_permits()
        await self._ignores_wrong_permits()
        await self._moves("it moves again with the next good permit: a lapsed lease is not latched")
        await self._halts()
        self._guard.permit = None

    def _row(self, what: str, *, ok: bool, took: float | None = None, **more: Any) -> None:
        row = Row(what, ok, took, **more)
        self.rows.append(row)
        self._told(row)

    async def _reports(self) -> None:
        guard = self._guard
        del guard.reports[:-1]
        await asyncio.sleep(REPORTS_FOR)
        heard = guard.reports
        times = [at for at, _ in heard]
        gap = max((b - a for a, b in pairwise(times)), default=REPORTS_FOR)
        seqs = [(said.boot, said.seq) for _, said in heard]
        rising = all(a < b for a, b in pairwise(seqs)) and len({boot for boot, _ in seqs}) == 1
        self._row(
            "it reports ten times a second, numbered upwards, with one boot number",
            ok=len(heard) >= FEWEST_REPORTS and gap <= LONGEST_GAP and rising,
            words=f"{len(heard)} in {REPORTS_FOR:g} s, longest gap {gap:.2f} s",
        )
        self._row("it stands before the first permit", ok=not guard.moving)

    async def _moves(self, what: str) -> bool:
        guard, began = self._guard, self._loop.time()
        guard.permit = guard.made_permit
        ok = await guard.until(lambda: guard.moving, MOVES_WITHIN)
        self._row(what, ok=ok, took=self._loop.time() - began, limit=MOVES_WITHIN)
        if ok:
            await asyncio.sleep(DRIVES_FOR)
        return ok

    async def _stops_without_permits(self) -> None:
        guard = self._guard
        guard.permit = None
        limit = LEASE + self._stop_within + SAID_WITHIN
        ok = await guard.until(lambda: not guard.moving, limit + 1.0)
        took = self._loop.time() - guard.permitted_at
        self._row(
            "it stands 600 ms and its braking after the last permit",
            ok=ok and took <= limit,
            took=took,
            limit=limit,
        )

    async def _ignores_wrong_permits(self) -> None:
        """Each kind, to a robot that stands and must go on standing."""
        guard = self._guard
        first, newest = guard.reports[0][1], guard.reports[-1][1]
        kinds: dict[str, Callable[[], bytes]] = {
            "a permit of an older guard": partial(guard.made_permit, boot=guard.boot - 1),
            "a permit whose number was used before": partial(guard.made_permit, seq=1),
            "an echo of another start of the robot": lambda: guard.made_permit(
                (newest.boot + 1, guard.reports[-1][1].seq)
            ),
            "an echo of a report that is older than 600 ms": partial(
                guard.made_permit, (first.boot, first.seq)
            ),
        }
        if guard.key is not None:
            kinds["a permit without a signature"] = lambda: unseal(
                guard.topics["permit"], guard.made_permit(), guard.key
            )
        for what, make in kinds.items():
            await self._ignores(what, make)

    async def _ignores(self, what: str, make: Callable[[], bytes]) -> None:
        guard = self._guard
        await guard.until(lambda: not guard.moving, self._stop_within + LEASE)
        guard.permit = make
        moved = await guard.until(lambda: guard.moving, IGNORES_FOR)
        guard.permit = None
        self._row(f"{what} does not move it", ok=not moved, words="it moved" if moved else "")

    async def _halts(self) -> None:
        """Permits go on meanwhile, and must not count."""
        guard, began = self._guard, self._loop.time()
        halt_id = await guard.say_halt(active=True)

        def answers(*, stopped: bool) -> list[wire.AckMessage]:
            return [
                ack
                for _, ack in guard.acks
                if (ack.halt_id, ack.guard_boot) == (halt_id, guard.boot)
                and (ack.stopped or not stopped)
            ]

        ok = await guard.until(lambda: bool(answers(stopped=False)), ACK_WITHIN)
        took = self._loop.time() - began
        self._row("it acknowledges a halt", ok=ok, took=took, limit=ACK_WITHIN)
        limit = self._stop_within + SAID_WITHIN
        ok = await guard.until(lambda: bool(answers(stopped=True)), limit)
        took = self._loop.time() - began
        self._row("it says that it stands", ok=ok, took=took, limit=limit)
        if ok:
            stood = await guard.until(lambda: not guard.moving, SAID_WITHIN)
            self._row("its report says so too", ok=stood)
        await guard.until(lambda: not guard.moving, limit)
        before = len(guard.acks)
        await guard.say_halt(active=True)
        again = await guard.until(lambda: len(guard.acks) > before, ACK_WITHIN)
        self._row("it acknowledges the halt's repeat", ok=again)
        await self._stays("permits do not move it while it is halted")
        await guard.say_halt(active=False, boot=guard.boot - 1)
        await self._stays("an older guard's release does not move it")
        await guard.say_halt(active=False)
        await self._moves("it moves again after the release")

    async def _stays(self, what: str) -> None:
        moved = await self._guard.until(lambda: self._guard.moving, IGNORES_FOR)
        self._row(what, ok=not moved, words="it moved" if moved else "")

"""How long the stages take now, for people: the newest frame's, and the last minute's.

Prometheus has the long run. Here stamps are kept as they come and counted when somebody asks.
"""

import math
from collections import deque
from collections.abc import Sequence
from typing import Any

from hdguard.core import events
from hdguard.core.actions import Action, Halt
from hdguard.core.events import Event
from hdguard.runtime.observer import Judged, Reviewed

WINDOW = 60.0  # seconds
MOST = 300
"""Stamps kept of one brain: what 5 frames a second of one camera make in the window."""

JUDGED, REVIEWED = ("sample", "wait", "judge"), ("review",)
UNCOUNTED: dict[str, Any] = {"count": 0, "p50": {}, "p95": {}, "whole": None}

COUNTED_EVERY = 1.0
"""Seconds: percentiles of a minute do not change faster than anybody reads."""


class Latency:
    """An `Observer`.

    Args:
        boot: of the guard; halts of earlier ones were decided on another clock.
    """

    def __init__(self, boot: int) -> None:
        self._boot = boot
        self._stamps: dict[str, deque[Judged | Reviewed]] = {}
        self._halt: Halt | None = None
        self._delivered_at: float | None = None
        self._counted: tuple[float, dict[str, dict[str, Any]]] = (float("-inf"), {})

    def judged(self, stamps: Judged | Reviewed) -> None:
        """Keep them."""
        kept = self._stamps.get(stamps.brain)
        if kept is None:
            kept = self._stamps[stamps.brain] = deque(maxlen=MOST)
        kept.append(stamps)

    def stepped(self, now: float, event: Event, actions: tuple[Action, ...]) -> None:
        """Keep the newest halt of ours, and when the broker had it."""
        match event:
            case events.HaltDelivered() if event.halt_id == self._undelivered():
                self._delivered_at = now
            case _:
                pass
        for action in actions:
            match action:
                case Halt(repeat=0) if action.halt_id.startswith(f"{self._boot}-"):
                    self._halt, self._delivered_at = action, None
                case _:
                    pass

    def _undelivered(self) -> str:
        return self._halt.halt_id if self._halt and self._delivered_at is None else ""

    def report(self, now: float) -> dict[str, Any]:
        """As plain data; all times are seconds."""
        at, counted = self._counted
        if now - at >= COUNTED_EVERY:
            counted = {name: _percentiles(kept, now) for name, kept in self._stamps.items()}
            self._counted = (now, counted)
        brains = [
            {"name": name, "newest": stages(kept[-1]), **counted.get(name, UNCOUNTED)}
            for name, kept in self._stamps.items()
        ]
        return {"brains": brains, "halt": self._of_halt()}

    def _of_halt(self) -> dict[str, Any] | None:
        halt = self._halt
        if halt is None:
            return None
        ref, delivered = halt.ref, self._delivered_at
        return {
            "halt_id": halt.halt_id,
            "decide": None if ref is None else _rounded(halt.decided_at - ref.captured_at),
            "deliver": None if delivered is None else _rounded(delivered - halt.decided_at),
        }


def stages(stamps: Judged | Reviewed) -> dict[str, float]:
    """The stages that these stamps bound, in their order."""
    names = REVIEWED if isinstance(stamps, Reviewed) else JUDGED
    return dict(zip(names, map(_rounded, _spans(stamps)), strict=True))


def _spans(stamps: Judged | Reviewed) -> tuple[float, ...]:
    if isinstance(stamps, Reviewed):
        return (stamps.assessed - stamps.given,)
    captured = stamps.ref.captured_at
    sampled, given = stamps.sampled, stamps.given
    return sampled - captured, given - sampled, stamps.assessed - given


def _percentiles(kept: Sequence[Judged | Reviewed], now: float) -> dict[str, Any]:
    young = [_spans(stamps) for stamps in kept if now - stamps.assessed <= WINDOW]
    if not young:
        return UNCOUNTED
    names = REVIEWED if isinstance(kept[-1], Reviewed) else JUDGED
    columns = zip(*young, strict=True)
    by_stage = [(name, sorted(times)) for name, times in zip(names, columns, strict=True)]
    whole = sorted(map(sum, young))  # the slowest wait and the slowest judgement rarely meet

    def of(share: float) -> dict[str, float]:
        return {name: _rounded(percentile(times, share)) for name, times in by_stage}

    shares = {"p50": 0.5, "p95": 0.95}
    return {
        "count": len(young),
        **{name: of(share) for name, share in shares.items()},
        "whole": {name: _rounded(percentile(whole, share)) for name, share in shares.items()},
    }


def percentile(ordered: Sequence[float], share: float) -> float:
    """The smallest of them that so large a share does not exceed (nearest rank)."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def _rounded(seconds: float) -> float:
    return round(seconds, 4)

"""How old what we know may be. Age counts from capture, so that queueing eats the budget.

Unlike a plain timeout, zero is not "off": a source is required, optional, or not configured.
"""

import math
from dataclasses import dataclass

from hdguard.core.debounce import Hold, Streak
from hdguard.core.policy import HIGH_FPS, LOW_FPS
from hdguard.core.types import FrameRef, Light

USUAL_DEADLINE = 0.4
"""Seconds; a brain that is allowed more gets twice the difference on its age limits."""

BLIND_YELLOW = 1.0
BLIND_HALT = 5.0
"""Seconds of CannotSee after which the source is YELLOW, and the robot halts (DESIGN 3)."""

FROZEN_DEGRADED = 3.0
FROZEN_HALT = 1.0
"""Seconds without a change of the picture: from then on it may be a frozen one, and, if the robot
has moved all the while, it is one. Choices."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Ages in seconds at which something is degraded, and at which the robot halts."""

    degraded: float
    halt: float


def frame_limits(interval: float) -> Limits:
    """Limits of the newest frame's age; `interval` is the source's declared one in seconds."""
    return Limits(max(0.5, 1.5 * interval), max(1.0, 2.5 * interval))


def verdict_limits(fps: float, deadline: float | None, interval: float) -> Limits:
    """Limits of the newest verdict's age; without a deadline there are none.

    A source slower than the sampling rate sets the pace, so its frame limits are the least.
    """
    if deadline is None:
        return Limits(math.inf, math.inf)
    degraded, halt = (0.5, 1.0) if fps >= HIGH_FPS else (1.5, 2.5)
    slack = 2.0 * max(0.0, deadline - USUAL_DEADLINE)
    frame = frame_limits(interval)
    return Limits(max(degraded, frame.degraded) + slack, max(halt, frame.halt) + slack)


class FrameAge:
    """The newest clean frame of one source."""

    def __init__(self, interval: float) -> None:
        self.interval = interval
        self.newest: float | None = None
        self.up = True
        self.ended = False

    def seen(self, captured_at: float) -> None:
        """A clean frame was decoded; an older one than the newest changes nothing."""
        if self.newest is None or captured_at > self.newest:
            self.newest = captured_at

    @property
    def degraded_at(self) -> float:
        """The time at which the newest frame is too old to be sure; minus infinity if none."""
        if self.newest is None:
            return -math.inf
        return self.newest + frame_limits(self.interval).degraded

    @property
    def halt_at(self) -> float:
        """The time at which the newest frame is too old to move; infinity before the first."""
        if self.newest is None or self.ended:
            return math.inf
        return self.newest + frame_limits(self.interval).halt

    def fresh(self, now: float) -> bool:
        """True while the source is up and its newest frame is young."""
        return self.up and not self.ended and now < self.degraded_at


class Stillness:
    """How long the picture of one source has not changed, told by its frames alone.

    Where no frame comes, the picture is not frozen but stale, which `FrameAge` tells.
    """

    def __init__(self) -> None:
        self.changed_at = -math.inf
        self._since: float | None = None
        self._until = -math.inf

    def seen(self, captured_at: float, *, frozen: bool) -> None:
        """A frame was looked at. The very first proves neither rest nor change."""
        if self._since is None:
            self._since = captured_at
        elif not frozen:
            self._since = self.changed_at = captured_at
        self._until = max(self._until, captured_at)

    def lasts(self, since: float = -math.inf) -> float:
        """Seconds up to the newest frame without a change, counted from `since` at the earliest."""
        return 0.0 if self._since is None else self._until - max(self._since, since)


class VerdictAge:
    """What one brain last said of one source, and until when that may be believed."""

    def __init__(self, deadline: float | None, fps: float) -> None:
        self.deadline = deadline
        self.fps = fps
        self.light: Light | None = None
        self.newest: FrameRef | None = None
        self.degraded_at = -math.inf
        self.halt_at = math.inf
        self.greens = Streak()
        self.failures = Streak()
        self.blind = Hold(BLIND_HALT)

    def limits(self, interval: float) -> Limits:
        """Age limits at the present rate."""
        return verdict_limits(self.fps, self.deadline, interval)

    def follows(self, ref: FrameRef) -> bool:
        """True if this frame is newer than every frame answered so far."""
        return self.newest is None or ref.captured_at > self.newest.captured_at

    def answered(self, ref: FrameRef, interval: float) -> None:
        """The brain answered this frame, with a verdict or with CannotSee."""
        self.newest = ref
        self.failures.end()
        limits = self.limits(interval)
        self.degraded_at = ref.captured_at + limits.degraded
        self.halt_at = ref.captured_at + limits.halt

    def judged(self, light: Light) -> None:
        """The answer was this light."""
        self.light = light
        self.blind.since = None
        if light is Light.GREEN:
            self.greens.add()
        else:
            self.greens.end()

    def set_rate(self, fps: float, interval: float, now: float) -> None:
        """The sampling rate changed.

        A rise shortens the expiry to rise + the 5 FPS limit at the most. A fall gives the newest
        verdict the limit that it would have had if it had come after the fall: else, of two brains
        that judged the same frame, the one that answered first would go stale.
        """
        self.fps = fps
        if self.newest is None:
            return
        limits = self.limits(interval)
        if fps > LOW_FPS:
            self.degraded_at = min(self.degraded_at, now + limits.degraded)
            self.halt_at = min(self.halt_at, now + limits.halt)
        else:
            self.degraded_at = max(self.degraded_at, self.newest.captured_at + limits.degraded)
            self.halt_at = max(self.halt_at, self.newest.captured_at + limits.halt)

    def fresh(self, now: float) -> bool:
        """True while the newest answer is a verdict, and young, and no failure came after it."""
        return (
            self.light is not None
            and self.blind.since is None
            and self.failures.count == 0
            and now < self.degraded_at
        )

    def yellow_at(self) -> float:
        """The time at which blindness becomes YELLOW; infinity while the brain sees."""
        return math.inf if self.blind.since is None else self.blind.since + BLIND_YELLOW

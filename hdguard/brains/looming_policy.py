"""What the reflex concludes from what it measured: contacts that agree, sudden motion, the light.

Pure: no pixels and no clock, so that each rule can be tested by itself. `embedded.md`, section 7,
is the policy; its numbers are here.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from hdguard.brains.regions import Body
from hdguard.core.types import Light

SMALLEST = 0.01  # of the frame; what is smaller cannot alarm
MOST_MISS = 1.0  # widths of the body between its centre and where it meets the camera plane
MEMORY = 1.0  # seconds; older predictions confirm nothing, nor do those before the last two
EXPECTED = 1.0  # seconds for which an agreed contact stands for a body that is not measured
CALM = 1.0  # seconds of clear frames before a light is left
LARGE = 0.05  # of the frame; an unmeasured body of this size keeps RED
SUDDEN_Z = 6.0
SUDDEN_SPEED = 0.4  # frame widths a second
SUDDEN_INLIERS = 0.5  # of the camera's motion
_SUDDEN_FRAMES = 15
_SUDDEN_LEAST = 5  # frames to know what is usual here
_SUDDEN_FLOOR = 0.01  # frame widths a second times root of size: flow noise


@dataclass(frozen=True, slots=True)
class Contact:
    """A contact that at least two frames predict.

    Attributes:
        at: when the prediction was made, seconds.
        instant: when it will be, seconds on the same clock.
        size: share of the frame that the body fills.
        miss: see `Body.miss`.
        background: the camera itself drives at it.
    """

    at: float
    instant: float
    size: float
    miss: float
    background: bool

    def tau(self, t: float) -> float:
        """Seconds that are left at t."""
        return self.instant - t


def agree(tau: float, one: float, other: float) -> bool:
    """Whether two predicted instants are one contact, the nearer prediction being tau seconds."""
    return abs(one - other) <= 0.35 * max(0.4, tau) + 0.1


class Looming:
    """Follows bodies from frame to frame and keeps the contacts that two frames agree on."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[tuple[float, float], ...]] = {}
        self._agreed: dict[int, Contact] = {}

    def forget(self) -> None:
        """Start afresh: what was seen before has no bearing on what comes."""
        self._known.clear()
        self._agreed.clear()

    def update(self, t: float, bodies: Iterable[Body]) -> Contact | None:
        """The nearest contact that is agreed on, if any; t in seconds, ascending.

        A body that can no longer be measured is still expected when it was: flow collapses just
        before contact, and sooner when frames are missing.
        """
        known: dict[int, tuple[tuple[float, float], ...]] = {}
        agreed: dict[int, Contact] = {}
        for body in bodies:
            earlier = {p for parent in body.parents for p in self._known.get(parent, ())}
            recent = _newest(p for p in earlier if t - p[0] <= MEMORY)
            found = None
            if comes_at_us(body):
                instant = t + body.tau
                if any(agree(body.tau, instant, other) for _, other in recent):
                    found = Contact(t, instant, body.size, body.miss, body.label == 0)
                recent = (*recent, (t, instant))
            elif not body.measured:
                found = self._expected(t, body)
            known[body.label] = recent
            if found is not None:
                agreed[body.label] = found
        self._known, self._agreed = known, agreed
        large = (c for c in agreed.values() if c.size >= SMALLEST)
        return min(large, key=lambda c: c.instant, default=None)

    def _expected(self, t: float, body: Body) -> Contact | None:
        old = (self._agreed[p] for p in body.parents if p in self._agreed)
        young = (c for c in old if t - c.at <= EXPECTED)
        return min(young, key=lambda c: c.instant, default=None)


def _newest(predictions: Iterable[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
    ordered = sorted(predictions)
    times = {t for t, _ in ordered}
    return tuple(p for p in ordered if p[0] in sorted(times)[-2:])


def comes_at_us(body: Body) -> bool:
    """Whether the body is seen to approach on a path that ends at the camera."""
    return body.measured and body.tau < float("inf") and body.miss < MOST_MISS


class Sudden:
    """Notices a body that is suddenly fast, by how fast things usually are here."""

    def __init__(self) -> None:
        self._usual: deque[float] = deque(maxlen=_SUDDEN_FRAMES)

    def update(self, bodies: Sequence[Body], inliers: float, camera: float) -> Body | None:
        """The body that is suddenly fast, if any.

        Args:
            bodies: of this frame, the background first.
            inliers: share of the picture that the camera's motion explains.
            camera: the camera's own speed, frame widths a second: while it is not well below the
                body's, the body may be nothing but ill-measured background.
        """
        moving = [b for b in bodies[1:] if b.size >= SMALLEST]
        if inliers < SUDDEN_INLIERS or any(comes_at_us(b) and b.tau < 10 for b in bodies[:1]):
            return None
        fastest = max(moving, key=_strength, default=None)
        found = None
        if fastest is not None and len(self._usual) >= _SUDDEN_LEAST:
            middle = median(self._usual)
            spread = 1.4826 * median(abs(v - middle) for v in self._usual)
            z = (_strength(fastest) - middle) / (spread + _SUDDEN_FLOOR)
            fast = fastest.speed > max(SUDDEN_SPEED, 2 * camera)
            found = fastest if z > SUDDEN_Z and fast else None
        self._usual.append(_strength(fastest) if fastest is not None else 0.0)
        return found


def _strength(body: Body) -> float:
    return float(body.speed * body.size**0.5)


class Latch:
    """The light that is shown: it rises at once and falls only after a second of clear frames."""

    def __init__(self) -> None:
        self._last = {Light.YELLOW: float("-inf"), Light.RED: float("-inf")}
        self.light = Light.GREEN

    def update(self, t: float, wanted: Light, *, shown: bool) -> Light:
        """The light at t seconds.

        Args:
            t: ascends.
            wanted: by this frame alone.
            shown: everything of size in the frame was measured. Flow collapses just before
                contact, so RED is left only when a frame shows what is there, not when nothing
                can be measured.
        """
        for level in self._last:
            if wanted >= level:
                self._last[level] = t
        if self.light is Light.RED and not shown:
            self._last[Light.RED] = t
        held = [level for level, last in self._last.items() if t - last < CALM]
        self.light = max(held, default=Light.GREEN)
        return self.light


def everything_shown(bodies: Sequence[Body]) -> bool:
    """Whether the background and every large body were measured."""
    return all(b.measured or (b.label > 0 and b.size < LARGE) for b in bodies)

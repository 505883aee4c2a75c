"""The embedded SlowBrain: measures the whole window again, wider, and lets the frames vote.

The reflex decides on two frames. A review has up to sixteen: it follows each body through all of
them, fits the instant of contact robustly, sees whether the body brakes, and answers with numbers.

It is blind to what the reflex is blind to (see `reflex`). What it cannot see it does not call
safe: it raises, and the review counts as failed.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import cv2
import numpy as np

from hdguard.brains.base import BrainError, Shot
from hdguard.brains.clarity import unclear, vague
from hdguard.brains.contact_fit import (
    ENOUGH,
    Approach,
    Track,
    Tracks,
    contradicts,
    fit_approach,
    outline_grows,
)
from hdguard.brains.flame import FlameWatch, small
from hdguard.brains.flow import FlowMeter, Picture
from hdguard.brains.looming_policy import LARGE, MOST_MISS, SMALLEST
from hdguard.brains.regions import Sight, find_bodies
from hdguard.core.events import SlowVerdict
from hdguard.core.types import FrameRef, Hazard, ImageSpec

FIRE = 0.005  # of the frame; a candle or a burnt-in digit is smaller, and is left to the light
GAP = 0.5  # seconds between two frames beyond which a body is not followed
REPEATED = 0.6  # seconds; see `reflex.REPEATED`
MEMORY = 1.0  # seconds for which an agreed contact outlives the sight of it


@dataclass(frozen=True, slots=True)
class ReflexSlowSettings:
    """Settings of a `ReflexSlowBrain`.

    Attributes:
        name: the brain's name.
        horizon: seconds; a contact sooner than this is a danger. The FastBrain's T_yellow.
        width: pixels of the picture to ask for; the aspect ratio is kept.
        seconds: declared time for one review, for the virtual pace.
    """

    name: str = "reflex-slow"
    horizon: float = 2.5
    width: int = 640
    seconds: float = 0.4

    def __post_init__(self) -> None:
        for name, least in (("horizon", 0.1), ("seconds", 0.0)):
            if not least <= getattr(self, name) <= 60.0:
                msg = f"{name}: {getattr(self, name)} must be {least} to 60 seconds"
                raise ValueError(msg)
        if not 128 <= self.width <= 4096:
            msg = f"width: {self.width} must be 128 to 4096 pixels"
            raise ValueError(msg)

    @property
    def spec(self) -> ImageSpec:
        """The picture that the brain will ask for."""
        return ImageSpec(self.width)


class _Stretch:
    """Frames in a row whose motion can be judged."""

    def __init__(self, first: Shot) -> None:
        self.tracks = Tracks()
        self.frames = 1
        self.flame: float | None = None  # its share of the newest frame, if it burnt throughout
        self.poor = ""  # why bodies may go unseen in the newest frame
        self.end = self._t = first.ref.media_time
        self._picture = Picture.of(first.rgb)
        self._sight = Sight((), np.zeros_like(self._picture.half))
        # A flicker takes three changes to show, and these must go on for four frames: with the
        # first frame that is all of a window of eight, or nearly.
        self._flames = FlameWatch(frames=4)
        self._flames.start(small(first.rgb))

    def add(self, shot: Shot, meter: FlowMeter) -> str:
        """Measure the next frame; returns why it cannot be judged, empty if it can."""
        t, now = shot.ref.media_time, Picture.of(shot.rgb)
        dt = t - self._t
        if not 0 < t - self.end <= GAP:
            return f"frames {t - self.end:.1f} s apart"
        if now.grey.shape != self._picture.grey.shape:
            return "the picture changed its size"
        if dt <= REPEATED and np.array_equal(now.grey, self._picture.grey):
            self.frames, self.end = self.frames + 1, t
            return ""
        motion = meter.between(self._picture, now)
        reason = unclear(motion, self._picture, now)
        if reason or motion.ego is None:
            return vague(motion, now) or reason
        self._sight = find_bodies(motion, motion.ego, self._picture, now, dt, self._sight)
        self.tracks.add(t, self._sight)
        self.poor = vague(motion, now)
        self.flame = self._flames.update(small(shot.rgb), motion.ego)
        self._picture, self._t, self.end = now, t, t
        self.frames += 1
        return ""


class ReflexSlowBrain:
    """Reviews by the motion in the whole window.

    Danger: a contact within the horizon that at least three frames agree on, unless the body
    brakes enough to stop short; or a flame of half a percent of the frame that burns throughout
    the newest second and more, because nothing here can tell a tended fire from another, and fire
    grows.
    """

    Settings: ClassVar[type] = ReflexSlowSettings

    def __init__(self, settings: ReflexSlowSettings) -> None:
        cv2.setNumThreads(1)
        self._settings = settings

    @property
    def name(self) -> str:
        """The name that warnings carry."""
        return self._settings.name

    @property
    def spec(self) -> ImageSpec:
        """The picture it wants."""
        return self._settings.spec

    def review(self, review_id: int, trigger: FrameRef, shots: tuple[Shot, ...]) -> SlowVerdict:
        """Answer the review; shots are oldest first, of one source, at any distance in time.

        Raises:
            BrainError: the newest frames cannot be judged, or a large body in them cannot; or the
                pictures are too small.
        """
        mine = [s for s in shots if s.ref.source_id == trigger.source_id]
        if not mine:
            raise BrainError("the window holds no frame of the trigger's source")
        seen, older, reason = _newest_stretches(mine)
        nearest = _nearest((seen, older), mine[-1].ref.media_time)
        if nearest is not None and nearest.tau < self._settings.horizon:
            return SlowVerdict(review_id, True, Hazard("C2", "", _contact(nearest)))
        if seen.flame is not None and seen.flame >= FIRE and not reason:
            text = f"open flame: hot colour flickers on {seen.flame:.1%} of the picture throughout"
            return SlowVerdict(review_id, True, Hazard("C3", "", text))
        if reason or seen.poor:
            raise BrainError(f"the newest frames cannot be judged: {reason or seen.poor}")
        for track in seen.tracks.ends.values():
            self._refuse_unclear(track, mine[-1])
        return SlowVerdict(review_id, False, Hazard("", "", _all_clear(nearest, seen)))

    def cost(self, trigger: FrameRef) -> float:
        """Seconds that a review is declared to take."""
        return self._settings.seconds

    def _refuse_unclear(self, track: Track, shot: Shot) -> None:
        """Raise if a body may be approaching for all that can be told."""
        horizon = self._settings.horizon
        if fit_approach(track, shot.ref.media_time) is None and contradicts(track, horizon):
            raise BrainError("frames see a contact but contradict each other about when")
        size = track[-1].body.size
        if size < LARGE or any(s.body.measured for s in track[-2:]):
            return
        if outline_grows(track, horizon, (shot.rgb.shape[1], shot.rgb.shape[0])):
            raise BrainError(f"a body of {size:.0%} of the picture moves and cannot be measured")


def _newest_stretches(shots: Sequence[Shot]) -> tuple[_Stretch, _Stretch | None, str]:
    """The stretch that ends at the newest frame, the usable one before it, if any, and a reason.

    The reason says why the newest one cannot be judged; it is empty if it can.
    """
    meter = FlowMeter()
    stretch, older, reason = _Stretch(shots[0]), None, ""
    for shot in shots[1:]:
        if why := stretch.add(shot, meter):
            older = stretch if stretch.frames >= ENOUGH else older
            stretch, reason = _Stretch(shot), why
    if stretch.frames >= ENOUGH:
        return stretch, older, ""
    few = f"only {stretch.frames} frames in a row, {ENOUGH} are needed"
    return stretch, older, f"{reason}; {few}" if reason else few


def _nearest(stretches: tuple[_Stretch, _Stretch | None], now: float) -> Approach | None:
    """The nearest contact; one agreed on before the view broke off is not forgotten at once."""
    found: list[Approach] = []
    for stretch in stretches:
        if stretch is None or now - stretch.end > MEMORY:
            continue
        # Three frames hold two predictions, and what two frames agree on is not safe.
        enough = ENOUGH if stretch.frames > ENOUGH + 1 else 2
        fits = (fit_approach(t, now, enough) for t in stretch.tracks.ends.values())
        found += [f for f in fits if f and f.size >= SMALLEST and f.miss < MOST_MISS]
    return min(found, key=lambda f: f.tau, default=None)


def _contact(found: Approach) -> str:
    who = "the camera meets what fills" if found.background else "a body meets the camera, now"
    return (
        f"contact in {found.tau:.1f} s by {found.count} frames that agree within "
        f"{found.spread:.2f} s: {who} {found.size:.0%} of the picture, "
        f"{found.miss:.1f} widths off centre"
    )


def _all_clear(nearest: Approach | None, seen: _Stretch) -> str:
    if nearest is None:
        return f"nothing comes at the camera in {seen.frames} frames"
    if nearest.tau == math.inf:
        return f"what comes at the camera brakes and stops short, by {nearest.count} frames"
    return f"the nearest contact is {nearest.tau:.1f} s away, by {nearest.count} frames"

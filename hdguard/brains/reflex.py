"""The embedded FastBrain: time to contact from dense flow, without any model.

What approaches grows in the picture, and how fast it grows gives the time to contact without
knowing size, distance or speed. The reflex separates the camera's own motion from that of bodies,
follows each, and warns when two frames predict the same instant of contact on a path that ends at
the camera. Open flame and sudden motion end in YELLOW; only a contact makes RED.

What it cannot see:

- what a scene means: a knife, a wet floor, a child about to pull a cord. On the three real
  HomeSafe-Bench clips at hand it has 0 RED: nothing in them comes at the camera. With their clock
  masked its only YELLOW is the flicker about a heater (152, from 4.6 s), which is a cue by luck;
  unmasked, the clock's red digits read as a flame in the other two;
- sudden motion, while the camera itself drives at something less than 10 s away;
- blank walls and other surfaces without texture (a wholly blank view is `CannotSee`, a blank
  surface in a textured view is a miss: it needs a depth sensor or a bumper);
- motion across the view or away from the camera, and so one thing about to hit another: one view
  has no depth;
- a contact that is hidden from view or lies outside it;
- anything below 1 % of the frame, and contacts more than about 2.5 s away;
- the difference between a frozen picture and a still scene;
- that a burnt-in red clock is no flame: hide it with the source's `ignore_regions`
  (0, .10, .17, .27 for HomeSafe-Bench).

The method is that of `embedded.md`, sections 3 to 7, developed on synthetic scenes
(`tests/brains/scenes.py`). No number was fitted to the real clips; one rule was narrowed after a
false "sudden" on clip 152 (`regions._moved`: only jumps that the flow cannot follow count).
"""

from collections import OrderedDict
from dataclasses import dataclass
from typing import ClassVar

import cv2
import numpy as np

from hdguard.brains.base import Rgb, Shot
from hdguard.brains.clarity import unclear, vague
from hdguard.brains.flame import FlameWatch, small
from hdguard.brains.flow import FlowMeter, Picture, Similarity
from hdguard.brains.looming_policy import Contact, Latch, Looming, Sudden, everything_shown
from hdguard.brains.regions import Body, Sight, find_bodies
from hdguard.core.events import CannotSee, FastVerdict
from hdguard.core.types import NO_HAZARD, FrameRef, Hazard, ImageSpec, Light

SOURCES = 16  # remembered at once; the one that was seen longest ago is forgotten
GAP = 1.0  # seconds between frames beyond which motion says nothing
REPEATED = 0.6  # seconds for which an unchanged picture counts as the same frame sent again
PASSED = 1.0  # seconds after its instant at which an unseen contact is no news any more
EARLY = 0.97  # of tau; its median error is 3 % (section 4), and a frame later may be too late


@dataclass(frozen=True, slots=True)
class ReflexSettings:
    """Settings of a `ReflexFastBrain`; times in seconds (`embedded.md`, section 7).

    Attributes:
        name: the brain's name.
        actuation: from the halt to the brakes.
        braking: v / a of the robot: from the brakes to standstill.
        margin: on top of both.
        slow_p99: 99th percentile of a review's time: the deadline of 1.0 s, and the way to it.
        frame: time between the frames that it judges.
        width: pixels of the picture to ask for; the aspect ratio is kept.
        seconds: declared time for one frame, for the virtual pace.
    """

    name: str = "reflex"
    actuation: float = 0.1
    braking: float = 0.6
    margin: float = 0.3
    slow_p99: float = 1.3
    frame: float = 0.2
    width: int = 448
    seconds: float = 0.06

    def __post_init__(self) -> None:
        for name in ("actuation", "braking", "margin", "slow_p99", "frame", "seconds"):
            if not 0.0 <= getattr(self, name) <= 60.0:
                msg = f"{name}: {getattr(self, name)} must be 0 to 60 seconds"
                raise ValueError(msg)
        if not 128 <= self.width <= 4096:
            msg = f"width: {self.width} must be 128 to 4096 pixels"
            raise ValueError(msg)

    @property
    def spec(self) -> ImageSpec:
        """The picture that the brain will ask for."""
        return ImageSpec(self.width)

    @property
    def red(self) -> float:
        """T_red: a contact nearer than this leaves no time for a review."""
        return self.actuation + self.braking + self.margin

    @property
    def yellow(self) -> float:
        """T_yellow: a contact nearer than this is reviewed, and the review ends before T_red."""
        return self.red + self.slow_p99 + self.frame


class ReflexFastBrain:
    """Judges each frame by the motion since the one before, per source.

    The first frame of a source, and the first after a gap, is `CannotSee`: one picture shows no
    motion.
    """

    Settings: ClassVar[type] = ReflexSettings
    adaptive: ClassVar[bool] = False  # at 1 and 2 FPS it misses (`embedded.md`, section 4)

    def __init__(self, settings: ReflexSettings) -> None:
        cv2.setNumThreads(1)  # more threads cost twice the time for no gain (section 2)
        self._settings = settings
        self._views: OrderedDict[str, _View] = OrderedDict()

    @property
    def name(self) -> str:
        """The name that verdicts carry."""
        return self._settings.name

    @property
    def spec(self) -> ImageSpec:
        """The picture it wants."""
        return self._settings.spec

    def assess(self, shot: Shot) -> FastVerdict | CannotSee:
        """Judge the frame; frames of a source come in order, some may be missing.

        Raises:
            BrainError: the picture is too small.
        """
        source = shot.ref.source_id
        view = self._views.get(source)
        if view is None or view.t >= shot.ref.media_time or view.shape != shot.rgb.shape:
            view = self._views[source] = _View(self._settings)
        self._views.move_to_end(source)
        if len(self._views) > SOURCES:
            self._views.popitem(last=False)
        return view.judge(shot)

    def cost(self, ref: FrameRef) -> float:
        """Seconds that judging a frame is declared to take."""
        return self._settings.seconds


class _View:
    """What is known of one source."""

    def __init__(self, settings: ReflexSettings) -> None:
        self._settings = settings
        self._meter = FlowMeter()
        self._looming = Looming()
        self._sudden = Sudden()
        self._flame = FlameWatch()
        self._latch = Latch()
        self._picture: Picture | None = None
        self._pictured = 0.0  # when
        self._sight = Sight((), np.zeros((0, 0), np.uint8))
        self._contact: Contact | None = None
        self._hazard = NO_HAZARD
        self._blind = "first frame"
        self.t = float("-inf")
        self.shape: tuple[int, ...] = ()

    def judge(self, shot: Shot) -> FastVerdict | CannotSee:
        """Judge the next frame."""
        self.t, self.shape = shot.ref.media_time, shot.rgb.shape
        before, then = self._picture, self._pictured
        now = Picture.of(shot.rgb)
        dt = self.t - then
        if before is not None and np.array_equal(before.grey, now.grey):
            if self._contact is not None:  # what comes nearer cannot look the same again
                self._lost("the picture repeats")
                return self._answer(shot.ref)
            if dt <= REPEATED:
                return self._answer(shot.ref)
        self._picture, self._pictured = now, self.t
        if before is None or dt > GAP:
            self._forget(shot.rgb)
            self._lost("first frame" if before is None else f"no frame for {dt:.1f} s")
            return self._answer(shot.ref)
        motion = self._meter.between(before, now)
        poor = vague(motion, now)
        reason = unclear(motion, before, now)
        if reason or motion.ego is None:
            self._forget(shot.rgb)
            self._lost(poor or reason)
            return self._answer(shot.ref)
        sight = find_bodies(motion, motion.ego, before, now, dt, self._sight)
        self._sight = sight
        self._conclude(sight, motion.ego, dt, self._flame.update(small(shot.rgb), motion.ego))
        # A poor picture may show a contact, but it cannot show that there is none.
        self._blind = poor if self._latch.light is Light.GREEN else ""
        return self._answer(shot.ref)

    def _answer(self, ref: FrameRef) -> FastVerdict | CannotSee:
        if self._blind and self._latch.light is not Light.RED:
            return CannotSee(ref, self._settings.name, self._blind)
        light = self._latch.light
        hazard = self._hazard if light > Light.GREEN else NO_HAZARD
        return FastVerdict(ref, self._settings.name, light, hazard)

    def _forget(self, rgb: Rgb) -> None:
        """Take this frame as the first of what comes."""
        self._sight = Sight((), np.zeros((rgb.shape[0] // 2, rgb.shape[1] // 2), np.uint8))
        self._looming.forget()
        self._flame.start(small(rgb))

    def _lost(self, reason: str) -> None:
        """Nothing can be measured; a contact that was agreed on still comes nearer."""
        self._blind = reason
        left = self._contact.tau(self.t) if self._contact is not None else float("inf")
        near = EARLY * left < self._settings.red and left > -PASSED
        if near and self._latch.light < Light.RED:
            text = f"{self._hazard.text}; {left:.1f} s of it are left, and now: {reason}"
            self._hazard = Hazard(self._hazard.category, "", text)
        self._latch.update(self.t, Light.RED if near else Light.GREEN, shown=False)

    def _conclude(self, sight: Sight, ego: Similarity, dt: float, flame: float | None) -> None:
        contact = self._looming.update(self.t, sight.bodies)
        height, width, _ = self.shape
        camera = abs(ego.move(complex(width / 2, height / 2))) / width / dt
        sudden = self._sudden.update(sight.bodies, ego.inliers, camera)
        wanted = Light.GREEN
        self._contact = None
        tau = EARLY * contact.tau(self.t) if contact is not None else float("inf")
        if tau < self._settings.yellow:
            self._contact = contact
            wanted = Light.RED if tau < self._settings.red else Light.YELLOW
        elif flame is not None or sudden is not None:
            wanted = Light.YELLOW
        if wanted >= self._latch.light and wanted > Light.GREEN:
            self._hazard = _hazard(self.t, self._contact, flame, sudden)
        self._latch.update(self.t, wanted, shown=everything_shown(sight.bodies))


def _hazard(t: float, contact: Contact | None, flame: float | None, sudden: Body | None) -> Hazard:
    if contact is not None:
        return Hazard("C2", "", describe(contact, t))
    if flame is not None:
        return Hazard("C3", "", f"open flame: hot colour flickers on {flame:.1%} of the picture")
    if sudden is not None:
        speed = f"{sudden.speed:.1f} frame widths a second"
        return Hazard("", "", f"{sudden.size:.0%} of the picture suddenly moves at {speed}")
    return NO_HAZARD


def describe(contact: Contact, t: float) -> str:
    """The contact in one sentence, at t seconds."""
    who = "the camera meets what fills" if contact.background else "a body meets the camera, now"
    return (
        f"contact in {contact.tau(t):.1f} s: {who} {contact.size:.0%} of the picture, "
        f"{contact.miss:.1f} widths off centre"
    )

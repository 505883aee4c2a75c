"""Which frames a SlowBrain is shown, as data, and the bounded memory that they come from.

`released` and `paper` choose among the frames that were given to FastBrains (arXiv 2603.11975: the
released code shows the last 4 of a buffer of 10, the paper's appendix t-2, t-1 and t). `memory`
chooses among frames kept at 5 FPS whatever the FastBrain's rate, and adds key frames from the past,
because the decisive cue may be seen only long before the trigger:

- lights: the frame before each change of light;
- scenes: the last frame of the old scene, where the cue may have been seen for the last time, and
  the first of the new one, whose other frames the newest will be;
- sights: the frame in which a person or an object is named for the first time, or again after
  nobody named it for `SIGHT_AGAIN` seconds.

Each kind has a limit of its own, so that a flickering light cannot wash out what was seen, nor a
turning camera what was judged. In a kind that is full, the frame goes that stands closest behind
another, measured against its age: what came in a burst is thinned, what is recent is kept denser
than what is old, and neither the oldest nor the newest is the first to go. After `SPAN` seconds
every key frame is forgotten.
"""

from collections import deque
from dataclasses import dataclass

from hdguard.core.policy import HIGH_FPS, Window
from hdguard.core.types import FrameRef, Light


@dataclass(frozen=True, slots=True)
class WindowPlan:
    """One way to choose.

    Attributes:
        fps: frames are kept at this rate; 0: the frames that a FastBrain is given.
        recent: how many of the newest frames are remembered.
        lights: how many frames before a change of light are remembered beside them.
        scenes: how many frames at a change of scene.
        sights: how many first sights of something that a brain names.
    """

    fps: float
    recent: int
    lights: int = 0
    scenes: int = 0
    sights: int = 0


PLANS: dict[Window, WindowPlan] = {
    "released": WindowPlan(fps=0.0, recent=10),
    "paper": WindowPlan(fps=0.0, recent=16),
    "memory": WindowPlan(fps=HIGH_FPS, recent=8, lights=7, scenes=4, sights=4),
}
"""`memory` shows 24 frames at most, the trigger included: it may be none of the 23."""

TOLERANCE = 1e-4
"""Seconds; see `sampling.TOLERANCE`."""

SIGHT_AGAIN = 60.0
"""Seconds; a choice: who was out of sight for a minute is news."""

SPAN = 600.0
"""Seconds; a choice: what was seen ten minutes ago belongs to another task of the robot's."""


class KeyFrames:
    """Frames of one kind from the past, at most so many, oldest first."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._refs: list[FrameRef] = []

    @property
    def refs(self) -> tuple[FrameRef, ...]:
        """What is remembered."""
        return tuple(self._refs)

    def add(self, ref: FrameRef) -> None:
        """Remember this one too; the one that says the least goes if there are too many."""
        if ref in self._refs:
            return
        times = [r.captured_at for r in self._refs]
        self._refs.insert(sum(t <= ref.captured_at for t in times), ref)
        if len(self._refs) > self._most:
            del self._refs[self._crowded()]

    def forget(self, before: float) -> None:
        """Forget what was captured before that time."""
        self._refs = [r for r in self._refs if r.captured_at >= before]

    def _crowded(self) -> int:
        """The frame whose distance from the one before is the smallest part of that one's age."""
        times = [r.captured_at for r in self._refs]

        def part(index: int) -> float:
            before = times[index - 1]
            return (times[index] - before) / max(times[-1] - before, TOLERANCE)

        return min(range(1, len(times)), key=part, default=0)


class ReviewWindow:
    """The frames of one source that a review may show."""

    def __init__(self, window: Window) -> None:
        self._window = window
        plan = PLANS[window]
        self._recent: deque[FrameRef] = deque(maxlen=plan.recent)
        self._lights = KeyFrames(plan.lights)
        self._scenes = KeyFrames(plan.scenes)
        self._sights = KeyFrames(plan.sights)
        self._kinds = (self._lights, self._scenes, self._sights)
        self._named: dict[str, float] = {}
        self._light: Light | None = None

    def keep(self, ref: FrameRef, *, scene_change: bool = False) -> None:
        """Remember this frame; frames come in order of capture."""
        if scene_change:
            for each in (*list(self._recent)[-1:], ref):
                self._scenes.add(each)
        self._recent.append(ref)
        for kind in self._kinds:
            kind.forget(ref.captured_at - SPAN)

    def judged(self, ref: FrameRef, light: Light) -> None:
        """Note a frame's light; at a change, the newest kept frame before it is a key frame."""
        if self._light is not None and light is not self._light:
            earlier = [r for r in self._recent if r.captured_at < ref.captured_at]
            for each in earlier[-1:]:
                self._lights.add(each)
        self._light = light

    def named(self, ref: FrameRef, sights: tuple[str, ...]) -> None:
        """Note what a brain names in a frame; something new makes it a key frame.

        The frame may not be kept, or not any more. The newest kept one at or before it stands for
        it, or else the oldest that there still is, in which what is named is likely to be seen.
        """
        at = ref.captured_at
        known = {name: t for name, t in self._named.items() if at - t < SIGHT_AGAIN}
        if any(name not in known for name in sights):
            until = [r for r in self._recent if r.captured_at <= at]
            for each in until[-1:] or list(self._recent)[:1]:
                self._sights.add(each)
        self._named = {**known, **{name: max(at, known.get(name, at)) for name in sights}}

    @property
    def held(self) -> tuple[FrameRef, ...]:
        """Every frame that a later review may still show, oldest first."""
        keys = (ref for kind in self._kinds for ref in kind.refs)
        return tuple(sorted({*self._recent, *keys}, key=lambda r: r.captured_at))

    def around(self, trigger: FrameRef) -> tuple[FrameRef, ...]:
        """The frames to show for this trigger, oldest first; never one from after it."""
        seen = {*self.held, trigger}
        known = sorted(
            (r for r in seen if r.captured_at <= trigger.captured_at), key=lambda r: r.captured_at
        )
        if self._window == "memory":
            return tuple(known)
        if self._window == "released":
            return tuple(known[-4:])
        chosen = {trigger}
        for lag in (1.0, 2.0):
            limit = trigger.captured_at - lag + TOLERANCE
            chosen.update([r for r in known if r.captured_at <= limit][-1:])
        return tuple(sorted(chosen, key=lambda r: r.captured_at))

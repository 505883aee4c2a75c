"""Which frames a SlowBrain is shown, as data, and the bounded memory that they come from.

`released` and `paper` choose among the frames that were given to FastBrains (arXiv 2603.11975: the
released code shows the last 4 of a buffer of 10, the paper's appendix t-2, t-1 and t). `memory`
chooses among frames kept at 5 FPS whatever the FastBrain's rate, and adds the frame before each
change of light, because the decisive cue may be seen only long before the trigger.
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
        key_frames: how many frames before a change of light are remembered beside them.
    """

    fps: float
    recent: int
    key_frames: int = 0


PLANS: dict[Window, WindowPlan] = {
    "released": WindowPlan(fps=0.0, recent=10),
    "paper": WindowPlan(fps=0.0, recent=16),
    "memory": WindowPlan(fps=HIGH_FPS, recent=8, key_frames=8),
}

TOLERANCE = 1e-4
"""Seconds; see `sampling.TOLERANCE`."""


class ReviewWindow:
    """The frames of one source that a review may show."""

    def __init__(self, window: Window) -> None:
        self._window = window
        plan = PLANS[window]
        self._recent: deque[FrameRef] = deque(maxlen=plan.recent)
        self._key_frames: deque[FrameRef] = deque(maxlen=plan.key_frames)
        self._light: Light | None = None

    def keep(self, ref: FrameRef) -> None:
        """Remember this frame; frames come in order of capture."""
        self._recent.append(ref)

    def judged(self, ref: FrameRef, light: Light) -> None:
        """Note a frame's light; at a change, the newest kept frame before it is a key frame."""
        if self._light is not None and light is not self._light:
            earlier = [r for r in self._recent if r.captured_at < ref.captured_at]
            if earlier and earlier[-1] not in self._key_frames:
                self._key_frames.append(earlier[-1])
        self._light = light

    @property
    def held(self) -> tuple[FrameRef, ...]:
        """Every frame that a later review may still show, oldest first."""
        return tuple(sorted({*self._recent, *self._key_frames}, key=lambda r: r.captured_at))

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

"""A cue that is seen for a second and matters twenty seconds later: what each window makes of it.

A hob is switched on: red, from 2.0 to 2.8 s. At 23 s a cloth is put on it: blue, in the frame that
makes the FastBrain say YELLOW. The SlowBrain says danger where it is shown both.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

import numpy as np
import pytest

from hdguard.brains.base import Shot
from hdguard.core import events
from hdguard.core.events import SlowVerdict
from hdguard.core.policy import Window
from hdguard.core.types import FrameRef, ImageSpec
from hdguard.ingest.base import Frame, Rgb
from hdguard.runtime.pipeline import Pipeline
from hdguard.workers.inline import InlineSlowSeat
from tests.fakes import GREEN, YELLOW, FastLine, ListSource, ScriptedFastSeat, every
from tests.runtime.rig import Played, play

CUE_FROM, CUE_UNTIL, TRIGGER = 2.0, 3.0, 23.0
RED, BLUE = (255, 0, 0), (0, 0, 255)


class Kitchen(ListSource):
    """Frames at 10 FPS; the camera turns away when the cue has been seen, if it is to turn."""

    def __init__(self, *, turns: bool) -> None:
        super().__init__(every(0.1, 26.0), stays=True)
        self._turns = turns

    async def frames(self) -> AsyncGenerator[Frame, None]:
        async with aclosing(super().frames()) as frames:
            async for frame in frames:
                turned = self._turns and frame.ref.media_time >= CUE_UNTIL - 0.05
                yield Frame(frame.ref, Scene(frame.ref.media_time, turned=turned))


class Scene:
    """Grey furniture, with a patch of a sixteenth of the picture while there is something."""

    def __init__(self, t: float, *, turned: bool) -> None:
        self._t = t
        self._seed = 2 if turned else 1

    def rgb(self, spec: ImageSpec) -> Rgb:
        height, width = spec.height or spec.width, spec.width
        grey = np.random.default_rng(self._seed).integers(60, 190, (4, 4, 1), np.uint8)
        picture = np.kron(grey, np.ones((height // 4, width // 4, 3), np.uint8))
        if CUE_FROM - 0.05 <= self._t < CUE_UNTIL - 0.05:
            picture[: height // 4, : width // 4] = RED
        if self._t >= TRIGGER - 0.05:
            picture[: height // 4, : width // 4] = BLUE
        return picture


class Careful:
    """A SlowBrain that says danger if it is shown the hob and the cloth."""

    name = "slow"
    spec = ImageSpec(16, 16)

    def __init__(self) -> None:
        self.shown: list[int] = []

    def review(self, review_id: int, trigger: FrameRef, shots: tuple[Shot, ...]) -> SlowVerdict:
        self.shown.append(len(shots))
        corners = {tuple(int(v) for v in shot.rgb[0, 0]) for shot in shots}
        return SlowVerdict(review_id, danger={RED, BLUE} <= corners)

    def cost(self, trigger: FrameRef) -> float:
        return 0.3


def remarks(seat: ScriptedFastSeat) -> Callable[[Pipeline], None]:
    """The FastBrain names the hob half a second after it has been switched on."""
    seen = FrameRef("cam", 24, 2.4, 2.4)
    remark = events.Remarked(seen, seat.name, sights=("a glowing hob",))

    def begin(_: Pipeline) -> None:
        asyncio.get_running_loop().call_at(2.9, seat.tell, remark)

    return begin


def cooked(window: Window, remembered_by: str) -> tuple[Played, Careful]:
    script: dict[float, FastLine] = {0.0: GREEN, TRIGGER: YELLOW, TRIGGER + 0.6: GREEN}
    if remembered_by == "change of light":
        script = {0.0: GREEN, 2.6: YELLOW, 3.2: GREEN, **script}
    fast, brain = ScriptedFastSeat(script), Careful()
    played = play(
        25.0,
        Kitchen(turns=remembered_by == "change of scene"),
        fast=[fast],
        slow=InlineSlowSeat(lambda: brain, "fixed"),
        script=remarks(fast) if remembered_by == "first sight" else None,
        window=window,
    )
    return played, brain


@pytest.mark.parametrize("remembered_by", ["change of light", "change of scene", "first sight"])
def test_memory_shows_the_cue_of_twenty_seconds_ago_and_the_danger_is_seen(
    remembered_by: str,
) -> None:
    played, brain = cooked("memory", remembered_by)
    assert [(round(t, 2), cause) for t, cause in played.halts()] == [(23.31, "slow_danger")]
    assert max(brain.shown) <= 24


@pytest.mark.parametrize("remembered_by", ["change of light", "change of scene", "first sight"])
@pytest.mark.parametrize("window", ["released", "paper"])
def test_the_published_windows_do_not_show_it_and_the_danger_is_missed(
    window: Window, remembered_by: str
) -> None:
    played, brain = cooked(window, remembered_by)
    assert played.halts() == []
    assert brain.shown  # it was asked


def test_memory_does_not_show_what_nobody_noticed() -> None:
    played, _ = cooked("memory", "nothing")
    assert played.halts() == []


def test_only_the_memory_looks_for_scenes() -> None:
    windows: tuple[Window, ...] = ("memory", "released", "paper")
    found = {}
    for window in windows:
        seen = cooked(window, "change of scene")[0].events(events.FrameSeen)
        found[window] = [e.ref.media_time for _, e in seen if e.scene_change]
    assert found == {"memory": [3.0], "released": [], "paper": []}

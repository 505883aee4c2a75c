"""Live sources break and come back, each for itself: the pipeline opens them again for ever."""

import asyncio
from collections.abc import AsyncGenerator, Sequence

import numpy as np
import pytest

from hdguard.core import actions, events
from hdguard.core.policy import SourcePlan
from hdguard.core.types import FrameRef, ImageSpec, Speed
from hdguard.ingest.base import Frame, Rgb, SourceError
from hdguard.runtime.pipeline import Pipeline
from tests.fakes import GREEN, ListSource, ScriptedFastSeat, SilentActuator, every
from tests.runtime.rig import Played, play

BREAKS, ENDS, STAYS = "breaks", "ends", "stays"
Opening = tuple[Sequence[float], str]


class Live(ListSource):
    """A camera: what it shows at each opening and how that ends; the last opening is repeated."""

    def __init__(
        self, *openings: Opening, source_id: str = "cam", wait: float | None = 0.5
    ) -> None:
        super().__init__([], source_id)
        self.opened: list[float] = []
        self._openings = openings
        self._wait = wait

    def image(self, now: float) -> "Patch":
        return Patch(round(now * 10))

    async def frames(self) -> AsyncGenerator[Frame, None]:
        loop = asyncio.get_running_loop()
        origin = loop.time()
        times, end = self._openings[min(len(self.opened), len(self._openings) - 1)]
        self.opened.append(round(origin, 6))
        self.closed = False
        try:
            for seq, t in enumerate(times):
                await asyncio.sleep(max(0.0, origin + t - loop.time()))
                yield Frame(FrameRef(self.source_id, seq, origin + t, t), self.image(origin + t))
            if end == BREAKS:
                raise SourceError("connection refused")
            if end == STAYS:
                await asyncio.Event().wait()
        finally:
            self.closed = True

    def retry_after(self) -> float | None:
        return self._wait


class Patch:
    """Black, but for a white column whose place goes by a number."""

    def __init__(self, where: int) -> None:
        self._where = where

    def rgb(self, spec: ImageSpec) -> Rgb:
        picture = np.zeros((spec.height or spec.width, spec.width, 3), np.uint8)
        picture[:, self._where % spec.width] = 255
        return picture


class Stuck(Live):
    """Shows the same picture for ever."""

    def image(self, now: float) -> Patch:
        return Patch(0)


def told(played: Played, source_id: str = "cam") -> list[tuple[float, str]]:
    """What the guard was told of that source."""
    kinds = events.SourceUp | events.SourceLost | events.SourceEnded
    return [
        (t, type(e).__name__.removeprefix("Source"))
        for t, e, _ in played.witness.steps
        if isinstance(e, kinds) and e.source_id == source_id
    ]


STEADY: Opening = (every(0.2, 20.0), STAYS)


def test_a_camera_that_breaks_is_lost_until_its_next_first_frame() -> None:
    camera = Live((every(0.2, 1.0), BREAKS), STEADY)
    played = play(2.5, camera)
    assert told(played) == [(0.0, "Up"), (1.0, "Lost"), (1.5, "Up")]
    assert camera.opened == [0.0, 1.5]
    assert played.halts() == []  # the gap was shorter than 1.0 s
    assert played.pipeline.source_errors == {}


def test_the_fault_halt_of_a_camera_that_was_away_clears_by_itself() -> None:
    camera = Live((every(0.2, 1.0), BREAKS), ((), BREAKS), ((), BREAKS), STEADY, wait=1.0)
    played = play(8.0, camera)
    assert [e.reason for _, e in played.events(events.SourceLost)] == ["connection refused"] * 3
    assert camera.opened == [0.0, 2.0, 3.0, 4.0]
    assert played.halts() == [(2.0, "stale_frame")]
    assert [t for t, _ in played.actions(actions.Release)] == [7.01]  # 3 s after the first GREEN


def test_a_camera_that_never_answers_is_tried_for_ever() -> None:
    camera = Live(((), BREAKS))
    played = play(59.9, camera, actuator=SilentActuator)
    assert camera.opened == every(0.5, 59.5)
    assert str(played.pipeline.source_errors["cam"]) == "connection refused"
    speeds = {p.speed for _, p in played.actions(actions.Permit)}
    assert speeds == {Speed.NONE}
    assert "Ended" not in [kind for _, kind in told(played)]


def test_a_stream_that_ends_without_an_error_is_lost_too() -> None:
    played = play(2.0, Live((every(0.2, 1.0), ENDS), STEADY))
    lost = (1.0, events.SourceLost("cam", "the stream has ended"))
    assert played.events(events.SourceLost) == [lost]
    assert told(played)[-1] == (1.5, "Up")


def test_a_camera_that_comes_back_at_once_does_not_starve_the_others() -> None:
    busy = Live(((), BREAKS), source_id="busy", wait=0.0)

    def end(pipeline: Pipeline) -> None:
        asyncio.get_running_loop().call_later(0.0, setattr, busy, "_wait", None)

    played = play(1.0, busy, ListSource(every(0.2, 2.0), stays=True), script=end)
    assert len([e for _, e in played.events(events.FrameSeen)]) == 5


@pytest.mark.parametrize("required", [True, False])
def test_one_dead_camera_restarts_nothing_and_the_others_go_on(required: bool) -> None:
    hall = Live((every(0.2, 1.0), BREAKS), ((), BREAKS), ((), BREAKS), STEADY, source_id="hall")
    stove = Live(STEADY, source_id="stove")
    brain = ScriptedFastSeat()
    plans = (
        SourcePlan("hall", required=required, when_frozen="ignore"),
        SourcePlan("stove", when_frozen="ignore"),
    )
    played = play(7.9, hall, stove, fast=[brain], sources=plans)
    assert told(played, "stove") == [(0.0, "Up")]
    assert told(played, "hall") == [
        (0.0, "Up"),
        *[(t, "Lost") for t in (1.0, 1.5, 2.0)],
        (2.5, "Up"),
    ]
    seen = [e.ref for _, e in played.events(events.FrameSeen)]
    assert [r.seq for r in seen if r.source_id == "stove"] == list(range(40))
    judged = {s.ref.source_id for s in played.judged() if 1.2 < s.assessed < 2.5}
    assert judged == {"stove"}
    assert played.halts() == ([(2.0, "stale_frame")] if required else [])
    speeds = [(t, p.speed) for t, p in played.actions(actions.Permit)]
    away = Speed.NONE if required else Speed.REDUCED
    assert {speed for t, speed in speeds if 2.0 < t < 2.4} == {away}
    assert speeds[-1][1] is Speed.FULL


def test_rest_ends_the_wait_for_a_camera_at_once() -> None:
    camera = Live((every(0.2, 1.0), BREAKS), wait=5.0)
    rested: list[float] = []

    def script(pipeline: Pipeline) -> None:
        async def rest() -> None:
            await asyncio.sleep(2.0)
            await pipeline.rest()
            rested.append(round(asyncio.get_running_loop().time(), 6))

        pipeline._calls.create_task(rest())

    played = play(3.0, camera, script=script)
    assert rested == [2.0]
    assert told(played)[-1] == (2.0, "Ended")
    assert camera.opened == [0.0]


def test_a_run_that_ends_while_a_camera_is_away_leaves_nothing() -> None:
    camera = Live((every(0.2, 0.4), BREAKS), wait=5.0)
    played = play(1.0, camera)
    assert played.tasks_left == 0
    assert camera.closed


def test_frames_of_a_second_opening_are_sampled_on() -> None:
    brain = ScriptedFastSeat({0.0: GREEN})
    camera = Live((every(0.1, 0.5), BREAKS), (every(0.1, 1.0), STAYS), wait=0.3)
    played = play(2.0, camera, fast=[brain])
    given = [round(s.ref.captured_at, 6) for s in played.judged()]
    assert given == [0.0, 0.2, 0.4, 0.8, 1.0, 1.2, 1.4, 1.6, 1.8]


# A stuck camera.

ON_ROBOT = (SourcePlan("cam"),)


def test_a_camera_that_is_stuck_while_the_robot_moves_halts_it_after_one_second() -> None:
    played = play(3.0, Stuck(STEADY), sources=ON_ROBOT)
    # Three GREEN by 0.41, the next permit at 0.6: at 0.7 the robot says that it moves.
    assert played.halts() == [(1.8, "frozen_frame")]


def test_a_picture_that_changes_is_not_frozen() -> None:
    played = play(6.0, Live(STEADY), sources=ON_ROBOT)
    assert played.halts() == []
    assert {e.frozen for _, e in played.events(events.FrameSeen)} == {False}


def test_a_camera_that_comes_back_with_its_last_picture_is_still_stuck() -> None:
    camera = Stuck((every(0.2, 0.4), BREAKS), STEADY, wait=0.4)
    played = play(1.0, camera, sources=ON_ROBOT)
    seen = [e.frozen for _, e in played.events(events.FrameSeen)]
    assert seen == [False, True, True, True, True]

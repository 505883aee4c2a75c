"""Reviews of windows cut from scenes whose contact time is known exactly."""

import time

import numpy as np
import pytest

from hdguard.brains.base import BrainError, Shot
from hdguard.brains.reflex_slow import ReflexSlowBrain, ReflexSlowSettings
from hdguard.core.events import SlowVerdict
from hdguard.core.types import ImageSpec
from tests.brains import scenes
from tests.brains.scenes import Scene

WIDTH = 640


def window(scene: Scene, end: float, count: int = 8, step: float = 0.2) -> list[Shot]:
    """The newest frames at `end`, as the guard keeps them."""
    times = [end - step * i for i in reversed(range(count))]
    return scenes.shots_at(scene, [t for t in times if t >= -1e-9], WIDTH)


def review(shots: list[Shot]) -> SlowVerdict:
    return ReflexSlowBrain(ReflexSlowSettings()).review(7, shots[-1].ref, tuple(shots))


def seconds(verdict: SlowVerdict) -> float:
    """The contact that the reason names."""
    return float(verdict.hazard.text.split("contact in ")[1].split(" s")[0])


@pytest.mark.parametrize(
    ("scene", "end"),
    [
        (scenes.BOX, 1.8),
        (scenes.BOX, 3.0),
        (scenes.SLOW, 4.0),
        (scenes.FAST, 1.4),
        (scenes.FAST, 2.2),
        (scenes.SMALL, 2.4),
        (scenes.EGO_BOX, 4.0),
        (scenes.EGO_WALL, 4.6),
        (scenes.BOX.over(scenes.dark), 2.0),
        (scenes.FAST.over(scenes.jpeg), 2.0),
    ],
)
def test_a_contact_within_the_horizon_is_a_danger_with_its_time(scene: Scene, end: float) -> None:
    verdict = review(window(scene, end))
    assert scene.contact is not None
    assert verdict.danger
    assert verdict.review_id == 7
    assert verdict.hazard.category == "C2"
    assert seconds(verdict) == pytest.approx(scene.contact - end, abs=0.25)


@pytest.mark.parametrize(
    ("scene", "end"),
    [(scenes.BOX, 0.9), (scenes.SLOW, 2.0), (scenes.EGO_BOX, 2.0), (scenes.EGO_WALL, 2.8)],
)
def test_a_contact_beyond_the_horizon_is_safe_and_its_time_is_named(
    scene: Scene, end: float
) -> None:
    verdict = review(window(scene, end))
    assert not verdict.danger
    assert verdict.hazard.text.startswith("the nearest contact is ")
    assert scene.contact is not None
    named = float(verdict.hazard.text.split(" is ")[1].split(" s")[0])
    assert named == pytest.approx(scene.contact - end, rel=0.15)


@pytest.mark.parametrize(
    ("scene", "end"),
    [
        (scenes.NEAR_MISS, 1.8),
        (scenes.NEAR_MISS, 2.4),
        (scenes.RECEDING, 2.0),
        (scenes.MOVER_TWIN, 2.8),
        (scenes.MOVER_BLOCK, 2.8),
        (scenes.PAN, 2.0),
        (scenes.TURN, 2.0),
        (scenes.STANDING, 2.0),
        (scenes.POSTER, 2.0),
        (scenes.STANDING.over(scenes.clock), 2.0),
    ],
)
def test_what_does_not_come_at_the_camera_is_safe(scene: Scene, end: float) -> None:
    verdict = review(window(scene, end))
    assert not verdict.danger
    assert verdict.hazard.text


@pytest.mark.parametrize("end", [2.4, 2.8])
def test_a_sudden_start_across_the_view_is_safe(end: float) -> None:
    assert not review(window(scenes.SUDDEN, end)).danger


def test_a_body_that_brakes_to_a_stop_is_safe_although_it_still_comes() -> None:
    verdict = review(window(scenes.stopping(0.3), 2.4))
    assert not verdict.danger
    assert "stops short" in verdict.hazard.text


def test_a_body_that_brakes_too_late_is_a_danger() -> None:
    scene = scenes.stopping(0.2)
    assert scene.contact is not None
    verdict = review(window(scene, 1.4))
    assert verdict.danger
    assert seconds(verdict) == pytest.approx(scene.contact - 1.4, abs=0.3)


@pytest.mark.parametrize("end", [1.4, 2.0, 3.0])
def test_a_flame_that_burns_through_the_window_is_a_danger(end: float) -> None:
    verdict = review(window(scenes.STANDING.over(scenes.flame), end))
    assert verdict.danger
    assert verdict.hazard.category == "C3"


def test_uneven_frames_and_early_key_frames_do_not_disturb() -> None:
    times = [0.2, 0.9, 1.13, 1.3, 1.52, 1.9, 2.1, 2.26]
    verdict = review(scenes.shots_at(scenes.BOX, times, WIDTH))
    assert verdict.danger
    assert seconds(verdict) == pytest.approx(4 - 2.26, abs=0.2)


def test_the_contact_is_remembered_over_a_step_of_light() -> None:
    """Two of the three frames since the step are too few to see it again."""
    for end in (2.0, 2.2, 2.4):
        assert review(window(scenes.BOX.over(scenes.light_step), end)).danger


@pytest.mark.parametrize(
    ("scene", "reason"),
    [
        (scenes.STANDING.over(scenes.night), "dark"),
        (scenes.STANDING.over(scenes.defocus), "blurred, covered or blank"),
        (scenes.BLANK_WALL, "blurred, covered or blank"),
        (scenes.STANDING.over(scenes.cut), "cut"),
    ],
    ids=["dark", "blurred", "blank", "cut"],
)
def test_what_cannot_be_seen_is_never_safe(scene: Scene, reason: str) -> None:
    with pytest.raises(BrainError, match=reason):
        review(window(scene, 2.2))


def test_two_frames_are_too_few() -> None:
    with pytest.raises(BrainError, match="only 2 frames in a row"):
        review(window(scenes.STANDING, 2.0, count=2))


def test_frames_far_apart_are_no_row() -> None:
    with pytest.raises(BrainError, match=r"frames 1\.0 s apart"):
        review(window(scenes.STANDING, 3.0, count=4, step=1.0))


def test_frames_of_two_sizes_are_no_row() -> None:
    small = scenes.shots_at(scenes.STANDING, [1.4, 1.6, 1.8])
    with pytest.raises(BrainError, match="changed its size"):
        review([*small, *window(scenes.STANDING, 2.0, count=1)])


def test_a_window_of_another_source_is_refused() -> None:
    shots = window(scenes.STANDING, 2.0)
    brain = ReflexSlowBrain(ReflexSlowSettings())
    with pytest.raises(BrainError, match="no frame of the trigger's source"):
        brain.review(1, scenes.ref(2.0, 9, "another"), tuple(shots))


def test_a_large_body_that_cannot_be_measured_is_not_safe() -> None:
    """Its pixels are new in every frame, and it grows."""
    rng = np.random.default_rng(4)
    shots = []
    for i, shot in enumerate(window(scenes.STANDING, 2.0)):
        rgb = shot.rgb.copy()
        half = 30 + 6 * i
        rgb[180 - half : 180 + half, 320 - half : 320 + half] = rng.integers(
            0, 255, (2 * half, 2 * half, 3)
        )
        shots.append(Shot(shot.ref, rgb))
    with pytest.raises(BrainError, match="cannot be measured"):
        review(shots)


def test_the_same_window_gives_the_same_answer() -> None:
    shots = window(scenes.BOX, 2.0)
    assert review(shots) == review(shots)


def test_sixteen_frames_take_well_under_a_second() -> None:
    """A quarter of it on an idle core; CPU time, so that a busy machine does not matter."""
    shots = window(scenes.BOX, 3.0, count=16)
    review(shots)
    start = time.process_time()
    review(shots)
    assert time.process_time() - start < 1.0


def test_spec_and_settings() -> None:
    brain = ReflexSlowBrain(ReflexSlowSettings(horizon=1.5, seconds=0.3))
    assert brain.spec == ImageSpec(640)
    assert brain.name == "reflex-slow"
    shots = window(scenes.BOX, 2.0)
    assert brain.cost(shots[-1].ref) == pytest.approx(0.3)
    assert not brain.review(1, shots[-1].ref, tuple(shots)).danger


@pytest.mark.parametrize(("field", "value"), [("horizon", 0.0), ("seconds", -1.0), ("width", 1)])
def test_a_setting_out_of_range_is_named(field: str, value: float) -> None:
    with pytest.raises(ValueError, match=field):
        ReflexSlowSettings(**{field: value})  # type: ignore[arg-type]

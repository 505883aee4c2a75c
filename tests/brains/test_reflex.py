"""The reflex on scenes whose contact time is known exactly, and on the real videos.

Leads are seconds before the true contact. `embedded.md`, section 4, measured them on scenes of the
same kind; a lead may be one frame (0.2 s) shorter, because the phase of the frames decides.
"""

import functools
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from hdguard.brains.base import Shot
from hdguard.brains.reflex import SOURCES, ReflexFastBrain, ReflexSettings
from hdguard.core.events import CannotSee, FastVerdict
from hdguard.core.types import ImageSpec, Light
from hdguard.ingest.file import FileSettings, FileSource
from hdguard.runtime.virtual_time import run_virtual
from tests.brains import scenes
from tests.brains.scenes import PHASES, Scene

Answer = FastVerdict | CannotSee
Answers = list[tuple[float, Answer]]

every_phase = pytest.mark.parametrize("phase", PHASES)

# scene, Yellow lead, Red lead
LEADS = {
    "box": (scenes.BOX, 2.2, 1.0),
    "slow box": (scenes.SLOW, 2.4, 1.0),
    "fast box": (scenes.FAST, 2.0, 0.8),
    # The page says 2.0; ours is first measured at 1.8 to 2.2 s, when it fills 2 % of the frame.
    "small box": (scenes.SMALL, 1.8, 0.8),
    "drive to a box": (scenes.EGO_BOX, 2.4, 1.0),
    "drive to a wall": (scenes.EGO_WALL, 2.6, 1.0),
}
NO_CONTACT = {
    "near miss": scenes.NEAR_MISS,
    "receding": scenes.RECEDING,
    "sideways to a block": scenes.MOVER_BLOCK,
    "sideways before a block": scenes.MOVER_TWIN,
    "sideways alone": scenes.MOVER_ALONE,
    "pan": scenes.PAN,
    "turn in place": scenes.TURN,
    "standing": scenes.STANDING,
    "red poster": scenes.POSTER,
    "burnt-in clock": scenes.STANDING.over(scenes.clock),
}


def brain() -> ReflexFastBrain:
    return ReflexFastBrain(ReflexSettings())


def judge(shots: Iterable[Shot]) -> Answers:
    reflex = brain()
    return [(shot.ref.media_time, reflex.assess(shot)) for shot in shots]


@functools.cache
def watched(scene: Scene, phase: float = 0.0, fps: float = 5.0) -> Answers:
    return judge(scenes.shots(scene, phase, fps))


def first(answers: Answers, light: Light) -> float | None:
    """When a light at least as severe was first shown."""
    for t, answer in answers:
        if isinstance(answer, FastVerdict) and answer.light >= light:
            return t
    return None


def leads(scene: Scene, answers: Answers) -> tuple[float, float]:
    """Yellow and Red; -inf if never."""
    assert scene.contact is not None
    seen = [first(answers, light) for light in (Light.YELLOW, Light.RED)]
    yellow, red = (float("-inf") if t is None else scene.contact - t for t in seen)
    return yellow, red


def lights(answers: Answers) -> list[Light | None]:
    """None where it could not see."""
    return [a.light if isinstance(a, FastVerdict) else None for _, a in answers]


def reasons(answers: Answers, since: float = 0.0) -> set[str]:
    """What blinded it, up to the colon."""
    found = [a.reason for t, a in answers if t >= since and isinstance(a, CannotSee)]
    return {reason.split(":")[0] for reason in found}


# 1, 2 and 5: contacts


@every_phase
@pytest.mark.parametrize("name", LEADS)
def test_a_contact_is_announced_in_time_and_not_before_its_time(name: str, phase: float) -> None:
    scene, yellow, red = LEADS[name]
    measured = leads(scene, watched(scene, phase))
    assert yellow - 0.201 <= measured[0] <= 2.7
    assert red - 0.201 <= measured[1] <= 1.1


@pytest.mark.parametrize("name", LEADS)
def test_red_stays_until_contact_although_flow_collapses_before(name: str) -> None:
    answers = watched(LEADS[name][0])
    since_red = [a for t, a in answers if t >= (first(answers, Light.RED) or 0.0)]
    assert all(isinstance(a, FastVerdict) and a.light is Light.RED for a in since_red)
    assert len(since_red) >= 4


def test_the_hazard_says_when_what_and_how_far_off_in_one_sentence() -> None:
    answers = watched(scenes.BOX)
    red = next(a for _, a in answers if isinstance(a, FastVerdict) and a.light is Light.RED)
    assert red.hazard.category == "C2"
    assert red.hazard.severity == ""
    assert red.hazard.text.startswith("contact in 1.0 s: a body meets the camera, now ")
    assert red.hazard.text.endswith("0.0 widths off centre")


@pytest.mark.parametrize("name", ["box", "fast box", "drive to a box"])
@pytest.mark.parametrize("overlay", [scenes.jpeg, scenes.dark, scenes.clock])
def test_bad_pictures_cost_little_lead(name: str, overlay: scenes.Overlay) -> None:
    scene, yellow, red = LEADS[name]
    scene = scene.over(overlay)
    measured = leads(scene, watched(scene))
    assert measured[0] >= yellow - 0.401
    assert measured[1] >= red - 0.201


def test_a_step_of_light_during_an_approach_costs_no_red() -> None:
    scene = scenes.BOX.over(scenes.light_step)
    assert leads(scene, watched(scene))[1] >= 0.8
    assert "unclear motion" in reasons(watched(scene))


# Rates


@pytest.mark.parametrize("name", ["box", "slow box", "fast box", "drive to a box"])
def test_at_half_the_rate_red_still_comes(name: str) -> None:
    scene = LEADS[name][0]
    for quarter in range(4):
        measured = leads(scene, watched(scene, quarter * 0.1, 2.5))
        assert measured[0] >= 1.7
        assert measured[1] >= 0.5


@pytest.mark.parametrize("name", LEADS)
def test_missing_and_uneven_frames_cost_one_frame_of_lead(name: str) -> None:
    scene, yellow, red = LEADS[name]
    for seed in range(2):
        rng = np.random.default_rng(seed)
        grid = 0.04 + 0.2 * np.arange(int(scene.seconds * 5))
        times = [float(t) for t in grid + rng.uniform(-0.03, 0.03, len(grid))]
        kept = [t for t in times if rng.random() > 0.2 and t < scene.seconds]
        measured = leads(scene, judge(scenes.shots_at(scene, kept)))
        assert measured[0] >= yellow - 0.65
        assert measured[1] >= red - 0.45


def test_one_frame_a_second_is_too_few_for_a_body() -> None:
    """Why the reflex never follows the adaptive rate."""
    for phase in (0.0, 0.25, 0.5, 0.75):
        assert first(watched(scenes.BOX, phase, 1.0), Light.RED) is None


def test_every_frame_sent_twice_does_not_halve_the_time_to_contact() -> None:
    every = list(scenes.shots(scenes.SLOW, 0.0, 5.0))
    twice = [shot.rgb for shot in scenes.shots(scenes.SLOW, 0.0, 2.5) for _ in range(2)]
    answers = judge(Shot(s.ref, rgb) for s, rgb in zip(every, twice, strict=True))
    yellow, red = leads(scenes.SLOW, answers)
    assert 2.0 <= yellow <= 2.7
    assert 0.6 <= red <= 1.1


# 3, 4, 7 and 8: no contact


@pytest.mark.parametrize("name", NO_CONTACT)
@pytest.mark.parametrize("phase", [0.0, 0.1])
def test_no_alarm_without_a_contact(name: str, phase: float) -> None:
    answers = watched(NO_CONTACT[name], phase)
    assert set(lights(answers)[1:]) <= {Light.GREEN, None}
    assert lights(answers).count(None) <= 2


def test_two_bodies_that_hit_each_other_are_not_seen() -> None:
    """One view has no depth: the hit at 3.25 s looks as the pass before a block further away."""
    assert first(watched(scenes.MOVER_BLOCK), Light.YELLOW) is None


# 9: what is no motion


def test_a_step_of_light_is_never_an_alarm() -> None:
    answers = watched(scenes.STANDING.over(scenes.light_step))
    assert first(answers, Light.YELLOW) is None
    assert lights(answers)[-1] is Light.GREEN


def test_a_cut_is_blind_for_one_frame_and_then_judged_afresh() -> None:
    answers = watched(scenes.STANDING.over(scenes.cut))
    blind = [t for t, a in answers if isinstance(a, CannotSee)]
    assert blind == [0.0, 2.0]
    assert reasons(answers, 2.0) == {"cut"}
    assert first(answers, Light.YELLOW) is None


def test_a_dark_picture_is_never_green() -> None:
    answers = watched(scenes.STANDING.over(scenes.night))
    assert all(isinstance(a, CannotSee) for t, a in answers if t >= 1.0)
    assert reasons(answers, 1.0) == {"dark"}


def test_a_blurred_picture_is_never_green() -> None:
    answers = watched(scenes.STANDING.over(scenes.defocus))
    assert all(isinstance(a, CannotSee) for t, a in answers if t >= 1.0)


def test_noise_without_a_picture_is_never_green() -> None:
    rng = np.random.default_rng(1)
    answers = judge(
        Shot(scenes.ref(0.2 * i, i), rng.integers(0, 255, (252, 448, 3), np.uint8))
        for i in range(6)
    )
    assert lights(answers) == [None] * 6


def test_a_covered_lens_in_the_last_second_of_an_approach_is_red() -> None:
    shots = list(scenes.shots(scenes.BOX))
    black = np.zeros_like(shots[0].rgb)
    answers = judge(Shot(s.ref, black if s.ref.media_time > 2.5 else s.rgb) for s in shots)
    assert isinstance(dict(answers)[2.6], CannotSee)
    red = first(answers, Light.RED)
    assert red is not None
    assert 2.8 <= red <= 3.2


def test_a_picture_that_freezes_during_an_approach_is_never_green_again_and_then_red() -> None:
    """What comes nearer cannot look the same: a frozen camera must not end the warning."""
    shots = list(scenes.shots(scenes.BOX))
    frozen = next(s.rgb for s in shots if s.ref.media_time >= 2.2)
    answers = judge(Shot(s.ref, frozen if s.ref.media_time > 2.2 else s.rgb) for s in shots)
    contact = scenes.BOX.contact
    assert contact is not None
    later = [a for t, a in answers if 2.2 < t < contact]
    assert not any(isinstance(a, FastVerdict) and a.light is Light.GREEN for a in later)
    red = first(answers, Light.RED)
    assert red is not None
    assert red <= contact - 0.4


# 10: flame, glow and sudden motion


@every_phase
def test_a_flame_is_yellow_once_it_flickered_for_a_second(phase: float) -> None:
    answers = watched(scenes.STANDING.over(scenes.flame), phase)
    yellow = first(answers, Light.YELLOW)
    assert yellow is not None
    assert 1.0 <= yellow <= 1.7
    assert first(answers, Light.RED) is None
    hazard = next(a.hazard for t, a in answers if t == yellow and isinstance(a, FastVerdict))
    assert hazard.category == "C3"


@every_phase
def test_a_sudden_start_is_yellow_within_two_frames(phase: float) -> None:
    answers = watched(scenes.SUDDEN, phase)
    yellow = first(answers, Light.YELLOW)
    assert yellow is not None
    assert 2.0 <= yellow <= 2.451
    assert first(answers, Light.RED) is None


# 11: what it cannot see


def test_a_blank_wall_is_missed_but_not_called_green() -> None:
    answers = watched(scenes.BLANK_WALL)
    assert set(lights(answers)) == {None}


# 12: braking


@every_phase
def test_a_body_that_stops_far_enough_is_never_red(phase: float) -> None:
    answers = watched(scenes.stopping(0.3), phase)
    assert first(answers, Light.RED) is None
    assert first(answers, Light.YELLOW) is not None
    assert lights(answers)[-1] is Light.GREEN


@every_phase
def test_a_body_that_stops_just_short_is_red_and_then_clears(phase: float) -> None:
    answers = watched(scenes.stopping(0.26), phase)
    red = first(answers, Light.RED)
    assert red is not None
    assert 1.9 <= red <= 2.4
    cleared = next(t for t, a in answers if t > 3.5 and not is_red(a))
    assert 3.5 + 0.8 <= cleared <= 5.5
    assert not any(is_red(a) for t, a in answers if t > cleared)
    assert lights(answers)[-1] is Light.GREEN


def is_red(answer: Answer) -> bool:
    return isinstance(answer, FastVerdict) and answer.light is Light.RED


def test_a_body_that_brakes_too_late_is_red_in_time() -> None:
    assert leads(scenes.stopping(0.2), watched(scenes.stopping(0.2)))[1] >= 0.7


# State


def test_the_first_frame_cannot_be_judged() -> None:
    answer = brain().assess(next(scenes.shots(scenes.STANDING)))
    assert isinstance(answer, CannotSee)
    assert answer.reason == "first frame"
    assert answer.brain == "reflex"


def test_time_that_goes_backwards_starts_afresh() -> None:
    reflex = brain()
    for shot in scenes.shots(scenes.BOX):
        last = reflex.assess(shot)
    assert is_red(last)
    again = [reflex.assess(shot) for shot in list(scenes.shots(scenes.STANDING))[:3]]
    assert isinstance(again[0], CannotSee)
    assert [a.light for a in again[1:] if isinstance(a, FastVerdict)] == [Light.GREEN] * 2


def test_after_a_gap_nothing_is_concluded_from_the_frame_before() -> None:
    answers = judge(scenes.shots_at(scenes.SLOW, [0.0, 0.2, 0.4, 3.0, 3.2, 3.4]))
    assert [t for t, a in answers if isinstance(a, CannotSee)] == [0.0, 3.0]
    assert reasons(answers, 3.0) == {"no frame for 2.6 s"}


def test_a_contact_that_was_due_during_a_long_gap_is_no_alarm_after_it() -> None:
    times = [0.2 * i for i in range(11)]
    later = Shot(scenes.ref(30.0, 11), next(scenes.shots(scenes.STANDING)).rgb)
    answers = judge([*scenes.shots_at(scenes.BOX, times), later])
    assert first(answers, Light.YELLOW) is not None
    assert lights(answers)[-1] is None


def test_sources_are_judged_apart() -> None:
    reflex = brain()
    boxes, rooms = scenes.shots(scenes.BOX), scenes.shots(scenes.STANDING)
    answers: dict[str, list[Answer]] = {"front": [], "back": []}
    for box, room in zip(boxes, rooms, strict=True):
        for name, shot in (("front", box), ("back", room)):
            ref = scenes.ref(shot.ref.media_time, shot.ref.seq, name)
            answers[name].append(reflex.assess(Shot(ref, shot.rgb)))
    assert is_red(answers["front"][-1])
    assert {a.light for a in answers["back"] if isinstance(a, FastVerdict)} == {Light.GREEN}
    assert [a.light for a in answers["front"] if isinstance(a, FastVerdict)] == [
        light for light in lights(watched(scenes.BOX)) if light is not None
    ]


def test_sources_that_come_and_go_do_not_pile_up() -> None:
    reflex = brain()
    rgb = next(scenes.shots(scenes.STANDING)).rgb
    for i in range(3 * SOURCES):
        reflex.assess(Shot(scenes.ref(0.0, 0, f"camera {i}"), rgb))
    assert len(reflex._views) == SOURCES


def test_the_same_frames_give_the_same_answers() -> None:
    assert judge(scenes.shots(scenes.EGO_BOX)) == watched(scenes.EGO_BOX)


def test_a_still_scene_without_noise_is_green() -> None:
    """A simulator's robot that stands still must not be blind for ever."""
    rgb = next(scenes.shots(scenes.STANDING)).rgb
    answers = judge(Shot(scenes.ref(0.2 * i, i), rgb) for i in range(20))
    assert set(lights(answers)[5:]) == {Light.GREEN}


# Settings


def test_thresholds_come_from_reaction_braking_and_review() -> None:
    settings = ReflexSettings()
    assert settings.red == pytest.approx(1.0)
    assert settings.yellow == pytest.approx(2.5)
    slower = ReflexSettings(braking=1.2, slow_p99=2.0)
    assert slower.red == pytest.approx(1.6)
    assert slower.yellow == pytest.approx(3.8)
    assert brain().spec == ImageSpec(448)


def test_a_robot_that_brakes_longer_is_warned_earlier() -> None:
    reflex = ReflexFastBrain(ReflexSettings(braking=1.1))
    answers = [(s.ref.media_time, reflex.assess(s)) for s in scenes.shots(scenes.SLOW)]
    assert leads(scenes.SLOW, answers)[1] == pytest.approx(1.5, abs=0.201)


@pytest.mark.parametrize(
    ("field", "value"), [("braking", -0.1), ("margin", float("nan")), ("width", 10)]
)
def test_a_setting_out_of_range_is_named(field: str, value: float) -> None:
    with pytest.raises(ValueError, match=field):
        ReflexSettings(**{field: value})  # type: ignore[arg-type]


# The real videos


async def _play(path: Path, ignored: tuple[tuple[float, float, float, float], ...]) -> Answers:
    source = FileSource(FileSettings(str(path), ignore_regions=ignored, decode="inline"))
    reflex = brain()
    answers: Answers = []
    async for frame in source.frames():
        if frame.ref.media_time >= 0.2 * len(answers) - 1e-6:  # 5 FPS
            shot = Shot(frame.ref, frame.image.rgb(reflex.spec))
            answers.append((frame.ref.media_time, reflex.assess(shot)))
    return answers


@pytest.mark.parametrize("clip", ["152_C4_L4_D3", "230_C4_L1_D1", "421_C4_L1_D3"])
def test_the_real_videos_have_no_contact_that_the_reflex_could_see(
    homesafe: Path, clip: str
) -> None:
    """Nothing in them comes at the camera, so RED would be a false one."""
    answers = run_virtual(_play(homesafe / "videos" / f"{clip}.mp4", ((0, 0.10, 0.17, 0.27),)))
    assert len(answers) >= 34
    assert lights(answers).count(None) <= 3
    assert first(answers, Light.RED) is None

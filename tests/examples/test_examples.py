"""The bundled clips are what their seeded script makes, and their annotations are exact."""

import json
from itertools import pairwise
from pathlib import Path

import av
import numpy as np
import pytest

from hdguard.brains.reflex import ReflexSettings
from hdguard.examples import make
from hdguard.examples.scene import FOCAL, WIDTH, Board, World
from hdguard.replay.baselines import baselines
from hdguard.replay.dataset import load_dataset

FOLDER = Path(make.__file__).parent / "clips"
CLIPS = make.clips()
COLLISIONS = [clip for clip in CLIPS if clip.contact is not None]


def test_there_are_enough_of_both_kinds_and_they_are_small() -> None:
    assert len(CLIPS) >= 8
    assert len(COLLISIONS) * 2 == len(CLIPS)
    assert sum(file.stat().st_size for file in FOLDER.iterdir()) <= 1_000_000
    assert {f.name for f in FOLDER.glob("*.mp4")} == {f"{clip.name}.mp4" for clip in CLIPS}


def test_the_annotations_are_the_scripts_and_have_no_problem() -> None:
    written = json.loads((FOLDER / "anno_truth.json").read_text())
    assert written == {"annotations": [json.loads(json.dumps(c.annotation)) for c in CLIPS]}
    dataset = load_dataset(FOLDER)
    assert dataset.problems == ()
    assert len(dataset.annotated) == len(dataset.safe) == len(COLLISIONS)


@pytest.mark.parametrize("clip", COLLISIONS, ids=lambda c: c.name)
def test_the_key_frames_follow_from_the_motion(clip: make.Clip) -> None:
    annotation = json.loads(json.dumps(clip.annotation))
    k, motion = annotation["keyframes"], annotation["motion"]
    v, a = motion["speed_m_s"], motion["deceleration_m_s2"]
    assert v / a == pytest.approx(0.6, abs=1e-3)
    assert motion["actuation_s"] == 0.1
    assert k["pnr"] == pytest.approx(k["impact_outcome"] - (0.1 + v / (2 * a)), abs=2e-3)
    assert k["intervention_deadline"] == pytest.approx(k["pnr"] - 0.2, abs=1e-3)
    assert 1.0 <= k["intent_onset"] <= 4.0
    assert k["intent_onset"] < k["intervention_deadline"]


def test_every_collision_begins_with_another_harmless_time() -> None:
    onsets = sorted(clip.onset for clip in COLLISIONS if clip.onset is not None)
    assert all(b - a > 0.1 for a, b in pairwise(onsets))


def test_no_clock_scores_100_on_them() -> None:
    keyframes = [e.keyframes for e in load_dataset(FOLDER).annotated if e.keyframes is not None]
    assert max(clock.summary.wss for clock in baselines(keyframes)) < 100


def test_the_clips_share_what_the_reflex_takes_for_granted() -> None:
    reflex = ReflexSettings()
    assert (reflex.actuation, reflex.braking) == (make.ACTUATION, make.V_OVER_A)
    assert reflex.red == pytest.approx(1.0)


@pytest.mark.parametrize("clip", CLIPS, ids=lambda c: c.name)
def test_the_files_show_what_the_script_draws(clip: make.Clip) -> None:
    with av.open(str(FOLDER / f"{clip.name}.mp4")) as container:
        frames = [(f.time, f.to_ndarray(format="rgb24")) for f in container.decode(video=0)]
    assert len(frames) == round(clip.seconds * make.FPS) + 1
    for time, shown in frames[:: max(1, len(frames) // 6)]:
        assert time is not None
        error = shown.astype(np.float32) - clip.picture(time).astype(np.float32)
        psnr = 10 * np.log10(255.0**2 / float(np.mean(error**2)))
        assert psnr > 24.0, f"{clip.name} at {time:.2f} s: {psnr:.1f} dB"


def test_a_board_at_twice_the_distance_is_half_as_wide() -> None:
    board = Board(0.0, 0.0, 4.0, 1.0, 1.0, (255, 255, 255), 3)
    world = World((board,))

    def width(camera_z: float) -> int:
        row = world.picture((0.0, 0.0, camera_z))[126].astype(int)
        return int((np.abs(row - 96).sum(axis=1) > 30).sum())

    assert width(0.0) == pytest.approx(FOCAL / 4.0, abs=3)
    assert width(2.0) == pytest.approx(FOCAL / 2.0, abs=3)
    assert pytest.approx(388.0, abs=0.5) == FOCAL
    assert WIDTH == 448

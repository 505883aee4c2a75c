"""A still is the very frame that was judged."""

from pathlib import Path

import cv2
import numpy as np
import pytest

from hdguard.ingest.base import SourceError
from hdguard.replay.html_report.stills import Still, View, stills
from tests.ingest.media import Clip, write_video


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Three seconds at 10 frames a second."""
    return str(write_video(tmp_path_factory.mktemp("clip") / "a.mp4", Clip(stamps=range(31))))


def picture(still: Still) -> np.ndarray:
    decoded = cv2.imdecode(np.frombuffer(still.jpeg, np.uint8), cv2.IMREAD_COLOR)
    assert decoded is not None
    return decoded


def test_the_frame_at_the_trigger_and_the_newest_one_at_the_halt(clip: str) -> None:
    assert [s.at for s in stills(clip, (1.0, 1.37), View())] == pytest.approx([1.0, 1.3])


def test_a_trigger_that_was_rounded_down_is_still_its_own_frame(clip: str) -> None:
    (still,) = stills(clip, (0.9995,), View())
    assert still.at == pytest.approx(1.0)


def test_a_halt_after_the_end_shows_the_last_frame(clip: str) -> None:
    assert [s.at for s in stills(clip, (2.9, 9.0), View())] == pytest.approx([2.9, 3.0])


def test_pictures_are_small_and_show_what_was_there(clip: str) -> None:
    early, late = stills(clip, (0.0, 2.5), View(), width=64)
    assert picture(early).shape[1] == 64
    assert np.abs(picture(early).astype(int) - picture(late)).max() > 20


def test_what_the_run_did_not_look_at_is_not_shown(clip: str) -> None:
    hidden = View(ignore_regions=((0.0, 0.0, 1.0, 1.0),))
    (still,) = stills(clip, (1.0,), hidden)
    assert picture(still).max() < 8


def test_a_video_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no such file"):
        stills(str(tmp_path / "gone.mp4"), (1.0,), View())

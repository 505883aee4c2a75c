"""Frame times read without decoding are those that decoding gives."""

from pathlib import Path

import pytest

from hdguard.ingest.base import SourceError
from hdguard.ingest.file import FileSettings, FileSource
from hdguard.ingest.frame_times import frame_times
from hdguard.runtime.virtual_time import run_virtual
from tests.ingest.media import Clip, write_video


async def decoded(path: Path) -> list[float]:
    source = FileSource(FileSettings(str(path), decode="inline"))
    return [frame.ref.media_time async for frame in source.frames()]


@pytest.mark.parametrize("stamps", [range(31), [5, 6, 7, 10, 11, 20]])
def test_a_made_clip(tmp_path: Path, stamps: range | list[int]) -> None:
    path = write_video(tmp_path / "clip.mp4", Clip(stamps=stamps))
    assert list(frame_times(path)) == run_virtual(decoded(path))


def test_a_real_video(homesafe: Path) -> None:
    path = homesafe / "videos" / "230_C4_L1_D1.mp4"
    found = frame_times(path)
    assert list(found) == run_virtual(decoded(path))
    assert found[0] == 0.0


def test_a_folder_of_images_is_as_long_as_it_has_images(tmp_path: Path) -> None:
    for n in range(4):
        (tmp_path / f"{n}.png").touch()
    (tmp_path / "notes.txt").touch()
    assert frame_times(tmp_path) == (0.0, 0.1, 0.2, 0.3)
    assert frame_times(tmp_path, 2.0)[-1] == 1.5


def test_what_is_no_video_is_named(tmp_path: Path) -> None:
    path = tmp_path / "text.mp4"
    path.write_text("no video")
    with pytest.raises(SourceError, match=r"text\.mp4: cannot be read as a video"):
        frame_times(path)
    with pytest.raises(SourceError, match=r"gone\.mp4"):
        frame_times(tmp_path / "gone.mp4")

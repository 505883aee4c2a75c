import asyncio
from contextlib import aclosing
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import pytest

from hdguard.core.types import FrameRef
from hdguard.ingest.base import SourceError
from hdguard.ingest.file import FileSettings, FileSource
from hdguard.runtime.virtual_time import run_virtual
from tests.ingest.media import Clip, write_folder, write_video


def play_on(source: FileSource, count: int) -> list[tuple[FrameRef, float]]:
    async def main() -> list[tuple[FrameRef, float]]:
        loop = asyncio.get_running_loop()
        got = []
        async with aclosing(source.frames()) as frames:
            async for frame in frames:
                got.append((frame.ref, loop.time()))
                if len(got) == count:
                    break
        return got

    return run_virtual(main())


def test_a_file_in_a_loop_goes_on_across_its_seam_at_its_own_pace(tmp_path: Path) -> None:
    path = write_video(tmp_path / "clip.mp4", Clip(stamps=range(5), base=Fraction(1, 10)))
    got = play_on(FileSource(FileSettings(str(path), "kitchen", decode="inline", loop=True)), 23)
    refs = [ref for ref, _ in got]
    assert [ref.seq for ref in refs] == list(range(23))
    assert [ref.media_time for ref in refs] == pytest.approx([n / 10 for n in range(23)])
    assert all(b.captured_at - a.captured_at == pytest.approx(0.1) for a, b in pairwise(refs))
    assert all(at == pytest.approx(ref.captured_at) for ref, at in got)


def test_a_folder_of_images_loops_too(tmp_path: Path) -> None:
    path = write_folder(tmp_path / "shots", 3)
    source = FileSource(FileSettings(str(path), image_fps=4.0, decode="inline", loop=True))
    times = [ref.media_time for ref, _ in play_on(source, 10)]
    assert times == pytest.approx([n / 4 for n in range(10)])


def test_the_report_of_an_endless_loop_stays_short(tmp_path: Path) -> None:
    path = write_folder(tmp_path / "shots", 3)
    (path / "frame1.jpg").write_bytes(b"\xff\xd8 cut short")
    source = FileSource(FileSettings(str(path), image_fps=4.0, decode="inline", loop=True))
    play_on(source, 40)
    assert len(source.report.problems) == 1


def test_a_looped_file_is_a_camera_that_is_expected_back_and_a_plain_one_is_not(
    tmp_path: Path,
) -> None:
    source = FileSource(FileSettings(str(tmp_path / "gone.mp4"), decode="inline", loop=True))
    with pytest.raises(SourceError, match="no such file"):
        play_on(source, 1)
    assert source.retry_after() == 5.0
    assert FileSource(FileSettings("clip.mp4")).retry_after() is None

import re
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import av
import numpy as np
import pytest

from hdguard.ingest.base import SourceError
from tests.ingest.media import Clip, play, write_folder, write_video


def cut(path: Path, share: float) -> Path:
    """The file's beginning only, as after a broken copy."""
    short = path.with_name(f"cut-{path.name}")
    short.write_bytes(path.read_bytes()[: int(path.stat().st_size * share)])
    return short


@pytest.mark.parametrize(
    ("codec", "options"),
    [
        ("libx264", {"g": "30", "preset": "ultrafast"}),
        # This decoder flags nothing itself: only the container knows.
        ("libx265", {"x265-params": "log-level=none:pools=none", "preset": "ultrafast"}),
    ],
)
def test_flipped_bytes_in_a_stream_cost_few_frames_and_are_reported(
    tmp_path: Path, codec: str, options: dict[str, str]
) -> None:
    clip = Clip(range(150), Fraction(1, 30), size=(320, 240), codec=codec, options=options)
    path = write_video(tmp_path / "clip.ts", clip)
    data = bytearray(path.read_bytes())
    for at in range(len(data) // 2, len(data) // 2 + 400):
        data[at] ^= 0x5A
    path.write_bytes(data)
    played = play(path)
    report = played.source.report
    assert 140 <= report.frames < 150
    assert 1 <= report.corrupt <= 10
    assert re.search(r"^clip\.ts: \d+ x .*, first at \d\.\d+ s", report.problems[0])
    assert played.times[-1] == pytest.approx(149 / 30)


def test_damage_all_over_a_stream_never_crashes(tmp_path: Path) -> None:
    clip = Clip(stamps=range(40), size=(160, 120), options={"g": "10", "preset": "ultrafast"})
    made = write_video(tmp_path / "made.ts", clip).read_bytes()
    path = tmp_path / "clip.ts"
    for seed in range(12):
        rng = np.random.default_rng(seed)
        data = bytearray(made)
        for at in rng.integers(0, len(data), 300):
            data[at] ^= int(rng.integers(1, 256))
        path.write_bytes(data)
        try:
            played = play(path)
        except SourceError as error:
            assert "clip.ts" in str(error)  # noqa: PT017 - either outcome is right
            continue
        assert all(a < b for a, b in pairwise(played.times))
        assert played.source.report.problems


def test_a_decoder_that_goes_silent_is_reported(tmp_path: Path) -> None:
    options = {"x265-params": "log-level=none:keyint=200", "preset": "ultrafast"}
    clip = Clip(stamps=range(40), codec="libx265", options=options, size=(160, 120))
    path = write_video(tmp_path / "hevc.mkv", clip)
    with av.open(path) as container:
        packets = [bytes(p) for p in container.demux(video=0) if p.size]
    data = path.read_bytes()
    for packet in packets[10:]:  # a type of NAL unit that means nothing to the decoder
        at = data.index(packet)
        data = data[: at + 4] + b"\x60" + data[at + 5 :]
    path.write_bytes(data)
    report = play(path).source.report
    assert report.frames + report.corrupt == 40
    assert report.corrupt >= 25
    assert report.problems


@pytest.mark.parametrize("name", ["clip.mkv", "clip.ts", "clip.mp4"])
def test_a_truncated_file_plays_as_far_as_it_goes_and_says_so(tmp_path: Path, name: str) -> None:
    clip = Clip(
        stamps=range(60),
        size=(160, 120),
        container={"movflags": "faststart"} if name.endswith("mp4") else {},
    )
    path = cut(write_video(tmp_path / name, clip), 0.6)
    played = play(path)
    assert 30 <= len(played.frames) < 42
    assert played.times == pytest.approx([n / 10 for n in range(len(played.frames))])
    assert played.source.report.problems
    assert all(line.startswith(f"cut-{name}: ") for line in played.source.report.problems)


def test_a_truncated_recording_with_sound_says_so(tmp_path: Path) -> None:
    clip = Clip(stamps=range(6), base=Fraction(1), sound=True, size=(160, 120))
    whole = write_video(tmp_path / "clip.mkv", clip)
    assert play(whole).source.report.problems == ()
    problem = play(cut(whole, 0.6)).source.report.problems[-1]
    assert re.search(r"ends at \d\.\d+ s although it declares 6\.000 s", problem)


def test_an_mp4_cut_before_its_index_says_so(tmp_path: Path) -> None:
    path = cut(write_video(tmp_path / "clip.mp4", Clip(size=(160, 120))), 0.7)
    with pytest.raises(SourceError, match=r"cut-clip\.mp4: .*before its index \(moov atom\)"):
        play(path)


def test_an_mp4_cut_inside_its_index_says_so(tmp_path: Path) -> None:
    clip = Clip(stamps=range(50), container={"movflags": "faststart"})
    whole = write_video(tmp_path / "clip.mp4", clip)
    start = whole.read_bytes().index(b"moov")
    path = cut(whole, (start + 200) / whole.stat().st_size)
    with pytest.raises(SourceError, match=r"cut-clip\.mp4: .*before its index \(moov atom\)"):
        play(path)


def test_a_folder_of_broken_images_is_an_error_that_says_why(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "shots", 2)
    for path in folder.iterdir():
        path.write_bytes(b"\xff\xd8 nothing else")
    with pytest.raises(SourceError, match=r"shots: not one picture .*2 x image"):
        play(folder)

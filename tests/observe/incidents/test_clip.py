"""The clip: every picture at the time at which it was seen, in a form that browsers play."""

import errno
import stat
from pathlib import Path

import av
import pytest

from hdguard.observe.incidents import clip
from hdguard.observe.incidents.clip import pts_of, write_clip
from hdguard.observe.incidents.reel import Developer
from hdguard.observe.incidents.spool import Picture
from tests.observe.incidents.support import frame, picture, ref

TIMES = [20.0, 20.2, 20.401, 20.6, 21.9, 22.1]


def test_pictures_stand_where_they_were_captured_and_a_gap_stays_a_gap(tmp_path: Path) -> None:
    pictures = [picture(at, grey=40 * n) for n, at in enumerate(TIMES)]
    refs = [p.ref for p in pictures]
    made = write_clip(tmp_path / "clip.mp4", "hall", refs, pictures, 20.2)
    with av.open(str(tmp_path / "clip.mp4")) as file:
        video = file.streams.video[0]
        frames = list(file.decode(video=0))
        assert (video.codec_context.name, video.codec_context.pix_fmt) == ("h264", "yuv420p")
        assert file.duration is not None
        assert file.duration / av.time_base == pytest.approx(2.3)
    shown = [float(f.pts * f.time_base) for f in frames if f.pts is not None and f.time_base]
    assert shown == pytest.approx([0.0, 0.2, 0.401, 0.6, 1.9, 2.1])
    greys = [f.to_ndarray(format="gray").mean() for f in frames]
    assert greys == pytest.approx([40 * n for n in range(6)], abs=4)
    assert (made.file, made.camera, made.width, made.height) == ("clip.mp4", "hall", 64, 36)
    assert made.seconds == pytest.approx(2.3)
    assert [f.index for f in made.frames] == list(range(6))
    assert [f.pts for f in made.frames] == pytest.approx(shown)
    assert [f.captured_at for f in made.frames] == TIMES
    assert [f.after for f in made.frames] == [-0.2, 0.0, 0.201, 0.4, 1.7, 1.9]


def test_the_index_stands_in_front_so_that_it_plays_while_it_loads(tmp_path: Path) -> None:
    one = picture(20.0)
    write_clip(tmp_path / "clip.mp4", "hall", [one.ref], [one], 20.0)
    data = (tmp_path / "clip.mp4").read_bytes()
    assert 0 < data.find(b"moov") < data.find(b"mdat")
    assert stat.S_IMODE((tmp_path / "clip.mp4").stat().st_mode) == 0o600
    assert [p.name for p in tmp_path.iterdir()] == ["clip.mp4"]


def test_two_pictures_of_one_moment_are_shown_one_after_the_other() -> None:
    assert pts_of([ref(20.0, 1), ref(20.0, 2), ref(20.0004, 3), ref(20.2, 4)]) == [0, 1, 2, 200]


def test_a_camera_that_changes_its_shape_does_not_break_the_clip(tmp_path: Path) -> None:
    other = Developer(64).developed(frame(20.2, height=48))
    pictures = [picture(20.0), other]
    write_clip(tmp_path / "clip.mp4", "hall", [p.ref for p in pictures], pictures, 20.0)
    with av.open(str(tmp_path / "clip.mp4")) as file:
        shown = [f.to_ndarray(format="gray") for f in file.decode(video=0)]
    assert [picture.shape for picture in shown] == [(36, 64)] * 2
    # 4:3 in 16:9: bars at the sides, and nothing is stretched.
    bar, inside = shown[1][18, :6].mean(), shown[1][18, 12:52].mean()
    assert bar < 5
    assert inside > 80


def test_after_a_long_silence_the_last_picture_does_not_stand_as_long_again(
    tmp_path: Path,
) -> None:
    pictures = [picture(20.0), picture(20.2), picture(29.0)]
    made = write_clip(tmp_path / "clip.mp4", "hall", [p.ref for p in pictures], pictures, 20.0)
    assert made.seconds == pytest.approx(9.2)
    with av.open(str(tmp_path / "clip.mp4")) as file:
        assert file.duration is not None
        assert file.duration / av.time_base == pytest.approx(9.2)


def test_its_colours_are_said_since_players_would_guess_them_by_its_height(tmp_path: Path) -> None:
    one = picture(20.0)
    write_clip(tmp_path / "clip.mp4", "hall", [one.ref], [one], 20.0)
    with av.open(str(tmp_path / "clip.mp4")) as file:
        context = file.streams.video[0].codec_context
        assert (context.colorspace, context.color_range) == (5, 1)  # BT.601, narrow
        assert (context.color_primaries, context.color_trc) == (1, 1)


def test_what_is_no_picture_is_named(tmp_path: Path) -> None:
    bad = Picture(ref(20.0, 7), b"nothing")
    with pytest.raises(ValueError, match="frame 7 of hall is no JPEG"):
        write_clip(tmp_path / "clip.mp4", "hall", [bad.ref], [bad], 20.0)
    assert not (tmp_path / "clip.mp4").exists()


def test_a_file_that_lacks_a_picture_is_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = picture(20.0)
    check = clip._check
    monkeypatch.setattr(clip, "_check", lambda path, count: check(path, count + 1))
    with pytest.raises(OSError, match="No space left") as failed:
        write_clip(tmp_path / "clip.mp4", "hall", [one.ref], [one], 20.0)
    assert failed.value.errno == errno.ENOSPC
    assert not (tmp_path / "clip.mp4").exists()

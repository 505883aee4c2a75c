import asyncio
import re
import shutil
import threading
from collections.abc import Callable
from contextlib import aclosing
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
import uvloop

from hdguard.core.types import FrameRef, ImageSpec
from hdguard.ingest import image as image_module
from hdguard.ingest.base import Rgb, SourceError, SourceReport
from hdguard.ingest.file import FileSettings, FileSource
from hdguard.ingest.image import View
from hdguard.runtime.virtual_time import run_virtual
from tests.ingest.media import (
    RED,
    Clip,
    bare_times,
    corners,
    play,
    restamp_ts,
    write_folder,
    write_still,
    write_video,
)

MILLI = Fraction(1, 1000)


def inline(path: Path, **more: Any) -> FileSettings:
    return FileSettings(str(path), decode="inline", **more)


# Settings


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("path", ""),
        ("ignore_regions", ((0.5, 0.0, 0.5, 1.0),)),
        ("ignore_regions", ((0.0, 0.0, 1.0, 1.5),)),
        ("ignore_regions", ((0.0, float("nan"), 1.0, 1.0),)),
        ("ignore_regions", ((0.0, 0.9, 1.0, 0.1),)),
        ("image_fps", 0.0),
        ("image_fps", 1e-9),
        ("image_fps", float("nan")),
        ("image_fps", float("inf")),
        ("decode", "process"),
    ],
)
def test_a_bad_setting_is_refused_by_name(field: str, value: object) -> None:
    settings: dict[str, Any] = {"path": "clip.mp4", field: value}
    with pytest.raises(ValueError, match=rf"^{field}: "):
        FileSettings(**settings)


def test_the_source_is_named_by_the_setting_or_else_by_the_file(tmp_path: Path) -> None:
    assert FileSource(FileSettings(f"{tmp_path}/clip.mp4")).source_id == "clip.mp4"
    assert FileSource(FileSettings(f"{tmp_path}/clip.mp4", "kitchen")).source_id == "kitchen"


# What the files say about time


def test_a_plain_clip_gives_every_frame_with_its_time(tmp_path: Path) -> None:
    played = play(write_video(tmp_path / "clip.mp4"))
    assert played.times == [n / 10 for n in range(10)]
    assert [f.ref.seq for f in played.frames] == list(range(10))
    assert {f.ref.source_id for f in played.frames} == {"clip.mp4"}
    assert played.source.interval == pytest.approx(0.1)
    assert played.source.report.frames == 10
    assert played.source.report.problems == ()


@pytest.mark.parametrize("name", ["vfr.mp4", "vfr.mkv"])
def test_variable_rate_stamps_come_out_exact_from_any_start(tmp_path: Path, name: str) -> None:
    stamps = [500, 533, 700, 701, 1450, 1500, 2345]
    path = write_video(tmp_path / name, Clip(stamps=stamps, base=MILLI))
    played = play(path)
    assert played.times == [(s - 500) / 1000 for s in stamps]
    assert played.source.report.repaired == 0


@pytest.mark.parametrize("name", ["b.mp4", "b.mkv", "b.ts"])
def test_frames_stored_out_of_order_come_in_order_of_presentation(
    tmp_path: Path, name: str
) -> None:
    options = {"bf": "3", "b-adapt": "0", "preset": "medium"}
    path = write_video(tmp_path / name, Clip(stamps=range(24), options=options))
    with av.open(path) as container:
        kinds = {frame.pict_type for frame in container.decode(video=0)}
    assert av.video.frame.PictureType.B in kinds
    played = play(path)
    assert played.times == pytest.approx([n / 10 for n in range(24)])
    assert played.source.report.repaired == 0


def test_a_file_without_stamps_plays_at_its_nominal_rate(tmp_path: Path) -> None:
    clip = Clip(stamps=range(8), base=Fraction(1, 25), format="h264")
    played = play(write_video(tmp_path / "raw.h264", clip))
    assert played.times == pytest.approx([n / 25 for n in range(8)])


def test_a_repeated_stamp_and_a_wild_one_are_repaired_and_reported(tmp_path: Path) -> None:
    path = write_video(tmp_path / "clip.ts", Clip(stamps=range(10)))
    with av.open(path) as container:
        first = next(container.decode(video=0)).pts
    assert first is not None
    restamp_ts(path, {3: first + 2 * 9000, 6: first + 20 * 90_000})
    played = play(path)
    assert all(a < b for a, b in pairwise(played.times))
    assert played.times[4:6] == pytest.approx([0.4, 0.5])
    assert played.times[7:] == pytest.approx([0.7, 0.8, 0.9])
    assert played.source.report.repaired == 2
    (problem,) = played.source.report.problems
    assert re.search(r"clip\.ts: 2 x .* out of order, replaced", problem)


def test_a_long_pause_in_the_stamps_stays_a_long_pause(tmp_path: Path) -> None:
    path = write_video(tmp_path / "pause.mp4", Clip(stamps=[0, 100, 3_600_000], base=MILLI))
    assert play(path).times == [0.0, 0.1, 3600.0]


def test_real_videos_give_the_frames_and_times_that_bare_pyav_gives(homesafe: Path) -> None:
    async def watch(source: FileSource) -> list[float]:
        times = []
        async for frame in source.frames():
            times.append(frame.ref.media_time)
            if frame.ref.seq % 100 == 50:
                assert frame.image.rgb(ImageSpec(448, 448)).std() > 10
        return times

    paths = sorted((homesafe / "videos").glob("*.mp4"))
    assert len(paths) == 3
    for path in paths:
        expected = bare_times(path)
        source = FileSource(inline(path))
        times = run_virtual(watch(source))
        assert times == expected
        assert source.report == SourceReport(frames=len(expected))
        with av.open(path) as container:
            assert container.duration is not None
            seconds = container.duration / 1_000_000
        assert times[-1] + source.interval == pytest.approx(seconds, abs=0.05)


# When frames are handed over


def test_each_frame_is_handed_over_exactly_at_its_time(tmp_path: Path) -> None:
    stamps = [100, 133, 300, 301, 1900]
    source = FileSource(inline(write_video(tmp_path / "vfr.mkv", Clip(stamps=stamps, base=MILLI))))

    async def main() -> None:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(7.5)
        async for frame in source.frames():
            assert frame.ref.captured_at == 7.5 + frame.ref.media_time
            assert loop.time() >= frame.ref.captured_at
            assert loop.time() == pytest.approx(frame.ref.captured_at, abs=1e-9)

    run_virtual(main())


def test_a_timer_that_fires_early_does_not_make_a_frame_early(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = FileSource(inline(write_video(tmp_path / "clip.mp4")))
    sleep = asyncio.sleep

    async def early(delay: float) -> None:
        await sleep(delay / 2 if delay > 0.001 else delay)

    async def main() -> None:
        loop = asyncio.get_running_loop()
        async for frame in source.frames():
            assert loop.time() >= frame.ref.captured_at

    monkeypatch.setattr(asyncio, "sleep", early)
    run_virtual(main())


def test_a_slow_reader_gets_frames_late_but_not_younger(tmp_path: Path) -> None:
    source = FileSource(inline(write_video(tmp_path / "clip.mp4")))

    async def main() -> list[tuple[float, float]]:
        loop = asyncio.get_running_loop()
        got = []
        async for frame in source.frames():
            got.append((frame.ref.captured_at, loop.time()))
            if frame.ref.seq == 2:
                await asyncio.sleep(0.55)
        return got

    got = run_virtual(main())
    assert [captured for captured, _ in got] == pytest.approx([n / 10 for n in range(10)])
    at = [0.0, 0.1, 0.2, 0.75, 0.75, 0.75, 0.75, 0.75, 0.8, 0.9]
    assert [handed for _, handed in got] == pytest.approx(at)


def test_late_frames_do_not_starve_the_other_tasks(tmp_path: Path) -> None:
    source = FileSource(inline(write_video(tmp_path / "clip.mp4")))

    async def main() -> None:
        turns = 0

        async def other() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        async with asyncio.TaskGroup() as group:
            busy = group.create_task(other())
            before = 0
            async for frame in source.frames():
                if frame.ref.seq == 0:
                    asyncio.get_running_loop()._now += 100.0  # type: ignore[attr-defined]
                else:
                    assert turns > before
                before = turns
            busy.cancel()

    run_virtual(main())


def test_only_sampled_frames_are_converted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[ImageSpec] = []
    convert = image_module.convert

    def counting(frame: av.VideoFrame, view: View, spec: ImageSpec) -> Rgb:
        seen.append(spec)
        return convert(frame, view, spec)

    monkeypatch.setattr(image_module, "convert", counting)
    played = play(write_video(tmp_path / "clip.mp4"))
    assert seen == []
    for frame in played.frames[::5]:
        frame.image.rgb(ImageSpec(32))
    assert len(seen) == 2


def test_a_second_playing_starts_over(tmp_path: Path) -> None:
    source = FileSource(inline(write_video(tmp_path / "clip.mp4")))

    async def refs() -> list[FrameRef]:
        return [frame.ref async for frame in source.frames()]

    assert run_virtual(refs()) == run_virtual(refs())
    assert source.report.frames == 10


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_the_thread_gives_what_inline_gives_and_never_early(
    tmp_path: Path, new_loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    stamps = [0, 10, 15, 40, 41, 90, 120]
    path = write_video(tmp_path / "clip.mkv", Clip(stamps=stamps, base=MILLI))

    async def main() -> list[FrameRef]:
        loop = asyncio.get_running_loop()
        source = FileSource(FileSettings(str(path)))
        refs = []
        async for frame in source.frames():
            assert loop.time() >= frame.ref.captured_at
            assert frame.image.rgb(ImageSpec(32)).shape == (24, 32, 3)
            refs.append(frame.ref)
        assert source.interval > 0.0
        assert source.report.frames == len(stamps)
        return refs

    with asyncio.Runner(loop_factory=new_loop) as runner:
        refs = runner.run(main())
    expected = [frame.ref for frame in play(path).frames]
    assert [(r.seq, r.media_time) for r in refs] == [(r.seq, r.media_time) for r in expected]
    origin = refs[0].captured_at
    assert [r.captured_at for r in refs] == [origin + r.media_time for r in refs]


def test_a_task_cancelled_in_a_long_pause_leaves_no_thread(tmp_path: Path) -> None:
    path = write_video(tmp_path / "pause.mp4", Clip(stamps=[0, 3_600_000], base=MILLI))
    first = asyncio.Event()

    async def watch() -> None:
        async with aclosing(FileSource(FileSettings(str(path))).frames()) as frames:
            async for _ in frames:
                first.set()

    async def main() -> None:
        before = threading.active_count()
        async with asyncio.TaskGroup() as group:
            task = group.create_task(watch())
            await first.wait()
            task.cancel()
        assert threading.active_count() == before

    asyncio.run(main())


# Kinds of files


@pytest.mark.parametrize(
    ("name", "codec", "pix_fmt", "size", "options"),
    [
        ("odd.mp4", "libx264", "yuv444p", (65, 49), {}),
        ("hevc.mp4", "libx265", "yuv420p", (64, 48), {"x265-params": "log-level=none"}),
        ("hevc10.mkv", "libx265", "yuv420p10le", (64, 48), {"x265-params": "log-level=none"}),
        ("h264-10.mp4", "libx264", "yuv420p10le", (66, 50), {}),
        ("mpeg4.avi", "mpeg4", "yuv420p", (65, 47), {}),
        ("vp9.webm", "libvpx-vp9", "yuv420p", (63, 41), {"deadline": "realtime"}),
        ("av1.mp4", "libsvtav1", "yuv420p", (64, 64), {"svtav1-params": "logical-processors=1"}),
        ("mjpeg.avi", "mjpeg", "yuvj420p", (65, 49), {}),
        ("grey.mkv", "ffv1", "gray", (65, 49), {}),
        ("lossless.mkv", "ffv1", "bgr0", (65, 49), {}),
        ("stream.ts", "libx264", "yuv420p", (64, 48), {}),
    ],
)
def test_every_usual_codec_and_pixel_format_plays(
    tmp_path: Path, name: str, codec: str, pix_fmt: str, size: tuple[int, int], options: Any
) -> None:
    clip = Clip(
        stamps=range(4),
        codec=codec,
        pix_fmt=pix_fmt,
        size=size,
        options=options,
        still=np.full((size[1], size[0], 3), RED, np.uint8),
    )
    played = play(write_video(tmp_path / name, clip))
    assert played.times == pytest.approx([0.0, 0.1, 0.2, 0.3])
    assert played.source.report.problems == ()
    rgb = played.rgb(size[0])
    assert rgb.shape == (size[1], size[0], 3)
    expected = (76, 76, 76) if pix_fmt == "gray" else RED
    assert np.abs(rgb[20, 20].astype(int) - expected).max() < 12


def test_a_name_with_colon_percent_and_spaces_is_just_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_video(tmp_path / "made.mp4").rename(tmp_path / "rtsp: kitchen %02d.mp4")
    monkeypatch.chdir(tmp_path)
    assert len(play(Path("rtsp: kitchen %02d.mp4")).frames) == 10


def test_regions_to_ignore_are_black_in_every_frame(tmp_path: Path) -> None:
    white = np.full((48, 64, 3), 255, np.uint8)
    path = write_video(tmp_path / "white.mp4", Clip(stamps=range(3), still=white))
    for frame in play(inline(path, ignore_regions=((0.0, 0.0, 0.5, 1.0),))).frames:
        rgb = frame.image.rgb(ImageSpec(64))
        assert rgb[:, :32].max() == 0
        assert rgb[:, 32:].min() > 240


def test_a_folder_of_images_plays_in_natural_order_at_its_rate(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "shots", 9)
    write_still(folder / "frame10.PNG", corners((32, 32)), "png", "rgb24")
    write_still(folder / "frame9.webp", corners((33, 17)), "libwebp", "yuv420p")
    write_still(folder / "frame11.bmp", corners((20, 10)), "bmp", "bgr24")
    (folder / "notes.txt").write_text("not an image")
    played = play(inline(folder, image_fps=4.0))
    assert played.times == [n / 4 for n in range(12)]
    assert played.source.interval == 0.25
    shapes = [frame.image.rgb(ImageSpec(10)).shape[0] for frame in played.frames]
    assert shapes == [8] * 9 + [5, 10, 5]


def test_a_broken_image_leaves_its_place_empty_and_is_named(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "shots", 5)
    data = (folder / "frame2.jpg").read_bytes()
    (folder / "frame2.jpg").write_bytes(data[: len(data) // 2])
    (folder / "frame4.jpg").write_bytes(b"")
    played = play(folder)
    assert played.times == [0.0, 0.1, 0.3]
    assert played.source.report.corrupt == 2
    assert re.search(
        r"^shots: 2 x image .*, first at 0\.200 s \(frame2", played.source.report.problems[0]
    )


# Errors and resources


def test_a_file_that_is_no_video_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "empty.mp4").touch()
    (tmp_path / "noise.mkv").write_bytes(np.random.default_rng(0).bytes(5000))
    (tmp_path / "list.mp4").write_text("a shopping list")
    (tmp_path / "bare").mkdir()
    for name, reason in {
        "missing.mp4": "no such file; check the setting path",
        "empty.mp4": "check that it is a complete video file",
        "noise.mkv": "check that it is a complete video file",
        "list.mp4": "check that it is a complete video file",
        "bare": "holds no image",
    }.items():
        with pytest.raises(SourceError, match=rf"{name}: .*{reason}"):
            play(tmp_path / name)


def test_sound_without_pictures_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "song.mka"
    with av.open(path, "w") as out:
        stream = out.add_stream("pcm_s16le", rate=8000)
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 800), np.int16), "s16", "mono")
        frame.sample_rate = 8000
        out.mux(stream.encode(frame))
        out.mux(stream.encode(None))
    with pytest.raises(SourceError, match=r"song\.mka: has no video stream"):
        play(path)


def test_the_thread_raises_what_inline_raises(tmp_path: Path) -> None:
    async def main() -> None:
        with pytest.raises(SourceError, match=r"missing\.mp4: no such file"):
            await anext(FileSource(FileSettings(str(tmp_path / "missing.mp4"))).frames())

    asyncio.run(main())


def test_files_are_closed_after_the_end_an_early_close_and_an_error(tmp_path: Path) -> None:
    path = write_video(tmp_path / "clip.mp4")
    broken = tmp_path / "broken.mp4"
    shutil.copy(path, broken)
    broken.write_bytes(path.read_bytes()[:200])

    def opened() -> list[str]:
        links = Path("/proc/self/fd").iterdir()
        return [str(link.readlink()) for link in links if link.exists()]

    async def one(source: FileSource) -> None:
        async with aclosing(source.frames()) as frames:
            await anext(frames)
            assert any("clip.mp4" in name for name in opened())

    play(path)
    run_virtual(one(FileSource(inline(path))))
    asyncio.run(one(FileSource(FileSettings(str(path)))))
    with pytest.raises(SourceError):
        play(broken)
    assert not [name for name in opened() if str(tmp_path) in name]

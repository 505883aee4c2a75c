"""There is no device here: libavdevice is replaced, all behind it is real."""

import asyncio
from collections.abc import Iterator
from contextlib import aclosing
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

import av
import pytest
from av.packet import Packet
from av.video.stream import VideoStream

from hdguard.ingest import camera
from hdguard.ingest.camera import CameraSettings, CameraSource
from hdguard.ingest.live_stream import Now
from tests.ingest.live import decoder_threads, run, watch, watch_to_the_end
from tests.ingest.media import Clip, write_video

PERIOD = 1 / 50


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("device", "video0"),
        ("format", "h264"),
        ("size", (0, 720)),
        ("size", (1280, 100_000)),
        ("fps", 0),
        ("read_timeout", 0.0),
        ("interval", -1.0),
        ("ignore_regions", ((0.5, 0.0, 0.5, 1.0),)),
    ],
)
def test_a_bad_setting_is_refused_by_name(field: str, value: object) -> None:
    settings: dict[str, Any] = {"device": "/dev/video0", field: value}
    with pytest.raises(ValueError, match=rf"^{field}: "):
        CameraSettings(**settings)


def test_a_device_that_is_not_there_is_told_and_tried_again() -> None:
    async def main() -> None:
        source = CameraSource(CameraSettings("/dev/video-that-is-not-there", "desk"))
        got, why = await watch_to_the_end(source)
        assert (got, why) == ([], "desk: cannot be opened: No such file or directory")
        assert source.retry_after() >= 0.5
        assert decoder_threads() == []

    run(main())


def test_the_number_in_the_options_is_the_flag_that_the_driver_looks_at(tmp_path: Path) -> None:
    path = write_video(tmp_path / "clip.mp4")
    options = {"fflags": CameraSettings("/dev/video0").options["fflags"]}
    with av.open(path, options=options) as container:
        assert container.flags & cast("int", av.container.Flags.non_block.value)


class Device:
    """A camera that has a packet every now and then, until it is unplugged or falls silent."""

    def __init__(self, path: Path, now: Now, last: int, silent: float) -> None:
        self._container = av.open(path)
        self.streams, self.format = self._container.streams, self._container.format
        self._packets = self._container.demux(video=0)
        self._now, self._begun = now, now()
        self._last, self._silent = last, silent
        self._given = 0

    def demux(self) -> "Iterator[Packet[VideoStream]]":
        while True:
            at = self._begun + self._given * PERIOD
            if self._given == self._last:
                if self._now() >= at + self._silent:
                    raise av.error.OSError(19, "No such device")
                raise av.BlockingIOError(11, "Resource temporarily unavailable")
            if self._now() < at:
                raise av.BlockingIOError(11, "Resource temporarily unavailable")
            self._given += 1
            yield next(self._packets)

    def close(self) -> None:
        self._container.close()


def plug_in(
    monkeypatch: pytest.MonkeyPatch, folder: Path, last: int = 1000, silent: float = 0.0
) -> CameraSource:
    clip = Clip(
        stamps=range(60), base=Fraction(1, 50), codec="mjpeg", pix_fmt="yuvj420p", options={}
    )
    path = write_video(folder / "clip.mkv", clip)

    def opened(_: CameraSettings, now: Now) -> Device:
        return Device(path, now, last, silent)

    monkeypatch.setattr(camera, "_open", opened)
    return CameraSource(CameraSettings("/dev/video0", "desk", read_timeout=0.3))


def test_pictures_of_a_device_are_fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    source = plug_in(monkeypatch, tmp_path)
    got = run(watch(source, 10))
    assert [frame.ref.seq for frame, _ in got] == list(range(10))
    assert sorted(at - f.ref.captured_at for f, at in got)[5] < PERIOD
    assert decoder_threads() == []


def test_frigate_1932_an_unplugged_camera_is_lost_at_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    got, why = run(watch_to_the_end(plug_in(monkeypatch, tmp_path, last=40)))
    assert why == "desk: No such device"
    assert len(got) > 5


def test_a_device_that_stops_delivering_is_silent_and_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async def main() -> float:
        loop = asyncio.get_running_loop()
        got, why = await watch_to_the_end(plug_in(monkeypatch, tmp_path, last=40, silent=60.0))
        assert why == "desk: silent for 0.3 s"
        return loop.time() - got[-1][0].ref.captured_at

    assert 0.25 < run(main()) < 0.6


def test_one_can_leave_a_device_that_has_nothing_at_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        source = plug_in(monkeypatch, tmp_path, last=40, silent=60.0)
        async with aclosing(source.frames()) as frames:
            for _ in range(3):
                await anext(frames)
            left = loop.time()
        assert loop.time() - left < 0.2

    run(main())

"""A USB or CSI camera of this machine, over Video4Linux.

Never tried with a device by this project's tests: they have none. The device is read without
blocking, because nothing can wake a thread that waits in the driver of a camera which stopped.
"""

from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Literal

import av
from av.container import InputContainer

from hdguard.ingest.image import Region
from hdguard.ingest.live_stream import LiveStream, Now, Reading

_NON_BLOCKING = "4"  # AVFMT_FLAG_NONBLOCK (libavformat/avformat.h), which has no name among options
_OPEN_TIMEOUT = 2.0  # s


@dataclass(frozen=True, slots=True)
class CameraSettings:
    """Which camera and in which mode.

    Attributes:
        device: its path, such as /dev/video0 or one of /dev/v4l/by-id, which survives replugging.
        source_id: name that every ref carries; empty: the device.
        interval: seconds between frames of a camera slower than 5 a second; 0.0: it is faster.
        ignore_regions: x0, y0, x1, y1 as fractions of the upright picture, painted black.
        format: how pictures come over the cable; mjpeg lets USB 2 carry 720p at 30 a second.
        size: width and height in pixels; the driver may choose its nearest.
        fps: frames a second; likewise.
        read_timeout: seconds without a picture after which the device is opened again; at least
            two and a half intervals.
    """

    device: str
    source_id: str = ""
    interval: float = 0.0
    ignore_regions: tuple[Region, ...] = ()
    format: Literal["mjpeg", "yuyv"] = "mjpeg"
    size: tuple[int, int] = (1280, 720)
    fps: int = 30
    read_timeout: float = 1.0

    def __post_init__(self) -> None:
        if not self.device.startswith("/dev/"):
            msg = f"device: {self.device!r} must be a path such as /dev/video0"
            raise ValueError(msg)
        if self.format not in ("mjpeg", "yuyv"):
            msg = f'format: {self.format!r} must be "mjpeg" or "yuyv"'
            raise ValueError(msg)
        if not all(16 <= side <= 8192 for side in self.size):
            msg = f"size: {self.size} must be 16 to 8192 pixels each way"
            raise ValueError(msg)
        if not 1 <= self.fps <= 240:
            msg = f"fps: {self.fps} must be 1 to 240"
            raise ValueError(msg)
        if not 0.1 <= self.read_timeout <= 30.0:
            msg = f"read_timeout: {self.read_timeout} must be 0.1 to 30 s"
            raise ValueError(msg)
        self.reading.check()

    @property
    def reading(self) -> Reading:
        """What reading it needs to know."""
        silence = max(self.read_timeout, 2.5 * self.interval)
        name = self.source_id or self.device
        return Reading(name, self.interval, _OPEN_TIMEOUT, silence, self.ignore_regions)

    @property
    def options(self) -> dict[str, str]:
        """The same in the words of libavdevice's `v4l2`."""
        width, height = self.size
        return {
            "input_format": {"mjpeg": "mjpeg", "yuyv": "yuyv422"}[self.format],
            "video_size": f"{width}x{height}",
            "framerate": str(self.fps),
            "fflags": f"+{_NON_BLOCKING}",
            "fpsprobesize": "0",
        }


class CameraSource(LiveStream):
    """A `FrameSource` over one local camera; see `LiveStream`."""

    def __init__(self, settings: CameraSettings, rng: Random | None = None) -> None:
        super().__init__(settings.reading, partial(_open, settings), rng)


def _open(settings: CameraSettings, now: Now) -> InputContainer:
    del now  # opening a device has one half only that may wait
    timeout = (_OPEN_TIMEOUT, settings.reading.silence)
    return av.open(settings.device, "r", format="v4l2", options=settings.options, timeout=timeout)

"""Videos to measure with: the real ones if they lie beside the checkout, else made here."""

from pathlib import Path

import av
import numpy as np

REAL = Path(__file__).resolve().parent.parent.parent / "shared/data/homesafe-bench/videos"


def clips(folder: Path, seconds: int = 8, count: int = 3) -> list[Path]:
    """Three 720p H.264 videos of some seconds."""
    real = sorted(REAL.glob("*.mp4"))
    if real:
        return real
    return [_make(folder / f"made-{n}.mp4", seconds, n) for n in range(count)]


def _make(path: Path, seconds: int, seed: int) -> Path:
    """A noise texture that drifts over the frame: about as hard to decode as a real scene."""
    noise = np.random.default_rng(seed).integers(0, 255, (90, 160, 3), dtype=np.uint8)
    still = noise.repeat(8, axis=0).repeat(8, axis=1)
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=30)
        stream.width, stream.height, stream.pix_fmt = 1280, 720, "yuv420p"
        for n in range(30 * seconds):
            frame = av.VideoFrame.from_ndarray(np.roll(still, 3 * n, axis=1), format="rgb24")
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path

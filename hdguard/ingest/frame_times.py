"""When a video's frames are, without decoding one of them.

A run that only repeats recorded verdicts needs the times of all frames and no pixels; to read the
stamps takes a few milliseconds where to decode takes seconds.
"""

from fractions import Fraction
from pathlib import Path

import av

from hdguard.ingest.base import SourceError
from hdguard.ingest.image import IMAGE_SUFFIXES


def frame_times(path: Path, image_fps: float = 10.0) -> tuple[float, ...]:
    """Media times of the frames in seconds, ascending from 0.

    They are those that `FileSource` gives a sound file; it mends stamps that are missing or out of
    order, here they are left out.

    Args:
        path: a video that PyAV reads, or a folder of images.
        image_fps: images a second of a folder.

    Raises:
        SourceError: it cannot be read, or holds no frame.
    """
    if path.is_dir():
        count = sum(p.suffix.lower() in IMAGE_SUFFIXES for p in path.iterdir())
        return tuple(n / image_fps for n in range(count))
    try:
        stamps, base = _stamps(path)
    except (av.FFmpegError, OSError) as error:
        raise SourceError(f"{path}: cannot be read as a video: {error.strerror}") from error
    if not stamps or base is None:
        raise SourceError(f"{path}: has no frames with presentation stamps")
    first = stamps[0]
    return tuple((stamp - first) * base.numerator / base.denominator for stamp in stamps)


def _stamps(path: Path) -> tuple[list[int], Fraction | None]:
    # "file:" because a name with a colon would be taken for a protocol.
    with av.open(f"file:{path}", "r", metadata_errors="replace") as container:
        stream = container.streams.best("video")
        if stream is None:
            return [], None
        # Packets come in the order of decoding; those to discard lie before an edit list's start.
        stamps = {p.pts for p in container.demux(stream) if p.pts is not None and not p.is_discard}
        return sorted(stamps), stream.time_base

"""Whether a camera opens, gives frames that are fresh enough, and shows anything."""

import asyncio
import math
from collections import deque
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from time import process_time

from hdguard.brains.blindness import blind
from hdguard.core.freshness import frame_limits
from hdguard.core.policy import HIGH_FPS
from hdguard.core.types import ImageSpec
from hdguard.doctor.findings import Finding, Status, fail, ok, warn
from hdguard.ingest.base import Frame, FrameSource, SourceError

WATCHED = 3.0
"""Seconds that a camera is watched: at 5 FPS 15 frames, and one key frame interval of many."""
OPENS_WITHIN = 10.0
"""Seconds to the first frame; a camera that gives a key frame every few seconds needs some."""
KEPT, APART = 8, 0.2
"""Frames, so many seconds apart, which the brains are then shown: as they are sampled live."""
CORRUPT = 0.1
"""Share of frames that do not decode, above which the picture cannot be relied on: field, F5."""
PICTURE = ImageSpec(448, 448)  # what the models see


@dataclass(slots=True)
class Seen:
    """What a camera gave while it was watched; seconds on the loop's clock.

    Attributes:
        asked: when it was opened.
        arrivals, captures: of every clean frame.
        cpu: seconds of this process's CPU time, decoding and all.
        frames: the last few of those that a brain would be given.
        trouble: why it stopped early, in words; empty if it did not.
    """

    asked: float
    arrivals: list[float] = field(default_factory=list)
    captures: list[float] = field(default_factory=list)
    cpu: float = 0.0
    frames: deque[Frame] = field(default_factory=lambda: deque(maxlen=KEPT))
    trouble: str = ""

    @property
    def rate(self) -> float:
        """Frames a second; 0 below two frames."""
        if len(self.arrivals) < 2:
            return 0.0
        return (len(self.arrivals) - 1) / (self.arrivals[-1] - self.arrivals[0] or math.inf)

    @property
    def oldest(self) -> float:
        """Seconds: how old the newest frame was at worst, just before the next one came."""
        pairs = zip(self.captures, self.arrivals[1:], strict=False)
        return max((arrival - capture for capture, arrival in pairs), default=math.inf)


async def watch(source: FrameSource, seconds: float) -> Seen:
    """Watch a camera for so long from its first frame on; one that ends before is in trouble."""
    loop = asyncio.get_running_loop()
    seen = Seen(loop.time())
    cpu = process_time()  # measures work
    try:
        silent = max(2.5, 2.5 * source.interval)  # the frame age that halts, at one frame a second
        opens = OPENS_WITHIN + 2.5 * source.interval
        async with asyncio.timeout(opens) as limit, aclosing(source.frames()) as frames:  # type: ignore[type-var]
            async for frame in frames:
                now = loop.time()
                if not seen.arrivals:
                    limit.reschedule(now + seconds + silent)
                    cpu = process_time()
                seen.arrivals.append(now)
                seen.captures.append(frame.ref.captured_at)
                _keep(seen.frames, frame)
                if now - seen.arrivals[0] >= seconds:
                    break
            else:
                seen.trouble = _ended(seen, loop.time())
    except TimeoutError:
        waited = loop.time() - (seen.arrivals[-1] if seen.arrivals else seen.asked)
        seen.trouble = f"no frame for {waited:.1f} s"
    except SourceError as error:
        seen.trouble = str(error)
    seen.cpu = process_time() - cpu
    return seen


def _ended(seen: Seen, now: float) -> str:
    if not seen.arrivals:
        return "it ended without a frame"
    return f"it ended {now - seen.arrivals[0]:.1f} s after its first frame"


def _keep(frames: deque[Frame], frame: Frame) -> None:
    if not frames or frame.ref.captured_at >= frames[-1].ref.captured_at + APART:
        frames.append(frame)


def judge(source: FrameSource, seen: Seen, *, required: bool) -> list[Finding]:
    """What is to be said of a camera that was watched: its stream, then its picture."""
    found = [_stream(source, seen)]
    if seen.frames:
        found.append(_picture(source.source_id, seen.frames))
    if required:
        return found
    lighter = {Status.FAIL: Status.WARN}
    return [replace(f, status=lighter.get(f.status, f.status)) for f in found]


def _stream(source: FrameSource, seen: Seen) -> Finding:
    step = f"camera {source.source_id}"
    if seen.trouble:
        how = "check its address, its password and that nobody else holds it; then the network"
        return fail(step, seen.trouble, how)
    span, count = seen.arrivals[-1] - seen.arrivals[0], len(seen.arrivals)
    opened = seen.arrivals[0] - seen.asked
    said = (
        f"first frame after {opened:.2f} s, then {seen.rate:.1f} a second for {span:.1f} s; "
        f"the newest was {seen.oldest:.2f} s old at worst; "
        f"{seen.cpu / count * 1e3:.1f} ms of CPU time a frame"
    )
    limits = frame_limits(source.interval)
    corrupt = source.report.corrupt
    if seen.oldest >= limits.degraded:
        how = (
            f"above {limits.degraded:g} s the robot is slowed, above {limits.halt:g} s it is "
            "halted: raise the camera's frame rate, shorten its key frame interval, use a cable; "
            "or declare `interval` if it is slow by design"
        )
        return (fail if seen.oldest >= limits.halt else warn)(step, said, how)
    if corrupt > CORRUPT * (count + corrupt):
        told = "; ".join(source.report.problems)
        how = "lower its bit rate, use TCP and a cable"
        return warn(step, f"{said}; {corrupt} frames did not decode ({told})", how)
    if seen.rate < 0.9 * HIGH_FPS and not source.interval:
        how = (
            f"brains are to see {HIGH_FPS:g} a second: raise its frame rate, or declare `interval`"
        )
        return warn(step, said, how)
    return ok(step, said)


def _picture(name: str, frames: Sequence[Frame]) -> Finding:
    step = f"picture {name}"
    try:
        why = blind(frames[-1].image.rgb(PICTURE))
    except SourceError as error:
        return fail(step, str(error), "set the camera to another pixel format")
    if why:
        return fail(step, why, "uncover and clean the lens, switch a light on, set its focus")
    return ok(step, "shows enough detail to be judged")

"""What is said of cameras: fresh, slow, silent, smeared, dark; in virtual time."""

from collections.abc import AsyncGenerator, Sequence
from itertools import pairwise

import numpy as np
import pytest

from hdguard.core.types import ImageSpec
from hdguard.doctor.cameras import WATCHED, Seen, judge, watch
from hdguard.doctor.findings import Finding, Status
from hdguard.ingest.base import Frame, Rgb, SourceReport
from hdguard.runtime.virtual_time import run_virtual
from tests.fakes import ListSource, every


class Scene:
    """A picture full of detail."""

    def rgb(self, spec: ImageSpec) -> Rgb:
        shape = (spec.height or spec.width, spec.width, 3)
        return np.random.default_rng(0).integers(0, 256, shape, np.uint8)


class Camera(ListSource):
    """Shows a scene, and says how many frames did not decode."""

    corrupt = 0

    @property
    def report(self) -> SourceReport:
        return SourceReport(len(self.handed), self.corrupt, problems=("bad blocks",))

    async def frames(self) -> AsyncGenerator[Frame, None]:
        async for frame in super().frames():
            yield Frame(frame.ref, Scene())


def seen_by(source: ListSource, *, required: bool = True) -> tuple[Seen, list[Finding]]:
    async def look() -> Seen:
        return await watch(source, WATCHED)

    seen = run_virtual(look())
    return seen, judge(source, seen, required=required)


def camera_of(source: ListSource) -> Finding:
    return seen_by(source)[1][0]


def test_a_good_camera_is_watched_for_three_seconds_and_let_go() -> None:
    source = Camera(every(0.04, 60.0))
    seen, found = seen_by(source)
    assert [f.status for f in found] == [Status.OK, Status.OK]
    assert "then 25.0 a second for 3.0 s" in found[0].said
    assert source.closed
    assert len(source.handed) == 76
    # The brains get them as they would be sampled.
    times = [frame.ref.media_time for frame in seen.frames]
    assert len(times) == 8
    assert all(0.19 < b - a < 0.25 for a, b in pairwise(times))


def test_a_camera_that_breaks_says_why() -> None:
    found = camera_of(Camera([], fails="rtsp://host/x: 401 Unauthorized"))
    assert found.status is Status.FAIL
    assert found.said == "rtsp://host/x: 401 Unauthorized"
    assert "password" in found.do


def test_a_camera_that_never_gives_a_frame_is_given_up() -> None:
    found = camera_of(Camera([], stays=True))
    assert (found.status, found.said) == (Status.FAIL, "no frame for 10.0 s")


def test_a_camera_that_falls_silent_is_given_up() -> None:
    found = camera_of(Camera(every(0.1, 1.0), stays=True))
    assert (found.status, found.said) == (Status.FAIL, "no frame for 4.5 s")


def test_one_frame_is_no_stream() -> None:
    found = camera_of(Camera([0.0]))
    assert (found.status, found.said) == (Status.FAIL, "it ended 0.0 s after its first frame")


@pytest.mark.parametrize(
    ("times", "said"),
    [([], "it ended without a frame"), (every(0.1, 2.0), "it ended 2.0 s after its first frame")],
)
def test_a_stream_that_ends_before_the_watch_is_over_is_no_stream(
    times: Sequence[float], said: str
) -> None:
    found = camera_of(Camera(times))
    assert (found.status, found.said) == (Status.FAIL, said)


def test_a_camera_that_gives_a_frame_every_four_seconds_is_judged_by_that() -> None:
    source = Camera(every(4.0, 60.0), interval=4.0)

    async def look() -> Seen:
        return await watch(source, 8.0)

    found = judge(source, run_virtual(look()), required=True)
    assert (found[0].status, "then 0.2 a second for 8.0 s" in found[0].said) == (Status.OK, True)


@pytest.mark.parametrize(
    ("gap", "status"), [(0.4, Status.WARN), (0.6, Status.WARN), (1.2, Status.FAIL)]
)
def test_a_camera_too_slow_for_the_age_limits_is_found(gap: float, status: Status) -> None:
    found = camera_of(Camera(every(gap, 60.0)))
    assert found.status is status
    assert "`interval`" in found.do


def test_a_camera_that_declares_its_interval_may_be_slow() -> None:
    assert camera_of(Camera(every(1.0, 60.0), interval=1.0)).status is Status.OK


def test_a_network_that_delivers_in_bursts_counts_by_age_not_by_rate() -> None:
    times = every(0.05, 4.0)
    late = {t: 1.3 - t % 1.3 for t in times}
    found = camera_of(Camera(times, late=late))
    assert found.status is Status.FAIL
    assert "halted" in found.do


def test_a_smeared_stream_is_found() -> None:
    source = Camera(every(0.1, 60.0))
    source.corrupt = 5
    found = camera_of(source)
    assert found.status is Status.WARN
    assert "5 frames did not decode (bad blocks)" in found.said


def test_a_covered_lens_fails_and_a_broken_pixel_format_too() -> None:
    _, (stream, picture) = seen_by(ListSource(every(0.1, 60.0)))
    assert (stream.status, picture.status) == (Status.OK, Status.FAIL)
    assert picture.said.startswith("dark")
    times = every(0.1, 60.0)
    _, (_, picture) = seen_by(ListSource(times, broken=times))
    assert (picture.status, picture.said) == (Status.FAIL, "the picture is broken")


def test_what_an_optional_camera_lacks_only_warns() -> None:
    source = ListSource(every(0.1, 0.5), fails="unplugged")
    found: Sequence[Finding] = seen_by(source, required=False)[1]
    assert [f.status for f in found] == [Status.WARN, Status.WARN]


def test_ages_are_those_just_before_the_next_frame() -> None:
    seen = Seen(0.0, arrivals=[1.0, 1.5, 2.5], captures=[0.9, 1.4, 2.4])
    assert seen.oldest == pytest.approx(1.1)
    assert seen.rate == pytest.approx(2 / 1.5)

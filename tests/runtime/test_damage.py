"""Pictures that are lost to damage are told from those that nobody had time for."""

from collections.abc import AsyncGenerator, Iterable, Sequence
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import cast

import av
import pytest

from hdguard.core import actions, events
from hdguard.core.types import Speed
from hdguard.ingest.base import Frame, SourceReport
from hdguard.ingest.file import FileSettings, FileSource
from hdguard.ingest.live_stream import LiveStream, Reading
from hdguard.runtime.damage import DamageWatch
from tests.fakes import ListSource, every
from tests.ingest.media import Clip, write_video
from tests.runtime.rig import Played, play
from tests.runtime.test_pipeline_sources import BREAKS, STAYS, Live, Opening


class Counter(ListSource):
    """A source that is never opened: the test itself counts for it."""

    def __init__(self) -> None:
        super().__init__([])
        self.corrupt = 0

    @property
    def report(self) -> SourceReport:
        return SourceReport(corrupt=self.corrupt)


class Camera(Counter):
    """Such a one, whose newest picture wins."""

    def __init__(self) -> None:
        super().__init__()
        self.dropped = 0


def told(lost: Iterable[int], fps: float = 10.0) -> str:
    """For each clean frame, after so many damaged ones: x if too many are, else a dot."""
    source, sent, said = Counter(), 0, ""
    watch = DamageWatch(source)
    for count in lost:
        source.corrupt += count
        sent += count + 1
        said += "x" if watch.damaged(sent / fps) else "."
    return said


@pytest.mark.parametrize(
    ("lost", "said"),
    [
        ([0] * 18 + [2, 0], "." * 20),  # two of twenty are a tenth
        ([0] * 17 + [3, 0], "." * 17 + "xx"),
        ([0] * 5 + [1] + [0] * 9, "." * 5 + "xxx" + "." * 7),  # of ten, one is a tenth
        ([1] * 30, "x" * 30),
    ],
)
def test_above_a_tenth_of_what_came_in_two_seconds_is_too_many(lost: list[int], said: str) -> None:
    assert told(lost) == said


def test_after_two_seconds_without_damage_it_is_over() -> None:
    said = told([0] * 40 + [9] + [0] * 40)
    assert said == "." * 40 + "x" * 20 + "." * 21


def test_of_a_slow_camera_one_damaged_picture_is_too_many_until_it_is_two_seconds_old() -> None:
    assert told([0, 0, 1, 0, 0], fps=1.0) == "..xx."
    assert told([0, 0, 1, 0, 0], fps=0.2) == "..x.."


def test_a_picture_that_nobody_had_time_for_is_a_clean_one() -> None:
    camera = Camera()
    watch = DamageWatch(camera)
    for second in range(60):  # one of thirty is taken
        camera.dropped += 29
        assert not watch.damaged(float(second))
    camera.dropped += 29
    camera.corrupt += 10
    assert not watch.damaged(59.5)  # 10 of 100
    camera.corrupt += 1
    assert watch.damaged(59.5)  # 11 of 102


def test_every_live_source_says_how_many_pictures_nobody_had_time_for() -> None:
    def never(_: object) -> av.container.InputContainer:
        raise AssertionError

    source = LiveStream(Reading("desk", 0.0, 2.0, 1.0, ()), never)
    watch = DamageWatch(source)
    source._tally.left_out("packet that does not decode, left out", 0.0)
    source._dropped += 8
    assert not watch.damaged(0.0)  # one of ten
    source._tally.left_out("packet that does not decode, left out", 0.0)
    assert watch.damaged(0.0)


def test_what_a_connection_begins_with_before_its_first_key_frame_is_not_damaged() -> None:
    source = Counter()
    watch = DamageWatch(source)
    source.corrupt += 20
    watch.began()
    assert not watch.damaged(0.0)
    source.corrupt += 1
    assert watch.damaged(0.1)
    source.corrupt += 20
    watch.began()
    assert watch.damaged(0.2)  # nor is what was damaged on the connection before forgotten
    assert not watch.damaged(2.1)


def test_a_file_that_is_played_again_counts_from_nothing_again() -> None:
    source = Counter()
    watch = DamageWatch(source)
    source.corrupt = 7
    assert watch.damaged(0.0)
    source.corrupt = 0
    watch.began()
    assert watch.damaged(0.1)
    assert not watch.damaged(2.0)


def test_a_camera_whose_stamps_stand_still_fills_no_memory() -> None:
    watch = DamageWatch(Counter())
    for n in range(10_000):
        watch.damaged(n / 30)
    assert len(watch._counted) <= 61


# In the pipeline.


class Lossy(Live):
    """Loses so many pictures before each frame; the count goes on from its first opening."""

    def __init__(self, *openings: Opening, lost: Sequence[int], wait: float = 0.5) -> None:
        super().__init__(*openings, wait=wait)
        self._lost = lost
        self._corrupt = self._shown = 0

    @property
    def report(self) -> SourceReport:
        return SourceReport(self._shown, self._corrupt)

    async def frames(self) -> AsyncGenerator[Frame, None]:
        async for frame in super().frames():
            self._corrupt += self._lost[self._shown] if self._shown < len(self._lost) else 0
            self._shown += 1
            yield frame


def spans(played: Played) -> list[tuple[float, str]]:
    """When the robot's speed changed, to what."""
    permits = [(round(t, 2), p.speed.name) for t, p in played.actions(actions.Permit)]
    return [p for n, p in enumerate(permits) if n == 0 or p[1] != permits[n - 1][1]]


def test_a_camera_that_loses_every_third_picture_slows_the_robot_until_it_loses_none() -> None:
    # A frame comes every 0.25 s all the same: no age limit is met.
    lossy = Lossy((every(0.25, 20.0), STAYS), lost=[0] * 12 + [0, 0, 0, 2] * 4)
    played = play(12.0, lossy)
    assert played.halts() == []
    flagged = [round(t, 2) for t, e in played.events(events.FrameSeen) if e.damaged]
    # The last are lost before 6.75; whether that was two seconds ago at 8.75 is a hair's breadth.
    assert flagged[:20] == [3.75 + 0.25 * n for n in range(20)]
    assert flagged[20:] in ([], [8.75])
    slow = [(t, speed) for t, speed in spans(played) if t > 1.0]
    assert [speed for _, speed in slow] == ["REDUCED", "FULL"]
    assert slow[0][0] == 3.75
    assert 8.75 <= slow[1][0] < 9.25
    notes = [n.why for t, n in played.actions(actions.Notify) if 3.7 < t < 3.8]
    assert notes == ["many pictures of cam are damaged"]


def test_a_camera_that_comes_back_amid_a_group_of_pictures_is_not_damaged() -> None:
    lossy = Lossy((every(0.2, 1.0), BREAKS), (every(0.2, 9.0), STAYS), lost=[0] * 6 + [20])
    played = play(4.0, lossy)
    assert {e.damaged for _, e in played.events(events.FrameSeen)} == {False}
    assert spans(played)[-1][1] == "FULL"


# With real decoding.

FLIPPED = range(30, 60, 4)  # of ten pictures a second


def with_flipped_bytes(path: Path) -> Path:
    """MPEG-TS, each picture a key frame: what is broken is that one picture and its neighbour."""
    options = {"g": "1", "preset": "ultrafast", "tune": "zerolatency"}
    write_video(path, Clip(range(100), Fraction(1, 10), size=(160, 120), options=options))
    with av.open(path) as container:
        places = [p.pos for p in container.demux(video=0) if p.size]
    data = bytearray(path.read_bytes())
    for n in FLIPPED:
        begins = (places[n] or 0) + 3 * 188  # behind the head of the picture
        for at in range(begins, begins + 400):
            data[at] ^= 0x5A
    path.write_bytes(data)
    return path


def test_bit_errors_that_spare_half_of_the_pictures_slow_the_robot_for_as_long_as_they_last(
    tmp_path: Path,
) -> None:
    path = with_flipped_bytes(tmp_path / "clip.ts")
    source = FileSource(FileSettings(str(path), "cam", decode="inline"))
    played = play(9.5, cast("ListSource", source))
    assert source.report.corrupt >= len(FLIPPED)
    seen = [e for _, e in played.events(events.FrameSeen)]
    times = [e.ref.captured_at for e in seen]
    assert max(b - a for a, b in pairwise(times)) < 0.35  # no gap is told
    assert played.halts() == []
    flagged = [e.ref.captured_at for e in seen if e.damaged]
    assert 3.0 <= flagged[0] < 3.6
    assert 6.5 < flagged[-1] < 8.0
    slowed = [t for t, p in played.actions(actions.Permit) if t > 1.0 and p.speed is Speed.REDUCED]
    assert flagged[0] <= slowed[0] < flagged[0] + 0.2
    assert abs(slowed[-1] - flagged[-1]) < 0.3

"""What happened, on disk: every word of it comes back, and the decisions with it."""

import asyncio
import json
import re
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

from hdguard.core import actions, events
from hdguard.core.guard import Guard
from hdguard.core.types import FrameRef, Light, Speed, State
from hdguard.runtime.journal import (
    Journal,
    JournalError,
    Written,
    fields,
    read_journal,
    step_again,
)
from hdguard.runtime.observer import Judged, Reviewed
from hdguard.runtime.pipeline import Pipeline
from tests.core.story import watching
from tests.fakes import (
    GREEN,
    RED,
    YELLOW,
    HangingBrain,
    ListSource,
    Says,
    ScriptedFastSeat,
    ScriptedSlowSeat,
    every,
)
from tests.runtime.rig import play
from tests.runtime.samples import ACTIONS, EVENTS, sample

POLICY = watching()


def journal(path: Path, boot: int = 7) -> Journal:
    return Journal(path, Guard(POLICY, 5.0, boot=boot), 5.0, {"video": "1.mp4"})


def test_the_samples_are_of_every_event_and_action() -> None:
    assert len(EVENTS) == 24
    assert len(ACTIONS) == 8
    for kind in (*EVENTS, *ACTIONS):
        assert all(value is not None for value in fields(sample(kind)).values())
        assert sample(kind) == sample(kind)


@pytest.mark.parametrize("kind", EVENTS, ids=lambda kind: kind.__name__)
def test_every_event_comes_back_as_it_was(tmp_path: Path, kind: type[events.Event]) -> None:
    path = tmp_path / "j.jsonl"
    written, bare = journal(path), sample(kind)
    written.stepped(6.25, bare, ())
    written.flush()
    (step,) = read_journal(path).steps
    assert (step.line, step.now, step.event, step.actions) == (2, 6.25, bare, ())
    assert type(step.event) is kind


@pytest.mark.parametrize("kind", ACTIONS, ids=lambda kind: kind.__name__)
def test_every_action_comes_back_as_it_was(tmp_path: Path, kind: type[actions.Action]) -> None:
    path = tmp_path / "j.jsonl"
    written, action = journal(path), sample(kind)
    written.stepped(6.0, events.LinkLost(), (action, sample(kind, salt=4)))
    written.flush()
    (step,) = read_journal(path).steps
    assert step.actions == (action, sample(kind, salt=4))
    assert type(step.actions[0]) is kind


def test_what_is_not_given_comes_back_as_not_given(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    written = journal(path)
    failed = events.BrainFailed("cam", "fast", "late")
    permit = actions.Permit(Speed.NONE, Light.YELLOW, State.STARTING, None, None, None)
    written.stepped(6.0, failed, (permit,))
    written.flush()
    (step,) = read_journal(path).steps
    assert (step.event, step.actions) == (failed, (permit,))


def test_a_journal_from_before_scores_and_scenes_is_still_read(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    written = journal(path)
    ref = FrameRef("cam", 1, 6.0, 1.0)
    known = (
        events.FrameSeen(ref, kept=True),
        events.FastVerdict(ref, "fast", Light.GREEN),
        events.BrainFailed("cam", "fast", "late", ref),
    )
    for event in known:
        written.stepped(6.0, event, ())
    written.flush()
    whole = path.read_text()
    new = (',"scene_change":false', ',"scores":null')
    assert [whole.count(field) for field in new] == [1, 2]
    path.write_text(whole.replace(new[0], "").replace(new[1], ""))
    assert tuple(step.event for step in read_journal(path).steps) == known


def test_the_header_says_how_the_guard_was_made_and_stamps_come_back(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    ref = FrameRef("cam", 1, 6.0, 1.0)
    judged = Judged("fast", ref, sampled=6.0, given=6.1, assessed=6.2)
    reviewed = Reviewed("slow", 3, ref, given=6.3, assessed=7.0)
    written = journal(path)
    written.judged(judged)
    written.judged(reviewed)
    written.flush()
    back = read_journal(path)
    assert (back.policy, back.boot, back.began, back.torn) == (POLICY, 7, 5.0, False)
    assert back.header["video"] == "1.mp4"
    assert back.stamps == (judged, reviewed)
    assert back.steps == ()


def test_nothing_is_on_disk_before_a_flush_and_every_flush_appends(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    written = journal(path)
    header = path.read_bytes()
    written.stepped(6.0, events.LinkLost(), ())
    assert path.read_bytes() == header
    written.flush()
    written.stepped(7.0, events.LinkUp(), ())
    written.flush()
    written.flush()
    assert [s.event for s in read_journal(path).steps] == [events.LinkLost(), events.LinkUp()]


def test_a_line_that_is_added_while_another_thread_flushes_is_not_lost(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    written = journal(path)
    real = written._encoder

    class Interrupted:
        """The other thread gets its turn between encoding and appending."""

        def encode(self, value: object) -> bytes:
            line = real.encode(value)
            written.flush()
            return line

    written._encoder = Interrupted()  # type: ignore[assignment]
    for n in range(5):
        written.stepped(6.0 + n, events.LinkLost(), ())
    written.flush()
    assert [s.now for s in read_journal(path).steps] == [6.0, 7.0, 8.0, 9.0, 10.0]


def test_flushes_of_two_threads_keep_the_order_of_the_lines(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    written = journal(path)

    async def story() -> None:
        for n in range(300):
            written.stepped(6.0 + n, events.LinkLost(), ())
            if n % 3 == 0:
                flushes = [asyncio.to_thread(written.flush) for _ in range(2)]
                await asyncio.gather(*flushes)
        written.flush()

    asyncio.run(story())
    assert [s.now for s in read_journal(path).steps] == [6.0 + n for n in range(300)]


def test_a_flush_that_overtakes_another_waits_for_it(tmp_path: Path) -> None:
    """The last flush of a run comes from the loop's thread while another's still writes."""
    written = journal(tmp_path / "j.jsonl")
    real, executor = written._path, ThreadPoolExecutor(1)
    second: list[Future[None]] = []

    class Slow:
        """A disk on which the first write takes until another flush has had its chance."""

        def open(self, mode: str) -> Any:
            file = real.open(mode)
            write = file.write

            def slowly(data: Any) -> int:
                if not second:
                    written.stepped(7.0, events.LinkUp(), ())
                    second.append(executor.submit(written.flush))
                    wait(second, timeout=0.2)
                return write(data)

            return MagicMock(
                __enter__=lambda _: MagicMock(write=slowly), __exit__=lambda *_: file.close()
            )

    written._path = Slow()  # type: ignore[assignment]
    written.stepped(6.0, events.LinkLost(), ())
    with executor:
        written.flush()
    assert [s.now for s in read_journal(real).steps] == [6.0, 7.0]


# Real runs, stepped again.


def lived(path: Path, **parts: Any) -> Written:
    """Run a pipeline that keeps a journal, and read it back."""
    kept: list[Journal] = []

    class Late:
        """Opens the journal at the first step, when the guard is known."""

        def judged(self, stamps: Judged | Reviewed) -> None:
            kept[0].judged(stamps)

        def stepped(self, now: float, event: events.Event, out: tuple[Any, ...]) -> None:
            if kept:
                kept[0].stepped(now, event, out)
            else:
                first.append((now, event, out))

    first: list[Any] = []

    def open_journal(pipeline: Pipeline) -> None:
        kept.append(Journal(path, pipeline.guard, 0.0, {}))
        for step in first:
            kept[0].stepped(*step)

    source = ListSource(every(0.1, 9.0), stays=True)
    play(8.0, source, observers=[Late()], script=open_journal, **parts)
    kept[0].flush()
    return read_journal(path)


LIVES: dict[str, dict[str, Any]] = {
    "calm": {"fast": [ScriptedFastSeat()]},
    "red": {"fast": [ScriptedFastSeat({0.0: GREEN, 3.0: RED, 3.2: GREEN})]},
    "late": {"fast": [ScriptedFastSeat({0.0: GREEN, 2.0: Says(RED, 0.7), 2.2: GREEN})]},
    "hung": {"fast": [HangingBrain(since=2.0)]},
    "reviews": {
        "fast": [ScriptedFastSeat({0.0: GREEN, 2.0: YELLOW, 4.0: GREEN})],
        "slow": ScriptedSlowSeat({0.0: False, 3.0: True}, latency=0.8),
    },
    "blind": {"fast": [ScriptedFastSeat({0.0: GREEN, 1.0: "dark", 7.0: GREEN})]},
}


@pytest.mark.parametrize("name", LIVES)
def test_the_events_of_a_run_give_the_same_actions_again(tmp_path: Path, name: str) -> None:
    written = lived(tmp_path / "j.jsonl", **LIVES[name])
    again = list(step_again(written))
    assert len(again) == len(written.steps) > 50
    for step, decided in again:
        assert decided == step.actions, step


# What cannot be read.


def damaged(path: Path, line: int, change: object) -> str:
    """The error of a journal whose line is replaced (counted from 1)."""
    written = journal(path)
    written.stepped(6.0, events.LinkLost(), (actions.Escalate("7-1"),))
    written.stepped(7.0, events.LinkUp(), ())
    written.flush()
    lines = path.read_bytes().split(b"\n")
    lines[line - 1] = change if isinstance(change, bytes) else json.dumps(change).encode()
    path.write_bytes(b"\n".join(lines))
    with pytest.raises(JournalError) as caught:
        read_journal(path)
    return str(caught.value)


STEP = {"t": 6.0, "event": "LinkLost", "of": {}, "actions": []}


@pytest.mark.parametrize(
    ("line", "change", "words"),
    [
        (2, {**STEP, "event": "Exploded"}, "line 2: unknown or missing 'Exploded'"),
        (3, {**STEP, "actions": [{"action": "Dance", "of": {}}]}, "line 3: .*'Dance'"),
        (2, {**STEP, "event": "BrainUp"}, "line 2: .*required field `brain`"),
        (2, {**STEP, "t": "noon"}, "line 2: .*`float`"),
        (2, {"event": "LinkLost", "of": {}, "actions": []}, "line 2: unknown or missing 't'"),
        (2, {"stamps": "Guessed", "of": {}}, "line 2: .*'Guessed'"),
        (2, 5, "line 2: .*`object`"),
        (2, [1], "line 2: .*`object`"),
        (2, {**STEP, "actions": [7]}, "line 2: "),
        (2, {**STEP, "actions": None}, "line 2: "),
        (2, b'{"t": 6.0, "ev', "line 2: "),
        (2, b"", "line 2: "),
        (3, b"\xff\xfe", "line 3: "),
        (1, {"format": "hdguard-journal/1"}, "line 1: .*required field `written`"),
        (1, {"format": "hdguard-journal/2"}, "not a journal"),
        (1, 5, "not a journal"),
        (1, b"\x00\x00\x00\x18ftypmp42", "not a journal"),
    ],
)
def test_a_line_that_cannot_be_understood_is_named(
    tmp_path: Path, line: int, change: object, words: str
) -> None:
    path = tmp_path / "broken.jsonl"
    said = damaged(path, line, change)
    assert said.startswith(f"{path}: ")
    assert re.search(words, said), said


def test_a_policy_that_this_version_does_not_know_is_named(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    journal(path)
    header = json.loads(path.read_bytes())
    header["policy"]["resample"] = "sometimes"
    path.write_text(json.dumps(header) + "\n")
    with pytest.raises(JournalError, match=r"j\.jsonl: line 1: .*policy\.resample"):
        read_journal(path)


def test_a_torn_last_line_is_left_out_and_said(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    written = journal(path)
    for n in range(3):
        written.stepped(6.0 + n, events.LinkLost(), ())
    written.flush()
    whole = path.read_bytes()
    for cut in (1, 2, 20):
        path.write_bytes(whole[:-cut])
        back = read_journal(path)
        assert back.torn
        assert [s.now for s in back.steps] == [6.0, 7.0]


@pytest.mark.parametrize("content", [b"", b"\n", b"{}\n", b"[]\n", b"hello", b"hello\nworld\n"])
def test_another_file_is_no_journal(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "other.txt"
    path.write_bytes(content)
    with pytest.raises(JournalError, match=r"other\.txt: not a journal"):
        read_journal(path)


def test_an_absent_journal_is_named(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match=r"gone\.jsonl: No such file"):
        read_journal(tmp_path / "gone.jsonl")
    with pytest.raises(JournalError, match="Is a directory"):
        read_journal(tmp_path)

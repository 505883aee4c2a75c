"""A journal told as a story, in words and times that a person can follow."""

import json
import math
import re
from pathlib import Path

from hdguard.core import actions, events
from hdguard.core.guard import Guard
from hdguard.core.types import FrameRef, Hazard, Scores
from hdguard.runtime.explain import Line, timeline
from hdguard.runtime.journal import Journal, Written, read_journal
from tests.core.story import GREEN, RED, YELLOW, Story, frame
from tests.runtime.samples import ACTIONS, EVENTS, sample


class Kept(Story):
    """A story that remembers its steps."""

    def __init__(self, guard: Guard | None = None) -> None:
        super().__init__(guard=guard)
        self.steps: list[tuple[float, events.Event, tuple[actions.Action, ...]]] = []

    def _step(self, event: events.Event, time: float) -> tuple[actions.Action, ...]:
        out = super()._step(event, time)
        self.steps.append((time, event, out))
        return out


def told(path: Path, story: Kept, began: float = 0.0) -> Written:
    """The story's journal, read back."""
    journal = Journal(path, story.guard, began, {"video": "1.mp4"})
    for at, event, out in story.steps:
        journal.stepped(at, event, out)
    journal.flush()
    return read_journal(path)


def stove(tmp_path: Path) -> tuple[Path, Written]:
    """A toddler reaches the stove: YELLOW at 1.0 s, RED at 1.4 s."""
    path = tmp_path / "j.jsonl"
    story = Kept()
    story.monitoring()
    story.verdict(1.0, YELLOW)
    story.verdict(1.2, GREEN)
    hazard = Hazard("C3", "L3", "a child at the stove")
    story.at(1.4, events.FrameSeen(frame(1.4)), events.FastVerdict(frame(1.4), "fast", RED, hazard))
    story.until(2.0)
    return path, told(path, story)


def text(lines: list[Line]) -> str:
    return "\n".join(f"{line.at:.3f} {line.text}" for line in lines)


def test_what_mattered_is_told_with_times_names_and_consequences(tmp_path: Path) -> None:
    lines = list(timeline(stove(tmp_path)[1]))
    assert not any(line.differs for line in lines)
    said = text(lines)
    for words in (
        "0.000 SelfTestPassed",
        "1.000 FastVerdict: ref cam at 1.000 s, brain fast, light YELLOW",
        "-> RequestReview: review_id 1, source_id cam, trigger cam at 1.000 s, refs 1.000 s",
        "hazard C3 L3 a child at the stove",
        "-> Halt: halt_id 7-1, halt_class danger, cause fast_red",
        "-> CancelReview: review_id 1",
        "-> Permit: speed NONE",
        "-> Escalate: halt_id 7-1",
    ):
        assert words in said, words


def test_repeats_and_routine_are_not_told(tmp_path: Path) -> None:
    said = text(list(timeline(stove(tmp_path)[1])))
    assert said.count("Halt: ") == 1
    assert "1.200 FrameSeen" not in said  # nothing followed from it
    assert "None" not in said
    speeds = re.findall(r"Permit: speed (\w+)", said)
    assert speeds == ["NONE", "FULL", "REDUCED", "NONE"]


def test_times_count_from_where_the_guard_began(tmp_path: Path) -> None:
    story = Kept(Guard(Story().guard.policy, 100.0))
    story.now = 100.0
    story.at(100.5, events.HaltRequested("ada"))
    lines = list(timeline(told(tmp_path / "j.jsonl", story, began=100.0)))
    assert lines[-1].at == 0.5
    assert "asked by ada" in lines[-1].text


def test_a_changed_policy_shows_as_a_difference_with_its_line(tmp_path: Path) -> None:
    path, _ = stove(tmp_path)
    lines = path.read_text().splitlines()
    header = json.loads(lines[0])
    header["policy"]["start_greens"] = 9  # so that the guard would still be starting
    path.write_text("\n".join([json.dumps(header), *lines[1:], ""]))
    different = [line for line in timeline(read_journal(path)) if line.differs]
    assert different
    first = different[0]
    assert first.text.startswith("line ")
    number = int(first.text.split()[1].rstrip(":"))
    assert '"event"' in lines[number - 1]
    assert "the journal says " in first.text
    assert "the guard now decides " in first.text


def test_a_decision_that_was_tampered_with_shows(tmp_path: Path) -> None:
    path, _ = stove(tmp_path)
    whole = path.read_text()
    assert whole.count('"fast_red"') > 1
    path.write_text(whole.replace('"cause":"fast_red"', '"cause":"slow_danger"'))
    different = [line for line in timeline(read_journal(path)) if line.differs]
    assert "cause slow_danger" in different[0].text
    assert "cause fast_red" in different[0].text


def test_every_event_and_action_has_readable_words(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    story = Kept()
    journal = Journal(path, story.guard, 0.0, {})
    for n, kind in enumerate(EVENTS):
        out = tuple(sample(each, salt=n) for each in ACTIONS)
        journal.stepped(float(n), sample(kind, salt=n), out)
    journal.flush()
    said = text(list(timeline(read_journal(path))))
    for name in (each.__name__ for each in (*EVENTS, *ACTIONS)):
        assert name in said
    for raw in ("FrameRef(", "Hazard(", "<Light", "<Speed", "dataclass", "NO_HAZARD"):
        assert raw not in said


def test_a_frame_is_told_by_its_media_time(tmp_path: Path) -> None:
    story = Kept()
    ref = FrameRef("cam", 3, captured_at=50.25, media_time=0.25)
    story.at(0.5, events.BrainFailed("cam", "fast", "late", ref))
    said = text(list(timeline(told(tmp_path / "j.jsonl", story))))
    assert "reason late, ref cam at 0.250 s" in said


def test_a_warning_or_a_remark_without_a_reason_says_so_and_a_calm_word_needs_none(
    tmp_path: Path,
) -> None:
    ref = frame(0.5)
    why = Hazard("C1", "L2", "a blade")
    silent: tuple[events.Event, ...] = (
        events.FastVerdict(ref, "fast", RED),
        events.SlowVerdict(3, danger=True, hazard=Hazard("C1")),
        events.Remarked(ref, "fast", Hazard("", "L4"), ("child", "pan")),
    )
    spoken: tuple[events.Event, ...] = (
        events.FastVerdict(ref, "fast", RED, why),
        events.FastVerdict(ref, "fast", GREEN),
        events.SlowVerdict(3, danger=True, hazard=why),
        events.SlowVerdict(3, danger=False),
        events.Remarked(ref, "fast", why),
        events.Remarked(ref, "fast", sights=("person",)),
    )
    path = tmp_path / "j.jsonl"
    journal = Journal(path, Story().guard, 0.0, {})
    for event in (*silent, *spoken):
        journal.stepped(0.5, event, ())
    journal.flush()
    lines = [x.text for x in timeline(read_journal(path)) if not x.differs]
    owing = [line.endswith(", no reason given") for line in lines]
    assert owing == [True] * len(silent) + [False] * len(spoken)
    assert lines[2] == (
        "Remarked: ref cam at 0.500 s, brain fast, hazard L4, sights child pan, no reason given"
    )


def test_scores_are_told_as_probabilities(tmp_path: Path) -> None:
    story = Kept()
    scores = Scores(math.log(0.5), math.log(0.25), math.log(0.125))
    story.at(0.5, events.BrainFailed("cam", "fast", "no label", None, scores))
    said = text(list(timeline(told(tmp_path / "j.jsonl", story))))
    assert "scores green 0.500 yellow 0.250 red 0.125" in said


def test_what_a_model_wrote_stays_in_its_line(tmp_path: Path) -> None:
    story = Kept()
    story.monitoring()
    hazard = Hazard("C3", "L3", "fire\n   0.000 SelfTestPassed\x1b[2J")
    story.at(1.4, events.FrameSeen(frame(1.4)), events.FastVerdict(frame(1.4), "fast", RED, hazard))
    story.at(1.5, events.ReviewFailed(1, "unparsed: 'a\nb'"))
    said = text(list(timeline(told(tmp_path / "j.jsonl", story))))
    assert r"fire\n   0.000 SelfTestPassed\x1b[2J" in said
    assert r"'a\nb'" in said

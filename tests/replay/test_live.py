"""What a person sees while a clip runs."""

import io

from rich.console import Console

from hdguard.core import actions, events
from hdguard.core.events import Event
from hdguard.core.guard import Guard
from hdguard.core.policy import SIDECAR
from hdguard.core.types import Hazard, Light
from hdguard.replay.live import LiveTimeline
from hdguard.runtime.observer import Judged, Reviewed
from tests.core.story import frame, watching


class Screen:
    """A guard with a timeline beside it."""

    def __init__(self) -> None:
        self._out = io.StringIO()
        console = Console(file=self._out, width=60, highlight=False, markup=False)
        self.guard = Guard(watching(SIDECAR, start_greens=1), 0.0, boot=7)
        self.timeline = LiveTimeline(console, "clip.mp4: a robot drives")

    def at(self, now: float, *happened: Event) -> None:
        for event in happened:
            self.timeline.stepped(now, event, self.guard.step(event, now))

    @property
    def lines(self) -> list[str]:
        return [line.rstrip() for line in self._out.getvalue().splitlines() if line]


def told() -> Screen:
    """A clip that ends in danger."""
    screen = Screen()
    screen.at(0.0, events.SelfTestPassed(), events.SourceUp("cam"), events.FrameSeen(frame(0.0)))
    screen.timeline.judged(Judged("fast", frame(0.0), 0.0, 0.0, 0.012))
    screen.at(0.1, events.FastVerdict(frame(0.0), "fast", Light.GREEN))
    screen.at(0.3, events.FrameSeen(frame(0.3)))
    screen.at(0.3, events.FastVerdict(frame(0.2), "fast", Light.YELLOW, Hazard(text="near")))
    screen.timeline.judged(Reviewed("slow", 1, frame(0.2), 0.3, 0.45))
    screen.at(0.5, events.SlowVerdict(1, danger=True, hazard=Hazard(text="contact in 2 s")))
    for at, event in (
        (0.502, events.HaltDelivered("7-1")),
        (0.504, events.HaltAcknowledged("7-1")),
        (0.6, events.HaltDelivered("7-1")),
        (0.61, events.HaltAcknowledged("7-1")),
        (1.0, events.HaltConfirmed("7-1")),
    ):
        screen.at(at, event)
    return screen


def test_a_danger_is_told_line_by_line_with_its_times() -> None:
    assert told().lines == [
        "clip.mp4: a robot drives",
        "   0.10 s  GREEN  none     fast says GREEN after 12 ms",
        "   0.30 s  GREEN  full     the robot may move: full",
        "   0.30 s  YELLOW full     fast says YELLOW after 12 ms: near",
        "   0.30 s  YELLOW full     review 1 asked for, of 1 frames",
        "   0.30 s  YELLOW reduced  the robot may move: reduced",
        "   0.50 s  YELLOW reduced  review 1 says danger after 150 ms: contact in 2 s",
        "   0.50 s  YELLOW none     HALT (DANGER, slow_danger), 300 ms after its frame was "
        "captured",
        "   0.50 s  YELLOW none     halt 7-1 delivered to the broker 2.0 ms after",
        "   0.50 s  YELLOW none     halt 7-1 acknowledged by the robot 4.0 ms after",
        "   1.00 s  YELLOW none     halt 7-1 confirmed: the robot stands still 0.50 s after",
    ]


def test_reviews_that_say_the_same_again_are_counted_not_listed() -> None:
    screen = Screen()
    screen.at(0.0, events.SelfTestPassed(), events.SourceUp("cam"), events.FrameSeen(frame(0.0)))
    screen.at(0.1, events.FastVerdict(frame(0.1), "fast", Light.GREEN))
    for n in range(1, 6):
        t = 0.1 + n / 5
        screen.at(t, events.FrameSeen(frame(t)))
        screen.at(t, events.FastVerdict(frame(t), "fast", Light.YELLOW))
        screen.at(t + 0.1, events.SlowVerdict(n, danger=False))
    screen.at(1.3, events.FrameSeen(frame(1.3)))
    screen.at(1.3, events.FastVerdict(frame(1.3), "fast", Light.GREEN))
    said = [line.partition("  ")[2] for line in screen.lines]
    assert sum("asked for" in line for line in said) == 1
    assert sum("says safe" in line for line in said) == 1
    assert said[-1].endswith("5 reviews later")


def test_faults_failures_and_losses_are_told() -> None:
    screen = Screen()
    screen.at(0.0, events.SelfTestPassed(), events.SourceUp("cam"), events.FrameSeen(frame(0.0)))
    screen.at(0.1, events.FastVerdict(frame(0.1), "fast", Light.GREEN))
    screen.at(0.2, events.CannotSee(frame(0.2), "fast", "dark"))
    screen.at(0.3, events.BrainFailed("cam", "fast", "late"))
    screen.at(0.4, events.BrainDown("fast"), events.BrainUp("fast"))
    screen.at(0.5, events.SourceLost("cam", "cut short"))
    screen.at(0.6, events.ReviewFailed(9, "killed"))
    screen.at(1.5, events.DeadlineReached())
    screen.at(2.2, events.DeadlineReached())
    text = "\n".join(screen.lines)
    for words in (
        "fast cannot see: dark",
        "fast failed: late",
        "fast is down",
        "fast is up",
        "the source broke: cut short",
        "review 9 failed: killed",
        "HALT (fault, stale_frame)",
        "halt 7-1 is not acknowledged: escalated",
    ):
        assert words in text
    released = actions.Release("7-1")
    screen.timeline.stepped(3.0, events.DeadlineReached(), (released,))
    assert "halt 7-1 released" in screen.lines[-1]


def test_a_reason_that_follows_is_told_and_one_that_is_owed_is_missed() -> None:
    screen = Screen()
    why = Hazard("C1", "L2", "a blade")
    screen.at(0.0, events.SelfTestPassed(), events.SourceUp("cam"), events.FrameSeen(frame(0.0)))
    screen.at(0.1, events.FastVerdict(frame(0.0), "fast", Light.RED))
    curt = Hazard("C1", "L2")
    for hazard in (curt, why):
        screen.at(0.2, events.Remarked(frame(0.0), "fast", hazard))
    screen.at(0.3, events.SlowVerdict(1, danger=True))
    text = "\n".join(screen.lines)
    for words in (
        "fast says RED after ?: no reason given",
        "fast adds: C1 L2 (no reason given)",
        "fast adds: C1 L2 a blade",
        "review 1 says danger after ?: no reason given",
    ):
        assert words in text


def test_a_person_in_sight_is_told_once_and_owes_no_reason() -> None:
    screen = Screen()
    screen.at(0.0, events.SelfTestPassed(), events.SourceUp("cam"), events.FrameSeen(frame(0.0)))
    seen = {0.1: ("person",), 0.3: ("person",), 0.5: ("person", "child"), 0.7: ()}
    for t, sights in seen.items():
        screen.at(t, events.FrameSeen(frame(t)), events.FastVerdict(frame(t), "vlm", Light.GREEN))
        screen.at(t + 0.1, events.Remarked(frame(t), "vlm", sights=sights))
    added = [line.partition("adds: ")[2] for line in screen.lines if "adds" in line]
    assert added == ["person", "child"]


def test_a_remark_is_told_again_when_the_light_has_changed() -> None:
    screen = Screen()
    screen.at(0.0, events.SelfTestPassed(), events.SourceUp("cam"), events.FrameSeen(frame(0.0)))
    for t, light in ((0.1, Light.YELLOW), (0.3, Light.YELLOW), (0.5, Light.RED)):
        screen.at(t, events.FrameSeen(frame(t)), events.FastVerdict(frame(t), "vlm", light))
        screen.at(t + 0.1, events.Remarked(frame(t), "vlm", Hazard("C3", "L4", "a pan on fire")))
    added = [line for line in screen.lines if "vlm adds: C3 L4 a pan on fire" in line]
    assert [line.split()[2] for line in added] == ["YELLOW", "RED"]

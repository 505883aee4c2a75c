"""What must hold after every step, told without the guard's own words.

Stated for the sidecar policy. Each claim names the setting that it depends on, if it does.
`Witness` keeps its own notes of what happened; it is deliberately simpler than the guard and only
claims what is certain.
"""

import math
import pickle
from collections.abc import Iterator
from dataclasses import dataclass, field

from hdguard.core import actions, events
from hdguard.core.actions import Action, Halt
from hdguard.core.events import Event
from hdguard.core.guard import Guard
from hdguard.core.policy import Policy
from hdguard.core.types import HaltCause, HaltClass, Light, Speed, State


@dataclass
class Seen:
    """One brain, as a bystander sees it."""

    light: Light | None = None
    answered: float = -math.inf
    troubled: bool = False
    failures: int = 0
    fps: float = 1.0
    fps_since: float = 0.0


@dataclass
class Witness:
    """A bystander's notes."""

    policy: Policy
    brains: dict[str, Seen] = field(default_factory=dict)
    frame: float = -math.inf
    changed: float = math.nan
    damaged: bool = False
    moved_since: float = math.inf
    robot_at: float = -math.inf
    robot: int = -1
    down: set[str] = field(default_factory=set)
    open_review: tuple[int, float] | None = None
    link: bool = True
    said_at: float = -math.inf
    confirmed: bool = False
    answered: bool = False
    escalated: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.brains = {b.name: Seen() for b in self.policy.brains}


def broken(witness: Witness, before: bytes, guard: Guard, event: Event, now: float) -> str:
    """Step the guard; returns the name of the first claim that does not hold, or nothing."""
    was: Guard = pickle.loads(before)
    state, halt = was.state, was.halt
    out = guard.step(event, now)
    for claim in _claims(witness, was, guard, event, now, out, state, halt):
        return claim
    _note(witness, guard, event, now, out)
    return next(_standing(witness, guard, now, out), "")


def _claims(
    w: Witness,
    was: Guard,
    guard: Guard,
    event: Event,
    now: float,
    out: tuple[Action, ...],
    state: State,
    halt: Halt | None,
) -> Iterator[str]:
    fresh_halts = [a for a in out if isinstance(a, Halt) and a.repeat == 0]
    if isinstance(event, events.FastVerdict) and event.light is Light.RED:
        danger = guard.halt is not None and guard.halt.halt_class is HaltClass.DANGER
        if not danger and (halt is None or halt.halt_class is HaltClass.FAULT):
            yield "a RED halts in the same step"
    if fresh_halts and not isinstance(out[0], Halt):
        yield "halts come first"
    if w.confirmed and len([a for a in out if isinstance(a, Halt)]) > len(fresh_halts):
        yield "a confirmed halt is not repeated"
    if w.answered and any(isinstance(a, actions.Escalate) for a in out):
        yield "no escalation once the robot has answered"
    running = state in {State.MONITORING, State.REVIEWING}
    worn = w.frame + 1.0 <= now or any(b.answered + 2.5 <= now for b in w.brains.values())
    if running and worn and guard.halt is None:
        yield "a verdict or frame past its limit halts, whatever the event says (fault_halts)"
    if running and any(b.failures >= 2 for b in w.brains.values()) and guard.halt is None:
        yield "n failures halt (failures_to_halt = 2)"
    frozen = _is_frozen(w, event, now)
    if running and frozen and guard.halt is None:
        yield "1.0 s of motion without a change of the picture halts (fault_halts)"
    if any(a.cause is HaltCause.FROZEN_FRAME for a in fresh_halts) and not frozen:
        yield "only a still picture and a robot that says that it moves are a frozen fault"
    if (
        w.open_review is not None
        and isinstance(event, events.SlowVerdict)
        and event.danger
        and event.review_id == w.open_review[0]
        and guard.halt is None
    ):
        yield "danger on the open review halts"
    if halt is not None and (guard.halt is None or guard.halt.halt_id != halt.halt_id):
        yield from _left(w, guard, event, now, halt)
    if isinstance(event, events.StopRequested) and guard.halt is None:
        yield "stop halts"
    if isinstance(event, events.BrainDown) and event.brain == w.policy.slow and running:
        if w.open_review is not None and guard.halt is None:
            yield "a SlowBrain that is down makes a review overdue at once (review_overdue = halt)"
    if _is_old_news(w, event, now):
        quiet = was.step(events.DeadlineReached(), now)
        if quiet != out or was.state is not guard.state:
            yield "old news, a remark, a stranger's review and a wrong id change nothing"


def _is_frozen(w: Witness, event: Event, now: float) -> bool:
    if not isinstance(event, events.FrameSeen) or not event.frozen or now - w.robot_at > 0.5:
        return False
    return event.ref.captured_at - max(w.changed, w.moved_since) >= 1.0


def _is_old_news(w: Witness, event: Event, now: float) -> bool:
    match event:
        case events.SlowVerdict() | events.ReviewFailed():
            return w.open_review is None or event.review_id != w.open_review[0]
        case events.FastVerdict(light=Light.GREEN):
            old = event.ref.captured_at <= w.brains[event.brain].answered
            return event.late or old or now - event.ref.captured_at > 2.5
        case events.ResetRequested():
            return event.halt_id == "wrong"
        case events.Remarked():
            return True
        case _:
            return False


def _left(w: Witness, guard: Guard, event: Event, now: float, halt: Halt) -> Iterator[str]:
    """The halt in force is no longer in force."""
    if guard.halt is not None:
        if halt.halt_class is not HaltClass.FAULT:
            yield "only a fault halt is superseded"
        if guard.halt.halt_class is HaltClass.FAULT and not guard.halt.latched:
            yield "a fault halt is not superseded by a plain fault"
        return
    if any(b.light is not Light.GREEN or b.troubled for n, b in w.brains.items()):
        if not isinstance(event, events.FastVerdict):
            yield "only fresh GREEN of every required brain lets a halt end"
    if w.down & set(w.brains):
        yield "no halt ends while a required brain is down"
    if isinstance(event, events.ResetRequested):
        if event.halt_id != halt.halt_id:
            yield "a reset names the halt"
        return
    if halt.halt_class is not HaltClass.FAULT or halt.latched:
        yield "danger and operator halts end only by a reset"
    if halt.cause is HaltCause.FROZEN_FRAME and w.changed <= halt.decided_at:
        yield "a frozen picture that has not changed does not end its own fault"
    if now - halt.decided_at < 3.0 - 1e-9:
        yield "a fault halt ends after 3 s of fresh GREEN (fault_clear = auto)"


def _note(w: Witness, guard: Guard, event: Event, now: float, out: tuple[Action, ...]) -> None:
    match event:
        case events.FrameSeen():
            w.frame = max(w.frame, event.ref.captured_at)
            if not event.frozen or math.isnan(w.changed):
                w.changed = event.ref.captured_at
            w.damaged = event.damaged
        case events.RobotSeen() if event.seq > w.robot:
            w.robot, w.robot_at = event.seq, now
            w.moved_since = min(w.moved_since, now) if event.moving else math.inf
        case events.FastVerdict():
            _note_verdict(w.brains[event.brain], event, now)
        case events.CannotSee():
            brain = w.brains[event.brain]
            if event.ref.captured_at > brain.answered:
                brain.answered, brain.troubled, brain.failures = event.ref.captured_at, True, 0
        case events.BrainFailed():
            w.brains[event.brain].failures += 1
            w.brains[event.brain].troubled = True
        case events.BrainDown():
            w.down.add(event.brain)
        case events.BrainUp():
            w.down.discard(event.brain)
        case events.LinkLost():
            w.link = False
        case events.LinkUp():
            w.link = True
        case events.SlowVerdict() | events.ReviewFailed():
            if w.open_review is not None and event.review_id == w.open_review[0]:
                w.open_review = None
        case events.HaltConfirmed():
            w.confirmed |= guard.halt is not None and event.halt_id == guard.halt.halt_id
            w.answered |= w.confirmed
        case events.HaltAcknowledged():
            w.answered |= guard.halt is not None and event.halt_id == guard.halt.halt_id
        case _:
            pass
    for action in out:
        if isinstance(action, actions.SetSampleRate):
            w.brains[action.brain].fps = action.fps
            w.brains[action.brain].fps_since = now


def _note_verdict(brain: Seen, event: events.FastVerdict, now: float) -> None:
    if event.late or event.ref.captured_at <= brain.answered:
        return
    if now - event.ref.captured_at > (1.0 if brain.fps > 1.0 else 2.5):
        return
    brain.light, brain.answered = event.light, event.ref.captured_at
    brain.troubled, brain.failures = False, 0


def _standing(w: Witness, guard: Guard, now: float, out: tuple[Action, ...]) -> Iterator[str]:
    """What must hold between steps, and of what was said."""
    for action in out:
        match action:
            case actions.RequestReview():
                if w.open_review is not None:
                    yield "one review at a time"
                w.open_review = (action.review_id, now + w.policy.review_deadline)
            case actions.CancelReview():
                w.open_review = None
            case actions.Permit():
                yield from _permitted(w, guard, now, action)
            case actions.Notify():
                if ("pictures of cam are damaged" in action.why) != w.damaged:
                    yield "people are told of damaged pictures as long as they come, and no longer"
            case Halt():
                w.said_at = now
                if action.repeat == 0:
                    w.confirmed = w.answered = False
            case actions.Escalate():
                if action.halt_id in w.escalated:
                    yield "one escalation"
                w.escalated.add(action.halt_id)
            case _:
                pass
    if guard.halt is not None and not w.confirmed and now - w.said_at >= 0.1 + 1e-9:
        yield "a halt is said every 100 ms until the robot confirms"
    if guard.halt is not None and w.open_review is not None:
        yield "no review runs while halted"
    if w.open_review is not None and now >= w.open_review[1]:
        yield "a review never outlasts its deadline (review_overdue = halt)"
    if not now < guard.deadline <= now + 0.2 + 1e-9:
        yield "a deadline always exists, and a permit leaves every 200 ms"
    if (guard.state is State.REVIEWING) != (w.open_review is not None and guard.halt is None):
        if guard.state is not State.STARTING:
            yield "REVIEWING means that a review is open"


def _permitted(w: Witness, guard: Guard, now: float, permit: actions.Permit) -> Iterator[str]:
    if permit.speed is Speed.NONE:
        return
    if guard.halt is not None or not w.link or guard.state is State.STARTING:
        yield "no permit while halted, starting or without a link"
    for brain in w.brains.values():
        settled = now - brain.fps_since >= 1.0
        if now - brain.answered >= (1.0 if brain.fps > 1.0 and settled else 2.5):
            yield "never running on a verdict older than its limit (fault_halts)"
    if permit.speed is not Speed.FULL:
        return
    calm = all(b.light is Light.GREEN and not b.troubled for b in w.brains.values())
    if not calm or w.down or w.open_review is not None or permit.light is not Light.GREEN:
        yield "full speed means that everything is GREEN, answered and quiet"
    if w.frame - w.changed >= 3.0:
        yield "full speed means that the picture changes (when_frozen)"
    if w.damaged:
        yield "full speed means that few pictures are damaged"
    if now - w.frame >= 0.5 or any(now - b.answered >= 1.5 for b in w.brains.values()):
        yield "full speed means that everything is fresh"

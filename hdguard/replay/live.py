"""What a person at a terminal sees of a video while it runs: a line for everything that changes."""

from rich.console import Console
from rich.text import Text

from hdguard.core import actions, events
from hdguard.core.actions import Action, Halt
from hdguard.core.events import Event
from hdguard.core.types import FrameRef, HaltClass, Light, Speed
from hdguard.runtime.explain import NO_REASON, owes_a_reason
from hdguard.runtime.observer import Judged, Reviewed

COLOURS = {Light.GREEN: "green", Light.YELLOW: "yellow", Light.RED: "bold red"}


class LiveTimeline:
    """Looks on and prints: media time, light, speed, and what happened."""

    def __init__(self, console: Console, title: str) -> None:
        self._console = console
        self._light: Light | None = None
        self._speed: Speed | None = None
        self._origin: float | None = None
        self._latency: float | None = None
        self._halt: Halt | None = None
        self._delivered: float | None = None
        self._acknowledged = False
        self._reviews = 0
        self._said = ""
        self._added: set[tuple[str, str]] = set()
        console.print(Text(f"\n{title}", style="bold"), soft_wrap=True)

    def judged(self, stamps: Judged | Reviewed) -> None:
        """Keep the newest answer's latency."""
        self._latency = stamps.assessed - stamps.given

    def stepped(self, now: float, event: Event, actions: tuple[Action, ...]) -> None:
        """Print what changed."""
        for each in self._happened(now, event):
            self._print(now, each)
        for action in actions:
            for each in self._decided(action):
                self._print(now, each)

    def _happened(self, now: float, event: Event) -> list[str]:
        match event:
            case events.FrameSeen():
                if self._origin is None:
                    self._origin = event.ref.captured_at - event.ref.media_time
                return []
            case events.FastVerdict():
                return self._verdict(event)
            case events.CannotSee():
                return [f"{event.brain} cannot see: {event.reason}"]
            case events.BrainFailed():
                return [f"{event.brain} failed: {event.reason}"]
            case events.Remarked():
                return self._remark(event)
            case events.SlowVerdict():
                return self._review(event)
            case events.ReviewFailed():
                return [f"review {event.review_id} failed: {event.reason}"]
            case events.HaltDelivered() | events.HaltAcknowledged() | events.HaltConfirmed():
                return self._receipt(now, event)
            case events.SourceLost():
                return [f"the source broke: {event.reason}"]
            case events.BrainDown() | events.BrainUp():
                return [
                    f"{event.brain} is {'down' if isinstance(event, events.BrainDown) else 'up'}"
                ]
            case _:
                return []

    def _verdict(self, event: events.FastVerdict) -> list[str]:
        if event.light is self._light:
            return []
        self._light, self._said = event.light, ""
        self._added.clear()
        reviewed = f", {self._reviews} reviews later" if self._reviews > 1 else ""
        self._reviews = 0
        text = _why(event)
        return [f"{event.brain} says {event.light.name} after {self._ms()}{text}{reviewed}"]

    def _remark(self, event: events.Remarked) -> list[str]:
        """What it adds to what this brain has said at this light."""
        hazard = event.hazard
        owed = f"({NO_REASON})" if owes_a_reason(event) else ""
        danger = " ".join(filter(None, (hazard.category, hazard.severity, hazard.text, owed)))
        said = [word for word in (danger, *event.sights) if word]
        news = [word for word in said if (event.brain, word) not in self._added]
        self._added.update((event.brain, word) for word in news)
        return [f"{event.brain} adds: {', '.join(news)}"] if news else []

    def _review(self, event: events.SlowVerdict) -> list[str]:
        """A review's answer, unless the one before said the same."""
        said = "danger" if event.danger else "safe"
        if said == self._said:
            return []
        self._said = said
        return [f"review {event.review_id} says {said} after {self._ms()}{_why(event)}"]

    def _receipt(
        self,
        now: float,
        event: events.HaltDelivered | events.HaltAcknowledged | events.HaltConfirmed,
    ) -> list[str]:
        if self._halt is None or self._halt.halt_id != event.halt_id:
            return []
        since = now - self._halt.decided_at
        match event:
            case events.HaltDelivered() if self._delivered is None:
                self._delivered = now
                return [f"halt {event.halt_id} delivered to the broker {since * 1000:.1f} ms after"]
            case events.HaltAcknowledged() if not self._acknowledged:
                self._acknowledged = True
                return [
                    f"halt {event.halt_id} acknowledged by the robot {since * 1000:.1f} ms after"
                ]
            case events.HaltConfirmed():
                return [
                    f"halt {event.halt_id} confirmed: the robot stands still {since:.2f} s after"
                ]
            case _:
                return []

    def _decided(self, action: Action) -> list[str]:
        match action:
            case actions.RequestReview():
                self._reviews += 1
                if self._reviews > 1:
                    return []
                return [f"review {action.review_id} asked for, of {len(action.refs)} frames"]
            case Halt(repeat=0):
                self._halt, self._delivered, self._acknowledged = action, None, False
                self._speed = Speed.NONE
                word = "DANGER" if action.halt_class is HaltClass.DANGER else action.halt_class
                age = self._age(action, action.ref)
                return [f"HALT ({word}, {action.cause}){age}"]
            case actions.Permit():
                return self._permitted(action.speed)
            case actions.Release():
                return [f"halt {action.halt_id} released"]
            case actions.Escalate():
                return [f"halt {action.halt_id} is not acknowledged: escalated"]
            case _:
                return []

    def _age(self, halt: Halt, ref: FrameRef | None) -> str:
        if ref is None:
            return ""
        return f", {(halt.decided_at - ref.captured_at) * 1000:.0f} ms after its frame was captured"

    def _permitted(self, speed: Speed) -> list[str]:
        """What the robot may do from now on, if that is news; a halt says it already."""
        before, self._speed = self._speed, speed
        if speed is before or before is None or (speed is Speed.NONE and self._halt is not None):
            return []
        return [f"the robot may move: {speed.name.lower()}"]

    def _ms(self) -> str:
        return "?" if self._latency is None else f"{self._latency * 1000:.0f} ms"

    def _print(self, now: float, words: str) -> None:
        at = 0.0 if self._origin is None else now - self._origin
        light = self._light.name if self._light is not None else "-"
        speed = self._speed.name.lower() if self._speed is not None else "-"
        line = Text(f"{at:7.2f} s  ")
        line.append(
            f"{light:<7}",
            style=COLOURS.get(self._light, "dim") if self._light is not None else "dim",
        )
        line.append(f"{speed:<9}")
        line.append(words, style="bold red" if words.startswith("HALT") else "")
        self._console.print(line, soft_wrap=True)


def _why(event: events.FastVerdict | events.SlowVerdict) -> str:
    """The reason that a brain gives, or that it owes one."""
    if event.hazard.text:
        return f": {event.hazard.text}"
    return f": {NO_REASON}" if owes_a_reason(event) else ""

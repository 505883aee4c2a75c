"""Pictures, steps and folders for the recorder's tests."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np

from hdguard.core import actions, events
from hdguard.core.policy import SIDECAR, BrainPlan, SourcePlan
from hdguard.core.types import (
    FrameRef,
    HaltCause,
    HaltClass,
    Hazard,
    ImageSpec,
    Light,
    Speed,
    State,
)
from hdguard.ingest.base import Frame, Rgb
from hdguard.observe.incidents import notebook, record, spool
from hdguard.observe.incidents.desk import Desk
from hdguard.observe.incidents.record import About, BrainMade, Decision, Incident, Wall, Window
from hdguard.observe.incidents.reel import Developer
from hdguard.observe.incidents.settings import IncidentSettings
from hdguard.observe.incidents.spool import Picture, SpoolFile, packed
from hdguard.runtime.observer import Judged

PATIENCE = 20.0  # seconds; this machine may be busy

ABOUT = About(
    hdguard="1.2.3", robot="rosie", configuration="c0ffee", brains={"reflex": BrainMade()}
)
POLICY = replace(
    SIDECAR, sources=(SourcePlan("hall"),), brains=(BrainPlan("reflex"),), slow="thinker"
)
NOT_MOVING = actions.Permit(Speed.NONE, Light.RED, State.HALTED, 0.1, 0.1, None)
MOVING = actions.Permit(Speed.FULL, Light.GREEN, State.MONITORING, 0.1, 0.1, None)


class Plain:
    """A picture of one grey."""

    def __init__(self, grey: int = 90, height: int = 36) -> None:
        self._grey, self._height = grey, height

    def rgb(self, spec: ImageSpec) -> Rgb:
        return np.full((self._height, spec.width, 3), self._grey, np.uint8)


def ref(at: float, seq: int | None = None, source: str = "hall") -> FrameRef:
    return FrameRef(source, round(at * 5) if seq is None else seq, at, at - 1.0)


def frame(at: float, source: str = "hall", grey: int = 90, height: int = 36) -> Frame:
    return Frame(ref(at, source=source), Plain(grey, height))


def picture(at: float, source: str = "hall", grey: int = 90) -> Picture:
    return Developer(64).developed(frame(at, source, grey))


def halt(number: int = 1, at: float = 20.05, **changes: object) -> actions.Halt:
    made = actions.Halt(
        f"7-{number}",
        HaltClass.DANGER,
        HaltCause.FAST_RED,
        "hall",
        "reflex",
        ref(20.0),
        Light.RED,
        Hazard("C2", "L2", "contact in 0.3 s"),
        decided_at=at,
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def red(at: float = 20.0) -> events.FastVerdict:
    return events.FastVerdict(ref(at), "reflex", Light.RED, Hazard("C2", "L2", "contact in 0.3 s"))


def judged(at: float = 20.0) -> Judged:
    return Judged("reflex", ref(at), at + 0.001, at + 0.002, at + 0.05)


def settings(**changes: object) -> IncidentSettings:
    given = {"keep_days": 1.0, "before": 2.0, "after": 1.0, "width": 64}
    return IncidentSettings(**{**given, **changes})  # type: ignore[arg-type]


def desk(**changes: object) -> Desk:
    return Desk(settings(**changes), ABOUT, POLICY, boot=7, began=0.0)


DECISION = Decision(
    kind="halt",
    halt_id="7-1",
    halt_class="danger",
    cause="fast_red",
    source="hall",
    brain="reflex",
    light="RED",
    hazard=Hazard("C2", "L2", "contact in 0.3 s"),
    trigger=ref(20.0),
    decided=20.05,
)
INCIDENT = Incident(
    incident_id="7-1",
    about=ABOUT,
    decision=DECISION,
    wall=Wall(decided="2026-05-01T10:00:00.250000+00:00", offset_ns=1_777_629_580_200_000_000),
    window=Window(begin=18.0, end=21.05),
)


def a_halt(book: notebook.Notebook) -> None:
    """What a guard would have noted around `halt()`."""
    for n in range(10):
        at = 18.0 + n * 0.2
        green = events.FastVerdict(ref(at), "reflex", Light.GREEN)
        book.judged(at + 0.05, judged(at))
        book.stepped(at + 0.05, green, (MOVING,))
    book.judged(20.05, judged())
    book.stepped(20.05, red(), (halt(), NOT_MOVING))
    book.stepped(20.053, events.HaltDelivered("7-1"), ())
    book.stepped(20.06, events.HaltAcknowledged("7-1"), ())
    book.stepped(20.5, events.RobotSeen(3, 9, moving=False, speed=0.0), ())
    book.stepped(20.55, events.HaltConfirmed("7-1"), ())


def part(folder: Path, name: str = "7-1", incident: Incident = INCIDENT, frames: int = 10) -> Path:
    """A folder as the recorder leaves it to the child."""
    made = folder / f"{name}.part"
    made.mkdir(mode=0o700, parents=True)
    about = msgspec.structs.replace(incident, incident_id=name)
    record.write_private(made / record.FILE, record.encode(about))
    book = notebook.Notebook(60.0)
    a_halt(book)
    steps = SpoolFile(made / notebook.FILE)
    steps.append(notebook.excerpt_header(POLICY, 7, 0.0))
    for note in book.since(0.0):
        steps.append(note.line())
    steps.close()
    pictures = SpoolFile(made / spool.FILE)
    for n in range(frames):
        pictures.append(packed(picture(18.4 + n * 0.2, grey=20 * n)))
    pictures.close()
    return made


def run(story: Awaitable[None]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(PATIENCE * 2):
            await story

    asyncio.run(bounded())


async def until(what: Callable[[], bool], patience: float = PATIENCE) -> None:
    """Wait for something that a thread or a child brings about."""
    async with asyncio.timeout(patience):
        while not what():  # noqa: ASYNC110 - nothing tells of a file
            await asyncio.sleep(0.01)

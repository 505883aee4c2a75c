"""Every short script of events, from several states; and every mutant that it must find out."""

import pickle
from collections import ChainMap
from collections.abc import Callable, Iterator
from copy import deepcopy

import pytest

from hdguard.core import events
from hdguard.core.events import Event
from hdguard.core.guard import Guard
from hdguard.core.policy import BrainPlan, Policy
from hdguard.core.types import Light
from tests.core.invariants import Witness, broken
from tests.core.mutants import MUTANTS, Mutant
from tests.core.story import GREEN, RED, YELLOW, frame, watching

GAPS = (0.1, 1.2)

POLICY: Policy = watching(
    brains=(BrainPlan("fast"), BrainPlan("other")),
    start_greens=1,
    release_greens=2,
    failures_to_halt=2,
)

Happens = Callable[[float, Guard], Event]


def _verdict(brain: str, light: Light, age: float = 0.0, *, late: bool = False) -> Happens:
    return lambda now, _: events.FastVerdict(frame(now - age), brain, light, late=late)


def _review_id(guard: Guard) -> int:
    desk = guard.roster.sources["cam"].desk
    return desk.open.review_id if desk.open is not None else 99


def _halt_id(guard: Guard) -> str:
    return guard.halt.halt_id if guard.halt is not None else "none"


ALPHABET: dict[str, Happens] = {
    "fast GREEN": _verdict("fast", GREEN),
    "fast YELLOW": _verdict("fast", YELLOW),
    "fast RED": _verdict("fast", RED),
    "fast RED of an old frame": _verdict("fast", RED, age=2.0),
    "fast GREEN of an old frame": _verdict("fast", GREEN, age=2.0),
    "fast GREEN, late": _verdict("fast", GREEN, age=0.05, late=True),
    "other GREEN": _verdict("other", GREEN),
    "other YELLOW": _verdict("other", YELLOW),
    "fast cannot see": lambda now, _: events.CannotSee(frame(now), "fast", "dark"),
    "fast failed": lambda now, _: events.BrainFailed("cam", "fast", "?", frame(now)),
    "frame": lambda now, _: events.FrameSeen(frame(now)),
    "safe": lambda _, g: events.SlowVerdict(_review_id(g), danger=False),
    "danger": lambda _, g: events.SlowVerdict(_review_id(g), danger=True),
    "danger on another review": lambda _, g: events.SlowVerdict(_review_id(g) + 1, danger=True),
    "reset": lambda _, g: events.ResetRequested(_halt_id(g), "kim"),
    "wrong reset": lambda _, __: events.ResetRequested("wrong", "kim"),
    "fast down": lambda _, __: events.BrainDown("fast"),
    "slow down": lambda _, __: events.BrainDown("slow"),
    "link lost": lambda _, __: events.LinkLost(),
    "confirmed": lambda _, g: events.HaltConfirmed(_halt_id(g)),
    "stop": lambda _, __: events.StopRequested(),
    "nothing": lambda _, __: events.DeadlineReached(),
}

STILL: dict[str, Happens] = {
    "still frame": lambda now, _: events.FrameSeen(frame(now), frozen=True),
    "robot moves": lambda now, _: events.RobotSeen(1, round(now * 1e6), moving=True),
    "robot stands": lambda now, _: events.RobotSeen(1, round(now * 1e6), moving=False),
}
"""Of these only scripts are walked that begin where a picture stands still."""

DAMAGED: dict[str, Happens] = {
    "frame amid damaged ones": lambda now, _: events.FrameSeen(frame(now), damaged=True),
}
"""Of these only scripts are walked that begin where pictures are damaged."""

KNOWN = {**ALPHABET, **STILL, **DAMAGED}

STARTS: dict[str, tuple[tuple[float, str], ...]] = {
    "starting": (),
    "monitoring": ((0.1, "fast GREEN"), (0.0, "other GREEN"), (0.0, "frame")),
}
STARTS["reviewing"] = (*STARTS["monitoring"], (0.1, "fast YELLOW"))
CALM = ("frame", "fast GREEN", "other GREEN")
STARTS["danger halt"] = (
    *STARTS["monitoring"],
    (0.1, "fast RED"),
    *[(0.1, name) for _ in range(2) for name in CALM],
)
STARTS["danger halt, long since calm"] = (
    *STARTS["monitoring"],
    (0.1, "fast RED"),
    *[(0.2, name) for _ in range(6) for name in CALM],
)
STARTS["fault halt"] = (
    *STARTS["monitoring"],
    (1.2, "nothing"),
    *[(0.2, name) for _ in range(4) for name in CALM],
)
STARTS["failed once"] = (*STARTS["monitoring"], (0.1, "fast failed"))
STARTS["fast silent for 1.4 s"] = (
    *STARTS["monitoring"],
    *[(0.235, name) for _ in range(3) for name in ("frame", "other GREEN")],
    (0.0, "frame"),
)
STARTS["fast silent for 2.4 s"] = (
    *STARTS["monitoring"],
    *[(0.2425, name) for _ in range(5) for name in ("frame", "other GREEN")],
    (0.0, "frame"),
)
STARTS["fast silent since the other saw YELLOW"] = (
    *STARTS["monitoring"],
    *[
        (gap, name)
        for _ in range(4)
        for gap, name in ((0.31, "frame"), (0.0, "other YELLOW"), (0.0, "safe"))
    ],
)


def _steps(count: int, *names: str) -> tuple[tuple[float, str], ...]:
    """So often, every 0.24 s, these happen at once, and both brains say GREEN."""
    together = (*names, "fast GREEN", "other GREEN")
    return tuple((0.24 if n == 0 else 0.0, x) for _ in range(count) for n, x in enumerate(together))


STARTS["picture still, robot moving for 0.96 s"] = (
    *STARTS["monitoring"],
    *_steps(6, "robot moves", "frame"),  # it is no fault to move
    *_steps(1, "robot stands", "frame"),
    *_steps(5, "robot moves", "still frame"),
)
STARTS["picture still, robot heard of long ago"] = (
    *STARTS["monitoring"],
    *_steps(1, "robot moves", "still frame"),
    *_steps(4, "still frame"),
)
STARTS["picture still for 2.88 s"] = (
    *STARTS["monitoring"],
    *_steps(12, "robot stands", "still frame"),
)
STARTS["frozen halt, long since calm"] = (
    *STARTS["picture still, robot moving for 0.96 s"],
    (0.1, "still frame"),
    *_steps(14, "robot stands", "still frame"),
)
STARTS["pictures damaged"] = (*STARTS["monitoring"], *_steps(2, "frame amid damaged ones"))

DEPTH = {"monitoring": 3}


class Script:
    """A guard with its witness, at a time."""

    def __init__(self) -> None:
        self.guard = Guard(POLICY, 0.0, boot=7)
        self.witness = Witness(POLICY)
        self.now = 0.0
        self.guard.step(events.SourceUp("cam"), 0.0)
        self.guard.step(events.SelfTestPassed(), 0.0)

    def step(self, gap: float, name: str) -> str:
        """Let that happen after the gap; returns the claim that broke, or nothing."""
        self.now += gap
        event = KNOWN[name](self.now, self.guard)
        before = pickle.dumps(self.guard)
        return broken(self.witness, before, self.guard, event, self.now)


def _letters(start: str) -> dict[str, Happens]:
    happened = {name for _, name in STARTS[start]}
    special = [letters for letters in (STILL, DAMAGED) if happened & set(letters)]
    return dict(ChainMap(ALPHABET, *special))


def _walk(
    state: bytes, depth: int, letters: dict[str, Happens], path: tuple[str, ...]
) -> Iterator[tuple[int, str]]:
    """Every script of that length from there: (1, what broke) for each step taken."""
    for name in letters:
        for gap in GAPS:
            script: Script = pickle.loads(state)
            claim = script.step(gap, name)
            here = (*path, f"+{gap} {name}")
            yield 1, f"{claim}: {' / '.join(here)}" if claim else ""
            if depth > 1 and not claim:
                yield from _walk(pickle.dumps(script), depth - 1, letters, here)


def _explore(start: str, depth: int) -> tuple[int, str]:
    script = Script()
    for gap, name in STARTS[start]:
        claim = script.step(gap, name)
        if claim:
            return 1, f"{claim}: on the way to {start}"
    steps = 0
    for taken, claim in _walk(pickle.dumps(script), depth, _letters(start), (start,)):
        steps += taken
        if claim:
            return steps, claim
    return steps, ""


@pytest.mark.exhaustive
@pytest.mark.timeout(600)
@pytest.mark.parametrize("start", STARTS)
def test_every_short_script_keeps_every_rule(start: str) -> None:
    depth = DEPTH.get(start, 2)
    steps, claim = _explore(start, depth)
    assert not claim
    letters = len(_letters(start)) * len(GAPS)
    assert steps == sum(letters**d for d in range(1, depth + 1))


@pytest.mark.exhaustive
@pytest.mark.timeout(600)
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: m.name)
def test_every_mutant_is_killed(mutant: Mutant) -> None:
    with mutant.alive():
        for start in sorted(STARTS, key=lambda s: (s != mutant.shows, DEPTH.get(s, 2))):
            if _explore(start, DEPTH.get(start, 2))[1]:
                return
    pytest.fail(f"survived: {mutant.name}")


def test_every_start_that_a_mutant_names_is_one() -> None:
    assert {m.shows for m in MUTANTS} - {""} <= set(STARTS)


def test_the_same_events_at_the_same_times_give_the_same_actions() -> None:
    one, two = Script(), Script()
    for gap, name in STARTS["fault halt"]:
        one.now += gap
        event = ALPHABET[name](one.now, one.guard)
        assert one.guard.step(event, one.now) == two.guard.step(deepcopy(event), one.now)

"""What the guard is told to do, as data: one preset for the paper, one for a real robot."""

from dataclasses import dataclass
from typing import Literal

LOW_FPS = 1.0
HIGH_FPS = 5.0
"""Sampling rates in GREEN, and in YELLOW and RED: arXiv 2603.11975, section on HD-Guard."""

Overdue = Literal["ignore", "halt", "caution"]
Pending = Literal["dropped", "newest_waits"]
Resample = Literal["released", "at_once"]
Window = Literal["released", "paper", "memory"]
WhenFrozen = Literal["halt", "slow", "ignore"]


@dataclass(frozen=True, slots=True)
class SourcePlan:
    """A source that the guard watches.

    Attributes:
        source_id: its name.
        required: its staleness halts the robot; an optional one only slows it.
        interval: declared seconds between frames if it is slower than 5 FPS, else 0.
        when_frozen: what follows when its picture does not change.
            `halt`: it is mounted on the robot. After 3 s the speed is reduced; a required source
            halts the robot after 1 s in which the robot says that it moves.
            `slow`: it is fixed, and an empty room stands still by right. The speed is reduced
            after 3 s, for from a camera that is stuck such a room cannot be told.
            `ignore`: nothing; for recordings, which may stand still by right.
    """

    source_id: str
    required: bool = True
    interval: float = 0.0
    when_frozen: WhenFrozen = "halt"


@dataclass(frozen=True, slots=True)
class BrainPlan:
    """A FastBrain that judges every source.

    Attributes:
        name: the name that its verdicts carry.
        required: its failure halts the robot; an optional one only slows it.
        adaptive: sample at 1 FPS in GREEN and 5 in YELLOW and RED; else always at `fps`.
        fps: frames a second of a brain that is not adaptive.
        deadline: seconds for one answer if it is not the policy's.
    """

    name: str
    required: bool = True
    adaptive: bool = True
    fps: float = HIGH_FPS
    deadline: float | None = None


@dataclass(frozen=True, slots=True)
class Policy:
    """How the guard decides.

    Attributes:
        name: of the preset.
        start_greens: fresh GREEN in a row from every required brain before the first motion.
        release_greens: fresh GREEN in a row before a reset, and to end a caution.
        failures_to_halt: failures in a row of a required brain that halt; None: each failure
            counts as YELLOW.
        fast_deadline: seconds for one FastBrain answer; None: no deadline and no verdict age limit.
        fault_halts: stale, blind and latched are fault halts; else they are only reported.
        review_deadline: seconds for one review.
        review_overdue: what happens then.
        pending: what becomes of a trigger while a review is open.
        first_danger: latched until a reset, or the end of the run.
        resample: where the sampling grid restarts when the rate changes.
        window: which frames the SlowBrain sees.
        fault_clear: fault halts end by themselves after 3 s of fresh GREEN, or by a reset only.
        sources: what is watched.
        brains: who watches.
        slow: the SlowBrain's name; empty: there is none.
    """

    name: str
    start_greens: int
    release_greens: int
    failures_to_halt: int | None
    fast_deadline: float | None
    fault_halts: bool
    review_deadline: float
    review_overdue: Overdue
    pending: Pending
    first_danger: Literal["ends_run", "latched"]
    resample: Resample
    window: Window
    fault_clear: Literal["auto", "reset"] = "auto"
    sources: tuple[SourcePlan, ...] = ()
    brains: tuple[BrainPlan, ...] = ()
    slow: str = ""

    def deadline_of(self, brain: BrainPlan) -> float | None:
        """Seconds that this brain has for one answer, or None for ever."""
        if self.fast_deadline is None:
            return None
        return brain.deadline if brain.deadline is not None else self.fast_deadline


PAPER = Policy(
    name="paper",
    start_greens=1,
    release_greens=1,
    failures_to_halt=None,
    fast_deadline=None,
    fault_halts=False,
    review_deadline=10.0,
    review_overdue="ignore",
    pending="dropped",
    first_danger="ends_run",
    resample="released",
    window="released",
)

SIDECAR = Policy(
    name="sidecar",
    start_greens=3,
    release_greens=3,
    failures_to_halt=3,
    fast_deadline=0.4,
    fault_halts=True,
    review_deadline=1.0,
    review_overdue="halt",
    pending="newest_waits",
    first_danger="latched",
    resample="at_once",
    window="memory",
)

PRESETS = {"paper": PAPER, "sidecar": SIDECAR}


def kill_after(deadline: float) -> float:
    """Seconds after which a call that has no answer is killed (DESIGN, "Late answers")."""
    return max(1.5, 3.0 * deadline)

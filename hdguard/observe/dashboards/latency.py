"""The dashboard "Latency": where the time goes from a frame's capture to a halt, and to its answer.

Percentiles come from histograms with few buckets: between two bounds they are a guess, at a bound,
as every goal is, they are exact. What stands alone is of the whole time shown.
"""

from hdguard.observe.dashboards.goals import (
    FAST_DEADLINE,
    LAG,
    OWN_TIME,
    REVIEW_DEADLINE,
    TO_HALT_P50,
    TO_HALT_P95,
    UNACKNOWLEDGED,
)
from hdguard.observe.dashboards.panels import (
    Board,
    Query,
    Step,
    Tile,
    bars,
    chart,
    number,
    of,
    quantile,
    recorded,
)

_SHARES = ((0.5, "50 %"), (0.95, "95 %"), (0.99, "99 %"))
_HALT = "capture_to_halt_seconds"
_RED = {"cause": "fast_red"}


def _above(seconds: float) -> tuple[Step, ...]:
    return ((None, "green"), (seconds, "red"))


def _goal(title: str, share: float, seconds: float, says: str) -> Tile:
    """Of what the FastBrain decides: a SlowBrain may take as long as its review."""
    chosen = of(f"{_HALT}_bucket", **_RED)
    query = f"histogram_quantile({share}, sum by (le) (rate({chosen}[$__range])))"
    queries = (Query(query, now=True),)
    return Tile(title=title, says=says, queries=queries, width=4, limits=_above(seconds))


def _stage(title: str, name: str, seconds: float, says: str) -> Tile:
    queries = tuple(Query(_of_stage(share, name), words) for share, words in _SHARES)
    return Tile(title=title, says=says, queries=queries, width=6, limits=_above(seconds))


def _of_stage(share: float, name: str) -> str:
    """Of halts over the whole time shown, because they are rare."""
    chosen = of("stage_duration_seconds_bucket", stage=name)
    over = "$__range" if name == "deliver" else "$__rate_interval"
    return f"histogram_quantile({share}, sum by (le) (rate({chosen}[{over}])))"


HALF = _goal(
    "Half of the FastBrain's halts within",
    0.5,
    TO_HALT_P50,
    f"From capture to halt at RED; goal {TO_HALT_P50} s, for a guard with a GPU.",
)
MOST = _goal(
    "95 % of the FastBrain's halts within",
    0.95,
    TO_HALT_P95,
    f"Goal {TO_HALT_P95} s; if it is red, look below for the stage that takes the time.",
)
COUNTED = Tile(
    title="FastBrain's halts counted",
    says="With fewer than twenty the 95th percentile is the slowest one alone: watch for longer.",
    queries=(Query(f"round(sum(increase({of(f'{_HALT}_count', **_RED)}[$__range])))", now=True),),
    unit="none",
    width=4,
    limits=((None, "blue"),),
)
SPREAD = Tile(
    title="Danger halts by seconds from capture",
    says=f"Of both brains: at RED those up to {TO_HALT_P95} s came in time, a SlowBrain has until"
    " its review's deadline; `hdguard explain` shows where a halt's time went.",
    queries=(
        Query(
            f"round(sum by (le) (increase({of(f'{_HALT}_bucket')}[$__range])))",
            "{{le}}",
            now=True,
            buckets=True,
        ),
    ),
    unit="none",
)

BEFORE = Tile(
    title="Sample and wait, 99th percentile",
    says="From capture to the brain; the line is the goal for all that is not a brain: above it the"
    " machine has too much to do.",
    queries=tuple(Query(_of_stage(0.99, name), name) for name in ("sample", "wait")),
    width=6,
    limits=_above(OWN_TIME),
)
JUDGE = _stage(
    "Judge (FastBrain)",
    "judge",
    FAST_DEADLINE,
    "Above the line a verdict counts as failed (a profile may allow more): take a smaller model or"
    " a faster machine.",
)
REVIEW = _stage(
    "Review (SlowBrain)",
    "review",
    REVIEW_DEADLINE,
    "Above the line a review is overdue (a profile may allow more), and by default the robot is"
    " halted.",
)
DELIVER = _stage(
    "Deliver (halt to broker)",
    "deliver",
    OWN_TIME,
    "Above the line broker or network are slow; a halt is repeated ten times a second until the"
    " robot confirms it.",
)

LOOP = Tile(
    title="Event loop lag",
    says="Lines: 5 ms under load, 50 ms at all; above them something holds the decisions up: report"
    " it with the log of that time.",
    queries=(
        Query(quantile(0.99, "event_loop_lag_seconds"), "99 %"),
        Query(quantile(1, "event_loop_lag_seconds"), "longest, at most"),
    ),
    width=6,
    limits=((None, "green"), (LAG[0], "yellow"), (LAG[1], "red")),
)
DROPS = Tile(
    title="Frames dropped",
    says="`dropped_busy` gave way to a newer frame while the brain was busy, `dropped_stale` were"
    " too old to be judged: brain or machine are too slow.",
    queries=(
        Query(
            "sum by (outcome)"
            f" (rate({of('frames_total', outcome='~dropped_.+|corrupt')}[$__rate_interval]))",
            "{{outcome}}",
        ),
    ),
    unit="ops",
    width=6,
)
FAILURES = Tile(
    title="Answers late or failed, by brain",
    says="Three in a row halt the robot; a share that rises announces it.",
    queries=(
        Query(
            "sum by (brain, verdict) (rate("
            f"{of('verdicts_total', brain='$brain', verdict='~late|failed')}[$__rate_interval]))",
            "{{brain}} {{verdict}}",
        ),
    ),
    unit="ops",
    width=6,
)
ANSWER = Tile(
    title="Halt to acknowledgement",
    says="The robot's own share of the time; at the line a halt is escalated.",
    queries=tuple(
        Query(quantile(share, "halt_ack_seconds", over="$__range"), words)
        for share, words in _SHARES
    ),
    width=6,
    limits=_above(UNACKNOWLEDGED),
)

STAGES_RECORDED = Tile(
    title="Stages, 95th percentile",
    says="A stage that grows from week to week: look for a new model, camera or load at the time"
    " when it began.",
    queries=(Query(recorded("instance_stage:hdguard_stage_duration_seconds:p95_5m"), "{{stage}}"),),
)
HALTS_RECORDED = Tile(
    title="Capture to halt, 95th percentile of each hour",
    says="By cause, so of both brains; the line and the alert on slow halts are about fast_red.",
    queries=(
        Query(recorded("instance_cause:hdguard_capture_to_halt_seconds:p95_1h"), "{{cause}}"),
    ),
    limits=_above(TO_HALT_P95),
)


def board() -> Board:
    """All of it."""
    made = Board(
        "hdguard-latency",
        "Latency",
        "How long it takes from a frame's capture to a halt, by stage, against the goals.",
    )
    made.lasts("1h", "10s")
    made.choice("job", "state")
    made.choice("instance", "state")
    made.choice("brain", "brain_up", every=True)
    made.row(
        "Capture to halt, against its goal",
        *(number(HALF), number(MOST), number(COUNTED), bars(SPREAD)),
    )
    made.row("Stages", chart(BEFORE), chart(JUDGE), chart(REVIEW), chart(DELIVER))
    made.row("What makes it late", chart(LOOP), chart(DROPS), chart(FAILURES), chart(ANSWER))
    made.row("Over weeks, by the recording rules", chart(STAGES_RECORDED), chart(HALTS_RECORDED))
    return made

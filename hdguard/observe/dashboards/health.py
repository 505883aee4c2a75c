"""The lower half of "Is it watching?": what the guard is fed, what it says, and its own health.

Nobody needs it while all is green above; when something is not, it says which part to look after.
"""

from hdguard.observe.dashboards.panels import (
    Board,
    Query,
    Tile,
    Words,
    chart,
    of,
    quantile,
    strip,
)

UP: Words = {0: ("down", "red"), 1: ("up", "green")}


def _increase(metric: str, by: str = "", **labels: str) -> str:
    return _summed(f"increase({of(metric, **labels)}[$__rate_interval])", by)


def _rate(metric: str, by: str, **labels: str) -> str:
    return _summed(f"rate({of(metric, **labels)}[$__rate_interval])", by)


def _summed(expr: str, by: str) -> str:
    return f"sum by ({by}) ({expr})" if by else f"sum({expr})"


FRAMES = Tile(
    title="Frames by outcome",
    says="`judged` is what the brains have answered; `corrupt` points to the camera's network,"
    " `dropped_stale` to a machine that is too slow.",
    queries=(Query(_rate("frames_total", "outcome"), "{{outcome}}"),),
    unit="ops",
    width=8,
)
VERDICTS = Tile(
    title="Verdicts by brain",
    says="`late`, `failed` and `cannot_see` are answers that let nothing run: look after the brain,"
    " or the light in the room.",
    queries=(
        Query(_rate("verdicts_total", "brain, verdict", brain="$brain"), "{{brain}} {{verdict}}"),
    ),
    unit="ops",
    width=8,
)
REVIEWS = Tile(
    title="Reviews",
    says="A review that waits behind an open one: the SlowBrain is too slow for how often it is"
    " asked.",
    queries=(Query(of("reviews"), "{{state}}"),),
    unit="none",
    width=4,
)
MASS = Tile(
    title="Mass on the labels, lowest 5 %",
    says="The probability that a model says any of its labels; where it falls, prompt and model do"
    " not fit: do not trust its verdicts.",
    queries=(Query(quantile(0.05, "label_mass", "brain"), "{{brain}}"),),
    unit="percentunit",
    width=4,
)
UPS = Tile(
    title="Brains up",
    says="A brain that is down is loaded again; without a required one the robot is halted.",
    queries=(Query(of("brain_up", brain="$brain"), "{{brain}}"),),
    unit="none",
    width=6,
)
RESTARTS = Tile(
    title="Restarts in 10 minutes",
    says="More than two: a model or its machine is broken; the guard gives up after three in a"
    " minute.",
    queries=(
        Query(
            f"round(sum by (brain) (increase({of('worker_restarts_total', brain='$brain')}[10m])))",
            "{{brain}}",
        ),
    ),
    unit="none",
    width=6,
)
MEMORY = Tile(
    title="Memory of the workers, and incidents on disk",
    says="Memory that only rises ends in a worker that is killed and loaded again: report it.",
    queries=(
        Query(of("worker_memory_bytes", brain="$brain"), "{{brain}} {{kind}}"),
        Query(of("incident_bytes"), "incidents"),
    ),
    unit="bytes",
    width=6,
)
LOST = Tile(
    title="Refused and lost",
    says="Refused commands: somebody tries, or a key is wrong; lost clips and failed writes: the"
    " disk is full or slow, which keeps no halt back; a failed hook: test it now.",
    queries=(
        Query(_increase("refused_total", "topic"), "refused {{topic}}"),
        Query(_increase("incidents_total", outcome="~dropped|failed"), "clips lost"),
        Query(_increase("write_failures_total", "file"), "writes failed {{file}}"),
        Query(_increase("audit_dropped_total"), "audit lines lost"),
        Query(_increase("hook_failures_total"), "hook failed"),
    ),
    unit="none",
    width=6,
)


def rows(made: Board) -> None:
    """Add them."""
    work = (chart(FRAMES), chart(VERDICTS), chart(REVIEWS), chart(MASS))
    made.row("What it is fed, and what it says", *work)
    made.row("Its own health", strip(UPS, UP), chart(RESTARTS), chart(MEMORY), chart(LOST))

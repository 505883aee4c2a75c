"""The dashboard "Is it watching?": what an operator looks at first, and when something has stopped.

Every number that stands alone is of now; every course beside it says since when.
"""

from hdguard.observe.dashboards import health
from hdguard.observe.dashboards.goals import PERMIT_GAP, PERMITS, SLOWER, UNACKNOWLEDGED
from hdguard.observe.dashboards.panels import (
    Board,
    Query,
    Tile,
    Words,
    chart,
    listing,
    number,
    of,
    quantile,
    small,
    strip,
)

STATES: Words = {
    0: ("STARTING", "blue"),
    1: ("MONITORING", "green"),
    2: ("REVIEWING", "yellow"),
    3: ("HALTED", "red"),
}
LIGHTS: Words = {
    0: ("GREEN", "green"),
    1: ("YELLOW", "yellow"),
    2: ("RED", "red"),
    3: ("unknown", "purple"),
}
SPEEDS: Words = {0: ("none", "orange"), 1: ("reduced", "yellow"), 2: ("full", "green")}
CLASSES: Words = {
    0: ("no halt", "green"),
    1: ("FAULT", "orange"),
    2: ("OPERATOR", "purple"),
    3: ("DANGER", "red"),
}
CONNECTED: Words = {0: ("no", "red"), 1: ("yes", "green")}
UNANSWERED: Words = {0: ("no", "green"), 1: ("not standing yet", "orange"), 2: ("NO ANSWER", "red")}
OF_LIMIT = ((None, "green"), (SLOWER, "yellow"), (1.0, "red"))
NONE_IS_BEST = ((None, "green"), (1.0, "red"))

_STATE = (
    f"max by (instance) ({of('state', state='halted')} * 3 or {of('state', state='reviewing')} * 2"
    f" or {of('state', state='monitoring')} or {of('state', state='starting')} * 0)"
)
_CLASS = (
    f"max by (instance) ({of('halt_active', **{'class': 'danger'})} * 3"
    f" or {of('halt_active', **{'class': 'operator'})} * 2"
    f" or {of('halt_active', **{'class': 'fault'})})"
)
_LIGHTS = of("light", source="$source")
_UNKNOWN = (
    f"({of('frame_age_limit_seconds', source='$source')}"
    f" unless on (job, instance, source) {_LIGHTS}) * 0 + 3"
)
"""Of every camera that has no light now: it has given no frame yet, or none for too long."""


def _of_limit(age: str, by: str, **labels: str) -> str:
    """The greatest share of its limit that an age has reached."""
    limit = f"{age}_limit_seconds"
    ages, limits = of(f"{age}_seconds", **labels), of(limit, **labels)
    return f"max({ages} / on (job, instance, {by}) {limits})"


_PERMIT = "permit_interval_seconds"
_LATE = (
    f"round(sum(increase({of(f'{_PERMIT}_count')}[$__range]))"
    f" - sum(increase({of(f'{_PERMIT}_bucket', le=str(PERMIT_GAP))}[$__range])))"
)

# Of now, eight side by side.

STATE = small(
    "State",
    "In MONITORING and REVIEWING the robot works under watch; in STARTING and HALTED it stands: see"
    " the status page for why, and for what to do.",
    _STATE,
)
LIGHT = small(
    "Light",
    "The most severe light of all cameras; YELLOW slows the robot, RED halts it; unknown: a camera"
    " or a brain gives nothing, see the ages.",
    f"max({_LIGHTS} > 0) or max({_UNKNOWN}) or max({_LIGHTS})",
)
SPEED = small(
    "Permitted speed",
    "What the robot is permitted; at `reduced` look below for a light above GREEN, an open review,"
    " or a camera or brain that is late; `none` in MONITORING: the broker passes no permits on.",
    of("speed"),
)
HALT = small(
    "Halt in force",
    "Its class; a danger or operator halt leaves only by a reset once the cause is gone.",
    _CLASS,
)
NO_ANSWER = small(
    "Halt not confirmed",
    "NO ANSWER: the robot has not acknowledged a halt in time, so stop it by its own means, now."
    " Not standing yet: it has not said that it stands; if that lasts for seconds, do the same.",
    f"{of('halt_unconfirmed')} + {of('halt_unacknowledged')}",
)
OLDEST_FRAME = small(
    "Oldest frame, of its limit",
    "How old the newest frame of a camera is, by the camera that is furthest behind; at 100 % the"
    " guard halts: look after that camera.",
    _of_limit("frame_age", "source", source="$source"),
    "percentunit",
    OF_LIMIT,
)
OLDEST_VERDICT = small(
    "Oldest verdict, of its limit",
    "Since the capture of the newest frame that a brain has judged, by the one furthest behind; if"
    " it grows while frames are young, that brain is stuck or slow.",
    _of_limit("verdict_age", "source, brain", source="$source", brain="$brain"),
    "percentunit",
    OF_LIMIT,
)
BROKER = small(
    "Broker connected",
    "no: neither permits nor halts reach the robot, which stops by itself; look after the broker"
    " and the network. yes does not prove that anything arrives.",
    of("mqtt_connected"),
)

# Since when.

STATE_OVER_TIME = Tile(
    title="State over time",
    says="While it is neither green nor yellow the robot stands; the causes are listed below.",
    queries=(Query(_STATE, "{{instance}}"),),
    width=24,
    height=4,
    unit="none",
)
LIGHT_OVER_TIME = Tile(
    title="Light over time, by camera",
    says="Much YELLOW without a halt means that brain or camera is unsure too often: look at the"
    " view, or tune the brain.",
    queries=(Query(f"max by (source) ({_LIGHTS} or {_UNKNOWN})", "{{source}}"),),
    width=24,
    height=5,
    unit="none",
)
SPEED_OVER_TIME = Tile(
    title="Permitted speed over time",
    says="How much of its time the robot may work at full speed; what slows it stands above and"
    " below at the same time.",
    queries=(Query(of("speed"), "{{instance}}"),),
    width=24,
    height=4,
    unit="none",
)
FRAME_AGES = Tile(
    title="Frame age by camera",
    says="Each camera below its limit, at which the robot is halted; at about half of it the robot"
    " is slowed. A line that is missing: no frame has come yet.",
    queries=(
        Query(of("frame_age_seconds", source="$source"), "{{source}}"),
        Query(of("frame_age_limit_seconds", source="$source"), "{{source}}: limit"),
    ),
)
VERDICT_AGES = Tile(
    title="Verdict age by camera and brain",
    says="Each below its limit, which is wider where a brain samples once a second because the"
    " light is GREEN.",
    queries=(
        Query(of("verdict_age_seconds", source="$source", brain="$brain"), "{{source}} {{brain}}"),
        Query(
            of("verdict_age_limit_seconds", source="$source", brain="$brain"),
            "{{source}} {{brain}}: limit",
        ),
    ),
)
PERMITS_A_SECOND = Tile(
    title="Permits a second",
    says=f"{PERMITS:g} a second in every state; fewer mean that the guard's machine is overloaded.",
    queries=(Query(f"sum(rate({of(f'{_PERMIT}_count')}[$__rate_interval]))", "permits"),),
    unit="ops",
    limits=((None, "red"), (0.9 * PERMITS, "green")),  # what a scrape in between may blur
)
BETWEEN_PERMITS = Tile(
    title="Time between permits",
    says="At the red line the robot stops by itself; the longest is shown as the upper bound of its"
    " bucket.",
    queries=(
        Query(quantile(0.99, _PERMIT), "99 %"),
        Query(quantile(1, _PERMIT), "longest, at most"),
    ),
    width=9,
    limits=((None, "green"), (PERMIT_GAP, "red")),
)
LATE_PERMITS = Tile(
    title="Permits too late, in the time shown",
    says="Each time the robot had to stop by itself: look at the event loop lag and at what else"
    " ran on the machine.",
    queries=(Query(_LATE, now=True),),
    width=3,
    unit="none",
    limits=NONE_IS_BEST,
)

# Halts.

CAUSES = Tile(
    title="Halts with their cause, in the time shown",
    says="Why the robot was stopped; `hdguard explain HALT_ID` tells the story of a halt.",
    queries=(
        Query(
            f"round(sum by (class, cause) (increase({of('halts_total')}[$__range]))) > 0", now=True
        ),
    ),
    width=8,
    unit="none",
    table=True,
)
BY_CLASS = Tile(
    title="Halts by class",
    says="Danger: something was seen; fault: the guard was blind or broken; many faults mean that"
    " the robot stands for no danger.",
    queries=(
        Query(f"sum by (class) (increase({of('halts_total')}[$__rate_interval]))", "{{class}}"),
    ),
    width=7,
    unit="none",
)
ACKNOWLEDGED = Tile(
    title="Halt to acknowledgement",
    says="At the red line an unanswered halt is escalated: check the robot's half and the network.",
    queries=(
        Query(quantile(0.5, "halt_ack_seconds", over="$__range"), "50 %"),
        Query(quantile(0.95, "halt_ack_seconds", over="$__range"), "95 %"),
    ),
    width=6,
    limits=((None, "green"), (UNACKNOWLEDGED, "red")),
)
ESCALATED = Tile(
    title="Escalated, in the time shown",
    says="Halts that the robot did not acknowledge in time; each is worth an inquiry.",
    queries=(Query(f"round(sum(increase({of('escalations_total')}[$__range])))", now=True),),
    width=3,
    unit="none",
    limits=NONE_IS_BEST,
)


def board() -> Board:
    """All of it."""
    made = Board(
        "hdguard-watching",
        "Is it watching?",
        "Whether the guard watches, what it last saw, and why it stopped the robot.",
    )
    made.lasts("15m", "5s")
    made.choice("job", "state")
    made.choice("instance", "state")
    made.choice("source", "frame_age_limit_seconds", every=True)
    made.choice("brain", "brain_up", every=True)
    made.row(
        "Now",
        *(number(STATE, STATES), number(LIGHT, LIGHTS), number(SPEED, SPEEDS)),
        *(number(HALT, CLASSES), number(NO_ANSWER, UNANSWERED)),
        *(number(OLDEST_FRAME), number(OLDEST_VERDICT), number(BROKER, CONNECTED)),
    )
    made.row(
        "State, light and speed",
        *(strip(STATE_OVER_TIME, STATES), strip(LIGHT_OVER_TIME, LIGHTS)),
        strip(SPEED_OVER_TIME, SPEEDS),
    )
    made.row(
        "Frames, verdicts and permits",
        *(chart(FRAME_AGES), chart(VERDICT_AGES)),
        *(chart(PERMITS_A_SECOND), chart(BETWEEN_PERMITS), number(LATE_PERMITS)),
    )
    made.row(
        "Halts",
        *(listing(CAUSES, "halts"), chart(BY_CLASS), chart(ACKNOWLEDGED), number(ESCALATED)),
    )
    health.rows(made)
    return made

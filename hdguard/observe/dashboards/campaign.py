"""The dashboard "Replay campaign": how far a replay is, and how good it is so far.

It is fed by `hdguard replay --metrics-port`, which ends with the run: the report is what remains.
"""

from hdguard.observe.dashboards.panels import (
    Board,
    Query,
    Step,
    Tile,
    bars,
    chart,
    number,
    of,
    small,
)

_PLAIN: tuple[Step, ...] = ((None, "blue"),)
_HOURS = f"sum({of('replay_watched_seconds_total')}) / 3600"
_SAFE_HOURS = f"sum({of('replay_watched_seconds_total', material='safe')}) / 3600"


def _videos(state: str) -> str:
    return f"sum({of('replay_videos', state=state)})"


DONE = small(
    "Done",
    "Share of the videos that are finished; if it does not move, see what the command says.",
    f"({_videos('done')} + {_videos('failed')}) / {_videos('total')}",
    "percentunit",
)
FAILED = small(
    "Failed to run",
    "They count as missed; the results name each and say why, and `--resume` tries them again.",
    _videos("failed"),
    "none",
    ((None, "green"), (1.0, "red")),
)
WSS = small(
    "WSS by issued",
    "The running score of the videos so far; compare it only with runs over the same videos.",
    f"max({of('replay_wss', time='issued')})",
    "percent",
)
HDR = small(
    "HDR",
    "Share of the videos with a warning at any time, also a useless one: read it beside WSS.",
    f"max({of('replay_hdr')})",
    "percent",
)
EWP = small(
    "EWP",
    "Share of the warnings between onset and impact; low beside a high HDR: warnings out of time.",
    f"max({of('replay_ewp')})",
    "percent",
)
FALSE_STOPS = small(
    "False stops an hour",
    "Danger halts on safe material in an hour of it, as the report has it; of few hours it says"
    " little, and without safe material nothing.",
    f"sum({of('replay_false_stops_total')}) / ({_SAFE_HOURS})",
)
WATCHED = small("Hours watched", "Media time of all material, up to the halt.", _HOURS, "h")
LATENCY = small(
    "Warning latency, 95 %",
    "From the capture of the frame that caused a warning to its decision; only the pace `realtime`"
    " says how fast a guard is.",
    f"histogram_quantile(0.95, sum by (le) ({of('replay_warning_latency_seconds_bucket')}))",
    "s",
)

PHASES = Tile(
    title="Videos by phase of their warning, as issued",
    says="`premature` and `missed` score nothing: many of the one ask for a calmer FastBrain, many"
    " of the other for a keener one.",
    queries=(Query(f"sum by (phase) ({of('replay_results_total')})", "{{phase}}", now=True),),
    width=8,
    unit="none",
    limits=_PLAIN,
)
SCORES = Tile(
    title="WSS as the run goes on, by when the warning counts",
    says="What lies between `trigger` and `issued` is lost to latency, between `issued` and"
    " `stopped` to the robot's braking.",
    queries=(Query(of("replay_wss"), "{{time}}"),),
    width=8,
    unit="percent",
)
SPREAD = Tile(
    title="Warnings by seconds from capture to decision",
    says="Warnings beyond the review's deadline come from a SlowBrain too slow to be of use.",
    queries=(
        Query(
            f"sum by (le) ({of('replay_warning_latency_seconds_bucket')})",
            "{{le}}",
            now=True,
            buckets=True,
        ),
    ),
    width=8,
    unit="none",
    limits=_PLAIN,
)

STAGES = Tile(
    title="Stages of the warnings, 95th percentile so far",
    says="The stage that takes the time is the one to work on.",
    queries=(
        Query(
            "histogram_quantile(0.95, sum by (le, stage)"
            f" ({of('replay_stage_duration_seconds_bucket')}))",
            "{{stage}}",
        ),
    ),
    width=8,
)
VERDICTS = Tile(
    title="Verdicts by light",
    says="Where YELLOW is most of it, the SlowBrain is asked about everything.",
    queries=(
        Query(
            f"sum by (light) (rate({of('replay_verdicts_total')}[$__rate_interval]))", "{{light}}"
        ),
    ),
    width=8,
    unit="ops",
)
FAULTS = Tile(
    title="Fault halts by cause",
    says="A video in which the guard was blind or broken says nothing of its brains: mend the cause"
    " and run it again.",
    queries=(Query(f"sum by (cause) ({of('replay_fault_halts_total')})", "{{cause}}", now=True),),
    width=8,
    unit="none",
    limits=_PLAIN,
)


def board() -> Board:
    """All of it."""
    made = Board(
        "hdguard-campaign",
        "Replay campaign",
        "How far a replay of a dataset is, and how good it is so far.",
    )
    made.lasts("1h", "10s")
    made.choice("job", "replay_videos")
    made.choice("instance", "replay_videos")
    made.row(
        "So far",
        *(number(DONE), number(FAILED), number(WSS), number(HDR), number(EWP)),
        *(number(FALSE_STOPS), number(WATCHED), number(LATENCY)),
    )
    made.row("Warnings", bars(PHASES), chart(SCORES), bars(SPREAD))
    made.row("Time and trouble", chart(STAGES), chart(VERDICTS), bars(FAULTS))
    return made

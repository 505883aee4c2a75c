"""The command that calibrates a FastBrain on recorded runs."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from hdguard.brains.calibration import write_calibration
from hdguard.cli_errors import INTERRUPTED, errors, say_error
from hdguard.core.policy import PRESETS
from hdguard.replay.candidates import Bench
from hdguard.replay.cases import Recording, load_recording
from hdguard.replay.folder import FolderError
from hdguard.replay.report import make_console
from hdguard.replay.results import write_atomic
from hdguard.replay.tuning import Limits, Method, Tuning
from hdguard.replay.tuning import tune as tune_on
from hdguard.replay.tuning_report import fitted_on, policy_lines, print_tuning, warnings

TUNE_EXAMPLES = (
    "Examples:\n\n  hdguard tune runs/recorded --labels HomeSafe-Bench/\n\n"
    "  hdguard tune a.json b.json --labels HomeSafe-Bench/ --safe kitchen/ --max-premature 10 "
    "--max-false-stops 2 --out calibration.json --workers 2\n\n"
    "  hdguard tune trace.json --labels anno_truth.json --folds 3"
)


def tune(  # noqa: PLR0913, PLR0917 - one parameter per option
    traces: Annotated[list[Path], typer.Argument(help="Traces with scores, or folders of runs.")],
    labels: Annotated[Path, typer.Option(help="The dataset's folder, or a truth file.")],
    safe: Annotated[
        list[Path] | None,
        typer.Option(help="Folder of safe material; repeatable.", metavar="DIR"),
    ] = None,
    fast: Annotated[str, typer.Option(help="FastBrain, where traces have several.")] = "",
    slow: Annotated[str, typer.Option(help="SlowBrain, where traces have several.")] = "",
    policy: Annotated[Literal["sidecar", "paper"], typer.Option()] = "sidecar",
    adaptive: Annotated[
        bool, typer.Option(help="1 frame a second in GREEN, else always 5.")
    ] = True,
    deadline: Annotated[
        float | None, typer.Option(min=0.001, help="Seconds for a FastBrain's answer.")
    ] = None,
    by: Annotated[
        Literal["trigger", "issued", "stopped"],
        typer.Option(help="The time of a warning that is scored."),
    ] = "issued",
    max_premature: Annotated[
        float, typer.Option(min=0, max=100, help="Percent of the annotated videos.")
    ] = 20.0,
    max_false_stops: Annotated[
        float | None, typer.Option(min=0, help="Per hour of safe material; default: any.")
    ] = None,
    folds: Annotated[
        int | None, typer.Option(min=2, help="Default: 5. As many as videos: one at a time.")
    ] = None,
    bias: Annotated[bool, typer.Option(help="Fit a bias per label too.")] = False,
    workers: Annotated[int, typer.Option(min=1, help="Processes.")] = 1,
    json: Annotated[
        Path | None, typer.Option(help="Write all figures there.", metavar="FILE")
    ] = None,
    out: Annotated[Path, typer.Option(help="Write the calibration there.", metavar="FILE")] = Path(
        "calibration.json"
    ),
    force: Annotated[bool, typer.Option(help="Overwrite --out.")] = False,
) -> None:
    """Fit temperature, thresholds and policy settings; score them on held-out videos."""
    with errors():
        if out.exists() and not force:
            msg = f"{out}: is there already; give --force or another --out"
            raise FolderError(msg)
        recording = load_recording(traces, labels, safe=safe or (), fast=fast, slow=slow)
        preset = PRESETS[policy]
        method = Method(
            Bench(preset, adaptive, deadline),
            Limits(max_premature, max_false_stops),
            by,
            folds,
            with_bias=bias,
            workers=workers,
        )
        try:
            with _progress(len(recording.cases)) as done:
                found = tune_on(recording, method, done)
        except KeyboardInterrupt:
            say_error("interrupted; nothing was written")
            raise typer.Exit(INTERRUPTED) from None
        console = make_console()
        print_tuning(console, recording, found)
        _write(out, recording, found)
        if json is not None:
            write_atomic(json, _as_json(recording, found))
    typer.echo(f"\n{policy_lines(preset, found.asked.chosen)}\ncalibration: {out}")


def _write(out: Path, recording: Recording, found: Tuning) -> None:
    """The calibration, whole or not at all."""
    calibration = msgspec.structs.replace(
        found.asked.chosen.choice.calibration(),
        fingerprint=recording.fingerprint,
        fitted_on=fitted_on(recording, found),
    )
    part = out.with_name(f".{out.name}.part")
    try:
        write_calibration(part, calibration)
        part.replace(out)
    finally:
        part.unlink(missing_ok=True)


def _as_json(recording: Recording, found: Tuning) -> bytes:
    value: dict[str, Any] = {
        "brain": recording.brain,
        "slow": recording.slow,
        "fingerprint": recording.fingerprint,
        "videos": [case.video for case in recording.cases],
        "left_out": recording.left_out,
        "notes": warnings(recording, found),
        "tuning": found,
    }
    return msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n"


@contextmanager
def _progress(total: int) -> Iterator[Callable[[str], None]]:
    """A bar on a terminal; one line per finished video in a log."""
    console = Console(stderr=True, highlight=False, markup=False)
    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    bar = Progress(*columns, TextColumn("{task.description}"), console=console)
    task = bar.add_task("", total=total)

    def done(video: str) -> None:
        bar.update(task, advance=1, description=video)
        if not console.is_terminal:
            console.print(f"{bar.tasks[0].completed:.0f}/{total} {video}")

    if console.is_terminal:
        with bar:
            yield done
    else:
        yield done

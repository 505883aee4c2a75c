"""The commands. Each does one thing, says what went wrong and what to do, and sets its exit code.

0 all is well · 1 it ran, and something in it failed · 2 wrong usage · 65 the data are wrong
(dataset, annotations, journal, trace), or a brain cannot be loaded · 78 the configuration is wrong
· 130 interrupted.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import msgspec
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from hdguard import (
    __version__,
    app,
    cli_doctor,
    cli_explain,
    cli_faults,
    cli_live,
    cli_report,
    cli_robot,
    cli_tune,
)
from hdguard.cli_dashboards import dashboards
from hdguard.cli_errors import INTERRUPTED, errors, new_folder, say_error
from hdguard.cli_incidents import incidents
from hdguard.cli_models import models
from hdguard.config import (
    ABSENT,
    Config,
    ConfigError,
    FastConfig,
    SlowConfig,
    load_config,
    shown,
)
from hdguard.core.policy import PRESETS
from hdguard.replay.campaign import Done
from hdguard.replay.check import check_dataset, render_check
from hdguard.replay.dataset import Entry, load_dataset, load_truth
from hdguard.replay.folder import FolderError, RunFolder
from hdguard.replay.predictions import load_predictions, score_predictions
from hdguard.replay.problems import DatasetError
from hdguard.replay.report import make_console, print_comparison, print_predictions, print_run
from hdguard.replay.results import VideoResult, read_results
from hdguard.seating import FAST_BRAINS, SLOW_BRAINS, Pace, argument_of, with_brains
from hdguard.workers.inline import Cost

if TYPE_CHECKING:
    from hdguard.replay.campaign_metrics import CampaignMetrics

cli = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Watches a household robot through its cameras and stops it before it does harm.",
)
dataset = typer.Typer(no_args_is_help=True, help="Look at a dataset without running anything.")
cli.add_typer(dataset, name="dataset")
cli.add_typer(models, name="models")
cli.add_typer(dashboards, name="dashboards")
cli.add_typer(incidents, name="incidents")

Preset = Literal["sidecar", "paper"]
assert set(get_args(Preset)) == set(PRESETS)

Truth = Annotated[
    Path | None, typer.Option(help="The truth file, where several disagree.", metavar="FILE")
]
ConfigFile = Annotated[Path | None, typer.Option(help="Configuration (TOML).", metavar="FILE")]


cli.command(epilog="Examples:\n\n  hdguard demo\n\n  hdguard demo --keep")(cli_robot.demo)
cli.command(epilog=cli_tune.TUNE_EXAMPLES)(cli_tune.tune)
cli.command(epilog=cli_report.REPORT_EXAMPLES)(cli_report.report)
cli.command(epilog=cli_live.RUN_EXAMPLES)(cli_live.run)
cli.command(epilog=cli_live.RESET_EXAMPLES)(cli_live.reset)
cli.command(epilog=cli_live.HALT_EXAMPLE)(cli_live.halt)
cli.command(epilog=cli_doctor.DOCTOR_EXAMPLES)(cli_doctor.doctor)
cli.command(epilog=cli_explain.EXPLAIN_EXAMPLES)(cli_explain.explain)
cli.command(epilog=cli_faults.FAULTS_EXAMPLES)(cli_faults.faults)
cli.command(epilog=cli_robot.ROBOT_EXAMPLES)(cli_robot.robot)
cli.command(epilog="Examples:\n\n  hdguard schema\n\n  hdguard schema halt")(cli_robot.schema)


def main() -> None:
    """Entry point of the `hdguard` command."""
    cli()


@cli.command(
    epilog="Examples:\n\n"
    "  hdguard replay data/\n\n"
    "  hdguard replay data/ --fast trace:t.json --slow trace:t.json --pace virtual --workers 2\n\n"
    "  hdguard replay data/ --policy paper --pace virtual --cost none --drain 0 --fast trace:t.json"
    "\n\n"
    "  hdguard replay data/ --fast transformers:qwen3-vl-4b --slow openai:http://127.0.0.1:8001/v1"
    "\n\n"
    "  hdguard replay data/ --config hdguard.toml --out runs/night --resume"
)
def replay(  # noqa: PLR0913, PLR0917 - one parameter per option
    dataset: Annotated[Path, typer.Argument(help="Folder with anno_truth.json and videos.")],
    fast: Annotated[
        list[str] | None, typer.Option(help="FastBrain, as NAME or NAME:PATH; repeatable.")
    ] = None,
    slow: Annotated[str | None, typer.Option(help="SlowBrain, as NAME or NAME:PATH.")] = None,
    config: ConfigFile = None,
    profile: Annotated[
        str | None, typer.Option(help="Brains and deadlines; `hdguard models` lists them.")
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(help="For models that name none: cuda:N, a GPU's UUID, or cpu."),
    ] = None,
    policy: Annotated[Preset | None, typer.Option(help="Default: the configuration's.")] = None,
    pace: Annotated[
        Pace, typer.Option(help="Only realtime gives latencies that may be quoted.")
    ] = "realtime",
    cost: Annotated[
        Cost | None, typer.Option(help="What a brain costs in the virtual pace.")
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Processes; needs --pace virtual.")] = 1,
    drain: Annotated[
        float | None,
        typer.Option(min=0, help="Seconds that open reviews are awaited; 0 drops them."),
    ] = None,
    stop_time: Annotated[
        float | None, typer.Option(min=0, help="Seconds from a halt to standstill.")
    ] = None,
    truth: Truth = None,
    safe: Annotated[
        list[Path] | None,
        typer.Option(help="Folder of safe material; repeatable.", metavar="DIR"),
    ] = None,
    unlisted: Annotated[
        Literal["skip", "safe"], typer.Option(help="What videos in no truth file are.")
    ] = "skip",
    strict: Annotated[bool, typer.Option(help="Any wrong annotation ends the run.")] = False,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first so many.")] = None,
    out: Annotated[Path | None, typer.Option(help="Default: runs/<time>.", metavar="DIR")] = None,
    resume: Annotated[bool, typer.Option(help="Go on with the run in --out.")] = False,
    record: Annotated[
        bool, typer.Option("--incidents", help="Record the seconds around every halt.")
    ] = False,
    metrics_port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Serve the run's numbers to Prometheus; 0: any port."),
    ] = None,
    metrics_host: Annotated[
        str, typer.Option(help="Address that --metrics-port listens on.")
    ] = "127.0.0.1",
) -> None:
    """Replay a dataset through the whole pipeline, and score every warning."""
    with errors(), ExitStack() as stack:
        if resume and out is None:
            msg = "--resume: say which run with --out DIR"
            raise FolderError(msg)
        chosen = _configured(config, fast or [], slow, policy, stop_time)
        if profile is not None:
            chosen = replace(chosen, profile=profile)
        settings = with_brains(chosen, device)
        plan = app.ReplayPlan(settings, pace, cost, drain, record)
        app.check_brains(plan)
        app.check_workers(plan, workers)
        found = load_dataset(
            dataset, truth=truth, safe=safe or (), unlisted=unlisted, strict=strict
        )
        entries = [*found.entries][:limit]
        if not entries:
            msg = f"{dataset}: nothing to replay; `hdguard dataset check` says why"
            raise DatasetError(msg)
        metrics = None
        if metrics_port is not None:
            metrics = stack.enter_context(_metrics(metrics_host, metrics_port))
        folder = RunFolder(out or new_folder())
        header = {**plan.header, "dataset": str(dataset.resolve())}
        folder.prepare(header, resume=resume)
        left_out = [*found.left_out]
        if len(entries) < len(found.entries):
            left_out.append(f"{len(found.entries) - len(entries)} videos: --limit {limit}")
        try:
            code = _replay(plan, entries, folder, workers, metrics)
        finally:  # also where a defect of ours ends the run: what is finished is not lost
            results = folder.finish(entries, header, left_out)
        app.save_trace(folder, entries)
    print_run(make_console(), results)
    typer.echo(f"\nresults: {folder.path}")
    if code == INTERRUPTED:
        typer.echo(f"interrupted; go on with: hdguard replay ... --out {folder.path} --resume")
    raise typer.Exit(code or (1 if results.summary.failed else 0))


@contextmanager
def _metrics(host: str, port: int) -> Iterator["CampaignMetrics"]:
    """The run's numbers, for Prometheus until the run ends."""
    from hdguard.replay import campaign_metrics  # noqa: PLC0415 - no other command needs its library

    metrics = campaign_metrics.CampaignMetrics()
    with campaign_metrics.serving(metrics, host, port) as address:
        typer.echo(f"metrics: {address}", err=True)
        yield metrics


def _replay(
    plan: app.ReplayPlan,
    entries: Sequence[Entry],
    folder: RunFolder,
    workers: int,
    metrics: "CampaignMetrics | None",
) -> int:
    """Run what is not finished yet and show how far it is; returns the exit code so far."""
    saved = [(entry, folder.load(entry)) for entry in entries]
    # A video that failed is tried again: the disk may have been full, the broker gone.
    todo = [entry for entry, video in saved if video is None or video.failed is not None]
    if metrics is not None:
        metrics.expect(len(entries))
        for _, video in saved:
            if video is not None and video.failed is None:
                metrics.finished(video)
    with _progress(len(entries), len(entries) - len(todo)) as done:

        def finished(video: VideoResult) -> None:
            done(video)
            if metrics is not None:
                metrics.finished(video)

        try:
            app.replay(plan, todo, folder, finished, workers=workers)
        except KeyboardInterrupt:
            return INTERRUPTED
    return 0


@contextmanager
def _progress(total: int, before: int) -> Iterator[Done]:
    """A bar on a terminal; one line per finished video in a log."""
    console = Console(stderr=True, highlight=False, markup=False)
    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    bar = Progress(*columns, TextColumn("{task.description}"), console=console)
    task = bar.add_task("", total=total, completed=before)

    def done(video: VideoResult) -> None:
        bar.update(task, advance=1, description=video.video)
        if not console.is_terminal:
            console.print(f"{bar.tasks[0].completed:.0f}/{total} {video.video}")

    if console.is_terminal:
        with bar:
            yield done
    else:
        yield done


def _configured(
    path: Path | None,
    fast: list[str],
    slow: str | None,
    policy: str | None,
    stop_time: float | None,
) -> Config:
    """The configuration file, with what the options change in it."""
    config = load_config(path) if path is not None else Config()
    if policy is not None:
        config = replace(config, policy=replace(config.policy, preset=policy))  # type: ignore[arg-type]
    if fast:
        config = replace(
            config, fast=tuple(FastConfig(*_named(FAST_BRAINS, each)) for each in fast)
        )
    if slow is not None:
        config = replace(config, slow=SlowConfig(*_named(SLOW_BRAINS, slow)))
    if stop_time is not None:
        if not math.isfinite(stop_time):
            msg = f"--stop-time {stop_time}: must be a number of seconds"
            raise ConfigError(msg)
        config = replace(config, robot=replace(config.robot, stop_time=stop_time))
    return config


def _named(table: dict[str, str], option: str) -> tuple[str, dict[str, Any]]:
    """A brain's name, and its settings with what stands behind the colon."""
    name, _, value = option.partition(":")
    return name, {argument_of(table, name): value} if value else {}


def _write_json(path: Path, value: object) -> None:
    path.write_bytes(msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n")


@cli.command(
    epilog="Example:\n\n  hdguard score predictions.json --truth anno_truth.json --json scores.json"
)
def score(
    predictions: Annotated[
        Path, typer.Argument(help='JSON: {video: {"status": "red"|..., "timestamp": s|null}}.')
    ],
    truth: Annotated[Path, typer.Option(help="The truth file.", metavar="FILE")],
    json: Annotated[
        Path | None, typer.Option(help="Write the scores there too.", metavar="FILE")
    ] = None,
) -> None:
    """Score anyone's predictions; nothing is run."""
    with errors():
        result = score_predictions(load_predictions(predictions), load_truth(truth))
        print_predictions(make_console(), result)
        if json is not None:
            _write_json(json, result)
    raise typer.Exit(1 if result.problems else 0)


@cli.command(epilog="Example:\n\n  hdguard compare runs/reflex runs/trace")
def compare(
    runs: Annotated[list[Path], typer.Argument(help="Folders of runs, or their results.json.")],
) -> None:
    """Set runs side by side; latency also over the videos on which every one of them warned."""
    with errors():
        results = {str(path): read_results(path) for path in runs}
        print_comparison(make_console(), results)


@dataset.command(epilog="Example:\n\n  hdguard dataset check HomeSafe-Bench/")
def check(
    folder: Annotated[Path, typer.Argument(help="Folder with anno_truth.json and videos.")],
    truth: Truth = None,
) -> None:
    """Count a dataset by label beside the published counts, and list all that is wrong with it."""
    with errors():
        report = check_dataset(load_dataset(folder, truth=truth))
    make_console().print(render_check(report), soft_wrap=True)
    raise typer.Exit(0 if report.ok else 1)


@cli.command(name="check-config", epilog="Example:\n\n  hdguard check-config hdguard.toml")
def check_config(
    file: Annotated[Path, typer.Argument(help="Configuration (TOML).")],
) -> None:
    """Check a configuration and print what it means in full; exit 78 if it is wrong."""
    with errors():
        config = with_brains(load_config(file))
        plan = app.ReplayPlan(config)
        app.check_brains(plan)
        for key, digest in plan.seating.digests.items():
            if digest == ABSENT:
                say_error(f"{file}: {key}: there is no such file (yet)")
    typer.echo(msgspec.json.format(msgspec.json.encode(shown(config)), indent=2).decode())


@cli.command(epilog="Example:\n\n  hdguard version")
def version() -> None:
    """Print the version."""
    typer.echo(__version__)

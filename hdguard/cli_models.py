"""The commands around models: what there is and fits, and fetching one."""

import importlib
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from hdguard.brains.catalogue import MODELS, ModelEntry, models_root
from hdguard.cli_errors import INTERRUPTED, errors, say_error
from hdguard.config import ConfigError
from hdguard.core.policy import SIDECAR, BrainPlan, Policy
from hdguard.fetching import check_request, check_space, fetch, finished
from hdguard.hub import FetchError, FetchPlan, Hub
from hdguard.machine import look_at_machine
from hdguard.models_report import Row, model_rows, print_report, profile_rows
from hdguard.profiles import PROFILES, Robot, check_latency
from hdguard.replay.report import make_console

models = typer.Typer(
    invoke_without_command=True,
    help="Show which models there are, what they need, and what each profile allows.",
    epilog="Examples:\n\n  hdguard models\n\n  hdguard models --distance 2 --json\n\n"
    "  hdguard models --measure qwen3-vl-2b --device cuda:0",
)

MEASURED = "hdguard.brains.transformers_fast:TransformersFastBrain"


@models.callback()
def show(  # noqa: PLR0913, PLR0917 - one parameter per option
    context: typer.Context,
    distance: Annotated[float, typer.Option(help="Free distance, metres.")] = 1.0,
    braking: Annotated[float, typer.Option(help="The robot's deceleration, m/s^2.")] = 1.0,
    actuation: Annotated[float, typer.Option(help="From halt to brakes, seconds.")] = 0.1,
    python: Annotated[
        str, typer.Option(help="Look at another environment's packages.", metavar="FILE")
    ] = "",
    measure: Annotated[
        str, typer.Option(help="Load this model as FastBrain and measure it.", metavar="NAME")
    ] = "",
    device: Annotated[str, typer.Option(help="Where to measure.")] = "cuda:0",
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show models and profiles."""
    if context.invoked_subcommand is not None:
        return
    with errors():
        try:
            robot = Robot(distance, braking, actuation)
        except ValueError as error:
            raise ConfigError(str(error)) from error
        machine = look_at_machine(python)
        report = {"models": model_rows(machine), "profiles": profile_rows(robot)}
        if measure:
            report["measured"] = [_measured(measure, device)]
    if json:
        typer.echo(msgspec.json.format(msgspec.json.encode(report), indent=2).decode())
        return
    print_report(make_console(), report, machine, robot)


def _measured(name: str, device: str) -> Row:
    """Load the model here and say in which profiles it would keep FastBrain's deadline."""
    module, _, kind = MEASURED.partition(":")
    brain = getattr(importlib.import_module(module), kind)
    try:
        settings = brain.Settings(path=name, device=device)
    except ValueError as error:
        raise ConfigError(str(error)) from error
    p99 = brain(settings).warm_p99
    verdicts = {
        profile.name: _keeps(replace(SIDECAR, fast_deadline=profile.fast_deadline), name, p99)
        for profile in PROFILES.values()
        if profile.has_model
    }
    return {"model": name, "device": device, "p99": p99, "profiles": verdicts}


def _keeps(policy: Policy, name: str, p99: float) -> str:
    """What the load check says; empty if it is content."""
    try:
        check_latency(replace(policy, brains=(BrainPlan(name),)), {name: p99})
    except ConfigError as error:
        return str(error)
    return ""


@models.command(
    name="fetch",
    epilog="Examples:\n\n  hdguard models fetch qwen3-vl-2b\n\n"
    "  hdguard models fetch minicpm-o-4.5 --allow-remote-code --revision COMMIT",
)
def fetch_model(
    name: Annotated[str, typer.Argument(help="A model, as `hdguard models` names it.")],
    revision: Annotated[
        str | None,
        typer.Option(help="Branch, tag or commit; default: what we have run, or the newest."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    directory: Annotated[
        Path | None, typer.Option("--dir", help="Put it into DIR/NAME.", metavar="DIR")
    ] = None,
    allow_remote_code: Annotated[
        bool, typer.Option("--allow-remote-code", help="Fetch the code it comes with, too.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Replace or repair what is there.")
    ] = False,
) -> None:
    """Fetch a model at one exact commit; afterwards nothing needs the network."""
    with errors():
        if name not in MODELS:
            msg = f"no model is called {name!r}; there are {', '.join(MODELS)}"
            raise ConfigError(msg)
        entry = MODELS[name]
        check_request(entry, revision, allow_remote_code=allow_remote_code)
        folder = (directory or models_root()) / name
        try:
            _fetch(entry, revision, folder, force=force, yes=yes)
        except FetchError as error:
            say_error(str(error))
            raise typer.Exit(1) from error
        except KeyboardInterrupt:
            say_error("interrupted; the same command again goes on where this one stopped")
            raise typer.Exit(INTERRUPTED) from None
    if directory is not None:
        typer.echo(f'settings: path = "{folder.absolute()}"')


def _fetch(
    entry: ModelEntry, revision: str | None, folder: Path, *, force: bool, yes: bool
) -> None:
    hub = Hub()
    plan = hub.look_up(entry, revision or entry.revision)
    there = finished(plan, folder, force=force)
    if there is not None:
        typer.echo(f"{entry.name}: {folder} has commit {there.revision} already")
        return
    _describe(plan, folder)
    check_space(plan, folder)
    if not yes:
        typer.confirm("fetch it?", abort=True)
    fetch(hub, plan, folder, typer.echo)
    typer.echo(f"{entry.name}: {folder}, commit {plan.revision}")


def _describe(plan: FetchPlan, folder: Path) -> None:
    """What is to be known before the download."""
    entry = plan.entry
    typer.echo(f"{entry.name}: {entry.repo} at commit {plan.revision}")
    differs = "" if plan.licence == entry.licence else f" (was {entry.licence} when listed here)"
    typer.echo(f"licence: {plan.licence}{differs}")
    typer.echo(f"size: {plan.size / 1e9:.2f} GB in {len(plan.files)} files, into {folder}")
    if code := [file.path for file in plan.files if file.path.endswith(".py")]:
        typer.echo(f"code that will run when it is loaded: {', '.join(code)}")

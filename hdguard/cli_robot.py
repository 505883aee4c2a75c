"""The commands around the robot: the demo, a demo robot, and the wire's schema."""

import asyncio
import itertools
import shlex
from collections.abc import Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console

from hdguard import app
from hdguard.actuators.connection import MqttEndpoint
from hdguard.actuators.mqtt import MqttSettings
from hdguard.actuators.wire import schemas
from hdguard.cli_errors import INTERRUPTED, errors, new_folder, say_error
from hdguard.config import Config, ConfigError, load_config
from hdguard.core.types import Speed
from hdguard.demo_robot import be_robot
from hdguard.live import LivePlan
from hdguard.past import claimed
from hdguard.played_guard import CheckError
from hdguard.replay.dataset import Entry, load_dataset
from hdguard.replay.folder import RunFolder
from hdguard.replay.live import LiveTimeline
from hdguard.replay.report import make_console, print_run
from hdguard.robot import RobotSettings
from hdguard.robot_check import RobotCheck, Row
from hdguard.seating import with_brains

ROBOT_EXAMPLES = (
    "Examples:\n\n  hdguard robot --host 192.0.2.7 --robot rosie\n\n"
    "  hdguard robot --port 18830 --username robot --password-file robot.password\n\n"
    "  hdguard robot --check --config hdguard.toml"
)


def demo(
    keep: Annotated[bool, typer.Option(help="Go on, clip after clip, until Ctrl-C.")] = False,
    out: Annotated[Path | None, typer.Option(help="Default: runs/<time>.", metavar="DIR")] = None,
    record: Annotated[
        bool,
        typer.Option("--incidents/--no-incidents", help="Record the seconds around every halt."),
    ] = True,
    page: Annotated[bool, typer.Option(help="Serve the status page.")] = True,
    port: Annotated[
        int | None,
        typer.Option(help="The page's. Default: 8090 if it is free.", min=0, max=65535),
    ] = None,
) -> None:
    """Watch the bundled clips in real time: verdicts, halts, acknowledgements; then the scores.

    A page shows the same in a browser; its address comes first.
    """
    console = make_console()
    with errors():
        plan = app.ReplayPlan(with_brains(Config()), incidents=record)
        entries = load_dataset(app.EXAMPLES).entries
        folder = RunFolder(out or new_folder())
        folder.prepare(plan.header, resume=False)
        shown = itertools.cycle(entries) if keep else entries
        opened = _page(console, entries, port) if page else None
        try:
            app.demonstrate(plan, shown, folder, partial(_timeline, console), opened)
        except KeyboardInterrupt:
            console.print("\ninterrupted")
            if not keep:  # with --keep, Ctrl-C is the way to end
                raise typer.Exit(INTERRUPTED) from None
        results = folder.finish(entries, plan.header, ())
    print_run(console, results)
    console.print(f"\nresults: {folder.path}")
    _say_incidents(console, folder.incidents)
    raise typer.Exit(1 if results.summary.failed else 0)


def _timeline(console: Console, entry: Entry) -> LiveTimeline:
    """A line for everything that changes in a clip."""
    about = entry.extra.get("about", "")
    return LiveTimeline(console, f"{entry.video}: {about}" if about else entry.video)


def _page(console: Console, entries: Sequence[Entry], port: int | None) -> app.OpenPage:
    # It brings a web server, which nobody else of these needs.
    from hdguard.demo_page import demo_page  # noqa: PLC0415

    def told(address: str) -> None:
        console.print(f"watch it in a browser: {address}", soft_wrap=True)

    return partial(demo_page, entries, port, told)


def _say_incidents(console: Console, folder: Path) -> None:
    """Where the halts were recorded, and the commands to look at them."""
    found = sorted(path.parent for path in folder.glob("*/incident.json"))
    if not found:
        return
    console.print(f"\nincidents, each with clip.mp4: {folder}", soft_wrap=True)
    for words in (["incidents", "list", "--dir", f"{folder}"], ["explain", f"{found[0]}"]):
        console.print(f"  hdguard {shlex.join(words)}", soft_wrap=True)


def robot(  # noqa: PLR0913, PLR0917 - one parameter per option
    host: Annotated[str, typer.Option(help="The broker.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Its port.")] = 1883,
    robot: Annotated[str, typer.Option(help="The robot's name in the topics.")] = "robot",
    boot_file: Annotated[
        Path, typer.Option(help="Counts this robot's starts.", metavar="FILE")
    ] = Path("hdguard-robot.boot"),
    username: Annotated[str | None, typer.Option(help="For the broker.")] = None,
    password_file: Annotated[
        Path | None, typer.Option(help="Holds the password.", metavar="FILE")
    ] = None,
    key_file: Annotated[
        Path | None, typer.Option(help="Holds the key shared with the guard.", metavar="FILE")
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Play the guard instead, and try a robot. It moves!")
    ] = False,
    config: Annotated[
        Path | None,
        typer.Option(help="With --check: the guard's configuration (TOML).", metavar="FILE"),
    ] = None,
    stop_time: Annotated[
        float, typer.Option(help="With --check: seconds that it may brake.", min=0)
    ] = 1.0,
) -> None:
    """Be a demo robot: it moves while a guard's permits let it, and brakes for halts."""
    if check:
        with errors():
            try:
                given = MqttEndpoint(
                    host=host,
                    port=port,
                    robot=robot,
                    username=username,
                    password=read_secret(password_file),
                    robot_key=read_secret(key_file),
                )
            except ValueError as error:
                raise ConfigError(str(error)) from error
            raise typer.Exit(check_robot(given, config, stop_time))
    with errors():
        try:
            settings = RobotSettings(
                host=host,
                port=port,
                robot=robot,
                boot_file=str(boot_file),
                username=username,
                password=read_secret(password_file),
                robot_key=read_secret(key_file),
            )
            topics = f"hdguard/{robot}/ at {host}:{port}"
            typer.echo(f"robot {robot}: waits for permits on {topics}; Ctrl-C ends it")
            be_robot(_say_speed, settings)
        except (ValueError, OSError) as error:
            raise ConfigError(str(error)) from error


def check_robot(endpoint: MqttEndpoint, config: Path | None, stop_time: float) -> int:
    """Try the robot and print each row; returns the exit code.

    Raises:
        ConfigError: the configuration or its state's folder cannot be used, or a guard runs.
    """
    typer.echo("the robot will move: keep clear of it, and somebody at its stop")
    try:
        if config is None:
            rows = asyncio.run(_check(endpoint, None, stop_time))
        else:
            plan = LivePlan(load_config(config))
            endpoint = same_broker(plan.config.mqtt)
            with claimed(plan) as life:  # so that the guard's next boot is above ours
                rows = asyncio.run(_check(endpoint, life.boot, stop_time))
    except CheckError as error:
        say_error(str(error))
        return 1
    failed = sum(not row.ok for row in rows)
    typer.echo(f"{len(rows) - failed} of {len(rows)} are as they should be")
    return 1 if failed else 0


def same_broker(settings: MqttSettings) -> MqttEndpoint:
    """Where the guard's broker is, for a client that is not the guard."""
    known = {f.name: getattr(settings, f.name) for f in fields(MqttEndpoint)}
    return MqttEndpoint(**{**known, "client_id": None})


async def _check(endpoint: MqttEndpoint, boot: int | None, stop_time: float) -> tuple[Row, ...]:
    return await RobotCheck(endpoint, boot, stop_time, _say_row).run()


def _say_row(row: Row) -> None:
    measured = "" if row.took is None else f"  {row.took:.3f} s"
    limit = "" if row.limit is None else f" (at most {row.limit:g} s)"
    seen = f"  {row.words}" if row.words else ""
    typer.echo(f"{'ok    ' if row.ok else 'NOT ok'}  {row.what}{measured}{limit}{seen}")


def _say_speed(speed: Speed, why: str) -> None:
    typer.echo(f"may move: {speed.name.lower()}{f' ({why})' if why else ''}")


def read_secret(path: Path | None) -> str | None:
    """What the file holds, without the white space around it; None without a file.

    Raises:
        ConfigError: it cannot be read.
    """
    if path is None:
        return None
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        msg = f"{path}: cannot be read: {error}"
        raise ConfigError(msg) from error


def schema(
    topic: Annotated[str | None, typer.Argument(help="One topic; default: all.")] = None,
) -> None:
    """Print the JSON Schema of every MQTT topic, made from the code."""
    found = schemas()
    if topic is not None and topic not in found:
        say_error(f"no topic is called {topic!r}; there are {', '.join(found)}")
        raise typer.Exit(2)
    shown_schemas = found if topic is None else found[topic]
    typer.echo(msgspec.json.format(msgspec.json.encode(shown_schemas), indent=2).decode())

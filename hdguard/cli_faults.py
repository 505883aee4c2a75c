"""`hdguard faults`: what a running stack really does about each fault, and how soon."""

import asyncio
import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from hdguard.cli_errors import INTERRUPTED, errors, say_error

FAULTS_EXAMPLES = (
    "Examples:\n\n  hdguard faults --repeat 1\n\n"
    "  hdguard faults --only camera-silent --only daemon-killed\n\n"
    "  hdguard faults --json faults.json"
)
WRONG_USAGE = 2


def faults(
    only: Annotated[
        list[str] | None, typer.Option(help="One fault; repeatable. Default: all.", metavar="NAME")
    ] = None,
    repeat: Annotated[int, typer.Option(min=1, help="Injections of each.")] = 10,
    json: Annotated[
        Path | None, typer.Option(help="Write the table there too.", metavar="FILE")
    ] = None,
) -> None:
    """Break a stack of its own on this machine, again and again, and time what follows.

    It starts a broker, a camera, a guard and a demo robot on loopback and ends them again. All of
    it takes about twenty minutes. A limit that is a timer's own setting may be passed by 50 ms,
    which the timer and the watching take.
    """
    # Cameras and brokers are loaded only by whoever breaks some.
    from hdguard.faults.broker import Broker  # noqa: PLC0415
    from hdguard.faults.runner import chosen, inject  # noqa: PLC0415
    from hdguard.faults.table import HEAD, line  # noqa: PLC0415

    if sys.platform != "linux":
        say_error("this needs Linux: it looks for processes in /proc and waits for them by pidfd")
        raise typer.Exit(WRONG_USAGE)
    try:
        scenarios = chosen(only or [])
    except ValueError as error:
        say_error(f"--only: {error}")
        raise typer.Exit(WRONG_USAGE) from error
    with errors():
        if json is not None:
            json.touch()  # to fail now rather than after twenty minutes
        typer.echo(f"test broker: {Broker.found()}\n\n{HEAD}")
        try:
            outcomes = asyncio.run(inject(scenarios, repeat, lambda o: typer.echo(line(o))))
        except KeyboardInterrupt:
            typer.echo("interrupted; nothing is left running")
            raise typer.Exit(INTERRUPTED) from None
        if json is not None:
            rows = msgspec.json.encode([outcome.plain() for outcome in outcomes])
            json.write_bytes(msgspec.json.format(rows, indent=1) + b"\n")
    raise typer.Exit(0 if all(outcome.ok for outcome in outcomes) else 1)

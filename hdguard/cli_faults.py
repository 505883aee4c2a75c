"""`hdguard faults`: what a running stack really does about each fault, and how soon."""

import asyncio
import signal
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from hdguard.cli_errors import INTERRUPTED, errors, say_error
from hdguard.runtime.error_groups import leaves

if TYPE_CHECKING:
    from hdguard.faults.rows import Outcome

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
    which the timer and the watching take. What this machine lacks the rights for is not run, and
    the table says so.
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
            # To fail now rather than after twenty minutes, and so that no older table is taken for
            # ours if we do not come to the end.
            json.write_bytes(b"[]\n")
        typer.echo(f"test broker: {Broker.found()}\n\n{HEAD}")
        outcomes = _finished(inject(scenarios, repeat, lambda o: typer.echo(line(o))))
        if json is not None:
            rows = msgspec.json.encode([outcome.plain() for outcome in outcomes])
            json.write_bytes(msgspec.json.format(rows, indent=1) + b"\n")
    raise typer.Exit(0 if all(outcome.ok or outcome.not_run for outcome in outcomes) else 1)


def _finished(injecting: Coroutine[Any, Any, "list[Outcome]"]) -> "list[Outcome]":
    """What it comes to; whatever ends it early, its processes are ended first.

    Raises:
        typer.Exit: it was interrupted, or cannot go on.
    """
    from hdguard.faults.rows import FaultError  # noqa: PLC0415 - with the rest of it

    async def until_told_to_end() -> "list[Outcome]":
        task = asyncio.current_task()
        assert task is not None
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) != signal.SIG_IGN:  # as nohup leaves it
                asyncio.get_running_loop().add_signal_handler(number, task.cancel)
        return await injecting

    broken: BaseException | None = None
    try:
        return asyncio.run(until_told_to_end())
    except* (KeyboardInterrupt, asyncio.CancelledError):
        typer.echo("interrupted; nothing is left running")
    except* FaultError as group:
        broken = group
    if broken is None:
        raise typer.Exit(INTERRUPTED)
    say_error(str(next(leaves(broken))))
    raise typer.Exit(1)

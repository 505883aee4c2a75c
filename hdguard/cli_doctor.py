"""`hdguard doctor`: one line for each link of the chain, and what to do about it."""

import asyncio
import logging
from pathlib import Path
from typing import Annotated

import msgspec
import typer
import uvloop
from rich.console import Console

from hdguard.cli_errors import INTERRUPTED
from hdguard.doctor.chain import diagnose
from hdguard.doctor.findings import Finding, Status

DOCTOR_EXAMPLES = (
    "Examples:\n\n  hdguard doctor --config hdguard.toml\n\n"
    "  hdguard doctor --config hdguard.toml --halt-robot\n\n"
    "  sudo -u hdguard env STATE_DIRECTORY=/var/lib/hdguard/rosie \\\n\n"
    "      hdguard doctor --config /etc/hdguard/rosie.toml --json"
)

COLOURS = {Status.OK: "green", Status.WARN: "yellow", Status.FAIL: "red"}


def doctor(
    config: Annotated[Path, typer.Option(help="Configuration (TOML).", metavar="FILE")],
    json: Annotated[bool, typer.Option("--json", help="Print JSON, at the end.")] = False,
    halt_robot: Annotated[
        bool,
        typer.Option("--halt-robot", help="Really halt the robot, and take the halt back."),
    ] = False,
) -> None:
    """Prove the chain from the cameras to the robot; exit 1 if any link fails."""
    # Retries are logged as warnings; here the finding says it once.
    logging.getLogger("hdguard").addHandler(logging.NullHandler())
    console = Console(highlight=False, markup=False, soft_wrap=True)
    found: list[Finding] = []

    def tell(finding: Finding) -> None:
        found.append(finding)
        if not json:
            _print(console, finding)

    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(diagnose(config, tell, halt_robot=halt_robot))
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    failed = sum(finding.status is Status.FAIL for finding in found)
    if json:
        report = {"ok": not failed, "findings": found}
        typer.echo(msgspec.json.format(msgspec.json.encode(report), indent=2).decode())
    else:
        warned = sum(finding.status is Status.WARN for finding in found)
        console.print(f"{len(found)} findings: {failed} fail, {warned} warn")
    raise typer.Exit(1 if failed else 0)


def _print(console: Console, finding: Finding) -> None:
    first, *more = finding.said.splitlines() or [""]
    console.print(f"{finding.status.value:5}", style=COLOURS[finding.status], end="")
    console.print(f"{finding.step:18} {first}")
    for line in more:
        console.print(f"{'':24}{line}")
    if finding.do:
        console.print(f"{'':24}-> {finding.do}")

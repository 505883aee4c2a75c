"""The commands for recorded incidents: what there is, and away with it."""

from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from hdguard.cli_errors import errors, say_error
from hdguard.config import ConfigError, load_config
from hdguard.live import LivePlan
from hdguard.observe.incidents.shelf import (
    BROKEN,
    DAY,
    PART,
    Item,
    ShelfError,
    check_name,
    closed,
    in_hand,
    items,
    remove,
)

incidents = typer.Typer(
    no_args_is_help=True, help="What was recorded around halts: list it, delete it."
)

ConfigFile = Annotated[
    Path | None, typer.Option(help="The guard's configuration (TOML).", metavar="FILE")
]
Folder = Annotated[
    Path | None, typer.Option("--dir", help="The folder itself, as RUN/incidents.", metavar="DIR")
]


STATES = {
    "broken": "no clip could be made; why.txt in its folder says why",
    "cut short": "the guard or its video ended before all seconds after the halt were recorded",
    "in progress": "it is being recorded, or its clip is being made",
    "unfinished": "the guard makes its clip in its turn, or when it starts again",
}
"""What people are told of an incident that is not complete."""


@incidents.command(
    name="list",
    epilog="Examples:\n\n  hdguard incidents list --config hdguard.toml\n\n"
    "  hdguard incidents list --dir runs/night/incidents --json",
)
def show(
    config: ConfigFile = None,
    folder: Folder = None,
    json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """List what was recorded, oldest first: of each, clip.mp4 to look at and incident.json."""
    with errors():
        where = _folder(config, folder)
        rows = [_row(item) for item in items(where)]
        for path in closed(where):
            say_error(f"{path}: you may not look into it: not listed")
    if json:
        typer.echo(msgspec.json.format(msgspec.json.encode(rows), indent=1).decode())
        return
    if not rows:
        typer.echo(f"{where}: nothing is recorded")
        return
    table: list[tuple[str, ...]] = [
        ("id", "when (UTC)", "class", "cause", "camera", "seconds", "MB", "state")
    ]
    table += [_cells(row) for row in rows]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for cells in table:
        texts = [
            cell.rjust(width) if n in {5, 6} else cell.ljust(width)
            for n, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        typer.echo("  ".join(texts).rstrip())
    typer.echo()
    for state in sorted({row["status"] for row in rows} & STATES.keys()):
        typer.echo(f"{state}: {STATES[state]}")
    typer.echo(f"the clips: {where}/ID/clip.mp4; what led to it: hdguard explain {where}/ID")


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    seconds = "" if row["seconds"] is None else f"{row['seconds']:.1f}"
    return (
        row["id"],
        row["when"][:19].replace("T", " "),
        row["class"],
        row["cause"],
        row["camera"],
        seconds,
        f"{row['bytes'] / 1e6:.1f}",
        row["status"],
    )


@incidents.command(
    epilog="Examples:\n\n  hdguard incidents delete 7-3 --config hdguard.toml\n\n"
    "  hdguard incidents delete --older-than 7 --config hdguard.toml --yes"
)
def delete(
    ids: Annotated[list[str] | None, typer.Argument(help="As the list shows them.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Everything.")] = False,
    older_than: Annotated[
        float | None, typer.Option(min=0, help="What is older.", metavar="DAYS")
    ] = None,
    config: ConfigFile = None,
    folder: Folder = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Delete what was recorded; asks first."""
    if bool(ids) + every + (older_than is not None) != 1:
        say_error("say what: ids, or --all, or --older-than DAYS")
        raise typer.Exit(2)
    with errors():
        where = _folder(config, folder)
        try:
            chosen = _chosen(items(where), ids or [], older_than)
        except ShelfError as error:
            say_error(f"{where}: {error}")
            raise typer.Exit(2) from error
        if not chosen:
            typer.echo(f"{where}: there is nothing to delete")
            return
        size = sum(item.size for item in chosen) / 1e6
        if not yes:
            names = " ".join(item.name for item in chosen)
            typer.confirm(f"{names}\ndelete these {len(chosen)} ({size:.1f} MB)?", abort=True)
        for item in chosen:
            with suppress(FileNotFoundError):  # the guard has made room meanwhile
                remove(item.path)
    typer.echo(f"deleted {len(chosen)}, {size:.1f} MB")


def _folder(config: Path | None, folder: Path | None) -> Path:
    """Where the incidents are.

    Raises:
        ConfigError: it is not said, or said twice; or the configuration is wrong.
    """
    if (config is None) is (folder is None):
        msg = "say where: --config FILE, or --dir DIR"
        raise ConfigError(msg)
    if folder is not None:
        if not folder.is_dir():
            msg = f"--dir: {folder}: is no folder"
            raise ConfigError(msg)
        return folder
    assert config is not None
    return LivePlan(load_config(config)).state_file("incidents")


def _row(item: Item) -> dict[str, Any]:
    when = datetime.fromtimestamp(item.decided, UTC).isoformat(timespec="seconds")
    row: dict[str, Any] = {
        "id": item.name.removesuffix(PART),
        "when": when,
        "class": "",
        "cause": "",
        "camera": "",
        "seconds": None,
        "bytes": item.size,
        "status": _status(item),
        "files": sorted(path.name for path in item.path.glob("*")),  # none if it is gone meanwhile
    }
    if (known := item.summary) is not None:
        clips = known.clips
        row["class"], row["cause"] = known.decision.halt_class, known.decision.cause
        row["camera"] = known.decision.source or ", ".join(clip.camera for clip in clips)
        row["seconds"] = max((clip.seconds for clip in clips), default=None)
    return row


def _status(item: Item) -> str:
    if item.path.suffix == PART:
        return "in progress" if in_hand(item.path) else "unfinished"
    if item.path.suffix == BROKEN or item.summary is None:
        return "broken"
    return "cut short" if item.summary.interrupted else "complete"


def _chosen(found: list[Item], ids: list[str], older_than: float | None) -> list[Item]:
    """What is to be deleted; never what a guard has in hand.

    What a guard left unfinished may go: one that records no longer would never finish it.

    Raises:
        ShelfError: an id is none, is not there, or is in progress.
        OSError: a folder cannot be used.
    """
    busy = {item.path for item in found if item.path.suffix == PART and in_hand(item.path)}
    known = {item.name.removesuffix(PART): item for item in found}
    found = [item for item in found if item.path not in busy]
    if older_than is not None:
        now = datetime.now(UTC).timestamp()  # noqa: TID251 - a person asks for an age
        return [item for item in found if now - item.decided > older_than * DAY]
    if not ids:
        return found
    for name in ids:
        check_name(name)
        if name not in known:
            raise ShelfError(f"{name}: there is no such incident; `hdguard incidents list`")
        if known[name].path in busy:
            raise ShelfError(f"{name}: is in progress; wait until it is complete")
    return [known[name] for name in dict.fromkeys(ids)]

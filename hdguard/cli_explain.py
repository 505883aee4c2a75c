"""The command `explain`: why the robot was halted and how long each stage took.

It reads what was written, wherever that is: a journal, the record of an incident, or the halt log
of a running or former guard.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console

from hdguard.cli_errors import errors
from hdguard.config import load_config
from hdguard.core.types import Light
from hdguard.live import LivePlan
from hdguard.observe.incidents import record
from hdguard.runtime.explain import Line, halts, timeline
from hdguard.runtime.halt_chart import chart
from hdguard.runtime.halt_log import Logged, read_halt_log
from hdguard.runtime.halt_story import HaltStory, Stamps, StoryError
from hdguard.runtime.halt_words import because, block, ending, stages
from hdguard.runtime.journal import Written, read_journal
from hdguard.runtime.one_line import one_line

EXPLAIN_EXAMPLES = (
    "Examples:\n\n  hdguard explain runs/20260101-120000/journals/230_C4_L1_D1.mp4.jsonl\n\n"
    "  hdguard explain 7-3 --config hdguard.toml --svg 7-3.svg\n\n"
    "  hdguard explain 7-3 --state-dir /var/lib/hdguard --robot rosie\n\n"
    "  hdguard explain incidents/7-3/"
)
HALT_ID = re.compile(r"\d+-\d+")

MOST_NAMED = 20
"""Ids in a message; a choice."""


@dataclass(frozen=True, slots=True)
class _Found:
    """What is to be explained.

    Attributes:
        place: where it was found.
        stories: of the halts.
        written: the journal, if the whole of one is asked for.
        remark: what could not be read.
    """

    place: str
    stories: tuple[HaltStory, ...]
    written: Written | None = None
    remark: str = ""


def explain(  # noqa: PLR0913, PLR0917 - one parameter per option
    what: Annotated[
        str, typer.Argument(help="A journal, an incident's folder or file, or the id of a halt.")
    ],
    halt_id: Annotated[
        str | None, typer.Argument(help="Only this halt of a journal.", metavar="[HALT_ID]")
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="The guard's configuration (TOML).", metavar="FILE")
    ] = None,
    state_dir: Annotated[
        Path | None, typer.Option(help="Instead: the guard's state folder.", metavar="DIR")
    ] = None,
    robot: Annotated[str | None, typer.Option(help="With --state-dir: the robot's name.")] = None,
    svg: Annotated[
        Path | None, typer.Option(help="Draw the halt there too.", metavar="FILE")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say why the robot was halted and when each stage was reached.

    Of a whole journal also what happened, stepping the guard again: exit code 1 if it decides
    otherwise today.
    """
    with errors():
        path = Path(what)
        is_id = HALT_ID.fullmatch(what) and not path.exists()
        is_incident = path.is_dir() or path.name == record.FILE
        if halt_id is not None and (is_id or is_incident):
            raise typer.BadParameter(
                f"{halt_id}: {what} is no journal; only a journal's halts are named"
            )
        if is_id:
            found = _logged(_halt_log(config, state_dir, robot), what)
        elif is_incident:
            found = _of_incident(path if path.is_dir() else path.parent)
        else:
            found = _of_journal(path, halt_id)
        if svg is not None:
            svg.write_text(chart(_only(found)), encoding="utf-8")
    lines = () if found.written is None else tuple(timeline(found.written))
    if json:
        data = msgspec.json.encode(_plain(found, lines), order="deterministic")
        typer.echo(msgspec.json.format(data, indent=2).decode())
    else:
        _print(found, lines)
    raise typer.Exit(1 if any(line.differs for line in lines) else 0)


# Where it is.


def _halt_log(config: Path | None, state_dir: Path | None, robot: str | None) -> Path:
    if state_dir is not None and robot is not None:
        return state_dir / f"{robot}.halts.jsonl"
    if config is None:
        msg = "a halt's id needs --config FILE, or --state-dir DIR with --robot NAME"
        raise typer.BadParameter(msg)
    return LivePlan(load_config(config)).state_file("halts.jsonl")


def _logged(path: Path, halt_id: str) -> _Found:
    logged = read_halt_log(path)
    stories = _named(str(path), logged.stories, halt_id)
    return _Found(f"{path}", stories, remark=_left_out(logged))


def _left_out(logged: Logged) -> str:
    if not logged.left_out:
        return ""
    return f"lines that cannot be read were left out: {logged.left_out}"


def _of_journal(path: Path, halt_id: str | None) -> _Found:
    written = read_journal(path)
    torn = "the last line is cut short and was left out: the process died writing it"
    remark = torn if written.torn else ""
    stories = halts(written)
    if halt_id is not None:
        return _Found(str(path), _named(str(path), stories, halt_id), remark=remark)
    place = f"{path}: policy {written.policy.name}, written {written.header['written']}"
    return _Found(place, stories, written, remark)


def _named(place: str, stories: Sequence[HaltStory], halt_id: str) -> tuple[HaltStory, ...]:
    found = tuple(story for story in stories if story.halt_id == halt_id)
    if not found:
        ids = list(dict.fromkeys(story.halt_id for story in stories))
        there = " ".join(ids[-MOST_NAMED:]) or "none"
        more = " (the newest)" if len(ids) > MOST_NAMED else ""
        raise StoryError(f"{place}: no halt {halt_id}; there are{more}: {there}")
    return found


class _Told(msgspec.Struct):
    """The part of an incident's record that is ours."""

    story: HaltStory | None = None


def _of_incident(folder: Path) -> _Found:
    try:
        incident = record.read_incident(folder)
        story = msgspec.json.decode((folder / record.FILE).read_bytes(), type=_Told).story
    except (record.RecordError, msgspec.MsgspecError) as error:
        raise StoryError(str(error)) from error
    remark = "" if incident.complete else "the incident is still being recorded"
    return _Found(str(folder / record.FILE), (story or _retold(folder, incident),), remark=remark)


def _retold(folder: Path, incident: record.Incident) -> HaltStory:
    """The story as far as the record's own fields tell it."""
    decision = incident.decision
    if not decision.halt_id:
        msg = f"{folder}: is about review {decision.review_id}, which led to no halt of its own"
        raise StoryError(msg)
    stamps = {name: moment.at for name, moment in incident.stamps.items()}
    plain = {
        "halt_id": decision.halt_id,
        "halt_class": decision.halt_class,
        "cause": decision.cause,
        "boot": int(decision.halt_id.partition("-")[0]),
        "source_id": decision.source,
        "brain": decision.brain,
        "ref": msgspec.to_builtins(decision.trigger),
        "light": None if decision.light is None else Light[decision.light],
        "hazard": msgspec.to_builtins(decision.hazard),
        "latched": decision.latched,
        "stamps": msgspec.to_builtins(msgspec.convert(stamps, Stamps)),
        "at": incident.wall.decided,
    }
    return msgspec.convert(plain, HaltStory)


def _only(found: _Found) -> HaltStory:
    """The halt to be drawn. What a later life says of it has less to show."""
    ids = list(dict.fromkeys(story.halt_id for story in found.stories))
    if len(ids) != 1:
        there = f"name one of its halts: {' '.join(ids)}" if ids else "there is no halt in it"
        raise typer.BadParameter(f"--svg: {there}")
    return found.stories[0]


# How it is said.


def _print(found: _Found, lines: Sequence[Line]) -> None:
    console = Console(highlight=False, markup=False, soft_wrap=True)
    console.print(found.place)
    for story in found.stories:
        console.print()
        for line in block(story):
            console.print(one_line(line))
    if lines:
        console.print("\ntime since the guard began, in seconds")
    for each in lines:
        console.print(f"{'! ' if each.differs else '  '}{each.at:8.3f} {each.text}")
    if found.remark:
        console.print(found.remark)
    if differs := sum(line.differs for line in lines):
        console.print(f"{differs} steps are decided otherwise today: policy or guard have changed")


def _plain(found: _Found, lines: Sequence[Line]) -> dict[str, Any]:
    told = [
        {
            "story": story,
            "because": because(story),
            "stages": stages(story),
            "ending": tuple(ending(story)),
        }
        for story in found.stories
    ]
    return {"from": found.place, "halts": told, "timeline": lines, "remark": found.remark}

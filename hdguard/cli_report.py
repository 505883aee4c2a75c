"""The command that turns a run into a page for people."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from hdguard.cli_errors import CONFIG_ERROR, errors, say_error

REPORT_EXAMPLES = (
    "Examples:\n\n  hdguard report runs/20260101-120000\n\n"
    "  hdguard report runs/night --out night.html --no-stills\n\n"
    "  hdguard report runs/night --dataset /mnt/HomeSafe-Bench --safe /mnt/quiet-kitchen"
)
_EXTRA = frozenset({"jinja2", "markupsafe", "matplotlib"})


def report(  # noqa: PLR0913, PLR0917 - one parameter per option
    results: Annotated[
        Path, typer.Argument(help="A run's folder, or its results.json.", metavar="RESULTS")
    ],
    out: Annotated[
        Path | None, typer.Option(help="Default: report.html beside the results.", metavar="FILE")
    ] = None,
    stills: Annotated[
        bool, typer.Option(help="Pictures at the moment of warning, from the dataset's videos.")
    ] = True,
    limit_videos: Annotated[
        int | None, typer.Option(min=0, help="Only so many videos get a section of their own.")
    ] = None,
    dataset: Annotated[
        Path | None,
        typer.Option(help="Where the videos are now. Default: as in the run.", metavar="DIR"),
    ] = None,
    truth: Annotated[
        Path | None, typer.Option(help="The truth file, where several disagree.", metavar="FILE")
    ] = None,
    safe: Annotated[
        list[Path] | None,
        typer.Option(help="Folder of safe material of the run; repeatable.", metavar="DIR"),
    ] = None,
) -> None:
    """Write one self-contained HTML page about a replay, beside the published figures."""
    try:
        from hdguard.replay.html_report.page import write_report  # noqa: PLC0415 - an extra
        from hdguard.replay.html_report.settings import ReportSettings  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _EXTRA:
            raise
        say_error(f"the report needs {error.name}: pip install 'hdguard[report]'")
        raise typer.Exit(CONFIG_ERROR) from error
    settings = ReportSettings(dataset, truth, tuple(safe or ()), stills, limit_videos)
    with errors():
        folder = results if results.is_dir() else results.parent
        page = out or folder / "report.html"
        with _progress() as done:
            size = write_report(results, page, settings, done)
    typer.echo(f"{page}: {size / 1e6:.1f} MB")


@contextmanager
def _progress() -> Iterator[Callable[[str, int, int], None]]:
    """A bar on a terminal; one line per video in a log."""
    console = Console(stderr=True, highlight=False, markup=False)
    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    bar = Progress(*columns, TextColumn("{task.description}"), console=console)
    task = bar.add_task("", total=None)

    def done(video: str, number: int, total: int) -> None:
        bar.update(task, completed=number, total=total, description=video)
        if not console.is_terminal:
            console.print(f"{number}/{total} {video}")

    if console.is_terminal:
        with bar:
            yield done
    else:
        yield done

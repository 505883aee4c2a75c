"""How every command ends: an error by blame becomes a message and an exit code."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import typer
from rich.console import Console

from hdguard.actuators.base import ActuatorError
from hdguard.brains.base import BrainError
from hdguard.config import ConfigError
from hdguard.observe.settings import HttpError
from hdguard.replay.folder import FolderError, default_folder
from hdguard.replay.problems import DatasetError
from hdguard.replay.results import ResultsError
from hdguard.runtime.halt_story import StoryError
from hdguard.runtime.journal import JournalError

DATA_ERROR, CONFIG_ERROR, INTERRUPTED = 65, 78, 130


@contextmanager
def errors() -> Iterator[None]:
    """Be the one boundary: an error by blame becomes a message and an exit code."""
    try:
        yield
    except (ConfigError, ActuatorError, HttpError) as error:
        say_error(str(error))
        raise typer.Exit(CONFIG_ERROR) from error
    except (
        DatasetError,
        ResultsError,
        FolderError,
        JournalError,
        StoryError,
        BrainError,
    ) as error:
        say_error(str(error))
        raise typer.Exit(DATA_ERROR) from error
    except OSError as error:
        say_error(f"{error.filename}: {error.strerror}" if error.filename else str(error))
        raise typer.Exit(DATA_ERROR) from error


def say_error(message: str) -> None:
    """Print a message to people, line by line."""
    console = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
    for line in message.splitlines():
        console.print(f"hdguard: {line}")


def new_folder() -> Path:
    """Name a run's folder by the time."""
    now = datetime.now(UTC)  # noqa: TID251 - a run folder's name
    return default_folder(now.strftime("%Y%m%d-%H%M%S"))

"""How bad input is reported: with file, entry and field, so that a person can go and mend it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_SHOWN = 10  # lines of an error message; the count of the rest follows


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with a data set, in the words of the person who can mend it.

    Attributes:
        file: the truth file or video concerned.
        entry: the video's name, or its place in the file where it has none.
        field: the field concerned, dotted, as `keyframes.pnr`.
        message: what is wrong.
        left_out: the entry is not run because of it.
    """

    file: str
    entry: str
    field: str
    message: str
    left_out: bool = True

    def __str__(self) -> str:
        return f"{self.file}: {self.entry}: {self.field}: {self.message}"


class DatasetError(Exception):
    """A data set or truth file cannot be used; the message names file, entry and field."""

    def __init__(self, message: str, problems: Sequence[Problem] = ()) -> None:
        shown = [str(p) for p in problems[:_SHOWN]]
        if len(problems) > _SHOWN:
            shown.append(f"... and {len(problems) - _SHOWN} more")
        super().__init__("\n  ".join([message, *shown]))
        self.problems = tuple(problems)


def read_json(path: Path) -> Any:
    """A JSON file's content; a key given twice is an error, as the first would be lost.

    Raises:
        DatasetError: unreadable or not JSON; names the file, line and column.
    """

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in pairs:
            if key in found:
                raise DatasetError(f"{path}: the key {key!r} is given twice in one object")
            found[key] = value
        return found

    try:
        return json.loads(path.read_text(encoding="utf-8-sig"), object_pairs_hook=unique)
    except OSError as error:
        raise DatasetError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise DatasetError(f"{path}: not UTF-8 text: {error.reason}") from error
    except json.JSONDecodeError as error:
        raise DatasetError(
            f"{path}: not JSON: line {error.lineno}, column {error.colno}: {error.msg}"
        ) from error

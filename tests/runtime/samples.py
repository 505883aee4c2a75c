"""One value of every event and action, with every field filled, made from the types themselves."""

import dataclasses
from collections.abc import Sequence
from enum import Enum
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from hdguard.core import actions, events

T = TypeVar("T")

EVENTS: tuple[type[events.Event], ...] = get_args(events.Event)
ACTIONS: tuple[type[actions.Action], ...] = get_args(actions.Action)


def sample(kind: type[T], salt: int = 0) -> T:
    """A value of that dataclass; another salt gives other values."""
    hints = get_type_hints(kind)
    fields = dataclasses.fields(kind)  # type: ignore[arg-type]
    values = {f.name: _value(hints[f.name], salt + n) for n, f in enumerate(fields)}
    return kind(**values)


def _value(hint: Any, salt: int) -> Any:
    if get_origin(hint) is UnionType:
        (hint,) = [each for each in get_args(hint) if each is not NoneType]
    if get_origin(hint) is tuple:
        inner = get_args(hint)
        kinds: Sequence[Any] = (inner[0], inner[0]) if inner[-1] is Ellipsis else inner
        return tuple(_value(each, salt + n) for n, each in enumerate(kinds))
    if dataclasses.is_dataclass(hint):
        return sample(hint, salt)  # type: ignore[arg-type]
    if isinstance(hint, type) and issubclass(hint, Enum):
        members = list(hint)
        return members[(salt + 1) % len(members)]
    plain = {bool: True, int: 3 + salt, float: 1.5 + salt, str: f"word-{salt} ä"}
    return plain[hint]

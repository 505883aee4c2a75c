"""HomeSafe-Bench's labels: what they are called, how often they were published, how they are read.

They stand in an entry's fields or in the video's name (`230_C4_L1_D1.mp4`); people spell the
fields differently, so the reading is liberal and says what it could not read.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeVar

T = TypeVar("T")

CATEGORIES = MappingProxyType(
    {
        "C1": "cutting and puncture",
        "C2": "blunt and crushing",
        "C3": "heat, chemistry, electric",
        "C4": "environmental damage",
    }
)
SEVERITIES = MappingProxyType(
    {
        "L1": "minor",
        "L2": "needs treatment",
        "L3": "hospital or emergency",
        "L4": "life-threatening or major property loss",
    }
)
DIFFICULTIES = MappingProxyType(
    {
        "D1": "plainly visible",
        "D2": "needs physical properties",
        "D3": "needs causal or temporal prediction",
    }
)
ROOMS = ("bedroom", "bathroom", "living room", "dining room", "study", "balcony")

MEANINGS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "category": CATEGORIES,
        "severity": SEVERITIES,
        "difficulty": DIFFICULTIES,
        "room": MappingProxyType(dict.fromkeys(ROOMS, "")),
    }
)
# The paper's counts (arXiv 2603.11975, figure 2); rooms are named only.
PUBLISHED: Mapping[str, Mapping[str, int]] = MappingProxyType(
    {
        "category": MappingProxyType({"C1": 42, "C2": 53, "C3": 60, "C4": 283}),
        "severity": MappingProxyType({"L1": 150, "L2": 139, "L3": 87, "L4": 62}),
        "difficulty": MappingProxyType({"D1": 143, "D2": 214, "D3": 81}),
    }
)
PUBLISHED_TOTAL = 438

DIMENSIONS = ("category", "severity", "difficulty", "room")
_FIELDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "category": ("category", "danger_category"),
        "severity": ("severity", "severity_level"),
        "difficulty": ("difficulty", "reasoning_difficulty"),
        "room": ("room", "scenario"),
    }
)
_IN_NAME = re.compile(r"(?<![A-Za-z0-9])(C[1-4])_(L[1-4])_(D[1-3])(?![A-Za-z0-9])")


@dataclass(frozen=True, slots=True)
class Labels:
    """One video's labels; an empty one is not known."""

    category: str = ""
    severity: str = ""
    difficulty: str = ""
    room: str = ""


@dataclass(frozen=True, slots=True)
class LabelReading:
    """What was read.

    Attributes:
        labels: a field wins over the name.
        problems: (field, message) of what could not be read or contradicts the name.
        used: the fields that became labels; the others are somebody else's.
    """

    labels: Labels
    problems: tuple[tuple[str, str], ...]
    used: frozenset[str]


def labels_in_name(name: str) -> Labels:
    """The labels in a name such as `230_C4_L1_D1.mp4`; none if it is named otherwise."""
    found = _IN_NAME.search(name)
    return Labels(*found.groups()) if found else Labels()


def read_labels(name: str, fields: Mapping[str, Any]) -> LabelReading:
    """Labels of the video called `name` whose entry has these fields."""
    named = labels_in_name(name)
    values: dict[str, str] = {}
    problems: list[tuple[str, str]] = []
    used: set[str] = set()
    for dimension in DIMENSIONS:
        given = [f for f in _FIELDS[dimension] if fields.get(f) not in (None, "")]
        read = [(f, label) for f in given if (label := _label(dimension, f, fields[f]))]
        by_name = getattr(named, dimension)
        if read:
            field, values[dimension] = read[0]
            used.add(field)
            if by_name and by_name != values[dimension]:
                problems.append(
                    (field, f"says {values[dimension]}, the video's name says {by_name}")
                )
        else:
            values[dimension] = by_name
            if given and dimension != "room":
                known = ", ".join(MEANINGS[dimension])
                problems.append((given[0], f"{fields[given[0]]!r} is none of {known}"))
    return LabelReading(Labels(**values), tuple(problems), frozenset(used))


def group_by_label(
    items: Iterable[T], dimension: str, label_of: Callable[[T], str]
) -> list[tuple[str, list[T]]]:
    """Items by their label: known labels in their order, then others, the unlabelled ("") last."""
    groups: dict[str, list[T]] = defaultdict(list)
    for item in items:
        groups[label_of(item)].append(item)
    known = list(MEANINGS[dimension])

    def place(label: str) -> tuple[bool, int, str]:
        return not label, known.index(label) if label in known else len(known), label

    return [(label, groups[label]) for label in sorted(groups, key=place)]


def _label(dimension: str, field: str, value: object) -> str:
    """The label that a field's value stands for, or empty."""
    if dimension == "room":
        return _room(field, value)
    known = MEANINGS[dimension]
    letter = next(iter(known))[0]
    text = str(value) if isinstance(value, int | str) and not isinstance(value, bool) else ""
    found = re.match(rf"\s*{letter}?([0-9]+)(?![0-9A-Za-z])", text, re.IGNORECASE)
    if found:
        code = f"{letter}{found[1]}"
        return code if code in known else ""
    words = _words(text)
    return next((code for code, meaning in known.items() if words == _words(meaning)), "")


def _room(field: str, value: object) -> str:
    """A room's name. `scenario` may be prose, so there only the six rooms are taken."""
    if not isinstance(value, str):
        return ""
    words = _words(value)
    known = next((r for r in ROOMS if words.replace(" ", "") == r.replace(" ", "")), "")
    return known or (words if field == "room" else "")


def _words(text: str) -> str:
    """Lower-case words, so that "Cutting & Puncture" is "cutting and puncture"."""
    return " ".join(re.sub(r"[^a-z0-9]+", " ", text.lower().replace("&", " and ")).split())

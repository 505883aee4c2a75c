"""Where labels can stand without covering each other."""

from collections.abc import Sequence
from dataclasses import dataclass

CHARACTER = 0.56  # of the font's size; the mean width of DejaVu Sans, rounded up


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle in points."""

    left: float
    right: float
    low: float
    high: float

    def meets(self, other: "Box") -> bool:
        """Whether the two share any area."""
        return (
            self.left < other.right
            and other.left < self.right
            and self.low < other.high
            and other.low < self.high
        )


def text_width(text: str, size: float) -> float:
    """About how wide a line of text is, in points."""
    return len(text) * CHARACTER * size


def rows_of_labels(places: Sequence[float], widths: Sequence[float], gap: float = 5.0) -> list[int]:
    """In which row, counted outward, each label stands that begins at its own vertical line.

    A line reaches from row 0 to its label, so it may not run through a label that begins before it:
    of labels that come too near, the one further left stands further out.

    Args:
        places: of the lines and of the labels' left ends, ascending, in points.
        widths: of the labels, in points.
        gap: left free beside a label, in points.
    """
    rows = [0] * len(places)
    for n in range(len(places) - 2, -1, -1):
        near = [
            rows[m] for m in range(n + 1, len(places)) if places[m] < places[n] + widths[n] + gap
        ]
        rows[n] = 1 + max(near, default=-1)
    return rows


def place_beside(
    points: Sequence[tuple[float, float]], texts: Sequence[str], size: float, right: float
) -> list[tuple[float, float]]:
    """For each point a corner (left, low) for its text, so that no text meets another or a point.

    Args:
        points: in points.
        texts: one for each of them.
        size: the font's size.
        right: no text reaches beyond it, as long as it has another place.
    """
    dots = [Box(x - 5, x + 5, y - 5, y + 5) for x, y in points]
    placed: list[Box] = []
    for (x, y), text in zip(points, texts, strict=True):
        wide = text_width(text, size)
        tries = [
            Box(left, left + wide, low, low + size)
            for low in (y + (rise - 0.5) * size for rise in (0.0, 1.2, -1.2, 2.4, -2.4, 3.6, -3.6))
            for left in (x + 9, x - 9 - wide, x - wide / 2)
        ]
        inside = [box for box in tries if box.left >= 0 and box.right <= right] or tries
        free = [box for box in inside if not any(box.meets(o) for o in (*placed, *dots))]
        placed.append((free or inside)[0])
    return [(box.left, box.low) for box in placed]

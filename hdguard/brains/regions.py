"""Bodies that move other than the camera: where they are, where they come from, when they hit.

A body is a region whose flow the camera's motion does not explain. The background is a body too,
number 0: what the camera drives at fills most of the picture and then counts as background.
"""

from dataclasses import dataclass, replace
from typing import cast

import cv2
import numpy as np
from numpy.typing import NDArray

from hdguard.brains.flow import (
    TOLERANCE,
    Field,
    Grey,
    Motion,
    Picture,
    Similarity,
    believable,
    carried,
    fit,
)

MOST = 6  # bodies per frame; the largest are kept
SMALLEST = 0.004  # of the frame
INLIERS = 0.4  # of a body's points; below, the fit is not believed
PARENT = 0.25  # of a body's pixels that came from one body of the frame before
_POINTS = 300  # per body, for the fit
_OPEN = np.ones((3, 3), np.uint8)
_CLOSE = np.ones((7, 7), np.uint8)

Labels = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Body:
    """One body in one frame.

    Attributes:
        label: its number in this frame; 0 is the background.
        size: share of the frame, 0 to 1.
        centre: of its box, pixels.
        width: of its box, pixels.
        height: likewise.
        tau: seconds to contact at constant speed; infinite if it does not come nearer.
        miss: how far from its centre it meets the camera plane, in its own widths.
        speed: sideways, against the background, in frame widths a second.
        measured: the fit is good enough to believe tau, also an infinite one.
        parents: numbers of the bodies in the frame before that its pixels belonged to.
    """

    label: int
    size: float
    centre: complex
    width: int
    height: int
    tau: float
    miss: float
    speed: float
    measured: bool
    parents: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Sight:
    """All bodies of a frame, the background first, and which pixel belongs to whom."""

    bodies: tuple[Body, ...]
    labels: Labels


def find_bodies(
    motion: Motion, ego: Similarity, before: Picture, now: Picture, dt: float, earlier: Sight
) -> Sight:
    """The bodies of the current frame.

    Args:
        motion: between the two frames.
        ego: the camera's part of it.
        before: the picture that the motion starts from.
        now: the current one.
        dt: seconds between them.
        earlier: what the frame before showed.
    """
    residual = motion.moves - ego.moves(motion.points)
    labels, boxes = _label(_moving(motion, ego, residual, before, now))
    origin = cast(
        "Labels",
        cv2.remap(earlier.labels, motion.origins, None, cv2.INTER_NEAREST),  # type: ignore[call-overload]
    )
    parents = _parents(labels, origin, len(boxes) + 1)
    height, width = labels.shape
    share = 1 - float(np.count_nonzero(labels)) / labels.size
    bodies = [_body(0, ego, (0, 0, width, height), share, dt, parents[0])]
    if ego.inliers > INLIERS:
        miss = abs(width - ego.fixed_point().real) / (2 * width)
        bodies[0] = replace(bodies[0], miss=miss)
    # A camera that looks where it goes sees the background's centre stand still unless it turns.
    turned = ego.move(complex(width, height))
    for label, box in enumerate(boxes, 1):
        found, size, drift = _measure(label, box, labels, motion, residual, now)
        body = _body(label, found, box, size, dt, parents[label])
        moved = max(drift, _moved(body, parents, ego, earlier))
        miss = _miss(found, box, turned, width) if found is not None and body.measured else np.inf
        bodies.append(replace(body, miss=miss, speed=moved / (2 * width) / dt))
    return Sight(tuple(bodies), labels)


def _moving(
    motion: Motion, ego: Similarity, residual: Field, before: Picture, now: Picture
) -> Labels:
    """255 where flow and brightness both say that something moved against the background."""
    limit = max(1.0, 4 * ego.spread)
    moved = residual.real**2 + residual.imag**2 > limit**2
    still = carried(before.half, ego)
    # Averaging over 3 x 3 brings pixel noise well below what a moved edge differs by.
    changed = cv2.blur(cv2.absdiff(now.half, still), (3, 3))
    limit = 3 * max(1.0, motion.error)
    mask = (moved & (changed > limit)).astype(np.uint8) * 255
    closed = cv2.morphologyEx(mask, cv2.MORPH_CLOSE, _CLOSE)
    return cast("Labels", cv2.morphologyEx(closed, cv2.MORPH_OPEN, _OPEN))


_Box = tuple[int, int, int, int]


def _label(mask: Labels) -> tuple[Labels, list[_Box]]:
    """Numbers the largest areas from 1 and fills their holes; a growing body's middle is still."""
    contours, _ = cv2.findContours(mask, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
    sized = sorted(((cv2.contourArea(c), i) for i, c in enumerate(contours)), reverse=True)
    labels = np.zeros(mask.shape, np.uint8)
    boxes: list[_Box] = []
    for area, index in sized[:MOST]:
        if area < SMALLEST * mask.size:
            break
        boxes.append(cast("_Box", tuple(cv2.boundingRect(contours[index]))))
        cv2.drawContours(labels, contours, index, (len(boxes),), cv2.FILLED)
        if boxes[-1] == (0, 0, *mask.shape[::-1]):  # a ring around what counts as background
            labels[(labels == len(boxes)) & (mask == 0)] = 0
    return labels, boxes


def _parents(labels: Labels, origin: Labels, count: int) -> list[tuple[int, ...]]:
    pairs = np.bincount((labels.astype(np.intp) * 16 + origin).ravel(), minlength=16 * count)
    table = pairs[: 16 * count].reshape(count, 16)
    least = PARENT * table.sum(axis=1)
    return [tuple(int(i) for i in np.flatnonzero(table[j] > least[j])) for j in range(count)]


def _measure(
    label: int, box: _Box, labels: Labels, motion: Motion, residual: Field, now: Picture
) -> tuple[Similarity | None, float, float]:
    """A region's own similarity, its share of the frame, and its drift in pixels."""
    x, y, w, h = box
    part = np.s_[y : y + h, x : x + w]
    mask = cast("Grey", (labels[part] == label).astype(np.uint8))
    area = int(np.count_nonzero(mask))
    inner = cv2.erode(mask, _OPEN, borderType=cv2.BORDER_CONSTANT, borderValue=(1,))
    chosen = np.flatnonzero(inner)
    size = area / labels.size
    if len(chosen) > _POINTS:
        chosen = chosen[np.linspace(0, len(chosen) - 1, _POINTS).astype(np.intp)]
    if not believable(motion.difference[part].ravel()[chosen], now.half[part].ravel()[chosen]):
        return None, size, 0.0
    own = residual[part].ravel()[chosen]
    # The flow near an edge blends body and background; where both move little, a tolerance of a
    # whole pixel would blend them too, and the contact would seem far off.
    tolerance = min(TOLERANCE, max(0.25, 0.25 * float(np.percentile(np.abs(own), 80))))
    points, moves = motion.points[part].ravel()[chosen], motion.moves[part].ravel()[chosen]
    found = fit(points, moves, 4.0 * area, tolerance)
    return found, size, abs(complex(np.median(own.real), np.median(own.imag)))


def _moved(body: Body, parents: list[tuple[int, ...]], ego: Similarity, earlier: Sight) -> float:
    """Pixels that the region itself moved, where the flow has lost a body that is too fast for it.

    Only for one that is surely the same: of one parent, that parent's only child, of like size; and
    only for far jumps, because a shorter one is followed by the flow or is a change of outline.
    """
    mine = [p for p in body.parents if p > 0]
    if body.measured or len(mine) != 1 or sum(mine[0] in theirs for theirs in parents[1:]) != 1:
        return 0.0
    parent = next(b for b in earlier.bodies if b.label == mine[0])
    if not 0.5 < body.size / parent.size < 2:
        return 0.0
    jump = abs(ego.a * body.centre + ego.b - parent.centre)
    return jump if jump > min(body.width, parent.width) / 3 else 0.0


def _body(
    label: int,
    found: Similarity | None,
    box: _Box,
    size: float,
    dt: float,
    parents: tuple[int, ...],
) -> Body:
    measured = found is not None and found.inliers > INLIERS
    centre = complex(2 * box[0] + box[2], 2 * box[1] + box[3])
    tau = found.tau(dt) if found is not None and measured else float("inf")
    size_of_box = 2 * box[2], 2 * box[3]
    return Body(label, size, centre, *size_of_box, tau, float("inf"), 0.0, measured, parents)


def _miss(found: Similarity, box: _Box, turned: complex, frame: int) -> float:
    """Widths between the body's centre and where it meets the camera plane, sideways.

    Of a body that is cut off by the picture's edge only a part is seen; it is taken to be at least
    as wide as it is high, or what comes in from the side would seem to pass.
    """
    left, width = box[0], box[2]
    right = left + width
    if left == 0 and right < frame:
        left = right - max(width, box[3])
    elif right == frame and left > 0:
        right = left + max(width, box[3])
    return abs(left + right - found.fixed_point(turned).real) / (2 * (right - left))

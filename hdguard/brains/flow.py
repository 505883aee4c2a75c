"""How the picture moved: dense flow between two frames, and the camera's own part of it.

Flow runs backward, from the current frame to the one before, so that everything is said in the
current frame's pixels. A similarity `before = a * now + b` over complex numbers (x + iy) describes
a body that faces the camera: its scale k = |a| gives the time to contact, tau = dt * k / (1 - k),
and its fixed point is where the body meets the camera plane.

Fields are kept at half size: DIS "medium" computes them there and only enlarges them. Positions
and displacements are in pixels of the full picture all the same.
"""

from dataclasses import dataclass
from typing import cast

import cv2
import numpy as np
from numpy.typing import NDArray

from hdguard.brains.base import BrainError, Rgb

Grey = NDArray[np.uint8]
Field = NDArray[np.complex64]

LEAST_SIDE = 64  # pixels
GRID = 4  # half-size pixels between the points that the camera's motion is fitted to
TOLERANCE = 1.0  # pixels
TEXTURE = 14.0  # grey levels of a 3 x 3 Sobel filter at half size; noise of 2 levels stays below
DETAIL = 4  # grey levels at half size; noise of 2 levels stays below 4
CORRELATED = 36.0  # pixels; DIS vectors nearer than about 6 x 6 are one measurement
_TRIALS = 64  # with 40 % inliers all 64 pairs miss once in 70,000 fits
_PAIRS = np.random.default_rng(0).random((2, _TRIALS))  # the same each time: the brain repeats


@dataclass(frozen=True, slots=True)
class Picture:
    """What is kept of a frame: grey at full and at half size, shapes (h, w) and (h/2, w/2)."""

    grey: Grey
    half: Grey

    @classmethod
    def of(cls, rgb: Rgb) -> "Picture":
        """The picture of RGB pixels, shape (h, w, 3).

        Raises:
            BrainError: it is too small; OpenCV's flow crashes on a few pixels.
        """
        if min(rgb.shape[:2]) < LEAST_SIDE:
            given = f"{rgb.shape[1]} x {rgb.shape[0]}"
            raise BrainError(f"picture of {given} pixels: {LEAST_SIDE} are needed each way")
        grey = cv2.cvtColor(rgb, cv2.COLOR_RGB2GRAY)
        size = (grey.shape[1] // 2, grey.shape[0] // 2)
        half = cv2.resize(grey, size, interpolation=cv2.INTER_AREA)
        return cls(cast("Grey", grey), cast("Grey", half))

    @property
    def mean(self) -> float:
        """Mean grey level, 0 to 255."""
        return cv2.mean(self.half)[0]


@dataclass(frozen=True, slots=True)
class Similarity:
    """before = a * now + b, fitted to points.

    Attributes:
        a, b: scale and turn; shift in pixels.
        inliers: share of the points within the tolerance, 0 to 1.
        spread: median distance of the inliers from the fit, pixels.
        error: standard error of |a|.
    """

    a: complex
    b: complex
    inliers: float
    spread: float
    error: float

    @property
    def scale(self) -> float:
        """Size before over size now; below 1 the body comes nearer."""
        return abs(self.a)

    def fixed_point(self, turned: complex = 0j) -> complex:
        """The pixel that does not move once the camera's turn is taken out.

        `turned`: pixels by which the turn shifts the picture. Infinitely far without a change of
        scale.
        """
        return (self.b - turned) / (1 - self.a) if self.a != 1 else complex(np.inf, np.inf)

    def move(self, point: complex) -> complex:
        """Displacement of one point, pixels."""
        return (self.a - 1) * point + self.b

    def moves(self, points: Field) -> Field:
        """Displacement of each point, pixels."""
        return cast("Field", np.complex64(self.a - 1) * points + np.complex64(self.b))

    def tau(self, dt: float) -> float:
        """Seconds to contact at constant speed; infinite unless the body surely comes nearer."""
        if 1 - self.scale <= 3 * self.error:
            return float("inf")
        return dt * self.scale / (1 - self.scale)


def fit(
    points: Field, moves: Field, area: float, tolerance: float = TOLERANCE
) -> Similarity | None:
    """The similarity that most points agree on (RANSAC, then least squares over the inliers).

    Args:
        points: positions now, pixels, shape (n,).
        moves: displacement to the frame before, pixels, shape (n,).
        area: pixels of the full picture that the points stand for.
        tolerance: pixels; a point further from the fit is an outlier.

    Returns:
        None if there are too few points, or all lie in one place.
    """
    n = len(points)
    if n < 12:
        return None
    before = points + moves
    first, second = (_PAIRS * n).astype(np.intp)
    apart = points[second] - points[first]
    good = np.abs(apart) > 4  # closer points say nothing about scale
    first, second, apart = first[good], second[good], apart[good]
    if not len(apart):
        return None
    a = (before[second] - before[first]) / apart
    b = before[first] - a * points[first]
    off = _squared(before[None, :] - a[:, None] * points[None, :] - b[:, None])
    inside = off < tolerance**2
    best = int(np.argmax(np.count_nonzero(inside, axis=1)))
    return _refined(points, before, inside[best], area, tolerance)


def _refined(
    points: Field, before: Field, inside: NDArray[np.bool_], area: float, tolerance: float
) -> Similarity | None:
    off = _squared(points)
    a = b = 0j
    for _ in range(2):
        p, q = points[inside], before[inside]
        if len(p) < 6:
            return None
        centre, target = p.mean(), q.mean()
        spread = float(np.sum(_squared(p - centre)))
        if spread == 0:
            return None
        a = complex(np.vdot(p - centre, q - target) / spread)
        b = complex(target - a * centre)
        off = _squared(before - np.complex64(a) * points - np.complex64(b))
        inside = off < tolerance**2
    count = int(np.count_nonzero(inside))
    if count < 6:
        return None
    share = count / len(points)
    independent = max(1.0, min(float(count), area * share / CORRELATED))
    wide = float(np.mean(_squared(points[inside] - points[inside].mean())))
    error = float(np.sqrt(np.mean(off[inside]) / (2 * independent * max(wide, 1e-6))))
    return Similarity(a, b, share, float(np.sqrt(np.median(off[inside]))), error)


def _squared(z: Field) -> NDArray[np.float32]:
    return cast("NDArray[np.float32]", z.real**2 + z.imag**2)


@dataclass(frozen=True, slots=True)
class Motion:
    """What happened between two frames.

    Attributes:
        points: position of each half-size pixel, in pixels of the full picture.
        moves: its displacement to the frame before, likewise; shape (h/2, w/2).
        origins: where each half-size pixel was, as OpenCV's map; shape (h/2, w/2, 2).
        difference: |now - before carried along the flow|, grey levels, half size.
        error: median of the difference, grey levels.
        believable: the flow explains the picture; see `believable`.
        detailed: share of the picture with detail fine enough to tell bodies apart, 0 to 1.
        ego: the camera's motion; None if no similarity fits at all.
    """

    points: Field
    moves: Field
    origins: NDArray[np.float32]
    difference: Grey
    error: float
    believable: bool
    detailed: float
    ego: Similarity | None


def carried(plane: Grey, ego: Similarity) -> Grey:
    """The frame before at half size, as it would look now if only the camera had moved."""
    height, width = plane.shape
    a, b = ego.a, ego.b / 2
    matrix = np.array([[a.real, -a.imag, b.real], [a.imag, a.real, b.imag]])
    now = cv2.warpAffine(
        plane,
        matrix,
        (width, height),
        flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP,
        borderMode=cv2.BORDER_REPLICATE,
    )
    return cast("Grey", now)


def believable(difference: Grey, grey: Grey) -> bool:
    """True if the flow explains these pixels: what it leaves over is small against the contrast.

    `embedded.md`, section 3, asks for a median below 6 grey levels. Fine strong texture that grows
    leaves more although the flow is right, hence the second limit: two unrelated pictures differ
    by 0.95 standard deviations in the median, an explained one by less than a third.
    """
    if not difference.size:
        return False
    left = float(np.median(difference))
    return left < 6.0 or left < float(np.std(grey)) / 3


class FlowMeter:
    """Measures the motion between two frames of one size."""

    def __init__(self) -> None:
        self._dis = cv2.DISOpticalFlow.create(cv2.DISOPTICAL_FLOW_PRESET_MEDIUM)
        self._points: Field = np.zeros((0, 0), np.complex64)
        self._base: NDArray[np.float32] = np.zeros((0, 0, 2), np.float32)

    def between(self, before: Picture, now: Picture) -> Motion:
        """The motion that led from one picture to the other."""
        height, width = now.half.shape
        if self._points.shape != (height, width):
            self._base = np.dstack(
                np.meshgrid(np.arange(width, dtype=np.float32), np.arange(height, dtype=np.float32))
            )
            self._points = _complex(2 * self._base)
        # OpenCV's stubs want an array for the result, None lets it make one.
        flow = self._dis.calc(now.grey, before.grey, None)  # type: ignore[call-overload]
        half = np.ascontiguousarray(flow[: 2 * height : 2, : 2 * width : 2], np.float32)
        origins = self._base + 0.5 * half
        flowed = cv2.remap(before.half, origins, None, cv2.INTER_LINEAR)  # type: ignore[call-overload]
        difference = cast("Grey", cv2.absdiff(now.half, flowed))
        moves = _complex(half)
        return Motion(
            self._points,
            moves,
            origins,
            difference,
            float(np.median(difference[::2, ::2])),
            believable(difference[::2, ::2], now.half[::2, ::2]),
            _detailed(now.half),
            self._ego(moves, _textured(now.half)),
        )

    def _ego(self, moves: Field, textured: NDArray[np.bool_]) -> Similarity | None:
        seen = slice(GRID // 2, None, GRID)
        points, moved = self._points[seen, seen][textured], moves[seen, seen][textured]
        return fit(points, moved, 4.0 * moves.size * float(np.mean(textured)))


def _complex(pairs: NDArray[np.float32]) -> Field:
    return pairs.view(np.complex64)[..., 0]


def _detailed(half: Grey) -> float:
    """Share of the grid that has fine detail: what differs from its surroundings of 14 pixels.

    Behind a blur of 8 pixels and more the camera's motion is still found, but not that of bodies.
    """
    fine = cv2.dilate(cv2.absdiff(half, cv2.blur(half, (7, 7))), np.ones((3, 3)))
    return float(np.mean(fine[GRID // 2 :: GRID, GRID // 2 :: GRID] > DETAIL))


def _textured(half: Grey) -> NDArray[np.bool_]:
    """Which points of the grid lie in texture: gradients above noise, and not far below usual."""
    dx, dy = cv2.spatialGradient(half)
    steep = cv2.dilate(cv2.add(cv2.convertScaleAbs(dx), cv2.convertScaleAbs(dy)), np.ones((3, 3)))
    seen = steep[GRID // 2 :: GRID, GRID // 2 :: GRID]
    return seen > max(TEXTURE, 0.35 * float(np.median(seen)))

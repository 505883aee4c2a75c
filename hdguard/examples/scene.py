"""A small exact world for the bundled clips: textured boards and a pinhole camera.

Boards stand upright and face the camera, so that the picture of a board at distance Z is the board
scaled by f/Z: sizes and contact times are exact by construction. Units: metres, seconds, pixels.
"""

import math
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

Rgb = NDArray[np.uint8]

WIDTH, HEIGHT = 448, 252
FOCAL = (WIDTH / 2) / math.tan(math.radians(60.0) / 2)
"""Pixels; a horizontal field of view of 60 degrees."""

NEAR = 0.02
"""Metres; nothing is drawn nearer than this."""

TEXEL = 512


@dataclass(frozen=True, slots=True)
class Board:
    """An upright textured rectangle.

    Attributes:
        x, y, z: its centre: right, down and forward of where the camera starts.
        width, height: its size.
        tint: its mean colour, RGB.
        seed: of its texture.
    """

    x: float
    y: float
    z: float
    width: float
    height: float
    tint: tuple[int, int, int]
    seed: int


def texture(seed: int, tint: tuple[int, int, int]) -> Rgb:
    """Blurred noise around a colour: structure at every scale that optical flow can hold on to."""
    rng = np.random.default_rng(seed)
    grey = np.zeros((TEXEL, TEXEL), np.float32)
    for cells, weight in ((6, 0.9), (24, 1.0), (96, 0.6)):
        noise = rng.random((cells, cells), dtype=np.float32) - 0.5
        grey += weight * cv2.resize(noise, (TEXEL, TEXEL), interpolation=cv2.INTER_CUBIC)
    frame = np.ones_like(grey)
    frame[12:-12, 12:-12] = 0.0
    grey = grey * 120.0 - 40.0 * frame
    colours = np.asarray(tint, np.float32)[None, None, :] + grey[..., None]
    clipped: Rgb = np.clip(colours, 0, 255).astype(np.uint8)
    return clipped


class World:
    """Boards before a camera that may move in any direction but does not turn."""

    def __init__(self, boards: tuple[Board, ...]) -> None:
        self._boards = boards
        self._mips = {b: _mipmaps(texture(b.seed, b.tint)) for b in boards}

    def picture(
        self,
        camera: tuple[float, float, float],
        moved: dict[Board, tuple[float, float, float]] | None = None,
        pan: float = 0.0,
    ) -> Rgb:
        """What the camera sees.

        Args:
            camera: its place: right, down, forward.
            moved: how far boards have moved from their places.
            pan: pixels by which the view has turned to the right; small turns only.
        """
        out = np.full((HEIGHT, WIDTH, 3), 96, np.uint8)
        placed = []
        for board in self._boards:
            dx, dy, dz = (moved or {}).get(board, (0.0, 0.0, 0.0))
            z = board.z + dz - camera[2]
            placed.append((z, board, board.x + dx - camera[0], board.y + dy - camera[1]))
        for z, board, x, y in sorted(placed, key=lambda p: -p[0]):
            if z > NEAR:
                self._draw(out, board, (x, y, z), pan)
        return out

    def _draw(self, out: Rgb, board: Board, at: tuple[float, float, float], pan: float) -> None:
        x, y, z = at
        scale = FOCAL / z
        width, height = board.width * scale, board.height * scale
        left = WIDTH / 2 + x * scale - width / 2 - pan
        top = HEIGHT / 2 + y * scale - height / 2
        mips = self._mips[board]
        level = min(len(mips) - 1, max(0, math.floor(math.log2(max(1.0, TEXEL / width)))))
        source = mips[level]
        size = source.shape[0]
        matrix = np.array([[width / size, 0, left], [0, height / size, top]], np.float64)
        cv2.warpAffine(
            source,
            matrix,
            (WIDTH, HEIGHT),
            dst=out,
            flags=cv2.INTER_LINEAR,
            borderMode=cv2.BORDER_TRANSPARENT,
        )


def _mipmaps(full: Rgb) -> list[Rgb]:
    """The texture and its halves, area-filtered: a shrunk texture must not flicker."""
    mips = [full]
    while mips[-1].shape[0] > 16:
        half = mips[-1].shape[0] // 2
        shrunk = cv2.resize(mips[-1], (half, half), interpolation=cv2.INTER_AREA)
        mips.append(shrunk.astype(np.uint8))
    return mips

"""Synthetic scenes whose contact time is known exactly, drawn by code.

A pinhole camera, 448x252 with 60 degrees across, looks at textured rectangles that face it, in
front of a wall 6 m away. A body at depth Z touches the camera plane at Z = 0, so a body that comes
at constant speed v from Z0 makes contact at Z0 / v, and its size in the picture is f w / Z.
"""

import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import cv2
import numpy as np
from numpy.typing import NDArray

from hdguard.brains.base import Shot
from hdguard.core.types import FrameRef

Rgb = NDArray[np.uint8]
Path3 = Callable[[float], tuple[float, float, float]]
Overlay = Callable[[Rgb, float], Rgb]

WIDTH, HEIGHT = 448, 252
FOCAL = WIDTH / 2 / math.tan(math.radians(30))  # 388 pixels
WALL = 6.0
NEAR = 0.03  # metres; nearer than this a body has hit the lens
PHASES = (0.0, 0.05, 0.1, 0.15)  # seconds: 0, 1/4, 1/2 and 3/4 of a frame at 5 FPS
_SIZE = 1024  # pixels of a texture's side


@functools.cache
def _levels(seed: int) -> tuple[Rgb, ...]:
    """A texture and its area-averaged halves, so that one drawn small does not alias."""
    rng = np.random.default_rng(seed)
    total = np.zeros((_SIZE, _SIZE), np.float32)
    for sigma in (2.5, 7.0, 22.0, 60.0):
        noise = rng.standard_normal((_SIZE, _SIZE)).astype(np.float32)
        blurred = cv2.GaussianBlur(noise, (0, 0), sigma, borderType=cv2.BORDER_REFLECT)
        total += np.asarray(blurred / blurred.std(), np.float32)
    total /= float(total.std())
    tint = rng.uniform(0.85, 1.0, 3)
    levels = [np.clip((120 + 42 * total)[..., None] * tint, 0, 255).astype(np.uint8)]
    while levels[-1].shape[0] > 16:
        side = levels[-1].shape[0] // 2
        levels.append(np.asarray(cv2.resize(levels[-1], (side, side), interpolation=3), np.uint8))
    return tuple(levels)


@functools.cache
def _noise() -> NDArray[np.int16]:
    rng = np.random.default_rng(99)
    return (2.0 * rng.standard_normal((2 * HEIGHT, 2 * WIDTH, 3))).round().astype(np.int16)


def _noisy(rgb: Rgb, t: float) -> Rgb:
    dy, dx = (int(v) for v in np.random.default_rng(round(t * 1e4)).integers(0, 200, 2))
    noise = _noise()[dy : dy + HEIGHT, dx : dx + WIDTH]
    return np.asarray(np.clip(rgb + noise, 0, 255), np.uint8)


@dataclass(frozen=True)
class Body:
    """A rectangle of `width` x `height` metres whose centre is at `path(t)`: X, Y, Z in metres.

    `texture` is a seed; None: `colour` all over.
    """

    width: float
    height: float
    path: Path3
    texture: int | None = 1
    colour: tuple[int, int, int] = (128, 128, 128)


@dataclass(frozen=True)
class Scene:
    """What happens in front of the camera.

    `contact`: seconds at which a body touches the camera plane, None for never. `shift`: pixels by
    which the whole picture moves sideways with time, for a camera that turns. `wall`: depth of the
    wall with time. `blank`: the wall has no texture.
    """

    bodies: tuple[Body, ...]
    seconds: float
    contact: float | None = None
    shift: Callable[[float], float] = lambda _: 0.0
    wall: Callable[[float], float] = lambda _: WALL
    blank: bool = False
    overlays: tuple[Overlay, ...] = ()

    def over(self, *overlays: Overlay) -> "Scene":
        """The same scene under further overlays."""
        return replace(self, overlays=(*self.overlays, *overlays))

    def picture(self, t: float) -> Rgb:
        """The frame at `t`, shape (252, 448, 3)."""
        shift = self.shift(t)
        canvas = np.full((HEIGHT, WIDTH, 3), 128, np.uint8)
        if not self.blank:
            # the wall's texture repeats, so that a turning camera never sees its end
            _paint(canvas, 0, 8.0, 8.0, (shift, 0.0), self.wall(t), wrap=True)
        for body in sorted(self.bodies, key=lambda b: -b.path(t)[2]):
            x, y, z = body.path(t)
            if z <= NEAR:
                continue
            at = (shift + FOCAL * x / z, FOCAL * y / z)
            if body.texture is None:
                _fill(canvas, body, at, z)
            else:
                _paint(canvas, body.texture, body.width, body.height, at, z)
        canvas = _noisy(canvas, t)
        for overlay in self.overlays:
            canvas = overlay(canvas, t)
        return canvas


def _paint(
    canvas: Rgb,
    seed: int,
    width: float,
    height: float,
    at: tuple[float, float],
    z: float,
    *,
    wrap: bool = False,
) -> None:
    levels = _levels(seed)
    metres = max(width, height) / _SIZE  # of one texture pixel
    zoom = FOCAL * metres / z
    level = min(max(0, math.floor(-math.log2(zoom))), len(levels) - 1) if zoom < 1 else 0
    texture = levels[level]
    zoom *= 2**level
    rows, columns = texture.shape[:2]
    used_w = columns * width / max(width, height)
    used_h = rows * height / max(width, height)
    left = WIDTH / 2 + at[0] - zoom * used_w / 2
    top = HEIGHT / 2 + at[1] - zoom * used_h / 2
    # screen = zoom * (texture + .5) + corner - .5, both counted at pixel centres
    matrix = np.array(
        [[zoom, 0, left + zoom / 2 - 0.5], [0, zoom, top + zoom / 2 - 0.5]], np.float64
    )
    if wrap:
        cv2.warpAffine(texture, matrix, (WIDTH, HEIGHT), canvas, cv2.INTER_LINEAR, cv2.BORDER_WRAP)
        return
    x0, x1 = max(0, math.floor(left)), min(WIDTH, math.ceil(left + zoom * used_w))
    y0, y1 = max(0, math.floor(top)), min(HEIGHT, math.ceil(top + zoom * used_h))
    if x0 >= x1 or y0 >= y1:
        return
    matrix[0, 2] -= x0
    matrix[1, 2] -= y0
    drawn = cv2.warpAffine(
        texture,
        matrix,
        (x1 - x0, y1 - y0),
        flags=cv2.INTER_LINEAR,
        borderMode=cv2.BORDER_REPLICATE,
    )
    # how much of each edge pixel the body covers
    across = _cover(x0, x1, left, left + zoom * used_w)
    down = _cover(y0, y1, top, top + zoom * used_h)
    alpha = (down[:, None] * across[None, :])[..., None]
    part = canvas[y0:y1, x0:x1]
    part[:] = (alpha * drawn + (1 - alpha) * part + 0.5).astype(np.uint8)


def _cover(first: int, last: int, low: float, high: float) -> NDArray[np.float32]:
    pixels = np.arange(first, last)
    covered = np.minimum(pixels + 1, high) - np.maximum(pixels, low)
    return np.asarray(np.clip(covered, 0, 1), np.float32)


def _fill(canvas: Rgb, body: Body, at: tuple[float, float], z: float) -> None:
    half = FOCAL * body.width / z / 2, FOCAL * body.height / z / 2
    cx, cy = WIDTH / 2 + at[0], HEIGHT / 2 + at[1]
    across = _cover(0, WIDTH, cx - half[0], cx + half[0])
    down = _cover(0, HEIGHT, cy - half[1], cy + half[1])
    alpha = (down[:, None] * across[None, :])[..., None]
    canvas[:] = (alpha * np.array(body.colour) + (1 - alpha) * canvas + 0.5).astype(np.uint8)


def straight(z0: float, v: float, x0: float = 0.0, vx: float = 0.0, y: float = 0.0) -> Path3:
    """A body that comes nearer at v and goes sideways at vx, m/s."""
    return lambda t: (x0 + vx * t, y, z0 - v * t)


def braking(z0: float, v: float, a: float) -> Path3:
    """A body that comes nearer at v and brakes at a until it stands."""

    def path(t: float) -> tuple[float, float, float]:
        t = min(t, v / a)
        return 0.0, 0.0, z0 - v * t + a * t * t / 2

    return path


def still(x: float, y: float, z: float) -> Path3:
    """A body that stays where it is."""
    return lambda _: (x, y, z)


# 1 and 2: bodies that come straight at the camera
BOX = Scene((Body(0.6, 0.6, straight(4, 1)),), 4.0, 4.0)
SLOW = Scene((Body(0.6, 0.6, straight(3, 0.5)),), 6.0, 6.0)
FAST = Scene((Body(0.8, 0.8, straight(8, 2.5)),), 3.2, 3.2)
SMALL = Scene((Body(0.25, 0.25, straight(4, 1)),), 4.0, 4.0)
# 3 and 4: bodies that do not hit
NEAR_MISS = Scene((Body(0.6, 0.6, straight(4, 1, x0=0.9, vx=0.1)),), 4.0)
RECEDING = Scene((Body(0.6, 0.6, straight(1, -1)),), 4.0)
# 5: the camera drives
EGO_BOX = Scene((Body(0.7, 0.7, straight(3, 0.5)),), 6.0, 6.0, wall=lambda t: WALL - 0.5 * t)
EGO_WALL = Scene((), 6.0, 6.0, wall=lambda t: 3 - 0.5 * t)
# 7: a body goes sideways, to a block at its own depth, to one behind it, and alone
_MOVER = Body(0.5, 0.5, straight(3, 0, x0=-1.6, vx=0.6))
MOVER_BLOCK = Scene((_MOVER, Body(0.5, 0.5, still(0.85, 0, 3), 2)), 3.25)
MOVER_TWIN = Scene((_MOVER, Body(0.75, 0.75, still(1.275, 0, 4.5), 2)), 4.0)
MOVER_ALONE = Scene((Body(0.5, 0.5, straight(3, 0, x0=-1.6, vx=0.8)),), 4.0)
# 8: the camera turns, or stands
_ROOM = (Body(0.6, 0.6, still(-0.8, 0.1, 4)), Body(0.8, 0.5, still(1.0, -0.2, 5), 2))
PAN = Scene(_ROOM, 4.0, shift=lambda t: FOCAL * 0.35 * max(0.0, t - 1.0))
TURN = Scene(_ROOM, 4.0, shift=lambda t: FOCAL * 0.5 * t)
STANDING = Scene(_ROOM, 4.0)
# 10: fire, a red poster, a sudden start
POSTER = Scene((*_ROOM, Body(0.8, 1.0, still(0, 0, 4), None, (235, 40, 40))), 4.0)
SUDDEN = Scene(
    (Body(0.6, 0.6, lambda t: (-1.2 + 0.1 * min(t, 2) + 2 * max(0.0, t - 2), 0, 3)),), 3.0
)
# 11: a wall that has nothing on it
BLANK_WALL = Scene((), 6.0, 6.0, wall=lambda t: 3 - 0.5 * t, blank=True)


def stopping(a: float) -> Scene:
    """12: a body 2 m away comes at 1 m/s and brakes at a; it hits if 1 / (2a) > 2."""
    left = 1 - 2 * a * 2
    contact = (1 - math.sqrt(left)) / a if left > 0 else None
    return Scene((Body(0.25, 0.25, braking(2, 1, a)),), contact or 7.0, contact)


def flame(rgb: Rgb, t: float) -> Rgb:
    """A fire of about 1 % of the frame that changes its shape ten times a second."""
    rng = np.random.default_rng(1000 + round(t * 10))
    out = rgb.copy()
    for _ in range(7):
        centre = (300 + int(rng.integers(-14, 15)), 170 + int(rng.integers(-16, 17)))
        axes = (int(rng.integers(5, 11)), int(rng.integers(8, 17)))
        colour = (255, int(rng.integers(90, 190)), int(rng.integers(20, 60)))
        cv2.ellipse(out, centre, axes, 0, 0, 360, colour, -1)
    return out


def clock(rgb: Rgb, t: float) -> Rgb:
    """A burnt-in red clock that counts tenths of a second."""
    out = rgb.copy()
    cv2.rectangle(out, (4, 30), (70, 60), (0, 0, 0), -1)
    cv2.putText(out, f"{t:4.1f}", (6, 54), cv2.FONT_HERSHEY_SIMPLEX, 0.8, (255, 0, 0), 2)
    return out


def light_step(rgb: Rgb, t: float) -> Rgb:
    """The light falls to 55 % at 2 s."""
    return rgb if t < 2 else np.asarray(rgb * 0.55, np.uint8)


def dark(rgb: Rgb, t: float) -> Rgb:
    """A quarter of the light, with the noise of a full picture."""
    return _noisy((rgb * 0.25).astype(np.uint8), t + 7)


def night(rgb: Rgb, t: float) -> Rgb:
    """Nothing but noise from 1 s on."""
    return rgb if t < 1 else np.asarray(rgb * 0.02, np.uint8)


def cut(rgb: Rgb, t: float) -> Rgb:
    """Another place from 2 s on."""
    if t < 2:
        return rgb
    other = _levels(31)[0][200 : 200 + HEIGHT, 100 : 100 + WIDTH]
    return _noisy((0.5 * other).astype(np.uint8), t)


def defocus(rgb: Rgb, t: float) -> Rgb:
    """Out of focus from 1 s on."""
    return rgb if t < 1 else np.asarray(cv2.GaussianBlur(rgb, (0, 0), 14), np.uint8)


def jpeg(rgb: Rgb, t: float) -> Rgb:
    """JPEG at quality 30."""
    _, data = cv2.imencode(".jpg", rgb[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, 30])
    return np.ascontiguousarray(np.asarray(cv2.imdecode(data, 1), np.uint8)[..., ::-1])


def ref(t: float, seq: int, source: str = "scene", start: float = 100.0) -> FrameRef:
    """The name of the frame at `t`; the clock read `start` at 0."""
    return FrameRef(source, seq, start + t, t)


@functools.lru_cache(maxsize=2048)
def _picture(scene: Scene, t: float, width: int) -> Rgb:
    rgb = scene.picture(t)
    if width != WIDTH:
        size = (width, round(width * HEIGHT / WIDTH))
        rgb = np.asarray(cv2.resize(rgb, size, interpolation=cv2.INTER_LINEAR), np.uint8)
    rgb.setflags(write=False)
    return rgb


def shots(scene: Scene, phase: float = 0.0, fps: float = 5.0, width: int = WIDTH) -> Iterator[Shot]:
    """The scene's frames up to its end or its contact; the first is at `phase` seconds."""
    for seq in range(math.ceil(scene.seconds * fps)):
        t = round(phase + seq / fps, 6)
        if t >= scene.seconds - 1e-9:
            return
        yield Shot(ref(t, seq), _picture(scene, t, width))


def shots_at(scene: Scene, times: list[float], width: int = WIDTH) -> list[Shot]:
    """Frames of chosen times, seconds."""
    return [Shot(ref(t, i), _picture(scene, round(t, 6), width)) for i, t in enumerate(times)]

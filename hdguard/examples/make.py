"""Makes the bundled clips: `python -m hdguard.examples.make DIR`. Seeded; the script is the truth.

Every collision clip begins with harmless motion, different in each; at the onset the robot starts
on the way that ends in contact, at constant speed v. All clips share an actuation delay of 0.1 s
and v/a = 0.6 s (a = braking deceleration), so a halt must be decided 0.1 + v/(2a) = 0.4 s before
the contact at the latest: after it, the braking distance v^2/(2a) no longer avoids it. That is the
point of no return; the intervention deadline is 0.2 s before it.
"""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import av
import cv2
import numpy as np

from hdguard.examples.scene import HEIGHT, WIDTH, Board, Rgb, World

FPS = 25
ACTUATION = 0.1
V_OVER_A = 0.6
BRAKING = ACTUATION + V_OVER_A / 2
DEADLINE_BEFORE_PNR = 0.2
AFTER = 0.6
"""Seconds that a collision clip goes on after the contact."""

WALL = Board(0.0, 0.0, 9.0, 16.0, 9.0, (150, 146, 138), 1)
SHELF = Board(-2.6, 0.1, 6.0, 1.6, 2.6, (116, 92, 70), 2)
LAMP = Board(2.4, -0.2, 5.0, 0.6, 1.8, (168, 152, 96), 3)
CHAIR = Board(0.0, 0.15, 4.0, 1.0, 1.0, (92, 120, 150), 4)
TABLE = Board(0.1, 0.05, 4.2, 1.6, 0.8, (142, 104, 66), 5)
CRATE = Board(-0.1, 0.1, 3.5, 0.9, 0.9, (150, 110, 84), 6)
ROBOT = Board(0.0, 0.05, 4.0, 0.7, 1.1, (84, 126, 104), 7)
ROOM = (WALL, SHELF, LAMP)


@dataclass(frozen=True, slots=True)
class Clip:
    """A clip: its picture at every time, and what is true of it.

    Attributes:
        name: of the file, without its ending.
        seconds: its length.
        picture: the picture at a time.
        onset, contact: seconds; None for safe clips.
        speed: v in m/s.
        about: one sentence.
    """

    name: str
    seconds: float
    picture: Callable[[float], Rgb]
    about: str
    onset: float | None = None
    contact: float | None = None
    speed: float = 0.0

    @property
    def annotation(self) -> dict[str, object]:
        """The entry for anno_truth.json."""
        entry: dict[str, object] = {
            "video_name": f"{self.name}.mp4",
            "is_valid": True,
            "room": "living room",
            "about": self.about,
        }
        if self.onset is None or self.contact is None:
            return {**entry, "keyframes": None}
        pnr = self.contact - BRAKING
        keyframes = {
            "intent_onset": round(self.onset, 3),
            "intervention_deadline": round(pnr - DEADLINE_BEFORE_PNR, 3),
            "pnr": round(pnr, 3),
            "impact_outcome": round(self.contact, 3),
            "action_end": round(self.seconds, 3),
        }
        motion = {
            "speed_m_s": self.speed,
            "actuation_s": ACTUATION,
            "v_over_a_s": V_OVER_A,
            "deceleration_m_s2": round(self.speed / V_OVER_A, 3),
            "braking_distance_m": round(self.speed * V_OVER_A / 2, 3),
        }
        return {**entry, "keyframes": keyframes, "motion": motion}


def _ramp(t: float, start: float, end: float) -> float:
    """Seconds of motion between start and end that have passed at t."""
    return min(max(t - start, 0.0), end - start)


def _drive(name: str, target: Board, speed: float, harmless: float, swing: float) -> Clip:
    """The robot's own camera: it slides sideways, then drives straight at a thing."""
    # It slides so far that the target is straight ahead when the drive begins.
    world = World((*ROOM, target))
    contact = harmless + target.z / speed

    def picture(t: float) -> Rgb:
        side = target.x - swing * (1.0 - _ramp(t, 0.0, harmless) / harmless)
        forward = speed * _ramp(t, harmless, contact)
        return world.picture((side, 0.0, min(forward, target.z - 0.03)))

    about = f"The robot slides sideways, then drives at {speed} m/s into what stands before it."
    return Clip(name, contact + AFTER, picture, about, harmless, contact, speed)


def _robot_comes(name: str, speed: float, harmless: float, aside: float) -> Clip:
    """A camera on a shelf: the robot crosses the room, then comes straight at the shelf."""
    world = World((*ROOM, ROBOT))
    contact = harmless + ROBOT.z / speed

    def picture(t: float) -> Rgb:
        side = aside * (1.0 - _ramp(t, 0.0, harmless) / harmless)
        near = -min(speed * _ramp(t, harmless, contact), ROBOT.z - 0.03)
        return world.picture((0.0, 0.0, 0.0), {ROBOT: (side, 0.0, near)})

    about = f"The robot crosses the room, then comes at {speed} m/s into the camera's shelf."
    return Clip(name, contact + AFTER, picture, about, harmless, contact, speed)


def _crosses(name: str) -> Clip:
    """A camera on a shelf: the robot crosses from one side to the other."""
    world = World((*ROOM, ROBOT))

    def picture(t: float) -> Rgb:
        return world.picture((0.0, 0.0, 0.0), {ROBOT: (-2.0 + 0.7 * t, 0.0, -1.0)})

    return Clip(name, 6.0, picture, "The robot crosses the room and comes no nearer.")


def _goes_away(name: str) -> Clip:
    """A camera on a shelf: the robot drives away."""
    world = World((*ROOM, ROBOT))

    def picture(t: float) -> Rgb:
        return world.picture((0.0, 0.0, 0.0), {ROBOT: (0.1, 0.0, -2.0 + 0.6 * t)})

    return Clip(name, 6.0, picture, "The robot drives away from the camera.")


def _looks_around(name: str) -> Clip:
    """The robot's own camera turns to and fro in place."""
    world = World((*ROOM, CHAIR))

    def picture(t: float) -> Rgb:
        return world.picture((0.0, 0.0, 0.0), pan=60.0 * float(np.sin(0.9 * t)))

    return Clip(name, 6.0, picture, "The robot turns in place and looks around.")


def _stops_short(name: str) -> Clip:
    """The robot's own camera: it drives at a crate, brakes early and gently, and stands before it.

    From 0.8 m/s at 0.15 m/s^2 it needs 2.13 m, so it brakes 2.53 m before the crate to stand 0.4 m
    before it. The time to contact at constant speed is never below 2.3 s.
    """
    world = World((*ROOM, CRATE))
    start, speed, braking, rest = 1.0, 0.8, 0.15, 0.4
    way = speed**2 / (2 * braking)
    cruise = (CRATE.z - rest - way) / speed
    stop = speed / braking

    def picture(t: float) -> Rgb:
        late = _ramp(t, start + cruise, start + cruise + stop)
        forward = speed * _ramp(t, start, start + cruise) + speed * late - 0.5 * braking * late**2
        return world.picture((CRATE.x, 0.0, forward))

    about = "The robot drives at a crate, brakes early and stands before it."
    return Clip(name, start + cruise + stop + 0.8, picture, about)


def _slides(name: str) -> Clip:
    """The robot's own camera slides sideways along the room."""
    world = World((*ROOM, TABLE))

    def picture(t: float) -> Rgb:
        return world.picture((-1.2 + 0.4 * t, 0.0, 0.0))

    return Clip(name, 6.0, picture, "The robot slides sideways past a table.")


def clips() -> tuple[Clip, ...]:
    """Every bundled clip: half of them collisions."""
    return (
        _drive("01_C2_L1_D1", CHAIR, 1.0, 1.6, 0.5),
        _drive("02_C2_L1_D1", TABLE, 1.2, 2.4, -0.7),
        _drive("03_C2_L1_D1", CRATE, 1.1, 1.1, 0.4),
        _robot_comes("04_C2_L2_D1", 1.0, 2.0, 1.4),
        _robot_comes("05_C2_L2_D1", 1.3, 3.9, -1.6),
        _crosses("06_safe"),
        _goes_away("07_safe"),
        _looks_around("08_safe"),
        _stops_short("09_safe"),
        _slides("10_safe"),
    )


def write(folder: Path) -> None:
    """Write the clips and their anno_truth.json."""
    cv2.setNumThreads(1)
    folder.mkdir(parents=True, exist_ok=True)
    made = clips()
    for clip in made:
        _encode(folder / f"{clip.name}.mp4", clip)
    text = json.dumps({"annotations": [clip.annotation for clip in made]}, indent=1)
    (folder / "anno_truth.json").write_text(text + "\n", encoding="utf-8")


def _encode(path: Path, clip: Clip) -> None:
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=FPS)
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        stream.codec_context.thread_count = 1  # the same bytes on any number of cores
        stream.options = {"crf": "29", "preset": "veryslow", "tune": "grain"}
        for n in range(round(clip.seconds * FPS) + 1):
            frame = av.VideoFrame.from_ndarray(clip.picture(n / FPS), format="rgb24")
            container.mux(stream.encode(frame))
        container.mux(stream.encode())


if __name__ == "__main__":
    write(Path(sys.argv[1]))

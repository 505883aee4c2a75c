"""A ROS 2 node that lets velocity commands through only while a guard permits it.

UNTRIED on ROS 2: there was none where this was written. Only its gate, which is plain Python, is
tested. Read it, try it with the wheels off the ground and `hdguard robot --check`, then use it.

    cmd_vel_in  ->  [gate]  ->  cmd_vel          geometry_msgs/Twist
    odom        ->  RobotLink.report             nav_msgs/Odometry

Whatever drives the robot publishes on `cmd_vel_in`; only this node may publish on `cmd_vel`. It
publishes at a fixed rate, zero included, so that a base with a command timeout stays under command.
SIGINT and SIGTERM end it with a zero command; ROS 2's own handlers, which would close the publisher
first, are off.

    python -m hdguard.examples.ros2_gate hub rosie ~/.hdguard-robot.boot
"""

import asyncio
import math
import signal
import sys
import threading
from dataclasses import dataclass
from typing import Any

from hdguard.core.types import Speed
from hdguard.robot import RobotLink, RobotSettings

RATE = 20.0
"""Commands a second; a lapsed lease is felt at most 50 ms late."""

COMMAND_VALID = 0.25
"""Seconds after which a command that was not renewed counts as zero; a choice."""

STANDING = (0.01, 0.02)
"""m/s and rad/s below which odometry says that the robot stands; a choice, set it for yours."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What `reduced` and `full` mean on this robot.

    Attributes:
        reduced, full: m/s.
        turn: rad/s for each m/s allowed.
    """

    reduced: float = 0.15
    full: float = 0.5
    turn: float = 2.0


@dataclass(frozen=True, slots=True)
class Motion:
    """A velocity command: m/s forward and to the left, rad/s to the left."""

    x: float = 0.0
    y: float = 0.0
    turn: float = 0.0


STILL = Motion()


def gate(wanted: Motion, age: float, speed: Speed, limits: Limits) -> Motion:
    """What may be driven: the command, slowed down as a whole so that the path stays the same.

    Args:
        wanted: the last command.
        age: seconds since it came.
        speed: what the guard permits now.
        limits: of this robot.
    """
    numbers = (wanted.x, wanted.y, wanted.turn)
    if speed is Speed.NONE or age > COMMAND_VALID or not all(map(math.isfinite, numbers)):
        return STILL
    most = limits.reduced if speed is Speed.REDUCED else limits.full
    over = max(math.hypot(wanted.x, wanted.y) / most, abs(wanted.turn) / (most * limits.turn))
    return wanted if over <= 1.0 else Motion(*(each / over for each in numbers))


def moves(linear: float, angular: float) -> bool:
    """True if odometry says that the robot moves, or says nothing that can be understood."""
    return not (abs(linear) <= STANDING[0] and abs(angular) <= STANDING[1])


def _message(kind: Any, motion: Motion) -> Any:
    message = kind()
    message.linear.x, message.linear.y = motion.x, motion.y
    message.angular.z = motion.turn
    return message


def _stopped() -> asyncio.Event:
    """Set by SIGINT and SIGTERM."""
    loop, stopped = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    return stopped


async def drive(settings: RobotSettings, limits: Limits) -> None:
    """Be the node until it is shut down; rclpy spins in a thread of its own."""
    import rclpy.signals  # type: ignore[import-not-found] # noqa: PLC0415 - only where ROS 2 is
    from geometry_msgs.msg import Twist  # type: ignore[import-not-found] # noqa: PLC0415
    from nav_msgs.msg import Odometry  # type: ignore[import-not-found] # noqa: PLC0415

    loop = asyncio.get_running_loop()
    rclpy.init(signal_handler_options=rclpy.signals.SignalHandlerOptions.NO)
    stopped = _stopped()
    node = rclpy.create_node("hdguard_gate")
    publisher = node.create_publisher(Twist, "cmd_vel", 1)
    last: tuple[float, Motion] = (-math.inf, STILL)

    async with RobotLink(settings) as link:

        def on_command(message: Any) -> None:
            nonlocal last
            motion = Motion(message.linear.x, message.linear.y, message.angular.z)
            last = (loop.time(), motion)  # a monotonic clock; safe to read from any thread

        def on_odometry(message: Any) -> None:
            twist = message.twist.twist
            linear = math.hypot(twist.linear.x, twist.linear.y)
            moving = moves(linear, twist.angular.z)
            loop.call_soon_threadsafe(lambda: link.report(moving=moving, speed=linear))

        node.create_subscription(Twist, "cmd_vel_in", on_command, 1)
        node.create_subscription(Odometry, "odom", on_odometry, 1)
        spinner = threading.Thread(target=rclpy.spin, args=(node,), daemon=True)  # noqa: TID251
        spinner.start()
        try:
            while rclpy.ok() and not stopped.is_set():
                at, wanted = last
                allowed = gate(wanted, loop.time() - at, link.speed, limits)
                publisher.publish(_message(Twist, allowed))
                await asyncio.sleep(1.0 / RATE)
        finally:
            publisher.publish(Twist())
            rclpy.shutdown()
            await asyncio.to_thread(spinner.join)


if __name__ == "__main__":
    host, robot, boot_file = sys.argv[1:]
    asyncio.run(drive(RobotSettings(host=host, robot=robot, boot_file=boot_file), Limits()))

"""The ROS 2 node cannot run here; its gate is plain Python and must hold."""

import asyncio
import math
import os
import signal
import sys
import threading
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from hdguard.core.types import Speed
from hdguard.examples import ros2_gate
from hdguard.examples.ros2_gate import COMMAND_VALID, STILL, Limits, Motion, drive, gate, moves
from hdguard.robot import RobotSettings

LIMITS = Limits(reduced=0.1, full=0.5, turn=2.0)
AHEAD = Motion(x=0.4, turn=0.2)


def test_it_says_that_it_is_untried_and_needs_no_ros_to_be_imported() -> None:
    assert "UNTRIED" in (ros2_gate.__doc__ or "")
    assert "rclpy" not in sys.modules


def test_nothing_is_driven_without_a_permit_or_by_a_command_that_is_old() -> None:
    assert gate(AHEAD, 0.0, Speed.NONE, LIMITS) == STILL
    assert gate(AHEAD, COMMAND_VALID + 0.01, Speed.FULL, LIMITS) == STILL
    assert gate(AHEAD, math.inf, Speed.FULL, LIMITS) == STILL


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_command_that_is_no_number_is_not_driven(number: float) -> None:
    assert gate(Motion(x=number), 0.0, Speed.FULL, LIMITS) == STILL
    assert gate(Motion(turn=number), 0.0, Speed.FULL, LIMITS) == STILL


def test_a_command_within_the_limit_is_not_touched() -> None:
    assert gate(AHEAD, 0.1, Speed.FULL, LIMITS) == AHEAD
    assert gate(STILL, 0.1, Speed.REDUCED, LIMITS) == STILL


@pytest.mark.parametrize(
    "wanted", [Motion(3.0, 4.0, 1.0), Motion(x=-5.0), Motion(turn=-9.0), Motion(0.4, 0.4, 3.0)]
)
@pytest.mark.parametrize(("speed", "most"), [(Speed.REDUCED, 0.1), (Speed.FULL, 0.5)])
def test_a_faster_one_is_slowed_down_as_a_whole_so_that_the_path_stays_the_same(
    wanted: Motion, speed: Speed, most: float
) -> None:
    allowed = gate(wanted, 0.1, speed, LIMITS)
    assert math.hypot(allowed.x, allowed.y) <= most + 1e-9
    assert abs(allowed.turn) <= 2.0 * most + 1e-9
    assert allowed.x * wanted.turn == pytest.approx(wanted.x * allowed.turn)
    assert allowed.y * wanted.x == pytest.approx(wanted.y * allowed.x)


def test_odometry_that_says_nothing_counts_as_motion() -> None:
    assert not moves(0.0, 0.0)
    assert moves(0.2, 0.0)
    assert moves(0.0, -0.2)
    assert moves(math.nan, 0.0)


class Ros:
    """Plays rclpy as its pages describe it, and notes what the node does with it, in order."""

    def __init__(self) -> None:
        self.did: list[object] = []
        self.published = asyncio.Event()
        self._shut = threading.Event()

    def create_node(self, _: str) -> Any:
        publisher = SimpleNamespace(publish=self._publish)
        return SimpleNamespace(
            create_publisher=lambda *_: publisher, create_subscription=lambda *_: None
        )

    def _publish(self, twist: Any) -> None:
        self.did.append((twist.linear.x, twist.linear.y, twist.angular.z))
        self.published.set()

    def _shutdown(self) -> None:
        self.did.append("shutdown")
        self._shut.set()

    def modules(self) -> dict[str, ModuleType]:
        def module(name: str, **words: Any) -> ModuleType:
            made = ModuleType(name)
            made.__dict__.update(words)
            return made

        signals = module("rclpy.signals", SignalHandlerOptions=SimpleNamespace(NO="no"))
        rclpy = module(
            "rclpy",
            signals=signals,
            init=lambda *, signal_handler_options: self.did.append(signal_handler_options),
            ok=lambda: not self._shut.is_set(),
            spin=lambda _: self._shut.wait(10.0),
            shutdown=self._shutdown,
            create_node=self.create_node,
        )

        def twist() -> Any:
            return SimpleNamespace(
                linear=SimpleNamespace(x=0.0, y=0.0), angular=SimpleNamespace(z=0.0)
            )

        made = [
            rclpy,
            signals,
            module("geometry_msgs"),
            module("geometry_msgs.msg", Twist=twist),
            module("nav_msgs"),
            module("nav_msgs.msg", Odometry=object),
        ]
        return {each.__name__: each for each in made}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_node_that_is_ended_sends_a_zero_command_before_ros_is_shut_down(
    number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> list[object]:
        ros = Ros()
        for name, module in ros.modules().items():
            monkeypatch.setitem(sys.modules, name, module)
        async with asyncio.timeout(10.0), asyncio.TaskGroup() as group:
            group.create_task(drive(RobotSettings(port=1, boot=1), LIMITS))
            await ros.published.wait()
            ros.did.append("signal")
            os.kill(os.getpid(), number)
        return ros.did

    did = asyncio.run(story())
    assert did[0] == "no"
    after = did[did.index("signal") + 1 :]
    assert after[-2:] == [(0.0, 0.0, 0.0), "shutdown"]

"""A halt that nobody acknowledges must be repeated until somebody does."""

from types import SimpleNamespace

import pytest

from hdguard.actuators import wire
from hdguard.core.types import HaltCause
from hdguard.faults import broker_faults
from tests.actuators.support import run
from tests.faults.support import ToldStack, injected


class Halted(ToldStack):
    """Its robot is mute from the beginning, the hook runs at 0.5 s, and the robot wakes at 0.8."""

    def __init__(self, *halts: float) -> None:
        super().__init__()
        self.robot = SimpleNamespace(signal=lambda _: None)
        self.hook = self
        for at in halts:
            self.halts(at, HaltCause.OPERATOR)
        ack = wire.AckMessage(halt_id="1-1", guard_boot=1, stopped=True)
        self.says("ack", 0.81, wire.encode(ack))

    def now(self) -> float:
        return self.began + 0.8

    async def operator_halts(self) -> float:
        return self.began

    async def on(self, _since: float) -> float:
        return self.began + 0.5


@pytest.mark.parametrize(
    ("halts", "slowest"),
    [
        ((0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7), 0.1),
        ((0.0, 0.1, 0.2, 0.3), 0.5),
        ((0.0, 0.1, 0.2, 0.3, 0.4, 0.5), 0.3),
    ],
)
def test_repetitions_that_end_before_the_robot_confirms_are_a_long_gap(
    halts: tuple[float, ...], slowest: float
) -> None:
    async def story() -> None:
        measured = await injected(broker_faults.not_acknowledged, Halted(*halts))
        assert measured == pytest.approx((slowest, 0.5))

    run(story(), "asyncio")

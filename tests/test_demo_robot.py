"""The demo robot brakes as the bundled examples say."""

import pytest

from hdguard.core.types import Speed
from hdguard.demo_robot import Chassis, Motion


def test_from_full_speed_it_stands_after_seven_tenths_of_a_second() -> None:
    motion = Motion(Chassis(), 0.0)
    assert motion.standing(0.0)
    motion.command(Speed.FULL, 0.0)
    assert not motion.standing(0.05)
    assert motion.speed(0.1) == 0.0
    assert motion.speed(0.4) == pytest.approx(0.25)
    assert motion.speed(2.0) == pytest.approx(0.5)
    motion.command(Speed.NONE, 2.0)
    assert motion.speed(2.1) == pytest.approx(0.5)
    assert motion.speed(2.4) == pytest.approx(0.25)
    assert not motion.standing(2.69)
    assert motion.standing(2.701)


def test_reduced_is_half_and_a_stop_that_overtakes_a_start_wins() -> None:
    motion = Motion(Chassis(cruise=1.0), 0.0)
    motion.command(Speed.REDUCED, 0.0)
    assert motion.speed(5.0) == pytest.approx(0.5)
    motion.command(Speed.FULL, 5.0)
    motion.command(Speed.NONE, 5.05)
    assert motion.speed(5.15) == pytest.approx(0.5 + 0.05 / 0.6)
    assert motion.standing(6.0)


def test_it_does_not_stand_while_a_start_is_on_its_way() -> None:
    motion = Motion(Chassis(), 0.0)
    motion.command(Speed.FULL, 1.0)
    assert motion.speed(1.05) == 0.0
    assert not motion.standing(1.05)

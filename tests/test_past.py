"""A guard that starts knows what the one before it left in force."""

import asyncio
import json
from pathlib import Path
from typing import cast

import pytest

from hdguard.actuators import wire
from hdguard.actuators.mqtt import MqttActuator
from hdguard.actuators.translate import halt_message
from hdguard.config import Config, ConfigError, LiveConfig
from hdguard.live import LivePlan
from hdguard.past import OutnumberedError, Past, claimed
from hdguard.runtime.state_file import Kept, write_state
from hdguard.runtime.virtual_time import run_virtual
from tests.actuators.support import HALT


class Told:
    """A way to the robot whose broker keeps that halt, and says so after a while."""

    def __init__(self, kept: wire.HaltMessage | None, after: float = 0.0) -> None:
        self.retained_halt: wire.HaltMessage | None = None
        self.outnumbered: int | None = None
        self._kept = kept
        self._after = after

    async def ready(self) -> None:
        await asyncio.sleep(self._after)
        self.retained_halt = self._kept


def message(halt_id: str, *, active: bool = True) -> wire.HaltMessage:
    told = halt_message(HALT, 1, 7, 1)
    return wire.HaltMessage(
        **{f: getattr(told, f) for f in told.__struct_fields__}  # with another id
        | {"halt_id": halt_id, "active": active}
    )


def restored(file: Kept | None, broker: wire.HaltMessage | None) -> str | None:
    """The id of the halt that a guard with this past starts with."""

    async def story() -> str | None:
        past = Past(cast("MqttActuator", Told(broker)), file)
        await past.asked(1.0)
        halt = past.halt(5.0)
        assert halt is None or (halt.ref is None and halt.decided_at == 5.0)
        return None if halt is None else halt.halt_id

    return run_virtual(story())


IN_FORCE = Kept(robot="rosie", halt=HALT, newest="7-1")
RELEASED = Kept(robot="rosie", halt=None, newest="7-1")


@pytest.mark.parametrize(
    ("file", "broker", "expected"),
    [
        (None, None, None),
        (IN_FORCE, None, "7-1"),  # the broker has forgotten
        (None, message("7-1"), "7-1"),  # the disk has
        (RELEASED, message("7-1"), None),  # the release did not reach the broker
        (RELEASED, message("7-2"), "7-2"),  # the last halt did not reach the disk
        (IN_FORCE, message("8-1"), "8-1"),
        (IN_FORCE, message("7-1", active=False), "7-1"),  # whoever is in doubt stays halted
        (IN_FORCE, message("8-1", active=False), "7-1"),
        (None, message("7-1", active=False), None),
    ],
)
def test_whoever_knows_of_a_later_halt_is_right(
    file: Kept | None, broker: wire.HaltMessage | None, expected: str | None
) -> None:
    assert restored(file, broker) == expected


def test_a_broker_that_is_absent_holds_up_the_start_for_a_second_only() -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        past = Past(cast("MqttActuator", Told(message("7-1"), after=60.0)), None)
        await past.asked(1.0)
        assert loop.time() == pytest.approx(1.0)
        assert past.halt(1.0) is None
        await past.asked()
        assert past.halt(61.0) is not None

    run_virtual(story())


def test_a_guard_that_is_not_the_newest_hears_it_as_soon_as_the_broker_answers() -> None:
    async def story() -> None:
        told = Told(None)
        told.outnumbered = 7
        with pytest.raises(OutnumberedError, match="had the number 7"):
            await Past(cast("MqttActuator", told), None).asked(1.0)

    run_virtual(story())


@pytest.fixture
def plan(tmp_path: Path) -> LivePlan:
    return LivePlan(Config(live=LiveConfig(state_dir=str(tmp_path / "state"))))


def test_every_start_has_a_greater_number_and_a_folder_that_others_cannot_read(
    plan: LivePlan,
) -> None:
    boots = []
    for _ in range(3):
        with claimed(plan) as life:
            boots.append(life.boot)
            assert life.kept is None
    assert boots == [1, 2, 3]
    assert plan.config.live.folder.stat().st_mode & 0o777 == 0o700


def test_a_second_guard_of_the_robot_is_refused_and_does_not_count(plan: LivePlan) -> None:
    refused = pytest.raises(ConfigError, match="guards this robot already")
    with claimed(plan), refused, claimed(plan):
        pass
    with claimed(plan) as life:
        assert life.boot == 2


def test_a_halt_on_disk_is_known(plan: LivePlan) -> None:
    plan.config.live.folder.mkdir()
    write_state(plan.state_file("state.json"), Kept(robot="robot", halt=HALT, newest="7-1"))
    with claimed(plan) as life:
        assert life.kept is not None
        assert life.kept.halt == HALT


@pytest.mark.parametrize("name", ["boot", "state.json"])
def test_a_file_that_makes_no_sense_is_named_and_the_guard_does_not_start(
    plan: LivePlan, name: str
) -> None:
    plan.config.live.folder.mkdir()
    plan.state_file(name).write_text(json.dumps({"half": "a"})[:-3])
    with pytest.raises(ConfigError, match=rf"robot\.{name}"), claimed(plan):
        pass


def test_a_start_that_is_not_the_newest_says_which_number_to_write_and_where(
    plan: LivePlan,
) -> None:
    with pytest.raises(ConfigError) as error, claimed(plan):
        raise ExceptionGroup("", [ExceptionGroup("", [OutnumberedError(41), OutnumberedError(9)])])
    file = plan.state_file("boot")
    assert str(error.value).startswith(f"{file}: this start is number 1, and ")
    assert "write 41 into the file" in str(error.value)
    file.write_text("41")
    with claimed(plan) as life:
        assert life.boot == 42
    defect = ExceptionGroup("", [ZeroDivisionError()])
    with pytest.raises(ExceptionGroup) as other, claimed(plan):
        raise defect
    assert other.value is defect


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    plan = LivePlan(Config(live=LiveConfig(state_dir=str(tmp_path / "file" / "state"))))
    with pytest.raises(ConfigError, match=r"live\.state_dir: .*file"), claimed(plan):
        pass

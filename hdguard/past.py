"""What earlier lives of this guard left behind: its number, its lock, and a halt still in force."""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from hdguard.actuators.boot import raise_boot
from hdguard.actuators.mqtt import MqttActuator
from hdguard.actuators.translate import restored_halt
from hdguard.config import ConfigError
from hdguard.core.actions import Halt
from hdguard.live import LivePlan
from hdguard.runtime.error_groups import leaves
from hdguard.runtime.lock import LockedError, locked
from hdguard.runtime.state_file import Kept, StateFileError, read_state


@dataclass(frozen=True, slots=True)
class Life:
    """What this start of the guard knows of those before it.

    Attributes:
        boot: its number, greater than any before.
        kept: what the state file holds; None: there was none.
    """

    boot: int
    kept: Kept | None


@contextmanager
def claimed(plan: LivePlan) -> Iterator[Life]:
    """The robot is ours, and this start is counted.

    Raises:
        ConfigError: the state's folder or a file in it cannot be used, another guard runs, or this
            start turned out not to be the newest, and an `OutnumberedError` came from within.
    """
    with ExitStack() as stack:
        try:
            plan.config.live.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            stack.enter_context(locked(plan.state_file("lock")))
            kept = read_state(plan.state_file("state.json"), plan.config.mqtt.robot)
            life = Life(raise_boot(plan.state_file("boot")), kept)
        except (LockedError, StateFileError, ValueError) as error:
            raise ConfigError(str(error)) from error
        except OSError as error:
            msg = f"live.state_dir: {error.filename}: {error.strerror}"
            raise ConfigError(msg) from error
        try:
            yield life
        except ExceptionGroup as failed:
            found = (e.newest for e in leaves(failed) if isinstance(e, OutnumberedError))
            newest = max(found, default=0)
            if not newest:
                raise
            file = plan.state_file("boot")
            msg = (
                f"{file}: this start is number {life.boot}, and the broker keeps what guard "
                f"{newest} said: the robot may take what we say for old and stand still; "
                f"write {newest} into the file and start again"
            )
            raise ConfigError(msg) from None


class OutnumberedError(Exception):
    """The broker keeps what a guard said whose number is not below ours.

    Attributes:
        newest: the greatest such number.
    """

    def __init__(self, newest: int) -> None:
        super().__init__(f"another guard of this robot had the number {newest}")
        self.newest = newest


class Past:
    """The halt that an earlier life left in force, as far as it is known.

    The state file and the broker may each have missed the newest halt: whichever knows a later one
    is right. Where both know the same, the file is: a release may not have reached the broker. But
    an end that the broker alone knows of ends nothing that the file holds.
    """

    def __init__(self, actuator: MqttActuator, kept: Kept | None) -> None:
        self._actuator = actuator
        self._kept = kept

    async def asked(self, within: float | None = None) -> None:
        """Wait for the broker to say what it keeps; at most so many seconds.

        Raises:
            OutnumberedError: by that, this guard is not the newest.
        """
        try:
            async with asyncio.timeout(within):
                await self._actuator.ready()
        except TimeoutError:
            return  # it is asked again before the robot may move
        if self._actuator.outnumbered is not None:
            raise OutnumberedError(self._actuator.outnumbered)

    def halt(self, now: float) -> Halt | None:
        """The halt in force, for a guard that starts `now`, by what is known by now."""
        found = self._actuator.retained_halt
        if found is not None and found.active and not self._knows(found.halt_id):
            return restored_halt(found, now)
        return None if self._kept is None else self._kept.restored(now)

    def _knows(self, halt_id: str) -> bool:
        return self._kept is not None and self._kept.knows(halt_id)

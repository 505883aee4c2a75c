"""What carries the guard's decisions to the robot, and the robot's answers back."""

from collections.abc import AsyncIterator
from typing import Protocol

from hdguard.core.actions import Escalate, Halt, Notify, Permit, Release
from hdguard.core.events import Event


class ActuatorError(Exception):
    """A message did not leave; says which and why."""


class Actuator(Protocol):
    """One way to the robot. Halts, permits and the rest are sent side by side: be reentrant."""

    async def halt(self, action: Halt | Release) -> None:
        """Publish the halt or its end; returns when the broker has it.

        Raises:
            ActuatorError: it did not leave.
        """
        ...

    async def permit(self, action: Permit) -> None:
        """Publish the permit.

        Raises:
            ActuatorError: it did not leave.
        """
        ...

    async def notify(self, action: Notify | Escalate) -> None:
        """Publish the state, or use the other means there are.

        Raises:
            ActuatorError: it did not leave.
        """
        ...

    def events(self) -> AsyncIterator[Event]:
        """What the robot and the operators say, until the actuator is closed."""
        ...

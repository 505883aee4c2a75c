"""When a halt may end (rule 4): never on anything but fresh GREEN."""

from hdguard.core.actions import Halt
from hdguard.core.policy import Policy
from hdguard.core.roster import Roster
from hdguard.core.types import HaltCause, HaltClass


def may_reset(halt: Halt, policy: Policy, roster: Roster, now: float) -> bool:
    """True if an operator who names this halt may end it now."""
    if halt.halt_class is HaltClass.DANGER and policy.first_danger == "ends_run":
        return False
    return roster.fresh_green(now, policy.release_greens)


def recovered(halt: Halt, raised_at: float, roster: Roster, now: float) -> bool:
    """True while a fault that was raised then is over, as far as the eyes can tell.

    GREEN of a frozen picture is worth nothing: that fault is over when the picture has changed. A
    picture that stands still because the robot does lets nobody but an operator end it.
    """
    thawed = halt.cause is not HaltCause.FROZEN_FRAME or roster.changed_since(
        halt.source_id, raised_at
    )
    return thawed and roster.fresh_green(now)

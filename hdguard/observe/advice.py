"""What a person should do about a halt, in words: a cause alone helps nobody at three in the night.

Shown by the status and its page; the same words whoever asks.
"""

from hdguard.core.actions import Halt
from hdguard.core.halts import FAULT_CLEARS_AFTER
from hdguard.core.policy import Policy
from hdguard.core.types import HaltCause, HaltClass

DANGER = "See that nobody is in danger and nothing is about to break."

WORDS: dict[HaltCause, str] = {
    HaltCause.FAST_RED: DANGER,
    HaltCause.SLOW_DANGER: DANGER,
    HaltCause.REVIEW_OVERDUE: DANGER
    + " {brain} did not answer in time: `hdguard doctor` shows whether it is too slow.",
    HaltCause.STALE_FRAME: "No picture comes from {source}: see to its power, cable and network.",
    HaltCause.FROZEN_FRAME: "The picture of {source} did not change although the robot moved: "
    "restart that camera.",
    HaltCause.STALE_VERDICT: "{brain} gives no verdict on {source}: `hdguard doctor` shows why.",
    HaltCause.BRAIN_FAILED: "{brain} keeps failing on {source}: {text}.",
    HaltCause.BRAIN_LATCHED: "{brain} died so often that it is not started any more: the log says "
    "of what. Mend that and restart hdguard.",
    HaltCause.BLIND: "{brain} cannot see anything on {source}: uncover and clean the lens, or turn "
    "on a light.",
    HaltCause.STOPPING: "hdguard is being stopped; its next start clears this halt.",
    HaltCause.OPERATOR: "An operator has halted the robot ({text}): ask them before you go on.",
}
"""A cause that is not here is shown by its name."""

BECAUSE: dict[HaltCause, str] = {
    HaltCause.FAST_RED: "{brain} saw danger on {source}{said}",
    HaltCause.SLOW_DANGER: "{brain} found danger on {source}{said}",
    HaltCause.REVIEW_OVERDUE: "{brain} did not finish its review of {source} in time",
    HaltCause.STALE_FRAME: "no fresh picture comes from {source}",
    HaltCause.FROZEN_FRAME: "the picture of {source} stands still while the robot moves",
    HaltCause.STALE_VERDICT: "{brain} gives no fresh verdict on {source}",
    HaltCause.BRAIN_FAILED: "{brain} keeps failing on {source}{said}",
    HaltCause.BRAIN_LATCHED: "{brain} died too often",
    HaltCause.BLIND: "{brain} cannot see anything on {source}",
    HaltCause.STOPPING: "hdguard is being stopped",
    HaltCause.OPERATOR: "an operator has halted it{said}",
}
"""What happened, without what to do about it."""


def because(halt: Halt) -> str:
    """Why the robot is halted, as the end of a sentence."""
    return BECAUSE.get(halt.cause, f"{halt.cause}").format(
        brain=halt.brain or "a brain",
        source=halt.source_id or "a camera",
        said=f": {halt.hazard.text.rstrip('.')}" if halt.hazard.text else "",
    )


def advice(halt: Halt, policy: Policy) -> str:
    """What to do about this halt, and how it ends."""
    words = WORDS.get(halt.cause, f"Cause: {halt.cause}.")
    said = words.format(
        brain=halt.brain or "a brain",
        source=halt.source_id or "a camera",
        text=halt.hazard.text or "no reason given",
    )
    return f"{said} {_ending(halt, policy)}".rstrip()


def _ending(halt: Halt, policy: Policy) -> str:
    if halt.cause is HaltCause.STOPPING:
        return ""
    by_itself = (
        halt.halt_class is HaltClass.FAULT and not halt.latched and policy.fault_clear == "auto"
    )
    if by_itself:
        return f"The halt ends by itself after {FAULT_CLEARS_AFTER:g} s in which all is GREEN."
    reset = f"Then reset it (`hdguard reset {halt.halt_id}`)"
    return f"{reset}: that is done only while every required brain sees GREEN."

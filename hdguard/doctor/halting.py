"""Whether the robot obeys: a real halt is sent, acknowledged, confirmed, and taken back.

No guard may run meanwhile, here or elsewhere, and no halt be in force, nor anything be kept as a
halt that cannot be read: it may be one. The broker lets only one client have the guard's name, so a
guard that runs would be thrown out. The halt carries a boot
number above any before, so the robot takes the doctor for the newest guard, until the real one
starts and raises the number again. No permit is sent: the robot stands before and after.
"""

import asyncio
import os
from dataclasses import dataclass, replace

from hdguard.actuators.base import ActuatorError
from hdguard.actuators.boot import raise_boot
from hdguard.actuators.mqtt import MqttActuator, MqttSettings
from hdguard.core.actions import Halt, Release
from hdguard.core.events import HaltAcknowledged, HaltConfirmed
from hdguard.core.halts import ESCALATE_AFTER, REPEAT_EVERY
from hdguard.core.types import HaltCause, HaltClass, Hazard
from hdguard.doctor.findings import Finding, fail, ok, warn
from hdguard.doctor.link import ear
from hdguard.live import LivePlan
from hdguard.runtime.lock import locked
from hdguard.runtime.state_file import read_state

READY_WITHIN = 5.0
STOPS_WITHIN = 5.0
"""Seconds: a choice. A robot that may be near people has long stopped by then."""
LISTENED = 1.5
"""Seconds in which a guard that runs elsewhere is due to permit seven times."""
RELEASED_WITHIN = 5.0
RETRY_AFTER = 0.2
"""Seconds for the halt to be taken back on new connections, if its own breaks; and between them."""


@dataclass(slots=True)
class Answers:
    """Seconds from the halt to each answer; None: it did not come.

    `trouble`: why the halt, or a repeat of it, could not be sent; empty if each could.
    """

    acknowledged: float | None = None
    confirmed: float | None = None
    trouble: str = ""


async def check_halt(plan: LivePlan) -> list[Finding]:
    """Halt the robot, wait until it stands, and take the halt back.

    Raises:
        LockedError: a guard runs here.
        StateFileError: whether a halt is in force cannot be told.
        ActuatorError: the connection broke.
        OSError: the boot file cannot be written.
        ValueError: it holds no number.
    """
    settings, folder = plan.config.mqtt, plan.config.live.folder
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.stat().st_uid != os.geteuid():
        # The lock would be ours, and the guard could not open it.
        how = "run the doctor as the service does: sudo -u USER ..."
        return [fail("halt", f"was not sent: {folder} belongs to another user", how)]
    with locked(plan.state_file("lock")):
        kept = read_state(plan.state_file("state.json"), settings.robot)
        if kept is not None and kept.halt is not None:
            return [_in_force(kept.halt.halt_id, kept.halt.cause)]
        if (elsewhere := await _guards_elsewhere(settings)) is not None:
            return [elsewhere]
        return [await _halted(plan)]


async def _guards_elsewhere(settings: MqttSettings) -> Finding | None:
    """Listen, under a name of our own, whether somebody permits."""
    async with ear(settings) as listener:
        await asyncio.sleep(LISTENED)
        heard = listener.heard
    guards = sorted(boot for boot in heard.permits if boot)
    unread = [why for why in heard.refused if why.startswith("permit:")]
    if not guards and not unread:
        return None
    who = f"a guard (boot {guards[-1]})" if guards else f"somebody who permits ({unread[-1]})"
    how = "stop it first, wherever it runs: the doctor would throw it off the broker"
    return fail("halt", f"was not sent: {who} of robot {settings.robot} runs elsewhere", how)


async def _halted(plan: LivePlan) -> Finding:
    """Send the halt, judge the answers, and see that nothing of it is left."""
    boot = raise_boot(plan.state_file("boot"))
    halt_id = f"{boot}-1"
    async with MqttActuator(plan.config.mqtt, boot) as guard:
        try:
            async with asyncio.timeout(READY_WITHIN):
                await guard.ready()
        except TimeoutError:
            said = f"the broker brought nothing back in {READY_WITHIN:g} s"
            return fail("halt", said, "see what is said of the broker above")
        if guard.outnumbered is not None:
            file = plan.state_file("boot")
            said = f"was not sent: the robot heeds guard {guard.outnumbered}, we are number {boot}"
            return fail("halt", said, f"write {guard.outnumbered} into {file} and try again")
        if why := guard.unread_halt:
            return _unread(why, plan.config.mqtt.topics["halt"])
        found = guard.retained_halt
        if found is not None and found.active:
            return _in_force(found.halt_id, found.cause)
        try:
            answers = await _try(guard, halt_id)
        finally:
            kept = await _take_back(guard, halt_id)
    if kept and (kept := await _take_back_anew(plan, halt_id)):
        how = f"when the broker is back start hdguard, and end it: hdguard reset {halt_id}"
        return fail(
            "halt",
            f"halt {halt_id} was not taken back and is still kept by the broker: {kept}",
            how,
        )
    return _judged(answers)


async def _take_back(guard: MqttActuator, halt_id: str) -> str:
    """Release it; why that was not received, or nothing."""
    try:
        await guard.halt(Release(halt_id))
    except ActuatorError as error:
        return str(error)
    return ""


async def _take_back_anew(plan: LivePlan, halt_id: str) -> str:
    """As `_take_back`, on new connections; each as a newer guard, so that the robot hears it."""
    why = f"no connection in {RELEASED_WITHIN:g} s"
    try:
        async with asyncio.timeout(RELEASED_WITHIN):
            while why:
                boot = raise_boot(plan.state_file("boot"))
                async with MqttActuator(plan.config.mqtt, boot) as guard:
                    await guard.ready()
                    why = await _take_back(guard, halt_id)
                if why:
                    await asyncio.sleep(RETRY_AFTER)
    except TimeoutError:
        pass  # the last reason says why
    return why


def _in_force(halt_id: str, cause: str) -> Finding:
    how = f"start hdguard, see to what is wrong, and end it: hdguard reset {halt_id}"
    return fail("halt", f"halt {halt_id} ({cause}) is in force; it was left alone", how)


def _unread(why: str, topic: str) -> Finding:
    said = f"was not sent: the halt that the broker keeps cannot be read ({why}); it was left alone"
    how = (
        "if mqtt.robot_key was changed, set the old one, start hdguard and reset the halt; else "
        "see that nothing is wrong beside the robot, publish an empty retained message on "
        f"{topic}, and try again"
    )
    return fail("halt", said, how)


async def _try(guard: MqttActuator, halt_id: str) -> Answers:
    """Say it until the robot stands, or for `STOPS_WITHIN`."""
    halt = Halt(
        halt_id,
        HaltClass.OPERATOR,
        HaltCause.OPERATOR,
        hazard=Hazard(text="hdguard doctor tries the halt"),
        decided_at=asyncio.get_running_loop().time(),
    )
    answers = Answers()
    async with asyncio.TaskGroup() as group:
        saying = group.create_task(_repeat(guard, halt, answers), name="halt")
        try:
            async with asyncio.timeout_at(halt.decided_at + STOPS_WITHIN):
                await _listen(guard, halt, answers)
        except TimeoutError:
            pass  # what did not come is None
        finally:
            saying.cancel()
    return answers


async def _repeat(guard: MqttActuator, halt: Halt, answers: Answers) -> None:
    count = 0
    while True:
        try:
            await guard.halt(replace(halt, repeat=count))
        except ActuatorError as error:  # as the guard does: the next repeat may arrive
            answers.trouble = str(error)
        await asyncio.sleep(REPEAT_EVERY)
        count += 1


async def _listen(guard: MqttActuator, halt: Halt, answers: Answers) -> None:
    """Note the robot's answers, up to the one that says that it stands."""
    loop = asyncio.get_running_loop()
    async for event in guard.events():
        if not isinstance(event, HaltAcknowledged | HaltConfirmed) or event.halt_id != halt.halt_id:
            continue
        after = loop.time() - halt.decided_at
        if answers.acknowledged is None:
            answers.acknowledged = after
        if isinstance(event, HaltConfirmed):
            answers.confirmed = after
            return


def _judged(answers: Answers) -> Finding:
    if answers.acknowledged is None:
        why = f"; {answers.trouble}" if answers.trouble else ""
        how = (
            "the robot must answer every halt on its topic ack (`hdguard robot --check` tests it); "
            "check the broker's ACL and the keys"
        )
        return fail("halt", f"no acknowledgement in {STOPS_WITHIN:g} s{why}", how)
    said = f"acknowledged after {answers.acknowledged * 1e3:.0f} ms"
    if answers.confirmed is None:
        how = "it must stop for a halt, and say stopped: true once it stands"
        return fail("halt", f"{said}, but it does not say that it stands", how)
    said = f"{said}, standing after {answers.confirmed * 1e3:.0f} ms; the halt was taken back"
    if answers.acknowledged > ESCALATE_AFTER:
        how = f"after {ESCALATE_AFTER:g} s a halt is escalated: the robot must answer sooner"
        return warn("halt", said, how)
    return ok("halt", said)

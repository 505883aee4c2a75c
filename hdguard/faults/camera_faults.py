"""What cameras do: fall silent, answer nothing, come back, send late, send rubbish."""

from hdguard.actuators import wire
from hdguard.faults.rows import FaultError, Row, Scenario
from hdguard.faults.stack import Stack
from hdguard.faults.witness import Seen

HELD, COVERED = 3.0, 1.2
"""Seconds that pictures are held back, and from their beginning to the lens being uncovered, which
shows half a second later: the last covered picture is 1.3 s old when they all come at once."""

CANNOT_SEE = 'hdguard_verdicts_total{brain="reflex",verdict="cannot_see"}'

CORRUPT = 'hdguard_frames_total{outcome="corrupt"}'

DAMAGED = 1.0
"""Seconds of damaged pictures: below the age at which a camera without clean ones halts the robot
for certain, so that the decoder's own behaviour is what is looked at."""

UNSEEN = ("stale_frame", "stale_verdict")
"""Causes of a halt for want of pictures: whichever is past its limit first. The last judged frame
is older than the last frame."""

SOONEST = 0.5
"""Seconds: whoever halts sooner after a picture has not missed one (the limits are 1.0 s, and the
last judged frame is up to 0.25 s older than the last): such a halt is another fault's."""

RETRY = 5.0
"""Seconds between two attempts at most: DESIGN section 6."""

STUCK = 1.4
"""Seconds: 1.0 of a standing picture on a driving robot (field.md, F2), after up to 0.2 to the
guard's first look at it; a picture is complete only when the next one comes, 0.05 later."""

VERDICT_AGE = 1.0
"""Seconds: no frame above it may be judged, at 5 frames a second (DESIGN section 3)."""

DISTINCT = 0.1
"""Seconds by which two judged frames differ at least: half of what lies between two of them. Below
that it is the same frame, and a permit that came a little late."""


async def silent(stack: Stack) -> tuple[float]:
    """The socket stays open and no picture comes any more."""
    camera, witness = stack.camera, stack.witness
    camera.mode = "silent"
    last = camera.taken[-1]
    halt = await witness.halt(last, *UNSEEN)
    camera.mode = "sending"
    if halt.at - last < SOONEST:
        raise FaultError(f"{halt.at - last:.2f} s after a picture it was halted for want of one")
    return (halt.at - last,)


async def stuck(stack: Stack) -> tuple[float]:
    """It sends one picture again and again, with stamps that go on, while the robot drives."""
    began = stack.now()
    stack.camera.mode = "stuck"
    halt = await stack.witness.halt(began, "frozen_frame")
    stack.camera.mode = "sending"
    return (halt.at - began,)


async def never_answers(stack: Stack) -> tuple[float]:
    """It accepts connections and answers nothing: a guard starts, gives up, and tries again."""
    camera, witness = stack.camera, stack.witness
    stack.guard.end()
    camera.deaf = True
    began = stack.guard.start()
    accepted = await _next(stack, camera.accepted, began)
    closed = await _next(stack, camera.closed, accepted)
    again = await _next(stack, camera.accepted, closed)
    camera.deaf = False
    if not 0.4 < again - closed < RETRY + 0.5:
        raise FaultError(f"it tried again after {again - closed:.2f} s, not after 0.5 to 5")
    if any(_permit(p).speed != "none" for p in witness.since("permit", accepted)):
        raise FaultError("it permitted motion before it had seen a frame")
    return (closed - accepted,)


async def returns(stack: Stack) -> tuple[float]:
    """It goes, the robot halts, and it comes back: measured from the attempt that succeeds."""
    camera, witness = stack.camera, stack.witness
    await camera.go()
    gone = stack.now()
    await witness.halt(gone, *UNSEEN)
    await camera.come()
    back = stack.now()
    accepted = await _next(stack, camera.accepted, back)
    if accepted - back > RETRY + 0.5:
        raise FaultError(f"it came back only {accepted - back:.2f} s after the camera")
    fresh = await witness.first("permit", _sees, accepted)
    await stack.ready()
    if witness.since("reset", gone):
        raise FaultError("the fault halt did not clear by itself")
    return (fresh.at - accepted,)


async def burst(stack: Stack) -> tuple[float]:
    """Pictures are held back and then come all at once: the age of the oldest one judged.

    On the old ones the lens is covered, so that a judgement of them shows, whatever the guard
    believes of their age: the reflex cannot see on the first picture after a gap, nor on a covered
    one, nor on the first after that. It is done twice, for the reflex now and then cannot see on
    two pictures after a gap: more than three times in all, a covered one was judged; less than
    twice, nothing was seen of it that pictures were missing. Of pictures
    that come at once only the newest is offered, so a wrong clock shows here in some runs only;
    the tests of `LiveClock` are the strict ones.
    """
    before = await stack.metric(CANNOT_SEE)
    oldest = max([await _held_back(stack), await _held_back(stack)])
    unseen = await stack.metric(CANNOT_SEE) - before
    if unseen > 3:
        raise FaultError(f"a picture older than {VERDICT_AGE:g} s was judged")
    if unseen < 2:
        raise FaultError(f"of two gaps {unseen:g} were noticed by the reflex")
    return (oldest,)


async def _held_back(stack: Stack) -> float:
    camera, witness = stack.camera, stack.witness
    camera.covered, camera.mode = True, "holding"
    held = stack.now()
    await witness.halt(held, *UNSEEN)
    await stack.until(held + COVERED)
    camera.covered = False
    await stack.until(held + HELD)
    sent, released = len(camera.taken), stack.now()
    camera.mode = "sending"
    await stack.ready()
    if not [at for at in camera.taken[sent:] if at < held + HELD - VERDICT_AGE]:
        raise FaultError("nothing of what was held back was sent: no connection was open")
    ages = _ages_when_judged(witness.since("permit", held), released)
    if not ages:
        raise FaultError("no frame was judged after it")
    return max(ages)


def _ages_when_judged(permits: list[Seen], since: float) -> list[float]:
    """How old each frame was when the permit came that first showed its verdict, in seconds.

    A permit says how old the last judged frame is, so it says when that frame was taken. Those from
    before `since` only tell which frame had been judged by then.
    """
    ages, newest = [], float("-inf")
    for seen in permits:
        age = _permit(seen).verdict_age
        if age is not None and seen.at - age > newest + DISTINCT:
            if seen.at >= since:
                ages.append(age)
            newest = seen.at - age
    return ages


async def bit_errors(stack: Stack) -> tuple[float]:
    """Bytes are flipped for a second: the guard lives, and sees again after the next key frame."""
    camera, witness = stack.camera, stack.witness
    pid = stack.guard.pid
    before = await stack.metric(CORRUPT)
    camera.mode = "damaging"
    await stack.until(stack.now() + DAMAGED)
    left_out = await stack.metric(CORRUPT) - before
    camera.mode = "sending"
    mended = stack.now()
    await stack.until(mended + 0.1)  # past what was under way
    seen = await witness.first("permit", _sees, stack.now())
    if left_out < 1:
        raise FaultError("no damaged frame was left out")
    if stack.guard.pid != pid:
        raise FaultError("the guard was started anew")
    return (seen.at - mended,)


async def _next(stack: Stack, times: list[float], since: float) -> float:
    """The first of the camera's times from then on; waits for it."""
    while not (found := [at for at in times if at >= since]):
        await stack.camera.changed()
    return found[0]


def _permit(seen: Seen) -> wire.PermitMessage:
    return wire.decode_permit(seen.payload)


def _sees(payload: bytes) -> bool:
    """The guard has a fresh frame."""
    age = wire.decode_permit(payload).frame_age
    return age is not None and age < 0.3


SCENARIOS = (
    Scenario(
        (Row("camera-silent", "camera silent, socket open: fault halt", 1.1),),
        silent,
    ),
    Scenario(
        (Row("camera-stuck", "camera sends one and the same picture: fault halt", STUCK),),
        stuck,
    ),
    Scenario(
        (Row("camera-never-answers", "RTSP accepts, never answers: given up", 2.0),),
        never_answers,
    ),
    Scenario(
        (Row("camera-returns", "camera returns: frames again, after the retry", 2.0),),
        returns,
    ),
    Scenario(
        (Row("burst", "burst of old frames: age of the oldest one judged", VERDICT_AGE),),
        burst,
    ),
    Scenario(
        (Row("bit-errors", "bit errors for 1 s: no crash, clean frames again", None),),
        bit_errors,
    ),
)

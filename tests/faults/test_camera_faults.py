"""What counts as a camera's fault met, and what does not."""

import pytest

from hdguard.core.types import HaltCause
from hdguard.faults import camera_faults
from hdguard.faults.camera_faults import _ages_when_judged
from hdguard.faults.rows import FaultError
from tests.actuators.support import run
from tests.faults.support import ToldStack, injected


def ages(*told: tuple[float, float | None], since: float) -> list[float]:
    async def story() -> list[float]:
        stack = ToldStack()
        for at, age in told:
            stack.permits(at, age)
        return _ages_when_judged(list(stack.witness.seen), stack.began + since)

    return run(story(), "asyncio")


def test_an_old_frame_that_is_judged_first_after_the_silence_is_seen() -> None:
    silence = [(0.1, 0.2), (0.3, 0.4), (2.9, 3.0)]
    assert ages(*silence, (3.1, 2.6), (3.3, 0.2), since=3.0) == [2.6, 0.2]
    # Nor does it hide behind a guard that has forgotten what it judged before.
    assert ages((2.9, None), (3.1, 2.6), (3.3, 0.2), since=3.0) == [2.6, 0.2]


def test_a_frame_judged_before_is_not_judged_again_by_growing_old() -> None:
    assert ages((2.9, 3.0), (3.1, 3.2), (3.3, 3.45), since=3.0) == []


def test_a_halt_that_came_before_a_picture_was_missed_is_not_the_silences() -> None:
    async def story() -> None:
        stack = ToldStack()
        stack.halts(0.2, HaltCause.STALE_VERDICT)
        with pytest.raises(FaultError, match=r"0.20 s after a picture it was halted for want"):
            await injected(camera_faults.silent, stack)
        stack = ToldStack()
        stack.halts(0.9, HaltCause.STALE_VERDICT)
        assert await injected(camera_faults.silent, stack) == pytest.approx((0.9,))

    run(story(), "asyncio")


@pytest.mark.parametrize(
    ("unseen", "words"), [(0, "of two gaps 0 were noticed"), (4, "was judged")]
)
def test_a_burst_of_which_the_reflex_saw_nothing_or_too_much_is_not_met(
    unseen: int, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def held_back(_: object) -> float:
        return 0.2

    monkeypatch.setattr(camera_faults, "_held_back", held_back)

    async def story() -> None:
        with pytest.raises(FaultError, match=words):
            await injected(camera_faults.burst, ToldStack([7.0, 7.0 + unseen]))
        assert await injected(camera_faults.burst, ToldStack([7.0, 9.0])) == (0.2,)

    run(story(), "asyncio")


def test_frames_that_were_damaged_before_do_not_stand_for_this_injection() -> None:
    async def story() -> None:
        for left_out in (0.0, 3.0):
            stack = ToldStack([5.0, 5.0 + left_out])
            stack.permits(0.5, 0.1)
            if left_out:
                assert await injected(camera_faults.bit_errors, stack) == pytest.approx((0.5,))
            else:
                with pytest.raises(FaultError, match="no damaged frame was left out"):
                    await injected(camera_faults.bit_errors, stack)

    run(story(), "asyncio")

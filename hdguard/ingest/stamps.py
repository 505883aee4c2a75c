"""Presentation stamps into media times that always rise, whatever the file says.

Everything downstream (sampling, ages, scores) needs each frame to be later than the one before, so
a stamp that is missing or out of order is replaced, and the frame is used. The frame after it is
already decoded when a stamp is judged: one wild stamp among good ones then costs nothing, while a
jump that the next frame confirms is kept.
"""

from fractions import Fraction

from hdguard.ingest.decoder import Tally

# A stamp this far back (s) begins a new time line; live sources renew their offset at the same.
_NEW_TIME_LINE = 1.0
_LONG_GAP = 1.0  # s; in a file with constant rate, frames are missing
_USUAL_INTERVAL = 0.04  # 25 frames a second, for files that do not say


class MediaTimes:
    """Gives each frame its media time; 0.0 is the first frame asked for."""

    def __init__(self, base: Fraction, interval: float, tally: Tally) -> None:
        """Stamps count units of `base` seconds; `interval` is the nominal one, 0.0 if unknown."""
        self._base = base
        self._step = interval or _USUAL_INTERVAL
        self._tally = tally
        self._zero: int | None = None
        self._shift = 0.0
        self._last: float | None = None

    def of(self, stamp: int | None, following: int | None) -> float:
        """Seconds of the next frame, always above the last; `following` is the stamp after it."""
        if self._last is None:
            self._last = 0.0
            if stamp is not None and not (following is not None and following < stamp):
                self._zero = stamp
            else:
                self._repaired("missing" if stamp is None else "out of order")
            return 0.0
        if stamp is not None and self._zero is None:
            self._zero, self._shift = stamp, self._last + self._step
        self._last = self._after(self._last, stamp, following)
        return self._last

    def _after(self, last: float, stamp: int | None, following: int | None) -> float:
        after = None if following is None else self._seconds(following)
        if after is not None and after <= last:
            after = None  # says nothing about what lies between
        if stamp is None:
            self._repaired("missing")
            return self._between(last, self._step, after)
        time = self._seconds(stamp)
        if last < time and (after is None or time <= after):
            if time - last > max(_LONG_GAP, 3 * self._step):
                self._tally.trouble("gap of over a second between frames, kept", last)
            return time
        self._repaired("out of order")
        if last - time > _NEW_TIME_LINE:
            self._shift += last + self._step - time
            return last + self._step
        # With half a step a repeated stamp does not push the good ones behind it out of order.
        return self._between(last, self._step if after else self._step / 2, after)

    def _seconds(self, stamp: int) -> float:
        # Whole numbers up to one division: the result is the nearest float to the exact time.
        ticks = stamp - (self._zero or 0)
        return ticks * self._base.numerator / self._base.denominator + self._shift

    @staticmethod
    def _between(last: float, step: float, after: float | None) -> float:
        return last + step if after is None else min(last + step, (last + after) / 2)

    def _repaired(self, what: str) -> None:
        self._tally.repaired(f"presentation stamp {what}, replaced", self._last or 0.0)

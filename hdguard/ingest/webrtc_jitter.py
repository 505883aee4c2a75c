"""What the WebRTC library's buffer for lost packets does to pictures, and does not say.

It holds everything back while it waits for a lost packet, and after 512 more gives that packet up.
The decoder then goes on from the picture before: what it shows looks whole, is flagged by nobody,
and is wrong until the next key frame. And from then on the buffer lets one picture out for each
packet that comes in: where pictures are one packet each, as those of a quiet room are, what it once
held back stays held back for good, and every picture is that much older than it seems.
"""

from collections import deque
from statistics import median

HELD_BACK = 0.25
"""Seconds by which the picture after a loss is late, at least: 512 packets of up to 1,300 bytes
take so long at 20 Mbit/s, and longer below."""

MISSING = 1.5
"""Of a usual step between two pictures' stamps: above it, one is missing between them."""

_STEPS = 9  # of which the median is the usual one

_SLEW = 500e-6
# Seconds a second by which two clocks may drift apart: what adjtimex(2) allows a clock that is
# being put right. A quickest journey is believed so much less with every second.


class LossWatch:
    """One connection's; ask for every decoded picture in order."""

    def __init__(self) -> None:
        self._steps: deque[float] = deque(maxlen=_STEPS)
        self._last: tuple[float, float] | None = None
        self._smeared = False

    def whole(self, at: float, arrival: float, key_frame: bool) -> bool:
        """Whether the picture can be believed.

        Args:
            at: its stamp in seconds, on the sender's clock.
            arrival: when it was decoded, in seconds on the loop's clock.
            key_frame: it needs no picture before it.
        """
        if self._last is not None:
            step, took = at - self._last[0], arrival - self._last[1]
            usual = median(self._steps) if self._steps else step
            if took - step > HELD_BACK and step > MISSING * usual:
                self._smeared = True
            self._steps.append(step)
        self._last = at, arrival
        self._smeared = self._smeared and not key_frame
        return not self._smeared


class Delay:
    """How much longer pictures were under way than the quickest of their connection was.

    `LiveClock` forgets the quickest after 30 s, which is right for a camera and wrong for a buffer
    that stays full.
    """

    def __init__(self) -> None:
        self._quickest = float("inf")
        self._arrival = 0.0

    def of(self, at: float, arrival: float) -> float:
        """Seconds, of the picture with that stamp; both times are in seconds."""
        drift = _SLEW * (arrival - self._arrival)
        self._quickest = min(self._quickest + drift, arrival - at)
        self._arrival = arrival
        return arrival - at - self._quickest

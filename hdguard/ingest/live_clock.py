"""When a live picture was taken, by a camera whose clock is not ours.

A picture that was held up on its way must look as old as it is, and no stamp may make one look
newer than its arrival. Only differences of the camera's stamps are used, so it does not matter
what its clock says, or whether somebody sets it.

How long the quickest journey takes cannot be known, only that no picture was quicker yet. While
pictures that waited somewhere (in a relay, in the camera) come out faster than they were taken,
each one is quicker than the one before, and all of them would look new. So no picture is trusted
until the quickest journey has held for a while.
"""

import math
from collections import deque

WINDOW = 30.0
"""Seconds: the quickest journey of a picture within these is taken for the usual one (DESIGN 4)."""

_MEMORY = 1.0
# Seconds: the same while nothing is settled. Behind a pause a backlog then betrays itself again,
# and one quick picture at the start keeps nobody waiting for half a minute.

JUMP = 1.0
"""Seconds: a step of the stamps above this begins a new time line (DESIGN 4); for a slow camera,
a step above 2.5 of its intervals."""

_BACK = -0.2
# Seconds: so does a smaller step back, for else all that follows would look too old for half a
# minute; but a few stamps out of order do not.

SETTLING = 0.5
"""Seconds of pictures at their own pace after which the quickest journey is believed.

A choice: with `SLACK` it tells a backlog that comes out steadily at over 1.1 times its pace. Until
a camera's first picture is believed, 0.5 to 0.65 s pass, and more where its pictures come unevenly.
"""

SLACK = 0.05
"""Seconds: a quickest journey that is beaten by more than this was none. A choice: the jitter of a
usual network lies below it."""

_GRAIN = 1e-6  # s; sums of steps that make up `SETTLING` are that much off
_USUAL_STEP = 0.04  # s; 25 frames a second, where there are no stamps
_SLOW_STEP = 0.2  # s; 5 frames a second: a slower camera declares its interval
_LEAST_STEP = 0.001  # s; between two pictures with the same stamp


class LiveClock:
    """One source's; call `captured` for every picture in order, `restart` for every connection.

    Attributes:
        settled: False while pictures may be a backlog of unknown age: do not judge them.
        media_time: seconds from the first settled picture to the newest one by the camera's
            stamps, across connections; always rises.
    """

    def __init__(self, interval: float = 0.0) -> None:
        """`interval`: declared seconds between pictures, 0.0 if not known."""
        self.settled = False
        self.media_time = 0.0
        self._jump = max(JUMP, 2.5 * interval)
        self._longest = max(_SLOW_STEP, interval)
        self._begun = False
        self._captured = -math.inf
        self._since = -math.inf  # from when on it is remembered which journey was the quickest
        self._offsets: deque[tuple[float, float]] = deque()  # arrival, offset; both rise
        self.restart()

    def restart(self) -> None:
        """A new connection: what the stamps count from has changed."""
        self._stamp: float | None = None
        self._arrival = -math.inf
        self._ahead: float | None = None  # the stamp of the picture that came last
        self._new_line()

    def captured(self, t: float | None, arrival: float) -> float:
        """The picture's `captured_at`, in seconds on the loop's clock.

        It is min(arrival, offset + t) with the smallest (arrival - t) of the last 30 s as offset,
        and never before that of the picture before it. A picture without a stamp amid others that
        have one may have waited as they did: it counts as taken with the one before it.

        Args:
            t: the picture's presentation stamp in seconds; None if it has none.
            arrival: when its bytes came, in seconds on the loop's clock.
        """
        if t is None and self._stamp is not None:
            if arrival - self._arrival <= self._jump:
                self._count(None, 0.0)
                return self._captured
            self.restart()  # no stamps any more
        took = arrival - self._arrival  # infinite for the first
        stepped = None if t is None or self._stamp is None else t - self._stamp
        if stepped is not None and not _BACK <= stepped <= self._jump:
            self._new_line()
            self._ahead = None
        at, prompt = arrival, True
        if t is not None:
            at = min(arrival, self._offset(arrival - t, arrival) + t)
            prompt = self._is_prompt(arrival - t, arrival)
        self._count(stepped, took)
        if took > 0.0:  # else it was reordered, which tells nothing of the pace
            self._pass(t, took)
            self._arrival = arrival
        if prompt:
            self._settle()
        self._begun = self._begun or self.settled
        self._stamp = t
        self._captured = max(self._captured, at)
        return self._captured

    def _new_line(self) -> None:
        self._offsets.clear()
        self._doubt(-math.inf, math.inf)

    def _doubt(self, arrival: float, offset: float) -> None:
        self.settled = False
        self._evidence = self._unproved = 0.0
        self._believed = arrival, offset  # the quickest journey, and since when

    def _offset(self, offset: float, arrival: float) -> float:
        """The smallest of the window, this one included; those that can never be it are gone."""
        while self._offsets and self._offsets[-1][1] >= offset:
            self._offsets.pop()
        self._offsets.append((arrival, offset))
        while self._offsets[0][0] < arrival - WINDOW:
            self._offsets.popleft()
        return self._offsets[0][1]

    def _is_prompt(self, offset: float, arrival: float) -> bool:
        """Whether it was hardly slower than the quickest; doubt those that it was quicker than."""
        since, believed = self._believed
        if not self.settled:
            self._since = arrival - _MEMORY
        remembered = (known for at, known in self._offsets if at >= self._since)
        quickest = next(remembered, offset)
        if quickest < believed - SLACK:
            self._doubt(arrival, quickest)
        elif quickest > believed or arrival > since + WINDOW:
            self._believed = arrival, quickest  # clocks drift apart
        return offset <= quickest + SLACK

    def _pass(self, t: float | None, took: float) -> None:
        """Count the time that passed for the camera and for us alike.

        A pause on the way is time for us alone, and in a backlog it passes for the camera alone.
        """
        step = 0.0
        if t is not None and self._ahead is not None:
            step = max(0.0, min(took, t - self._ahead))
        elif t is None and _USUAL_STEP / 2 <= took < math.inf:
            step = min(took, self._longest)
        self._ahead = t
        self._unproved = max(step, min(self._unproved + step, SETTLING / 2))

    def _settle(self) -> None:
        """A prompt picture bears witness, but only for a short time before it.

        Behind a pause the rest of a backlog is no quicker than what came before the pause.
        """
        self._evidence += self._unproved
        self._unproved = 0.0
        self.settled = self.settled or self._evidence >= SETTLING - _GRAIN

    def _count(self, stepped: float | None, took: float) -> None:
        if self._begun:
            step = stepped if stepped is not None and 0 < stepped <= self._jump else took
            # A first picture after `restart` took forever; the time between is not media time.
            self.media_time += max(step, _LEAST_STEP) if math.isfinite(step) else _USUAL_STEP

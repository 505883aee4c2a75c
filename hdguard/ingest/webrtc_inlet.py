"""The queue between the WebRTC library's network half and its decoder thread, with limits.

aiortc's own has none: a machine that decodes 10 of 30 pictures a second gets behind for ever, and
as the library waits on the event loop until the thread has worked off the whole queue, closing
such a connection held the loop for 11 s. And nothing looks at a picture before it is decoded.
There is no public place for either; `tests/ingest/test_webrtc_inlet.py` fails where the private
names are no longer what they were in aiortc 1.16.
"""

import contextlib
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from hdguard.ingest.webrtc_size import UnreadableSize, announced

if TYPE_CHECKING:
    from aiortc import RTCRtpReceiver

MAX_WAITING = 60
"""Encoded pictures that wait for the decoder: 2 s at 30 a second, and the newest would be twice as
old as a picture may be that is shown."""

_BORDER = 15  # pixels that a decoder may cut off a side of whole blocks of 16

_QUEUE, _THREAD = "_RTCRtpReceiver__decoder_queue", "_RTCRtpReceiver__decoder_thread"


class Inlet:
    """Stands in for the queue of one receiver, from before it starts.

    Attributes:
        ending: the decoder thread was told to end. It does so after the picture in hand, and its
            last act is to end its track.
    """

    def __init__(
        self, receiver: "RTCRtpReceiver", max_pixels: int, end: Callable[[str], None]
    ) -> None:
        """Let pictures of at most so many pixels through; `end` is told why no more come.

        Raises:
            KeyError: an aiortc that this was not written for.
        """
        self._slots = vars(receiver)
        if not {_QUEUE, _THREAD} <= self._slots.keys():
            msg = "this aiortc is not known here; install one of 1.16"
            raise KeyError(msg)
        self._slots[_QUEUE] = self
        self._max_pixels = max_pixels
        self._end = end
        self._shut = False
        self._waiting: SimpleQueue[Any] = SimpleQueue()
        self.ending = False

    def put(self, task: Any) -> None:
        """Called by aiortc on the loop with codec and encoded picture, or None to end the thread.

        After None the library joins the thread. It is given one that does not keep it waiting:
        a picture of 4K may take 0.1 s, and a permit is due every 0.2 s.
        """
        if task is None:
            self._clear()
            self._slots[_THREAD] = _Ended()
            self.ending = True
            self._waiting.put(None)
        elif not self._shut:
            codec, picture = task
            refusal = self._refusal(codec.name, picture.data)
            if refusal:
                self._clear()
                self._end(refusal)
            else:
                self._waiting.put(task)

    def get(self) -> Any:
        """Called by aiortc in its decoder thread; waits for the next that was put."""
        return self._waiting.get()

    def _refusal(self, codec: str, data: bytes) -> str:
        if self._waiting.qsize() >= MAX_WAITING:
            return "sends more pictures than can be decoded here; use fewer or smaller ones"
        try:
            size = announced(codec, data)
        except UnreadableSize as error:
            return f"sends {error}"
        if size is None or _least(size) <= self._max_pixels:
            return ""
        return f"sends pictures of {size[0]}x{size[1]} pixels, too large"

    def _clear(self) -> None:
        self._shut = True
        with contextlib.suppress(Empty):
            while True:
                self._waiting.get_nowait()


def _least(size: tuple[int, int]) -> int:
    """Pixels that may be left of coded ones; `Receiver` counts what was decoded exactly."""
    width, height = size
    return max(1, width - _BORDER) * max(1, height - _BORDER)


class _Ended:
    """What aiortc joins instead of the decoder thread."""

    def join(self) -> None:
        """Nothing: `Receiver.close` waits without holding the loop."""

"""Pixels in memory that a supervisor and its worker share, so that no picture is sent.

The memory has no name: it is gone with the last process that holds it, however that one ends.
"""

import mmap
import os
import struct
import sys
import tempfile

import numpy as np

from hdguard.brains.base import BrainError, Rgb

_NOTE = struct.Struct("=Q")  # behind the slots: the number of a call that nobody waits for


class Ring:
    """A number of slots, each for one picture of at most `slot_bytes` bytes.

    It keeps no order of its own: the supervisor writes the slots in turn, and only its newest
    call's answer is awaited, so a slot is never rewritten under a call that still matters.
    """

    def __init__(self, fd: int, slots: int, slot_bytes: int) -> None:
        self.fd = fd
        self.slots = slots
        self.slot_bytes = slot_bytes
        self._memory = mmap.mmap(fd, slots * slot_bytes + _NOTE.size)

    @classmethod
    def create(cls, slots: int, slot_bytes: int) -> "Ring":
        """New shared memory; a process that inherits its `fd` attaches with `Ring(fd, ...)`."""
        if sys.platform == "linux":
            fd = os.memfd_create("hdguard-ring")
        else:
            with tempfile.TemporaryFile() as file:  # unlinked at once
                fd = os.dup(file.fileno())
        os.ftruncate(fd, slots * slot_bytes + _NOTE.size)
        return cls(fd, slots, slot_bytes)

    def write(self, slot: int, rgb: Rgb) -> None:
        """Put a picture, shape (height, width, 3) of uint8, into the slot.

        Raises:
            BrainError: it is no such picture, or larger than a slot.
        """
        if rgb.dtype != np.uint8 or rgb.ndim != 3 or rgb.shape[2] != 3:
            raise BrainError(
                f"picture must be (height, width, 3) uint8, not {rgb.shape} {rgb.dtype}"
            )
        self._slot(slot, rgb.shape)[...] = rgb

    def read(self, slot: int, height: int, width: int) -> Rgb:
        """A copy of the slot's picture, shape (height, width, 3), uint8, read-only.

        Raises:
            BrainError: there is no such slot, or it is smaller than that.
        """
        rgb = self._slot(slot, (height, width, 3)).copy()
        rgb.flags.writeable = False
        return rgb

    @property
    def cancelled(self) -> int:
        """The number of the call that was cancelled last; 0 before the first."""
        (call_id,) = _NOTE.unpack_from(self._memory, self.slots * self.slot_bytes)
        return int(call_id)

    def cancel(self, call_id: int) -> None:
        """Note that nobody waits for this call."""
        _NOTE.pack_into(self._memory, self.slots * self.slot_bytes, call_id)

    def close(self) -> None:
        """Let go of the memory."""
        self._memory.close()
        os.close(self.fd)

    def _slot(self, slot: int, shape: tuple[int, ...]) -> Rgb:
        size = int(np.prod(shape))
        if not 0 <= slot < self.slots or min(shape) < 1 or size > self.slot_bytes:
            room = f"{self.slots} slots of {self.slot_bytes} bytes"
            raise BrainError(f"picture {shape} does not fit into slot {slot} of {room}")
        start = slot * self.slot_bytes
        return np.frombuffer(self._memory, np.uint8, size, start).reshape(shape)

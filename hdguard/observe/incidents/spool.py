"""Pictures on their way to a clip: one file, appended to, readable up to wherever it was cut off.

Each picture is a head (`HDG1`, the lengths of what follows, a CRC-32 of it), its frame's name as
JSON, and its JPEG. A daemon that is killed, or a disk that loses its power, leaves a torn end at
most, and all before it is good.
"""

import fcntl
import os
import struct
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from hdguard.core.types import FrameRef

FILE = "frames.spool"
_HEAD = struct.Struct(">4sIII")
_MAGIC = b"HDG1"
_LONGEST = 32 << 20  # bytes; no picture of ours is longer: what says so is torn


@dataclass(frozen=True, slots=True)
class Picture:
    """A frame as a JPEG."""

    ref: FrameRef
    jpeg: bytes


def packed(picture: Picture) -> bytes:
    """What is appended for a picture."""
    name = msgspec.json.encode(picture.ref)
    check = zlib.crc32(picture.jpeg, zlib.crc32(name))
    return _HEAD.pack(_MAGIC, len(name), len(picture.jpeg), check) + name + picture.jpeg


class SpoolFile:
    """A file that is appended to, for the owner alone (0600), and locked meanwhile.

    Raises:
        OSError: it is there already or cannot be made; also of `append`.
    """

    def __init__(self, path: Path) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        self._file = os.open(path, flags, 0o600)
        self.size = 0
        with suppress(OSError):  # not every disk in the network has locks; nothing else needs them
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def append(self, data: bytes) -> None:
        """Write it whole."""
        view = memoryview(data)
        while view:
            view = view[os.write(self._file, view) :]
        self.size += len(data)

    def close(self) -> None:
        """Nothing more comes.

        Raises:
            OSError: a disk in the network does not take what it was given before.
        """
        os.close(self._file)


def read_spool(path: Path) -> Iterator[Picture]:
    """The pictures, in the order in which they were appended; a torn end is left out.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        while len(head := file.read(_HEAD.size)) == _HEAD.size:
            magic, name_length, length, check = _HEAD.unpack(head)
            if magic != _MAGIC or max(name_length, length) > _LONGEST:
                return
            name, jpeg = file.read(name_length), file.read(length)
            if zlib.crc32(jpeg, zlib.crc32(name)) != check:
                return
            yield Picture(msgspec.json.decode(name, type=FrameRef), jpeg)

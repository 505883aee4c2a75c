"""H.264 in RTP packets, as a network camera sends it, made from pictures of our own.

RFC 6184 (packetization mode 1): a NAL unit that fits is a packet of its own, a longer one goes in
fragments (FU-A). Over TCP each packet stands behind a `$`, a channel and a length (RFC 2326,
section 10.12).
"""

import base64
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import av
import numpy as np
from numpy.typing import NDArray

FPS = 20
"""Pictures a second: four times the fastest sampling, so that a frame is never older than 50 ms."""

SIZE = (320, 240)
"""Pixels, wide and high: little to decode, since two cores may run all of this."""

GROUP = 10
"""Pictures from one key frame to the next: half a second. Any film may take over at a key frame."""

_LOOP = 40  # pictures before the stream begins anew; two seconds
_TURN = 8  # pixels to either side: a picture that stood still would count as frozen
_CLOCK = 90_000  # RTP's ticks a second for video
_MOST = 1400  # bytes of a packet; what fits into an Ethernet frame
_TYPE = 96  # dynamic payload type
_SSRC = 0x68646731
_SPS, _PPS, _FU_A = 7, 8, 28
_INTACT = 24  # bytes at the head of a NAL unit that damage spares: it is to be met by the decoder


@dataclass(frozen=True, slots=True)
class Film:
    """An endless film: its pictures, encoded once, each as its NAL units."""

    pictures: tuple[tuple[bytes, ...], ...]

    def units(self, index: int) -> tuple[bytes, ...]:
        """The picture of that number, counted from the beginning of time."""
        return self.pictures[index % len(self.pictures)]

    def description(self) -> str:
        """The SDP of it."""
        kinds = {unit[0] & 0x1F: unit for unit in self.pictures[0]}
        sets = ",".join(base64.b64encode(kinds[k]).decode() for k in (_SPS, _PPS))
        return (
            "v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=camera\r\nt=0 0\r\nc=IN IP4 127.0.0.1\r\n"
            f"m=video 0 RTP/AVP {_TYPE}\r\na=rtpmap:{_TYPE} H264/{_CLOCK}\r\n"
            f"a=fmtp:{_TYPE} packetization-mode=1;sprop-parameter-sets={sets}\r\n"
            "a=control:track\r\n"
        )


def quiet_room() -> Film:
    """A room in which nothing happens; the robot that carries the camera turns to and fro."""
    rng = np.random.default_rng(7)
    width, height = SIZE
    blocks = rng.integers(60, 200, (height // 20, width // 20, 3)).astype(np.float64)
    return _filmed(np.kron(blocks, np.ones((20, 20, 1))).astype(np.float64))


def covered_lens() -> Film:
    """What a camera sees whose lens is covered."""
    width, height = SIZE
    return _filmed(np.full((height, width, 3), 4.0))


def _filmed(room: NDArray[np.float64]) -> Film:
    rng = np.random.default_rng(1)
    width, height = SIZE
    codec = av.CodecContext.create("libx264", "w")
    codec.width, codec.height, codec.pix_fmt = width, height, "yuv420p"
    codec.time_base = Fraction(1, FPS)
    codec.options = {
        "preset": "ultrafast",
        "tune": "zerolatency",
        "g": str(GROUP),
        "sc_threshold": "0",
    }
    pictures = []
    for index in range(_LOOP):
        turned = np.roll(room, round(_TURN * math.sin(2 * math.pi * index / _LOOP)), axis=1)
        noisy = np.clip(turned + rng.normal(0, 3, turned.shape), 0, 255).astype(np.uint8)
        frame = av.VideoFrame.from_ndarray(noisy)
        frame.pts = index
        data = b"".join(bytes(packet) for packet in codec.encode(frame))
        pictures.append(tuple(_units(data)))
    return Film(tuple(pictures))


def _units(data: bytes) -> Iterator[bytes]:
    """The NAL units of a byte stream (H.264, annex B), without what only H.264's tools need."""
    for piece in data.split(b"\x00\x00\x01")[1:]:
        yield piece.rstrip(b"\x00")


class Packets:
    """One receiver's packets, in their numbers."""

    def __init__(self) -> None:
        self._seq = 0

    def of(self, units: tuple[bytes, ...], index: int, channel: int) -> bytes:
        """One picture, ready to be written to the connection."""
        stamp = index * _CLOCK // FPS
        payloads = [payload for unit in units for payload in _payloads(unit)]
        out = []
        for n, payload in enumerate(payloads):
            marker = 0x80 if n == len(payloads) - 1 else 0
            header = (
                bytes((0x80, marker | _TYPE))
                + (self._seq & 0xFFFF).to_bytes(2, "big")
                + (stamp & 0xFFFFFFFF).to_bytes(4, "big")
                + _SSRC.to_bytes(4, "big")
            )
            self._seq += 1
            size = (len(header) + len(payload)).to_bytes(2, "big")
            out.append(b"$" + bytes((channel,)) + size + header + payload)
        return b"".join(out)


def _payloads(unit: bytes) -> Iterator[bytes]:
    if len(unit) <= _MOST:
        yield unit
        return
    indicator, kind = (unit[0] & 0xE0) | _FU_A, unit[0] & 0x1F
    body = unit[1:]
    for at in range(0, len(body), _MOST):
        first, last = at == 0, at + _MOST >= len(body)
        yield bytes((indicator, first << 7 | last << 6 | kind)) + body[at : at + _MOST]


def damaged(units: tuple[bytes, ...], rng: np.random.Generator) -> tuple[bytes, ...]:
    """The same picture after a bad cable: one byte in fifty is another one."""
    out = []
    for unit in units:
        data = np.frombuffer(unit, np.uint8).copy()
        if unit[0] & 0x1F not in (_SPS, _PPS) and len(data) > _INTACT:
            hit = rng.random(len(data)) < 0.02
            hit[:_INTACT] = False
            data[hit] ^= rng.integers(1, 256, int(hit.sum()), dtype=np.uint8)
        out.append(data.tobytes())
    return tuple(out)

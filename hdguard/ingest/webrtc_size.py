"""How large an encoded picture is, read from its header before a decoder gets it.

A VP8 key frame of a few kilobytes decodes to 8192x8192 pixels: a limit on decoded pictures comes
after the memory and the seconds were spent. VP8's decoder has no limit of its own.
"""

import re

_SPS = re.compile(rb"\x00\x00\x01[\x07\x27\x47\x67]")  # a start code and NAL unit type 7
_MAX_SETS = 16  # of them in one picture; cameras send one. The standard has 32 numbers for them
_MAX_BYTES = 1024  # of one; they are 10 to 60, and some 900 with every scaling list
_WITH_CHROMA = frozenset({100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134, 135})


class UnreadableSize(Exception):  # noqa: N818 - named for what was received
    """A header that says how large pictures are cannot be read; says which."""


def announced(codec: str, data: bytes) -> tuple[int, int] | None:
    """Width and height in pixels that this encoded picture announces.

    Args:
        codec: VP8 or H264, in any case.
        data: the picture as the decoder gets it; H.264 with start codes (its annex B).

    Returns:
        None if it announces none, as most pictures do, which are as large as the one before. Of
        H.264 the largest coded size, in whole blocks: a border of up to 15 pixels may be cut off.

    Raises:
        UnreadableSize: a header that cannot be read, or another codec.
    """
    match codec.upper():
        case "VP8":
            return _vp8(data)
        case "H264":
            return _h264(data)
        case _:
            msg = "pictures of a codec whose size cannot be read"
            raise UnreadableSize(msg)


def _vp8(data: bytes) -> tuple[int, int] | None:
    """RFC 6386 section 9.1; without its start code the decoder refuses the picture itself."""
    if len(data) < 10 or data[0] & 1 or data[3:6] != b"\x9d\x01\x2a":
        return None
    width, height = (int.from_bytes(data[at : at + 2], "little") & 0x3FFF for at in (6, 8))
    return width, height


def _h264(data: bytes) -> tuple[int, int] | None:
    sizes: list[tuple[int, int]] = []
    for count, start in enumerate(_SPS.finditer(data)):
        if count == _MAX_SETS:
            msg = f"more than {_MAX_SETS} sequence parameter sets in one picture"
            raise UnreadableSize(msg)
        end = data.find(b"\x00\x00\x01", start.end(), start.end() + _MAX_BYTES)
        raw = data[start.end() : end if end >= 0 else start.end() + _MAX_BYTES]
        plain = raw.replace(b"\x00\x00\x03", b"\x00\x00")
        try:
            sizes.append(_sequence_size(_Bits(plain)))
        except ValueError as error:
            msg = "a sequence parameter set that cannot be read"
            raise UnreadableSize(msg) from error
        if plain != raw:  # FFmpeg tries these bytes too if it does not like the others
            try:
                sizes.append(_sequence_size(_Bits(raw)))
            except ValueError:
                continue  # nor will FFmpeg be able to
    return max(sizes, key=lambda size: size[0] * size[1], default=None)


class _Bits:
    """A reader of ITU-T H.264's fixed and Exp-Golomb codes (its section 9.1)."""

    def __init__(self, data: bytes) -> None:
        self._text = "".join(f"{byte:08b}" for byte in data)
        self._at = 0

    def fixed(self, count: int) -> int:
        """An unsigned number of so many bits; ValueError past the end."""
        bits = self._text[self._at : self._at + count]
        if len(bits) < count:
            msg = "past the end"
            raise ValueError(msg)
        self._at += count
        return int(bits, 2)

    def golomb(self) -> int:
        """An unsigned number, ue(v), of at most 32 bits; ValueError if there is none."""
        zeros = self._text.index("1", self._at) - self._at
        if zeros > 32:
            msg = "a number that is too long"
            raise ValueError(msg)
        self._at += zeros
        return self.fixed(zeros + 1) - 1

    def signed(self) -> int:
        """A signed number, se(v)."""
        code = self.golomb()
        return (code + 1) // 2 if code % 2 else -(code // 2)


def _sequence_size(bits: _Bits) -> tuple[int, int]:
    """ITU-T H.264 section 7.3.2.1.1, as far as the size."""
    profile = bits.fixed(8)
    bits.fixed(16)  # constraints and level
    bits.golomb()  # its number
    if profile in _WITH_CHROMA:
        _skip_chroma(bits)
    bits.golomb()  # log2_max_frame_num_minus4
    order = bits.golomb()
    if order == 0:
        bits.golomb()
    elif order == 1:
        bits.fixed(1)
        bits.golomb()
        bits.golomb()
        for _ in range(_at_most(bits.golomb(), 255)):
            bits.golomb()
    bits.golomb()  # max_num_ref_frames
    bits.fixed(1)
    width, units = bits.golomb() + 1, bits.golomb() + 1
    frames_only = bits.fixed(1)
    return width * 16, units * 16 * (2 - frames_only)


def _skip_chroma(bits: _Bits) -> None:
    chroma = _at_most(bits.golomb(), 3)
    if chroma == 3:
        bits.fixed(1)
    bits.golomb()  # bit depths
    bits.golomb()
    bits.fixed(1)
    if not bits.fixed(1):
        return
    for number in range(12 if chroma == 3 else 8):
        if bits.fixed(1):
            _skip_scaling_list(bits, 16 if number < 6 else 64)


def _skip_scaling_list(bits: _Bits, size: int) -> None:
    last = 8
    for _ in range(size):
        last = (last + bits.signed()) % 256
        if last == 0:
            return  # the rest is as the last


def _at_most(number: int, limit: int) -> int:
    if number > limit:
        msg = f"{number} is more than {limit}"
        raise ValueError(msg)
    return number

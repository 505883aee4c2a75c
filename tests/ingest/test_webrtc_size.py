"""Sizes in the headers of encoded pictures, against what real encoders wrote and decoders made."""

import random
import re
from fractions import Fraction

import av
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hdguard.ingest.webrtc_size import UnreadableSize, announced
from tests.ingest.webrtc_peers import coloured

START = b"\x00\x00\x00\x01"
ORDER = "011"


def encoded(codec: str, width: int, height: int, **options: str) -> list[bytes]:
    """A key frame and the picture after it."""
    encoder = av.CodecContext.create(codec, "w")
    assert isinstance(encoder, av.VideoCodecContext)
    encoder.width, encoder.height, encoder.pix_fmt = width, height, options.pop("fmt", "yuv420p")
    encoder.time_base = Fraction(1, 30)
    encoder.options = options
    packets = []
    for number in range(2):
        frame = coloured((200, 40, 40), width, height).reformat(format=encoder.pix_fmt)
        frame.pts = number
        packets += encoder.encode(frame)
    return [bytes(packet) for packet in [*packets, *encoder.encode(None)]]


def vp8(width: int, height: int) -> list[bytes]:
    return encoded("libvpx", width, height, deadline="realtime", **{"lag-in-frames": "0"})


def h264(width: int, height: int, **options: str) -> list[bytes]:
    return encoded("libx264", width, height, preset="ultrafast", tune="zerolatency", **options)


def golomb(number: int) -> str:
    text = f"{number + 1:b}"
    return "0" * (len(text) - 1) + text


def parameter_set(width: int, height: int, order: str = ORDER) -> bytes:
    """A sequence parameter set by hand; sizes are in whole blocks of 16."""
    bits = f"{66:08b}{0xE01F:016b}" + "1" + "1" + order + golomb(1) + "0"
    bits += golomb(width // 16 - 1) + golomb(height // 16 - 1) + "1" + "1" + "0" + "0" + "1"
    bits += "0" * (-len(bits) % 8)
    plain = int(bits, 2).to_bytes(len(bits) // 8, "big")
    return START + b"\x67" + re.sub(rb"\x00\x00(?=[\x00-\x03])", b"\x00\x00\x03", plain)


@pytest.mark.parametrize(("width", "height"), [(64, 48), (320, 240), (1920, 1080), (70, 50)])
def test_a_key_frame_tells_its_size_and_the_picture_after_it_none(width: int, height: int) -> None:
    key, after = vp8(width, height)
    assert announced("VP8", key) == (width, height)
    assert announced("vp8", after) is None
    key, after = h264(width, height)
    assert announced("H264", key) == (-(-width // 16) * 16, -(-height // 16) * 16)
    assert announced("H264", after) is None


@pytest.mark.parametrize(
    "options",
    [
        {"profile": "baseline"},
        {"profile": "high", "x264-params": "cqm=jvt"},
        {"fmt": "yuv444p", "x264-params": "cqm=jvt"},
        {"fmt": "yuv422p10le"},
        {"x264-params": "interlaced=1"},
    ],
)
def test_the_size_is_found_behind_everything_that_may_stand_before_it(
    options: dict[str, str],
) -> None:
    assert announced("H264", h264(320, 256, **options)[0]) == (320, 256)


def test_what_no_encoder_here_writes_is_read_too() -> None:
    assert announced("H264", parameter_set(8192, 8192)) == (8192, 8192)
    cycle = golomb(1) + "0" + golomb(0) * 2 + golomb(2) + golomb(5) * 2
    assert announced("H264", parameter_set(640, 480, cycle)) == (640, 480)


def test_bytes_that_were_put_in_against_false_start_codes_are_taken_out() -> None:
    long = golomb(1) + "0" + golomb(1 << 24) * 2 + golomb(0)
    data = parameter_set(640, 480, long)
    assert b"\x00\x00\x03" in data
    size = announced("H264", data)
    assert size is not None
    assert size[0] * size[1] >= 640 * 480  # FFmpeg may read it either way, so the larger counts


def test_a_large_picture_behind_a_small_one_is_the_one_that_counts() -> None:
    small, large = parameter_set(64, 48), parameter_set(8192, 4096)
    assert announced("H264", small + large + small) == (8192, 4096)


@pytest.mark.parametrize(
    ("codec", "data"),
    [
        ("H264", START + b"\x67"),
        ("H264", parameter_set(64, 48)[:8]),
        ("H264", START + b"\x67" + bytes(2000)),
        ("H264", parameter_set(64, 48) * 17),
        ("VP9", b"\x00" * 20),
    ],
)
def test_what_cannot_be_read_is_never_taken_for_small(codec: str, data: bytes) -> None:
    with pytest.raises(UnreadableSize):
        announced(codec, data)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(["VP8", "H264"]), st.binary(max_size=80))
def test_no_bytes_make_anything_but_a_size_or_a_refusal(codec: str, data: bytes) -> None:
    for text in (data, START + b"\x67" + data):
        try:
            size = announced(codec, text)
        except UnreadableSize:
            continue
        assert size is None or min(size) >= 0


def test_no_damage_makes_a_decoder_show_more_than_was_announced() -> None:
    rng = random.Random(7)
    key = h264(64, 48, profile="high", **{"x264-params": "cqm=jvt"})[0]
    sps = key.index(b"\x67") + 1
    larger = 0
    for _ in range(600):
        data = bytearray(key)
        for _ in range(rng.randint(1, 3)):
            data[rng.randrange(sps, sps + 24)] ^= 1 << rng.randrange(8)
        try:
            size = announced("H264", bytes(data))
        except UnreadableSize:
            continue
        if size is None or size[0] * size[1] > 2_000_000:
            continue
        for width, height in decoded(bytes(data)):
            assert (width, height) <= size or width * height <= size[0] * size[1]
            larger += (width, height) != (64, 48)
    assert larger > 5  # damage that a decoder goes along with is among them


def decoded(data: bytes) -> list[tuple[int, int]]:
    decoder = av.CodecContext.create("h264", "r")
    assert isinstance(decoder, av.VideoCodecContext)
    try:
        frames = [*decoder.decode(av.Packet(data)), *decoder.decode(None)]
    except av.FFmpegError:
        return []
    return [(frame.width, frame.height) for frame in frames]

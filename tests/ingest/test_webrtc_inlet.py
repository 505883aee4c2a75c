"""What is let through to the decoder, how much may wait for it, and what the library calls it."""

import asyncio
from dataclasses import dataclass
from typing import cast

import pytest
from aiortc import RTCConfiguration, RTCPeerConnection, RTCRtpReceiver

from hdguard.ingest.webrtc_inlet import MAX_WAITING, Inlet

DELTA = b"\x01" * 20  # a VP8 picture that is no key frame
LIMIT = 640 * 480


@dataclass
class Codec:
    name: str = "VP8"


@dataclass
class Picture:
    data: bytes = DELTA


class Bare:
    """As much of aiortc's receiver as the inlet touches."""

    def __init__(self) -> None:
        self.__dict__["_RTCRtpReceiver__decoder_queue"] = None
        self.__dict__["_RTCRtpReceiver__decoder_thread"] = "the thread"


def inlet() -> tuple[Inlet, list[str]]:
    said: list[str] = []
    return Inlet(cast("RTCRtpReceiver", Bare()), LIMIT, said.append), said


def key_frame(width: int, height: int) -> bytes:
    size = width.to_bytes(2, "little") + height.to_bytes(2, "little")
    return b"\x10\x00\x00\x9d\x01\x2a" + size + bytes(20)


def waiting(pictures: Inlet) -> int:
    return pictures._waiting.qsize()


def test_the_library_still_has_the_queue_and_the_thread_that_are_replaced() -> None:
    async def story() -> None:
        peer = RTCPeerConnection(RTCConfiguration(iceServers=[]))
        receiver = peer.addTransceiver("video", direction="recvonly").receiver
        names = "queue", "thread"
        before = [vars(receiver)[f"_RTCRtpReceiver__decoder_{name}"] for name in names]
        assert before[0].qsize() == 0
        assert before[1] is None
        ours = Inlet(receiver, LIMIT, print)
        assert vars(receiver)["_RTCRtpReceiver__decoder_queue"] is ours
        thread = Bare()
        vars(receiver)["_RTCRtpReceiver__decoder_thread"] = thread
        receiver._handle_disconnect()
        assert ours.ending
        assert ours.get() is None
        assert vars(receiver)["_RTCRtpReceiver__decoder_thread"] is None
        await peer.close()

    asyncio.run(story())


def test_another_library_is_refused_and_not_left_without_limits() -> None:
    class Renamed:
        pass

    with pytest.raises(KeyError, match=r"install one of 1\.16"):
        Inlet(cast("RTCRtpReceiver", Renamed()), LIMIT, print)


def test_pictures_come_out_as_they_went_in() -> None:
    pictures, said = inlet()
    tasks = [(Codec(), Picture(key_frame(640, 480))), (Codec(), Picture())]
    for task in tasks:
        pictures.put(task)
    assert [pictures.get(), pictures.get()] == tasks
    assert said == []


def test_a_decoder_that_gets_behind_ends_the_connection_once_and_nothing_piles_up() -> None:
    pictures, said = inlet()
    for _ in range(MAX_WAITING):
        pictures.put((Codec(), Picture()))
    assert (waiting(pictures), said) == (MAX_WAITING, [])
    for _ in range(5):
        pictures.put((Codec(), Picture()))
    assert waiting(pictures) == 0
    assert said == ["sends more pictures than can be decoded here; use fewer or smaller ones"]


@pytest.mark.parametrize(
    ("codec", "data", "says"),
    [
        ("VP8", key_frame(8192, 8192), "sends pictures of 8192x8192 pixels, too large"),
        ("VP8", key_frame(1, 16383), ""),
        ("VP8", key_frame(16383, 64), "sends pictures of 16383x64 pixels, too large"),
        ("H264", b"\0\0\1\x67\0", "sends a sequence parameter set that cannot be read"),
        ("VP9", DELTA, "sends pictures of a codec whose size cannot be read"),
    ],
)
def test_a_picture_too_large_is_known_by_its_header_and_never_decoded(
    codec: str, data: bytes, says: str
) -> None:
    pictures, said = inlet()
    pictures.put((Codec(codec), Picture(data)))
    pictures.put((Codec(codec), Picture(data)))
    assert set(said) == ({says} if says else set())
    assert waiting(pictures) == (0 if says else 2)


def test_a_limit_that_no_whole_block_fits_is_left_to_what_was_decoded() -> None:
    said: list[str] = []
    pictures = Inlet(cast("RTCRtpReceiver", Bare()), 1920 * 1080, said.append)
    pictures.put((Codec(), Picture(key_frame(1920, 1088))))
    assert (waiting(pictures), said) == (1, [])


def test_the_end_overtakes_what_waits_and_its_join_keeps_nobody_waiting() -> None:
    bare = Bare()
    pictures = Inlet(cast("RTCRtpReceiver", bare), LIMIT, print)
    for _ in range(20):
        pictures.put((Codec(), Picture()))
    pictures.put(None)
    assert pictures.get() is None
    vars(bare)["_RTCRtpReceiver__decoder_thread"].join()  # a str would have none
    pictures.put((Codec(), Picture()))
    assert waiting(pictures) == 0

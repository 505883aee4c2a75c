"""Descriptions of strangers: what is refused, and that nothing else than a refusal comes of it."""

import asyncio
import contextlib

import pytest
from aiortc import RTCConfiguration, RTCPeerConnection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hdguard.ingest.webrtc_sdp import MAX_CANDIDATES, MAX_LINES, BadDescription, check


async def _offer(*kinds: str, direction: str = "sendonly") -> str:
    peer = RTCPeerConnection(RTCConfiguration(iceServers=[]))
    for kind in kinds:
        if kind == "data":
            peer.createDataChannel("data")
        else:
            peer.addTransceiver(kind, direction=direction)
    offer = await peer.createOffer()
    await peer.close()
    return str(offer.sdp)


def offer(*kinds: str, direction: str = "sendonly") -> str:
    return asyncio.run(_offer(*kinds, direction=direction))


GOOD = offer("audio", "video")
CANDIDATE = "a=candidate:1 1 udp 1 192.0.2.1 9 typ host\r\n"


def test_one_video_track_with_or_without_sound_is_taken() -> None:
    check(offer("video"), "offer")
    check(offer("video", direction="sendrecv"), "answer")
    check(GOOD, "offer")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (offer("video", "data"), "and nothing else"),
        (offer("video", "video"), "must have one video track"),
        (offer("audio"), "must have one video track"),
        (offer("audio", "audio", "video"), "at most one audio track"),
        (offer("video", direction="recvonly"), "does not send its video"),
        (offer("video").replace("a=sendonly", "a=x"), "does not send its video"),
        (offer("video").replace("VP8", "VP9").replace("H264", "AV1"), "neither VP8 nor H.264"),
        ("", "must have one video track"),
        ("hello", "must have one video track"),
        ("m=video", "no session description"),
        (
            GOOD + CANDIDATE * (MAX_CANDIDATES + 1),
            "too long",
        ),
        (GOOD + "a=x\r\n" * MAX_LINES, "too long"),
    ],
)
def test_anything_else_is_refused_with_the_reason(text: str, says: str) -> None:
    with pytest.raises(BadDescription, match=says):
        check(text, "offer")


def test_a_refusal_quotes_nothing_that_was_sent() -> None:
    with pytest.raises(BadDescription) as refused:
        check(GOOD.replace("a=setup:actpass", "a=setup:SECRET"), "offer")
    assert "SECRET" not in str(refused.value)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(
        st.tuples(
            st.integers(0, len(GOOD.splitlines()) - 1),
            st.sampled_from(["drop", "cut", "twice", "junk"]),
            st.text(max_size=12),
        ),
        min_size=1,
        max_size=6,
    )
)
def test_no_damage_makes_anything_but_a_refusal(changes: list[tuple[int, str, str]]) -> None:
    lines = GOOD.splitlines()
    for at, what, text in changes:
        line = lines[at]
        if what == "drop":
            lines[at] = ""
        elif what == "cut":
            lines[at] = line[: len(line) // 2]
        elif what == "twice":
            lines[at] = f"{line}\r\n{line}"
        else:
            lines[at] = line[:6] + text
    with contextlib.suppress(BadDescription):
        check("\r\n".join(line for line in lines if line), "offer")

"""What session descriptions of strangers are let through to the WebRTC library.

One video track that can be decoded here, at most one audio track beside it (which is then asked
not to be sent), and nothing else: no data channels, no second picture, nothing oversized.
"""

from typing import Literal

MAX_LINES, MAX_CANDIDATES = 1000, 50
"""Of a session description. Browsers write some 200 lines and a candidate per address and
transport; aiortc's reading takes time with the square of the lines, on the event loop."""

_CODECS = frozenset({"VP8", "H264"})


class BadDescription(Exception):  # noqa: N818 - named for what was received
    """The other side's session description cannot be used; says why, and quotes nothing of it."""


def check(description: str, kind: Literal["offer", "answer"]) -> None:
    """Refuse what is not one video track, with at most one of sound beside it.

    Raises:
        BadDescription: says what is wrong.
    """
    from aiortc.sdp import SessionDescription  # noqa: PLC0415 - optional

    lines = description.splitlines()
    candidates = sum(line.startswith("a=candidate:") for line in lines)
    if len(lines) > MAX_LINES or candidates > MAX_CANDIDATES:
        msg = f"the {kind} is too long: {len(lines)} lines, {candidates} candidates"
        raise BadDescription(msg)
    try:
        media = SessionDescription.parse(description).media
        kinds = sorted(m.kind for m in media)
        codecs = {c.name.upper() for m in media if m.kind == "video" for c in m.rtp.codecs}
        sent = {m.direction for m in media if m.kind == "video"} <= {"sendonly", "sendrecv"}
    except Exception as error:  # its reader asserts, looks up and unpacks what strangers sent
        msg = f"the {kind} is no session description ({type(error).__name__})"
        raise BadDescription(msg) from error
    if kinds not in (["video"], ["audio", "video"]):
        msg = f"the {kind} must have one video track, at most one audio track and nothing else"
        raise BadDescription(msg)
    if not codecs & _CODECS:
        msg = f"the {kind} has neither VP8 nor H.264"
        raise BadDescription(msg)
    if not sent:
        msg = f"the {kind} does not send its video track"
        raise BadDescription(msg)

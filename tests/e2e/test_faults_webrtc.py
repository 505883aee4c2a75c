"""A browser or robot that publishes by WebRTC and falls off the network, seen by a whole guard."""

import asyncio
import http.client
from fractions import Fraction
from pathlib import Path

import av

from hdguard.faults.rtp import FPS, quiet_room
from hdguard.faults.stack import Stack, running_stack
from tests.actuators.support import run
from tests.ingest.webrtc_peers import CLOCK, Camera, Publisher, needs_network

TOKEN = "0123456789abcdef"


class Room(Camera):
    """Shows the room that the faults' own camera shows: GREEN, and never still."""

    def __init__(self) -> None:
        super().__init__(fps=FPS)
        decoder = av.CodecContext.create("h264", "r")
        assert isinstance(decoder, av.VideoCodecContext)
        self._pictures = [
            frame
            for units in quiet_room().pictures
            for frame in decoder.decode(av.Packet(b"".join(b"\0\0\0\1" + u for u in units)))
        ]

    async def recv(self) -> av.VideoFrame:
        timing = await super().recv()
        frame = self._pictures[self.sent % len(self._pictures)]
        frame.pts, frame.time_base = timing.pts, Fraction(1, CLOCK)
        return frame


def post_offer(port: int, offer: str) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/sdp"}
    connection.request("POST", "/whip/kitchen", offer, headers)
    answer = connection.getresponse()
    body = answer.read().decode()
    connection.close()
    assert answer.status == 201, body
    return body


async def published(stack: Stack) -> Publisher:
    publisher = Publisher(Room())
    offer = await publisher.offer()
    await publisher.accept(await asyncio.to_thread(post_offer, stack.http, offer))
    return publisher


@needs_network
def test_a_webrtc_peer_that_vanishes_halts_the_robot_by_the_age_of_its_frames(
    tmp_path: Path,
) -> None:
    async def story() -> float:
        async with running_stack(tmp_path, "reflex") as stack:
            text = stack.config.read_text().replace(stack.camera.url, "whip:")
            whip = f'publish_tokens = {{ kitchen = "{TOKEN}" }}\n'
            stack.config.write_text(text.replace("[http]\n", f"[http]\n{whip}"))
            stack.guard.start()
            await stack.answers("/livez", 200)
            publisher = await published(stack)
            await stack.ready()
            vanished = stack.now()
            publisher.vanish()
            halt = await stack.witness.halt(vanished, "stale_frame", "stale_verdict")
            await publisher.peer.close()
            return halt.at - vanished

    took = run(story(), "asyncio", patience=50.0)
    assert 0.5 < took < 1.1

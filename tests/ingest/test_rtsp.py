import asyncio
import signal
import socket
import traceback
from itertools import pairwise
from random import Random
from typing import Any, cast
from urllib.parse import quote

import av
import pytest

from hdguard.core.types import ImageSpec
from hdguard.ingest.base import SourceError
from hdguard.ingest.rtsp import RtspSettings, RtspSource
from tests.ingest.live import decoder_threads, run, watch, watch_to_the_end
from tests.rtsp_server import PASSWORD, USER, rtsp_server

FPS = 20


def source_at(url: str, **more: Any) -> RtspSource:
    return RtspSource(RtspSettings(url, "kitchen", **more), Random(1))


# Settings.


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("url", "http://cam/live"),
        ("url", "rtsp://"),
        ("url", "cam/live"),
        ("url", "rtsp://cam:0/live"),
        ("url", "rtsp://cam:65536/live"),
        ("url", "rtsp://cam:abc/live"),
        ("url", "rtsp://[::1/live"),
        ("url", "rtsp://cam..local/live"),
        ("url", "rtsp://ca%20m/live"),
        ("url", "rtsp://cam/a b"),
        ("url", "rtsp://cam/\x00a"),
        ("url", "rtsp://" + "a" * 64 + ".local/live"),
        ("url", "tcp://127.0.0.1/live"),
        ("transport", "udp"),
        ("open_timeout", 0.0),
        ("read_timeout", float("nan")),
        ("interval", -1.0),
        ("interval", float("inf")),
        ("ignore_regions", ((0.5, 0.0, 0.5, 1.0),)),
    ],
)
def test_a_bad_setting_is_refused_by_name(field: str, value: object) -> None:
    settings: dict[str, Any] = {"url": "rtsp://cam/live", field: value}
    with pytest.raises(ValueError, match=rf"^{field}: "):
        RtspSettings(**settings)


def test_a_refused_url_is_shown_without_its_password() -> None:
    with pytest.raises(ValueError, match=r"http://\*\*\*@cam/live"):
        RtspSettings("http://guard:hush@cam/live")


def test_over_udp_lost_packets_go_unnoticed_so_it_is_told_to_use_tcp() -> None:
    with pytest.raises(ValueError, match='use "tcp"'):
        RtspSettings("rtsp://cam/live", transport=cast("Any", "udp"))


@pytest.mark.parametrize(
    "url",
    [
        "rtsp://guard:hu/sh@cam/live",
        "rtsp://guard:hu:sh@cam:abc/live",
        "rtsp://guard:hu sh@cam/live",
        "rtsp://guard:hush@[cam/live?p=hush",
    ],
)
def test_a_url_that_cannot_be_read_shows_no_part_of_its_password(url: str) -> None:
    with pytest.raises(ValueError, match=r"^url: ") as caught:
        RtspSettings(url)
    told = "".join(traceback.format_exception(caught.value))
    assert "hu" not in told.split("ValueError: url: ")[-1]


@pytest.mark.parametrize(
    "url",
    [
        "rtsp://192.168.1.20/live",
        "rtsp://[fe80::1%25eth0]:554/live",
        "rtsps://gu%40rd:x@front_door.local.:322/s?a=b",
        "tcp://encoder:9000",
    ],
)
def test_every_usual_way_to_name_a_host_is_taken(url: str) -> None:
    RtspSettings(url)


def test_a_slow_camera_is_given_two_and_a_half_of_its_intervals() -> None:
    assert RtspSettings("rtsp://cam/live", interval=2.0).reading.silence == 5.0
    assert RtspSettings("rtsp://cam/live", interval=0.2).reading.silence == 1.0


def test_pyav_1155_the_protocol_s_own_limit_is_never_below_ours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: dict[str, Any] = {}

    def refuse(url: str, mode: str, **more: Any) -> None:
        asked.update(more)
        raise av.error.ConnectionRefusedError(111, "Connection refused", url + mode)

    monkeypatch.setattr(av, "open", refuse)
    source = source_at("rtsp://cam/live", open_timeout=25.0, read_timeout=30.0)
    run(watch_to_the_end(source))
    assert asked["options"]["timeout"] == "30000000"  # microseconds
    assert float(asked["timeout"][0]) == pytest.approx(25.0, abs=0.5)
    assert asked["timeout"][1] == 30.0
    assert asked["options"]["rtsp_transport"] == "tcp"


# A real server.


def test_a_camera_is_watched_left_lost_and_found_again() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        with rtsp_server(FPS) as server:
            source = source_at(server.url)
            got = await watch(source, 10)
            assert decoder_threads() == []
            for frame, at in got:
                # Half a period less than the parser keeps it, and a busy machine's margin more.
                assert 0.5 / FPS < at - frame.ref.captured_at < 4 / FPS
                assert frame.image.rgb(ImageSpec(320)).shape == (240, 320, 3)
            for (a, _), (b, _) in pairwise(got):
                assert b.ref.media_time - a.ref.media_time == pytest.approx(1 / FPS, abs=0.002)

            async with asyncio.TaskGroup() as group:
                seen = group.create_task(watch_to_the_end(source))
                while source.report.frames < 15:  # noqa: ASYNC110 - it has no event for this
                    await asyncio.sleep(0.02)
                server.tell("stop")
                stopped = loop.time()
            assert seen.result()[1] == "kitchen: the stream ended"
            assert loop.time() - stopped < 1.0
            assert await watch_to_the_end(source) == (
                [],
                "kitchen: cannot be opened: Connection refused",
            )

            server.tell("start")
            started = loop.time()
            again = await watch(source, 3)
            assert again[0][1] - started < 2.0
            assert again[0][0].ref.seq > got[-1][0].ref.seq
            assert source.report.corrupt == 0

    run(main())


def test_a_server_that_freezes_is_silent_after_a_second_and_does_not_hold_us() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        with rtsp_server(FPS) as server:
            source = source_at(server.url)
            async with asyncio.TaskGroup() as group:
                seen = group.create_task(watch_to_the_end(source))
                while source.report.frames < 4:  # noqa: ASYNC110 - it has no event for this
                    await asyncio.sleep(0.02)
                server.process.send_signal(signal.SIGSTOP)
            got, why = seen.result()
            assert why == "kitchen: silent for 1 s"
            assert 1.0 < loop.time() - got[-1][0].ref.captured_at < 1.0 + 2 / FPS + 0.3
            assert decoder_threads() == []

    run(main())


def test_a_server_that_answers_but_never_sends_is_given_up_at_the_limit_of_opening() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        with rtsp_server(FPS) as server:
            source = source_at(server.url, open_timeout=1.0)
            server.tell("pause")
            begun = loop.time()
            got, why = await watch_to_the_end(source)
            assert (got, why) == ([], "kitchen: no answer in 1 s")
            assert 0.9 < loop.time() - begun < 1.4

    run(main())


def test_the_password_opens_the_camera_and_a_wrong_one_is_told_but_not_shown() -> None:
    async def main() -> None:
        with rtsp_server(FPS, locked=True) as server:
            host = f"127.0.0.1:{server.port}/cam"
            good = f"rtsp://{USER}:{quote(PASSWORD, safe='')}@{host}"
            assert len(await watch(source_at(good), 2)) == 2
            bad = RtspSource(RtspSettings(f"rtsp://{USER}:hush@{host}"))
            with pytest.raises(SourceError, match="401 Unauthorized") as caught:
                await anext(bad.frames())
            told = "".join(traceback.format_exception(caught.value))
            assert "hush" not in told
            assert bad.source_id == host

    run(main())


# One that accepts and never answers.


def mute_listener() -> socket.socket:
    return socket.create_server(("127.0.0.1", 0))


def url_of(listener: socket.socket) -> str:
    return f"rtsp://127.0.0.1:{listener.getsockname()[1]}/cam"


def test_pyav_584_f7_a_camera_that_accepts_and_never_answers_is_given_up_within_2_s() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        with mute_listener() as listener:
            source = source_at(url_of(listener))
            begun = loop.time()
            got, why = await watch_to_the_end(source)
            assert (got, why) == ([], "kitchen: no answer in 1.9 s")
            assert 1.8 < loop.time() - begun < 2.3
            assert 0.5 <= source.retry_after() <= 1.0

    run(main())


def test_inference_685_one_can_leave_while_a_first_connection_never_comes_about() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        with mute_listener() as listener:
            begun = loop.time()
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.1):
                    await watch(source_at(url_of(listener), open_timeout=0.6), 1)
            assert loop.time() - begun < 0.6 + 0.3
            assert decoder_threads() == []

    run(main())

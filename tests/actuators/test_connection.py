"""Connecting for ever, without leaving anything behind and without throwing a successor out."""

import asyncio
import logging
import math
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from hdguard.actuators.base import ActuatorError
from hdguard.actuators.connection import Backoff, Connection, MqttEndpoint
from tests.actuators.support import Signal, run
from tests.mosquitto import PASSWORD, free_port, mosquitto
from tests.workers.support import open_fds


def waits(lives: list[float | None]) -> list[float]:
    backoff = Backoff(jitter=lambda _, high: high)
    return [backoff.after(life) for life in lives]


def test_an_absent_broker_is_asked_often_enough_for_half_a_second() -> None:
    assert waits([None] * 6) == [0.05, 0.1, 0.2, 0.25, 0.25, 0.25]


def test_a_broker_that_throws_us_out_is_left_alone_ever_longer() -> None:
    assert waits([0.0] * 9) == [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]
    assert waits([None] * 5 + [0.0, 0.1]) == [0.05, 0.1, 0.2, 0.25, 0.25, 0.05, 0.1]


def test_a_connection_that_held_starts_the_count_anew() -> None:
    assert waits([0.0, 0.0, 0.0, 2.0, None]) == [0.05, 0.1, 0.2, 0.05, 0.05]


def test_jitter_only_ever_shortens() -> None:
    assert 0.0375 <= Backoff().after(None) <= 0.05


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"robot": "a/b"}, "robot: "),
        ({"robot_key": "short"}, "robot_key: "),
        *(({"port": port}, "port: ") for port in (0, -1, 65536)),
        *(({"keepalive": keepalive}, "keepalive: ") for keepalive in (0, -1, 65536)),
        *(
            ({"publish_timeout": seconds}, "publish_timeout: ")
            for seconds in (0.0, -1.0, math.inf, math.nan)
        ),
    ],
)
def test_wrong_settings_are_an_error_before_any_socket(
    settings: dict[str, Any], reason: str
) -> None:
    with pytest.raises(ValueError, match=f"^{reason}"):
        MqttEndpoint(**settings)


def test_secrets_do_not_show_in_the_settings() -> None:
    text = repr(MqttEndpoint(password="hush", robot_key="a long secret key"))
    assert "hush" not in text
    assert "secret" not in text


class Line:
    """A connection that reads one topic, and what happened to it."""

    def __init__(self, port: int, topic: str = "hdguard/rosie/halt", user: str = "anyone") -> None:
        endpoint = MqttEndpoint(port=port, username=user, password=PASSWORD, publish_timeout=0.3)
        self.ups, self.messages = Signal(), Signal()
        self.topic = topic
        self.connection = Connection(endpoint, "line", {topic: 1}, self._up, self.messages)

    async def _up(self) -> None:
        self.ups()


@asynccontextmanager
async def kept(line: Line) -> AsyncIterator[Connection]:
    async with asyncio.TaskGroup() as group:
        line.connection.start(group)
        try:
            yield line.connection
        finally:
            await line.connection.close()


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_what_is_published_arrives_and_nothing_is_left_open(loop: str, tmp_path: Path) -> None:
    async def story(port: int) -> None:
        line = Line(port)
        async with kept(line) as connection:
            await line.ups.wait()
            await connection.publish(line.topic, b"1", qos=1)
            await connection.publish(line.topic, b"2")
            await line.messages.wait(2)
        assert line.messages.said == [(line.topic, b"1", False), (line.topic, b"2", False)]
        with pytest.raises(ActuatorError, match=r"no connection to 127\.0\.0\.1"):
            await connection.publish(line.topic, b"3")

    with mosquitto(tmp_path) as broker:
        run(story(broker.port), loop)
        before = open_fds()
        run(story(broker.port), loop)
        assert open_fds() == before


def test_a_small_message_is_not_held_back(tmp_path: Path) -> None:
    async def story(port: int) -> None:
        line = Line(port)
        async with kept(line) as connection:
            await line.ups.wait()
            client = connection._client
            assert client is not None
            sock = client._client.socket()
            assert isinstance(sock, socket.socket)
            assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0

    with mosquitto(tmp_path) as broker:
        run(story(broker.port))


def test_an_absent_broker_is_awaited_and_a_restarted_one_found_again(tmp_path: Path) -> None:
    async def story() -> list[float]:
        loop = asyncio.get_running_loop()
        with mosquitto(tmp_path) as broker:
            broker.kill()
            line = Line(broker.port)
            async with kept(line) as connection:
                with pytest.raises(ActuatorError, match="no connection"):
                    await connection.publish(line.topic, b"1")
                took = []
                for count in (1, 2, 3):
                    broker.start()
                    back = loop.time()
                    took.append(await line.ups.wait(count) - back)
                    broker.kill()
        return took

    assert max(run(story())) < 0.5


class Log(logging.Handler):
    """What the connection says to people."""

    def __init__(self) -> None:
        super().__init__()
        self.said = Signal()

    def emit(self, record: logging.LogRecord) -> None:
        self.said(record.getMessage())


@contextmanager
def listening() -> Iterator[Signal]:
    log = Log()
    logging.getLogger("hdguard.actuators.connection").addHandler(log)
    yield log.said
    logging.getLogger("hdguard.actuators.connection").removeHandler(log)


def test_a_wrong_password_is_named(tmp_path: Path) -> None:
    async def story(port: int) -> None:
        line = Line(port, user="nobody")
        with listening() as said:
            async with kept(line) as connection:
                await said.wait()
                assert "Not authorized" in connection.trouble

    with mosquitto(tmp_path) as broker:
        run(story(broker.port))


def test_a_refused_topic_is_named() -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1000)
        writer.write(b"\x20\x02\x00\x00")  # CONNACK, accepted
        subscribe = await reader.read(1000)
        writer.write(b"\x90\x03" + subscribe[2:4] + b"\x80")  # SUBACK, failure
        await reader.read()
        writer.close()

    async def story() -> None:
        server = await asyncio.start_server(refuse, "127.0.0.1", 0)
        line = Line(server.sockets[0].getsockname()[1])
        with listening() as said:
            async with kept(line) as connection:
                await said.wait()
                assert "refuses us hdguard/rosie/halt: check its access list" in connection.trouble
        server.close()
        assert line.ups.times == []

    run(story())


def test_a_listener_that_never_answers_costs_no_sockets_and_closing_is_quick() -> None:
    async def story() -> float:
        loop = asyncio.get_running_loop()
        calls = Signal()

        async def mute(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            calls()
            while await reader.read(100):
                pass
            calls()
            writer.close()

        server = await asyncio.start_server(mute, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        line = Line(port)
        async with kept(line) as connection:
            await calls.wait(3)  # came, was given up, came again
            assert connection.up_since is None
            began = loop.time()
        await calls.wait(4)
        server.close()
        return loop.time() - began

    assert run(story()) < 0.5


def test_closing_while_dialling_leaves_nothing_open() -> None:
    async def story() -> None:
        line = Line(free_port())
        async with asyncio.TaskGroup() as group:
            line.connection.start(group)
            await asyncio.sleep(0)
            await line.connection.close()

    run(story())
    before = open_fds()
    run(story())
    assert open_fds() == before


def test_a_frozen_broker_gives_no_receipt_and_the_line_can_be_dropped(tmp_path: Path) -> None:
    async def story() -> None:
        with mosquitto(tmp_path) as broker:
            line = Line(broker.port)
            async with kept(line) as connection:
                await line.ups.wait()
                broker.freeze()
                with pytest.raises(ActuatorError, match=r"no receipt in 0\.3 s"):
                    await connection.publish(line.topic, b"1", qos=1)
                await connection.publish(line.topic, b"2")  # proves nothing
                connection.drop("the test says so")
                broker.thaw()
                await line.ups.wait(2)
                await connection.publish(line.topic, b"3", qos=1)
                await line.messages.until(lambda: (line.topic, b"3", False) in line.messages.said)

    run(story())


def test_two_clients_of_one_name_throw_each_other_out_ever_more_rarely(tmp_path: Path) -> None:
    async def story(port: int) -> float:
        one, other = Line(port), Line(port)
        async with kept(one), kept(other):
            return await one.ups.wait(5) - await one.ups.wait(1)

    with mosquitto(tmp_path) as broker:
        assert run(story(broker.port)) >= 0.75 * (0.05 + 0.1 + 0.2 + 0.4)

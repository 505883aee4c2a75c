"""The embedded broker: one setting, this machine only, quiet, and gone when it is left."""

import asyncio
import logging
import socket

import aiomqtt
import pytest

from hdguard.actuators.base import ActuatorError
from hdguard.actuators.broker import BrokerSettings, EmbeddedBroker
from tests.actuators.support import run
from tests.mosquitto import free_port
from tests.workers.support import open_fds

every_loop = pytest.mark.parametrize("loop", ["asyncio", "uvloop"])


async def say_and_hear(port: int, *, retain: bool = False) -> bytes:
    async with aiomqtt.Client("127.0.0.1", port) as client:
        await client.subscribe("a/b", 1)
        await client.publish("a/b", b"hello", 1, retain=retain)
        payload = (await anext(aiter(client.messages))).payload
        assert isinstance(payload, bytes)
        return payload


@every_loop
def test_it_carries_messages_on_a_free_port_and_leaves_nothing_open(loop: str) -> None:
    async def story() -> None:
        async with EmbeddedBroker() as one, EmbeddedBroker() as other:
            assert one.port != other.port
            assert await say_and_hear(one.port) == b"hello"
            assert await say_and_hear(other.port) == b"hello"

    run(story(), loop)
    before = open_fds()
    run(story(), loop)
    assert open_fds() == before


@every_loop
def test_a_client_that_is_still_there_does_not_keep_it(
    loop: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        async with EmbeddedBroker() as broker:
            reader, writer = await asyncio.open_connection("127.0.0.1", broker.port)
            mute, mute_writer = await asyncio.open_connection("127.0.0.1", broker.port)
            writer.write(b"\x10\x0e\x00\x04MQTT\x04\x02\x00\x0a\x00\x02me")
            assert (await reader.readexactly(4))[3] == 0  # CONNACK, accepted
        assert await reader.read() == b""
        assert await mute.read() == b""
        for each in (writer, mute_writer):
            each.close()
            await each.wait_closed()

    run(story(), loop, patience=5.0)
    assert "Exception in callback" not in caplog.text


def test_a_client_may_come_while_another_one_subscribes() -> None:
    async def subscribe(client: aiomqtt.Client) -> None:
        for n in range(40):
            await client.subscribe(f"new/{n}", 1)

    async def come_and_go(port: int) -> None:
        for _ in range(10):
            async with aiomqtt.Client("127.0.0.1", port, timeout=2.0) as client:
                await client.subscribe("old/0", 1)
                assert (await anext(aiter(client.messages))).retain

    async def story() -> None:
        async with EmbeddedBroker() as broker, aiomqtt.Client("127.0.0.1", broker.port) as client:
            for n in range(10):
                await client.subscribe(f"old/{n}", 1)
                await client.publish(f"old/{n}", b"kept", 1, retain=True)
            async with asyncio.TaskGroup() as group:
                group.create_task(subscribe(client))
                group.create_task(come_and_go(broker.port))

    run(story())


def test_the_port_can_be_chosen_and_a_taken_one_is_an_error() -> None:
    async def story() -> None:
        port = free_port()
        async with EmbeddedBroker(BrokerSettings(port)) as broker:
            assert broker.port == port
            with pytest.raises(ActuatorError, match=f"broker.port: {port}: .*in use"):
                async with EmbeddedBroker(BrokerSettings(port)):
                    pass

    run(story())


def test_it_listens_on_this_machine_only() -> None:
    async def story() -> None:
        async with EmbeddedBroker() as broker:
            assert broker._server is not None
            names = {sock.getsockname()[0] for sock in broker._server.sockets}
            assert names == {"127.0.0.1"}

    run(story())


def test_clients_that_come_and_go_are_not_worth_a_word(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        async with EmbeddedBroker() as broker:
            for retain in (False, True):
                assert await say_and_hear(broker.port, retain=retain) == b"hello"

    with caplog.at_level(logging.DEBUG):
        run(story())
    assert [r for r in caplog.records if r.name.startswith(("amqtt", "transitions"))] == []


def test_nonsense_does_not_stop_it() -> None:
    async def story() -> None:
        async with EmbeddedBroker() as broker:
            for noise in (b"", b"GET / HTTP/1.1\r\n\r\n", b"\x10\x0e\x00\x04MQ", b"\xff" * 90):
                with socket.create_connection(("127.0.0.1", broker.port)) as sock:
                    sock.sendall(noise)
            assert await say_and_hear(broker.port) == b"hello"

    run(story())

"""The test broker, in both kinds."""

import socket
from pathlib import Path

import pytest

from hdguard.actuators.client import SafeClient
from hdguard.faults.broker import Broker
from hdguard.faults.rows import FaultError
from tests.actuators.support import run


@pytest.mark.parametrize("embedded", [False, True])
def test_it_serves_is_gone_and_comes_back_on_the_same_port(embedded: bool, tmp_path: Path) -> None:
    async def story() -> None:
        broker = Broker(tmp_path, embedded=embedded)
        for _ in range(2):
            await broker.up()
            async with SafeClient("127.0.0.1", broker.port) as client:
                await client.publish("a", b"b", qos=1)
            broker.end()

    run(story(), "asyncio")


@pytest.mark.parametrize("embedded", [False, True])
def test_a_broker_whose_port_is_taken_meanwhile_is_not_waited_for(
    embedded: bool, tmp_path: Path
) -> None:
    async def story() -> None:
        broker = Broker(tmp_path, embedded=embedded)
        taken = socket.create_server(("127.0.0.1", broker.port))
        with taken, pytest.raises(FaultError, match="the broker does not run"):
            await broker.up()

    run(story(), "asyncio")


def test_without_mosquitto_it_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("hdguard.faults.broker.PLACES", str(tmp_path))
    assert "not installed" in Broker.found()

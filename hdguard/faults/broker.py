"""The test broker: mosquitto if it is installed, else our embedded one in a process of its own."""

import asyncio
import shutil
import socket
import sys
from pathlib import Path

from hdguard.actuators.base import ActuatorError
from hdguard.actuators.broker import BrokerSettings, EmbeddedBroker
from hdguard.faults.processes import Program
from hdguard.faults.rows import FaultError

PLACES = "/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin:/opt/homebrew/sbin"
UP = "broker: running"
UP_WITHIN = 20.0
"""Seconds; mosquitto takes some milliseconds, our own an interpreter's start and its imports."""


def free_port() -> int:
    """A port of the loopback interface that is free now."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


class Broker(Program):
    """A broker on loopback that anybody may use; it keeps nothing over a restart.

    Args:
        folder: for its configuration.
        embedded: do not look for mosquitto.
    """

    def __init__(self, folder: Path, *, embedded: bool = False) -> None:
        self.port = free_port()
        program = None if embedded else _mosquitto()
        if program is None:
            command: tuple[str, ...] = (sys.executable, "-m", __name__, str(self.port))
        else:
            config = folder / "mosquitto.conf"
            config.write_text(
                f"listener {self.port} 127.0.0.1\nallow_anonymous true\npersistence false\n"
                "set_tcp_nodelay true\nlog_dest stderr\nlog_type error\nlog_type information\n",
                encoding="utf-8",
            )
            command = (program, "-c", str(config))
        super().__init__("the broker", *command)

    @staticmethod
    def found() -> str:
        """Which one it is, for people."""
        return _mosquitto() or "the embedded one (mosquitto is not installed)"

    async def up(self) -> float:
        """Start it; returns when it has begun to listen.

        Raises:
            FaultError: it does not come to that.
        """
        self.start()
        try:
            async with asyncio.timeout(UP_WITHIN):
                at, _ = await self.said(lambda line: "running" in line)
        except TimeoutError:
            msg = f"the broker does not listen after {UP_WITHIN:g} s{self.last_words()}"
            raise FaultError(msg) from None
        return at


def _mosquitto() -> str | None:
    return shutil.which("mosquitto", path=PLACES)


async def _serve(port: int) -> None:
    async with EmbeddedBroker(BrokerSettings(port)):
        print(UP, flush=True)  # noqa: T201 - to whoever started us
        await asyncio.Event().wait()


if __name__ == "__main__":
    try:
        asyncio.run(_serve(int(sys.argv[1])))
    except ActuatorError as error:
        sys.exit(str(error))

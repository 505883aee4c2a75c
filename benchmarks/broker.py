"""The broker that is measured with: mosquitto where it is installed, else the embedded one."""

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from hdguard.actuators.broker import EmbeddedBroker


@asynccontextmanager
async def broker() -> AsyncIterator[tuple[str, int]]:
    """Gives its name and its port on the loopback interface."""
    program = shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin")
    async with EmbeddedBroker() as embedded:
        port = embedded.port  # free, and free again once this one is closed
        if program is None:
            yield "amqtt", port
            return
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "mosquitto.conf"
        config.write_text(
            f"listener {port} 127.0.0.1\nallow_anonymous true\npersistence false\n"
            "set_tcp_nodelay true\nlog_dest none\nuser root\n"
        )
        process = await asyncio.create_subprocess_exec(
            program, "-c", str(config), stderr=asyncio.subprocess.DEVNULL
        )
        try:
            await _answers(port)
            yield "mosquitto", port
        finally:
            process.terminate()
            await process.wait()


async def _answers(port: int) -> None:
    for _ in range(200):
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.02)
        else:
            writer.close()
            return
    msg = f"mosquitto does not listen on port {port}"
    raise RuntimeError(msg)

"""A TCP proxy before a broker, to do to a connection what networks do."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress


class Proxy:
    """Passes bytes both ways until it is told to swallow them or to cut them off."""

    def __init__(self, target: int) -> None:
        self.port = 0
        self.connections = 0
        self._target = target
        self._dead: set[asyncio.StreamWriter] = set()
        self._ends: set[asyncio.StreamWriter] = set()
        self._serving: set[asyncio.Task[None]] = set()

    def swallow(self) -> None:
        """What these connections send is lost from now on; they stay open. New ones work."""
        self._dead |= self._ends

    def cut(self) -> None:
        """Every connection ends at once with a reset, no goodbye."""
        for end in self._ends:
            end.transport.abort()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One client, and its connection to the target."""
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        there, back = await asyncio.open_connection("127.0.0.1", self._target)
        both = {writer, back}
        self._ends |= both
        async with asyncio.TaskGroup() as group:
            group.create_task(self._pipe(reader, back), name="proxy")
            group.create_task(self._pipe(there, writer), name="proxy")
        self._ends -= both
        self._serving.discard(task)

    async def ended(self) -> None:
        """Wait until every connection that was cut has ended."""
        await asyncio.gather(*self._serving)

    async def _pipe(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(65536):
                if writer not in self._dead:
                    writer.write(data)
                    await writer.drain()
        writer.close()


@asynccontextmanager
async def proxy(target: int) -> AsyncIterator[Proxy]:
    """A proxy on a free loopback port, before that port."""
    made = Proxy(target)
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()
        made.cut()
        await made.ended()

"""The pipe between a supervisor and its worker: messages over a socket pair, one end awaited."""

import asyncio
import select
import socket

from hdguard.workers import wire


class SupervisorChannel:
    """The supervisor's end, on asyncio streams, so that it works on every event loop."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, sock: socket.socket) -> "SupervisorChannel":
        """Take over the socket."""
        return cls(*await asyncio.open_unix_connection(sock=sock))

    async def send(self, message: wire.Request) -> None:
        """Send a message. A worker that is gone takes it silently: `receive` finds that out.

        Raises:
            BrainError: the message cannot be written.
        """
        data = wire.encode(message)
        try:
            self._writer.write(data)
            await self._writer.drain()
        except ConnectionError:
            return

    async def receive(self) -> wire.Reply | None:
        """The next message; None when the worker is gone.

        Raises:
            BrainError: what came is no message.
        """
        try:
            prefix = await self._reader.readexactly(wire.PREFIX)
            length = wire.check_length(int.from_bytes(prefix, "big"))
            body = await self._reader.readexactly(length)
        except (asyncio.IncompleteReadError, ConnectionError):
            return None
        return wire.decode_reply(body)

    async def close(self) -> None:
        """Give the socket back to the system."""
        self._writer.close()
        try:
            await self._writer.wait_closed()
        except ConnectionError:
            return  # it broke before we closed it; closed it is


class WorkerChannel:
    """The worker's end: blocking, since a worker does one thing at a time."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._poll = select.poll()
        self._poll.register(sock, select.POLLIN)

    def send(self, message: wire.Reply) -> None:
        """Send a message.

        Raises:
            BrainError: the message cannot be written.
            ConnectionError: the supervisor is gone.
        """
        self._sock.sendall(wire.encode(message))

    def receive(self) -> wire.Request | None:
        """The next message; None when the supervisor is gone.

        Raises:
            BrainError: what came is no message.
        """
        prefix = self._exactly(wire.PREFIX)
        if prefix is None:
            return None
        body = self._exactly(wire.check_length(int.from_bytes(prefix, "big")))
        return None if body is None else wire.decode_request(body)

    def waits(self) -> bool:
        """True if a message is there, or the supervisor is gone: `receive` would not block."""
        return bool(self._poll.poll(0))

    def _exactly(self, size: int) -> bytes | None:
        data = bytearray()
        while len(data) < size:
            try:
                part = self._sock.recv(size - len(data))
            except ConnectionError:
                return None
            if not part:
                return None
            data += part
        return bytes(data)

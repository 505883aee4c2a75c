"""The MQTT library's client, with what the library leaves to its user.

A connection that was not accepted in time is closed, else it comes back to life with the broker and
throws its successor out. Connecting, in the library's thread, may be given up at any moment. Time
limits are ours: on Python 3.11 those of the library lose a cancellation that comes together with a
receipt, and the task then never ends.
"""

import asyncio
import logging
import math
import socket
from types import TracebackType
from typing import Any, Self

import aiomqtt

log = logging.getLogger(__name__)

CONNECT_WITHIN = 1.0
"""Seconds for the TCP connection; so much again for the broker to accept us, or to let us go."""


class SafeClient(aiomqtt.Client):
    """Can be given up at any time without leaving anything behind; takes the library's options."""

    def __init__(self, hostname: str, port: int, **options: Any) -> None:
        super().__init__(
            hostname,
            port,
            protocol=aiomqtt.ProtocolVersion.V311,
            clean_session=True,
            timeout=math.inf,
            # Else the first small message after a pause waits for the broker's delayed ACK.
            socket_options=[(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)],
            **options,
        )
        self._client.connect_timeout = CONNECT_WITHIN
        self._dialled = False
        self._given_up = False

    async def __aenter__(self) -> Self:
        try:
            async with asyncio.timeout(2 * CONNECT_WITHIN):
                return await super().__aenter__()
        except BaseException as error:
            self.give_up()
            if isinstance(error, TimeoutError):
                msg = f"not accepted in {2 * CONNECT_WITHIN:g} s"
                raise aiomqtt.MqttError(msg) from error
            raise

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        try:
            async with asyncio.timeout(CONNECT_WITHIN):
                await super().__aexit__(exc_type, exc, tb)
        except (aiomqtt.MqttError, TimeoutError) as error:
            log.debug("the broker did not take our leave: %s", error)
        finally:
            self.give_up()

    def _client_connect(self) -> None:
        """Runs in a thread, which ends in its own time even if nobody waits for it any more."""
        try:
            super()._client_connect()
        finally:
            self._loop.call_soon_threadsafe(self._on_dialled)

    def _on_dialled(self) -> None:
        self._dialled = True
        if self._given_up:
            self._close()

    def give_up(self) -> None:
        """Close the socket soon, whatever is under way; later calls do nothing."""
        self._given_up = True
        if self._dialled:
            # Not at once: the library may have asked the loop to watch the socket for writing, and
            # the loop must have done so before the socket's number is free for another.
            self._loop.call_soon(self._close)

    def _close(self) -> None:
        sock = self._client.socket()
        if not isinstance(sock, socket.socket):
            return
        try:
            sock.shutdown(socket.SHUT_RDWR)
        except OSError as error:
            log.debug("was closed already: %s", error)
        while self._client.socket() is not None:
            self._client.loop_read()  # reads to the end, closes, and has the loop forget the socket

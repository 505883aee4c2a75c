"""A broker inside the daemon, for demos, replays and first steps: nothing to install or set up.

It listens on this machine only and asks nobody who they are. It shares the daemon's event loop. For
a real robot use mosquitto, with names, passwords and an access list.

The listening socket is ours and its connections are handed to amqtt: amqtt itself would not tell
which port it was given, and by default loads plugins that log every packet.
"""

import asyncio
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from amqtt.adapters import StreamReaderAdapter, StreamWriterAdapter  # type: ignore[import-untyped]
from amqtt.broker import Broker  # type: ignore[import-untyped]
from amqtt.contexts import BrokerConfig, ListenerConfig, ListenerType  # type: ignore[import-untyped]

from hdguard.actuators.base import ActuatorError

LOOPBACK = "127.0.0.1"
LISTENER = "default"  # the one name that amqtt insists on


@dataclass(frozen=True, slots=True)
class BrokerSettings:
    """The embedded broker's one setting.

    Attributes:
        port: TCP port on 127.0.0.1; 0: any that is free.
    """

    port: int = 0


class _Snapshots(dict[str, Any]):
    """A dictionary that may change while somebody goes through it."""

    def __iter__(self) -> Iterator[str]:
        return iter(list(super().__iter__()))

    def items(self) -> Any:
        return list(super().items())


class _Broker(Broker):  # type: ignore[misc]
    """amqtt 0.12 drops a client that connects while another one subscribes, but for this."""

    def __init__(self, config: BrokerConfig) -> None:
        super().__init__(config)
        self._subscriptions = _Snapshots()


class EmbeddedBroker:
    """An MQTT 3.1.1 broker; an async context manager. Read `port` once it is entered."""

    def __init__(self, settings: BrokerSettings | None = None) -> None:
        self.settings = settings or BrokerSettings()
        self.port = 0
        self._server: asyncio.Server | None = None
        self._serving: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        for name in ("amqtt", "transitions"):  # every client that comes or goes is a warning
            logging.getLogger(name).setLevel(logging.ERROR)
        config = BrokerConfig(
            listeners={LISTENER: ListenerConfig(type=ListenerType.EXTERNAL, bind=LOOPBACK)},
            plugins={"amqtt.plugins.authentication.AnonymousAuthPlugin": {"allow_anonymous": True}},
        )
        self._broker = _Broker(config)

    async def __aenter__(self) -> Self:
        """Start.

        Raises:
            ActuatorError: the port is taken.
        """
        await self._broker.start()
        try:
            self._server = await asyncio.start_server(self._serve, LOOPBACK, self.settings.port)
        except OSError as error:
            await self._broker.shutdown()
            msg = f"broker.port: {self.settings.port}: {error.strerror}; 0 takes any that is free"
            raise ActuatorError(msg) from error
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._server is not None  # entered
        self._server.close()
        await self._broker.shutdown()
        for writer in self._serving.values():  # of clients that have not said who they are
            writer.close()
        if self._serving:
            await asyncio.wait(self._serving)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # asyncio runs this in a task of its own
        self._serving[task] = writer
        try:
            await self._broker.external_connected(
                StreamReaderAdapter(reader), StreamWriterAdapter(writer), LISTENER
            )
        finally:
            del self._serving[task]
            writer.close()

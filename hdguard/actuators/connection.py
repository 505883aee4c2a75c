"""One client's connection to the broker, made again for ever; guard and robot both use it.

A reader always runs, since a client that only publishes does not notice a dead broker. Nothing is
kept for later: what must outlive a connection, `on_up` says again.
"""

import asyncio
import logging
import math
import random
import ssl
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import aiomqtt
from aiomqtt.exceptions import MqttConnectError

from hdguard.actuators.base import ActuatorError
from hdguard.actuators.client import CONNECT_WITHIN, SafeClient
from hdguard.actuators.signing import check_key
from hdguard.actuators.wire import Topics

log = logging.getLogger(__name__)

FIRST_RETRY = 0.05
ABSENT_RETRY = 0.25
REFUSED_RETRY = 5.0
"""Seconds between attempts. To ask a broker that is absent costs nobody anything, and the state
must be out 500 ms after its return. One that accepts us and throws us out again (wrong password,
another client of our name) is left alone for longer each time."""

SETTLED = 2.0
"""Seconds after which a connection counts as a good one."""

MOST_KEEPALIVE = 65535
"""Seconds; two bytes carry it, and 0 would switch it off: MQTT 3.1.1, section 3.1.2.10."""

REFUSED = 0x80
"""SUBACK's code for a subscription that is not granted: MQTT 3.1.1, section 3.9.3."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MqttEndpoint:
    """Where the broker is and who we are to it.

    Attributes:
        host: the broker's name or address.
        port: its port.
        robot: the robot's name, one level of every topic.
        username: for the broker, if it asks.
        password: for the broker.
        tls: speak TLS.
        ca_file: PEM file of the authority that signed the broker's certificate; None: the system's.
        client_id: our name to the broker; None: made from the robot's.
        keepalive: seconds of silence before a ping; a dead peer is noticed after about twice that.
        robot_key: shared by guard and robot. With it every message between them is signed, and
            must be; without it none is checked.
        publish_timeout: seconds for the broker's receipt.

    Raises:
        ValueError: a number is out of range, or the robot's name or a key is not fit to be used.
    """

    host: str = "127.0.0.1"
    port: int = 1883
    robot: str = "robot"
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    tls: bool = False
    ca_file: str | None = None
    client_id: str | None = None
    keepalive: int = 5
    robot_key: str | None = field(default=None, repr=False)
    publish_timeout: float = 1.0

    def __post_init__(self) -> None:
        if not 1 <= self.port <= 65535:
            msg = f"port: {self.port} must be 1 to 65535"
            raise ValueError(msg)
        if not 1 <= self.keepalive <= MOST_KEEPALIVE:
            msg = f"keepalive: {self.keepalive} must be 1 to {MOST_KEEPALIVE} (seconds)"
            raise ValueError(msg)
        if not 0.0 < self.publish_timeout < math.inf:
            msg = f"publish_timeout: {self.publish_timeout} must be a number above 0 (seconds)"
            raise ValueError(msg)
        Topics(self.robot)
        check_key(self.robot_key, "robot_key")

    @property
    def topics(self) -> Topics:
        """The robot's topics."""
        return Topics(self.robot)

    def tls_context(self) -> ssl.SSLContext | None:
        """How the broker proves who it is; None: without TLS.

        Raises:
            OSError: `ca_file` cannot be read or holds no certificate.
        """
        return ssl.create_default_context(cafile=self.ca_file) if self.tls else None


class Backoff:
    """How long to wait before the next attempt: doubling, with jitter."""

    def __init__(self, jitter: Callable[[float, float], float] = random.uniform) -> None:
        self._jitter = jitter
        self._absent = self._refused = FIRST_RETRY

    def after(self, accepted_for: float | None) -> float:
        """Seconds to wait; `accepted_for`: the last connection's life, None if there was none."""
        if accepted_for is None:
            delay, self._absent = self._absent, min(2 * self._absent, ABSENT_RETRY)
        else:
            if accepted_for >= SETTLED:
                self._absent = self._refused = FIRST_RETRY
            delay, self._refused = self._refused, min(2 * self._refused, REFUSED_RETRY)
        return delay * self._jitter(0.75, 1.0)


class Connection:
    """Keeps one connection to the broker.

    Args:
        endpoint: where.
        client_id: our name, if the endpoint has none.
        subscriptions: topic and QoS; made anew on every connect, in this order.
        on_up: called after every connect; what it publishes comes before anything later.
        on_message: topic, payload and whether it was retained. Must not raise.
        will: the Last Will.

    Attributes:
        up_since: seconds on the loop's clock; None while not connected and subscribed.
        trouble: why not, in words.
    """

    def __init__(
        self,
        endpoint: MqttEndpoint,
        client_id: str,
        subscriptions: Mapping[str, int],
        on_up: Callable[[], Awaitable[None]],
        on_message: Callable[[str, bytes, bool], None],
        will: aiomqtt.Will | None = None,
    ) -> None:
        self.endpoint = endpoint
        self._client_id = endpoint.client_id or client_id
        self._subscriptions = dict(subscriptions)
        self._on_up = on_up
        self._on_message = on_message
        self._options: dict[str, Any] = {"identifier": self._client_id, "will": will}
        if endpoint.tls:
            self._options["tls_context"] = endpoint.tls_context()
        self._client: SafeClient | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._accepted: float | None = None
        self.up_since: float | None = None
        self.trouble = "not connected yet"

    def start(self, group: asyncio.TaskGroup) -> None:
        """Connect, from a task of that group, until `close`."""
        self._keeper = group.create_task(self._keep(), name=f"mqtt {self._client_id}")

    async def publish(
        self, topic: str, payload: bytes, *, qos: int = 0, retain: bool = False
    ) -> None:
        """Send; with QoS 1 wait for the broker's receipt. Nothing is kept for later.

        Raises:
            ActuatorError: there is no connection, or no receipt in time.
        """
        client, endpoint = self._client, self.endpoint
        if client is None:
            msg = f"{topic}: no connection to {endpoint.host}:{endpoint.port}: {self.trouble}"
            raise ActuatorError(msg)
        try:
            async with asyncio.timeout(endpoint.publish_timeout):
                await client.publish(topic, payload, qos, retain)
        except TimeoutError:
            msg = f"{topic}: no receipt in {endpoint.publish_timeout:g} s"
            raise ActuatorError(msg) from None
        except aiomqtt.MqttError as error:
            raise ActuatorError(f"{topic}: {error}") from error

    async def unsubscribe(self, topic: str) -> None:
        """What this topic had to say is known; on later connects it is not asked for either."""
        self._subscriptions.pop(topic, None)
        if self._client is not None:
            try:
                async with asyncio.timeout(self.endpoint.publish_timeout):
                    await self._client.unsubscribe(topic)
            except (TimeoutError, aiomqtt.MqttError) as error:
                log.info("mqtt %s: still subscribed to %s: %s", self._client_id, topic, error)

    def drop(self, why: str) -> None:
        """Break the connection, so that a new one is made."""
        if self._client is not None:
            log.warning("mqtt %s: %s; connecting anew", self._client_id, why)
            self._client.give_up()
            self._client = self.up_since = None

    async def close(self) -> None:
        """Take leave of the broker, which then sends no Last Will."""
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.wait({self._keeper})

    async def _keep(self) -> None:
        loop = asyncio.get_running_loop()
        backoff = Backoff()
        while True:
            self._accepted = None
            try:
                await self._serve()
            except (aiomqtt.MqttError, ActuatorError) as error:
                if isinstance(error, MqttConnectError):
                    self._accepted = loop.time()  # the broker is there and does not want us
                trouble = str(error) or repr(error)
                if trouble != self.trouble:
                    log.warning("mqtt %s: %s", self._client_id, trouble)
                self.trouble = trouble
            lived = None if self._accepted is None else loop.time() - self._accepted
            await asyncio.sleep(backoff.after(lived))

    async def _serve(self) -> None:
        async with self._new_client() as client:
            self._accepted = asyncio.get_running_loop().time()
            granted = await self._subscribed(client)
            codes = (code if isinstance(code, int) else code.value for code in granted)
            for topic, code in zip(self._subscriptions, codes, strict=True):
                if code >= REFUSED:
                    raise ActuatorError(f"the broker refuses us {topic}: check its access list")
            self._client, self.up_since = client, self._accepted
            try:
                await self._on_up()
                self.trouble = "connected"
                async for message in client.messages:
                    topic = message.topic.value
                    if topic in self._subscriptions:  # amqtt sends more than it is asked for
                        self._on_message(topic, message.payload, message.retain)
            finally:
                self._client = self.up_since = None

    def _new_client(self) -> SafeClient:
        where = self.endpoint
        return SafeClient(
            where.host,
            where.port,
            username=where.username,
            password=where.password,
            keepalive=where.keepalive,
            **self._options,
        )

    async def _subscribed(self, client: SafeClient) -> Iterable[Any]:
        try:
            async with asyncio.timeout(CONNECT_WITHIN):
                return await client.subscribe(list(self._subscriptions.items()))
        except TimeoutError:
            raise ActuatorError(f"no answer to our subscriptions in {CONNECT_WITHIN:g} s") from None

"""An operator ends a halt over the broker: quotes the guard's nonce, signs, and waits for the end.

The guard releases only while every required brain sees GREEN, so a reset is asked again with each
new nonce until it is released or the time is up; then the guard's own words say why not.
"""

import asyncio
import secrets

from hdguard.actuators import wire
from hdguard.actuators.base import ActuatorError
from hdguard.actuators.connection import Connection, MqttEndpoint
from hdguard.actuators.signing import check_key, seal, unseal

RESET_WITHIN = 5.0
"""Seconds: the life of a nonce, in which the guard renews it twice."""


class ResetError(Exception):
    """The halt is still in force, or was not: says why and what to do."""


class Resetter:
    """One attempt of one operator.

    Args:
        endpoint: the broker, as the operator reaches it.
        key: `reset_key` of the guard's settings.
        operator: who asks, for the audit log.

    Raises:
        ValueError: the key is too short.
    """

    def __init__(self, endpoint: MqttEndpoint, key: str, operator: str) -> None:
        self._endpoint = endpoint
        self._key = check_key(key, "reset_key")
        self._robot_key = check_key(endpoint.robot_key, "robot_key")
        self._operator = operator
        self._state: wire.StateMessage | None = None
        self._halt: wire.HaltMessage | None = None
        self._quoted = ""  # the nonce that was quoted last
        self._news = asyncio.Event()
        topics = endpoint.topics
        self._connection = Connection(
            endpoint,
            f"hdguard-{endpoint.robot}-operator-{secrets.token_hex(4)}",
            {topics[name]: 1 for name in ("state", "halt")},
            self._greet,
            self._on_message,
        )

    async def reset(self, halt_id: str, within: float = RESET_WITHIN) -> None:
        """Ask for the end of that halt; returns when it is released.

        Raises:
            ResetError: it is not, in so many seconds.
        """
        async with asyncio.TaskGroup() as group:
            self._connection.start(group)
            try:
                async with asyncio.timeout(within):
                    reason = await self._ask(halt_id)
            except TimeoutError:
                reason = self._why_not()
            await self._connection.close()
        if reason:
            raise ResetError(reason)

    async def _ask(self, halt_id: str) -> str:
        """Why it cannot be reset at all, or nothing once it is released."""
        while not self._released(halt_id):
            state = self._state
            if state is not None and self._is_other(state, halt_id):
                return self._other(state)
            if state is not None and state.nonce is not None and state.nonce != self._quoted:
                await self._quote(halt_id, state.nonce)
            self._news.clear()
            await self._news.wait()
        return ""

    def _released(self, halt_id: str) -> bool:
        halt = self._halt
        return (
            bool(self._quoted)
            and halt is not None
            and (halt.halt_id == halt_id and not halt.active)
        )

    def _is_other(self, state: wire.StateMessage, halt_id: str) -> bool:
        """Another halt is in force, or none: then it may be our release, not said yet."""
        if state.halt_id is None:
            return not self._quoted
        return state.halt_id != halt_id

    @staticmethod
    def _other(state: wire.StateMessage) -> str:
        if state.halt_id is None:
            return f"no halt is in force (the guard is {state.state})"
        return f"the halt in force is {state.halt_id}: {state.why}"

    async def _quote(self, halt_id: str, nonce: str) -> None:
        topic = self._endpoint.topics["reset"]
        message = wire.ResetMessage(halt_id=halt_id, nonce=nonce, operator=self._operator)
        try:
            payload = seal(topic, wire.encode(message), self._key)
            await self._connection.publish(topic, payload, qos=1)
        except ActuatorError:
            return  # said again with the next state
        self._quoted = nonce

    def _why_not(self) -> str:
        where = f"{self._endpoint.host}:{self._endpoint.port}"
        if self._state is None:
            trouble = self._connection.trouble
            if trouble != "connected":
                return f"no connection to {where}: {trouble}"
            return f"no guard of robot {self._endpoint.robot!r} has said anything at {where}"
        if not self._quoted:
            return f"the guard names no nonce: {self._state.why or self._state.state}"
        return (
            f"not released: {self._state.why or self._state.state}; every required brain must see "
            "fresh GREEN, the key must be the guard's reset_key, and the guard must run"
        )

    async def _greet(self) -> None:
        """Nothing to say before the state is known."""

    def _on_message(self, topic: str, payload: bytes, _retained: bool) -> None:
        try:
            body = unseal(topic, payload, self._robot_key)
            if topic == self._endpoint.topics["state"]:
                self._state = wire.decode_state(body)
            else:
                self._halt = wire.decode_halt(body)
        except wire.WireError:
            return  # not the guard's; what is missing is said at the end
        self._news.set()

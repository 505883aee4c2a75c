"""Ten thousand hostile messages over a real broker: none is believed, and nobody waits for them."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from hdguard.actuators import wire
from hdguard.actuators.mqtt import MqttActuator
from hdguard.actuators.signing import check_key, seal
from hdguard.core.events import HaltAcknowledged, HaltConfirmed, ResetRequested, RobotSeen
from hdguard.runtime.lag import watch_lag
from tests.actuators.support import HALT, RESET_KEY, ROBOT_KEY, WHY, Signal, run, shepherded
from tests.e2e.stage import Stage, following, measured, stage

COUNT = 10_000
TOPICS = wire.Topics("rosie")
KEYS = {"reset": check_key(RESET_KEY, "key"), "robot": check_key(ROBOT_KEY, "key")}
KEYS["ack"] = KEYS["robot"]
GOOD = {
    "robot": wire.encode(wire.RobotMessage(boot=9, seq=10**6, moving=False, speed=0.0)),
    "ack": wire.encode(wire.AckMessage(halt_id=HALT.halt_id, guard_boot=7, stopped=True)),
    "reset": wire.encode(wire.ResetMessage(halt_id=HALT.halt_id, nonce="0" * 32, operator="ada")),
}
"""What is in order but for one thing: nobody who knows the key has signed it for this topic."""

FIELDS = ("boot", "seq", "moving", "speed", "halt_id", "guard_boot", "stopped", "nonce", "operator")
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=40),
    st.sampled_from([HALT.halt_id, "7-2", "1junk", "", "\x00", "GREEN"]),
)
TREES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.sampled_from(FIELDS), inner, max_size=6)
    ),
    max_leaves=12,
)


@dataclass(frozen=True)
class Lie:
    """A message that must not be believed."""

    name: str
    payload: bytes
    retain: bool


def _json(tree: object) -> bytes:
    return json.dumps(tree).encode()


def _changed(body: bytes, name: object, value: object) -> bytes:
    return _json({**json.loads(body), str(name): value})


@st.composite
def _lies(draw: st.DrawFn) -> Lie:
    name = draw(st.sampled_from(sorted(GOOD)))
    body, key = GOOD[name], KEYS[name]
    other = KEYS["robot" if name == "reset" else "reset"]
    elsewhere = TOPICS["ack" if name == "robot" else "robot"]
    signed = seal(TOPICS[name], body, key)
    kinds: dict[str, Callable[[], bytes]] = {
        "noise": lambda: draw(st.binary(max_size=200)),
        "bad UTF-8": lambda: body[:-1] + draw(st.binary(min_size=1, max_size=20)) + b"\xff}",
        "huge": lambda: b"x" * draw(st.sampled_from([4097, 70_000, 300_000])),
        "huge text": lambda: _changed(body, draw(st.sampled_from(FIELDS)), "y" * 5000),
        "deep": lambda: draw(st.sampled_from([b"[", b'{"boot":'])) * draw(st.integers(500, 4000)),
        "wrong types": lambda: _json(draw(TREES)),
        "one wrong field": lambda: _changed(body, draw(st.sampled_from(FIELDS)), draw(SCALARS)),
        "unsigned": lambda: body,
        "another key": lambda: seal(TOPICS[name], body, other),
        "another topic": lambda: seal(elsewhere, body, key),
        "no such signature": lambda: b'{"signature":"' + b"0" * 64 + b'",' + body[1:],
        "tampered": lambda: _tampered(draw, signed),
        # The only ones that are signed: made by somebody who knows the key, and still refused.
        "signed nonsense": lambda: seal(
            TOPICS["reset"],
            _changed(GOOD["reset"], draw(st.sampled_from(FIELDS)), draw(TREES)),
            KEYS["reset"],
        ),
        "signed, no such nonce": lambda: seal(TOPICS["reset"], GOOD["reset"], KEYS["reset"]),
    }
    kind = draw(st.sampled_from(sorted(kinds)))
    topic = "reset" if kind.startswith("signed") else name
    return Lie(topic, kinds[kind](), draw(st.integers(0, 19)) == 0)


def _tampered(draw: st.DrawFn, signed: bytes) -> bytes:
    at, bit = draw(st.integers(0, len(signed) - 1)), draw(st.integers(0, 7))
    return signed[:at] + bytes([signed[at] ^ 1 << bit]) + signed[at + 1 :]


def corpus() -> list[Lie]:
    """The same ten thousand in every run."""
    found: list[Lie] = []

    @settings(
        max_examples=COUNT // 20,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.lists(_lies(), min_size=20, max_size=20))
    def collect(lies: list[Lie]) -> None:
        found.extend(lies)

    collect()
    return found


async def _live_reset(at: Stage) -> bytes:
    """A reset that an operator has signed for the nonce of this moment."""
    async with following(at, "state", "operator") as states:
        _, payload, _ = await states.wait_for(lambda p: wire.decode_state(p).nonce is not None)
    nonce = wire.decode_state(payload).nonce
    assert nonce is not None
    ask = wire.ResetMessage(halt_id=HALT.halt_id, nonce=nonce, operator="ada")
    return seal(TOPICS["reset"], wire.encode(ask), KEYS["reset"])


def test_of_ten_thousand_hostile_messages_none_is_believed_and_the_loop_does_not_notice(
    tmp_path: Path,
) -> None:
    lies = corpus()
    assert len(lies) >= COUNT
    lags: list[float] = []

    async def story() -> None:
        audit = Signal()
        async with stage("mosquitto", tmp_path) as at, at.client() as stranger:
            mqtt = at.guard_settings(robot_key=ROBOT_KEY)
            actuator = MqttActuator(mqtt, 7, on_rejected=audit)
            async with actuator, shepherded(actuator) as shepherd, asyncio.TaskGroup() as group:
                await actuator.ready()
                await actuator.halt(HALT)
                await actuator.notify(WHY)
                lag = group.create_task(watch_lag(lags.append, every=0.005))
                for lie in lies:
                    await stranger.publish(TOPICS[lie.name], lie.payload, 1, retain=lie.retain)
                await audit.wait(len(lies))
                lag.cancel()
                believed = (ResetRequested, HaltAcknowledged, HaltConfirmed, RobotSeen)
                assert [e for kind in believed for e in shepherd.all(kind)] == []
                assert sum(actuator.rejected.values()) == len(lies)
                # It is not that nothing would be believed.
                await stranger.publish(TOPICS["reset"], await _live_reset(at), 1)
                assert (await shepherd.wait_for(ResetRequested))[1].operator == "ada"

    run(story(), patience=90.0)
    p99 = float(np.percentile(lags, 99))
    measured("loop lag p99 under hostile messages", p99)
    assert p99 < 0.05

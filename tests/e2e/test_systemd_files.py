"""What is shipped for an installation: the unit, the example configuration, the broker's files."""

import asyncio
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, get_args, get_type_hints

import aiomqtt
import pytest

from hdguard.actuators.mqtt import MqttActuator, MqttSettings
from hdguard.actuators.signing import check_key, seal
from hdguard.actuators.wire import ResetMessage, StateMessage, decode_state, encode
from hdguard.config import Config, load_config
from hdguard.core.events import HaltConfirmed, ResetRequested, RobotSeen
from hdguard.core.types import Speed
from hdguard.live import LivePlan
from hdguard.seating import LOAD_TIMEOUT
from tests.actuators.support import HALT, RESET_KEY, WHY, run, shepherded
from tests.e2e.stage import REPOSITORY, Stage, demo_robot, following
from tests.mosquitto import PASSWORD, Mosquitto

SYSTEMD = REPOSITORY / "systemd"
UNIT = SYSTEMD / "hdguard@.service"
EXAMPLE = SYSTEMD / "hdguard.toml"


def analyze(*words: str) -> str:
    program = shutil.which("systemd-analyze")
    assert program is not None, "these tests need systemd-analyze: apt-get install systemd"
    done = subprocess.run(
        [program, *words], capture_output=True, text=True, check=False, timeout=60
    )
    return done.stdout + done.stderr


# The unit.


def unit() -> dict[str, list[str]]:
    """Every key with its values, in order."""
    found: dict[str, list[str]] = {}
    for line in UNIT.read_text().splitlines():
        if re.match(r"[A-Z]\w+=", line):
            key, _, value = line.partition("=")
            found.setdefault(key, []).append(value)
    return found


def test_the_unit_is_hardened_as_systemd_itself_judges() -> None:
    said = analyze("security", "--offline=true", "--no-pager", str(UNIT))
    verdict = re.search(r"exposure level for .*: ([\d.]+) (\w+)", said)
    assert verdict is not None, said
    assert verdict[2] in {"OK", "SAFE", "PERFECT"}


def test_the_unit_has_no_key_that_systemd_does_not_know(tmp_path: Path) -> None:
    here = tmp_path / UNIT.name
    here.write_text(UNIT.read_text().replace("/opt/hdguard/bin/hdguard", "/bin/true"))
    said = analyze("verify", "--no-pager", str(here))
    assert [line for line in said.splitlines() if "hdguard@" in line] == []


def test_the_unit_is_killed_after_two_seconds_of_silence_and_always_started_again() -> None:
    keys = unit()
    expected = {
        "Type": "notify",
        "WatchdogSec": "2",
        "WatchdogSignal": "SIGKILL",
        "Restart": "always",
        "RestartSec": "1s",
        "StartLimitIntervalSec": "0",
        "StateDirectory": "hdguard/%i",
        "NoNewPrivileges": "yes",
        "ProtectSystem": "strict",
    }
    assert {key: keys[key][-1] for key in expected} == expected


def test_no_exit_code_leaves_the_robot_without_a_guard_for_good() -> None:
    """A port or a lock that is taken for a moment is 78 too."""
    assert "RestartPreventExitStatus" not in unit()
    assert unit()["Restart"] == ["always"]


def test_the_unit_waits_as_long_as_a_model_may_load() -> None:
    assert float(unit()["TimeoutStartSec"][0]) >= LOAD_TIMEOUT + 30.0


def test_code_that_comes_with_a_model_has_a_folder_to_be_written_to() -> None:
    (modules,) = [v for v in unit()["Environment"] if v.startswith("HF_MODULES_CACHE=")]
    assert modules == f"HF_MODULES_CACHE=%C/{unit()['CacheDirectory'][0]}/modules"


# The example configuration.


def example(folder: Path, text: str) -> Path:
    """It, with the files that it names beside it."""
    path = folder / EXAMPLE.name
    path.write_text(text)
    for name in re.findall(r'from_file = "([^"]+)"', text):
        (folder / name).write_text("0123456789abcdef0123456789abcdef\n")
    return path


def uncommented(text: str) -> str:
    """Every key that stands behind a # put into force."""
    return re.sub(r"(?m)^#(?=[\[a-z])", "", text)


def keys(kind: Any, prefix: str = "") -> Iterator[str]:
    """Every key of these settings and of those inside them, with dots."""
    for name, hint in get_type_hints(kind).items():
        inner = [each for each in (hint, *get_args(hint)) if is_dataclass(each)]
        if name not in {f.name for f in fields(kind)}:
            continue
        if inner:
            yield from keys(inner[0], f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"


def written(table: Any, prefix: str = "") -> Iterator[str]:
    for key, value in table.items():
        yield f"{prefix}{key}"
        for inner in value if isinstance(value, list) else [value]:
            if isinstance(inner, dict):
                yield from written(inner, f"{prefix}{key}.")


def test_the_example_is_a_configuration_that_may_guard_a_robot(tmp_path: Path) -> None:
    config = load_config(example(tmp_path, EXAMPLE.read_text()))
    LivePlan(config).check()


def test_the_example_names_every_key_that_there_is() -> None:
    there = set(written(tomllib.loads(uncommented(EXAMPLE.read_text()))))
    assert {key for key in keys(Config) if key not in there} == set()


def test_every_key_that_the_example_shows_behind_a_comment_is_right(tmp_path: Path) -> None:
    text = uncommented(EXAMPLE.read_text())
    config = load_config(example(tmp_path, text))
    assert [camera.name for camera in config.camera] == ["front", "arm", "head", "hall"]
    plan = LivePlan(config)
    assert {source.source_id for source in plan.sources()} == {"front", "arm", "head", "hall"}


def test_a_value_that_the_example_calls_a_default_is_the_default(tmp_path: Path) -> None:
    config = load_config(example(tmp_path, uncommented(EXAMPLE.read_text())))
    for part in ("source", "robot", "broker", "worker"):
        assert getattr(config, part) == getattr(Config(), part)
    assert config.policy.policy() == Config().policy.policy()
    chosen = {"robot", "publish_tokens"}
    for part in ("mqtt", "http"):
        for each in fields(getattr(config, part)):
            default = getattr(getattr(Config(), part), each.name)
            if default is not None and each.name not in chosen:
                assert getattr(getattr(config, part), each.name) == default, each.name


# The broker's files.


@contextmanager
def shipped_broker(folder: Path) -> Iterator[Mosquitto]:
    """A mosquitto with the shipped files, included as Debian's mosquitto.conf does."""
    broker = Mosquitto(folder)
    files = SYSTEMD / "mosquitto"
    conf = (files / "hdguard.conf").read_text()
    for shipped, here in (
        ("listener 1883 127.0.0.1", f"listener {broker.port} 127.0.0.1"),
        ("/etc/mosquitto/hdguard.passwords", str(folder / "passwords")),
        ("/etc/mosquitto/hdguard.acl", str(folder / "access")),
    ):
        assert shipped in conf
        conf = conf.replace(shipped, here)
    (folder / "access").write_text((files / "hdguard.acl").read_text())
    (folder / "conf.d").mkdir()
    (folder / "conf.d" / "hdguard.conf").write_text(conf)
    (folder / "mosquitto.conf").write_text(
        f"persistence true\npersistence_location {folder}/\n"
        "log_dest stderr\nlog_type error\nlog_type information\nuser root\n"
        f"include_dir {folder / 'conf.d'}\n"
    )
    broker.start()
    try:
        yield broker
    finally:
        broker.kill()


def test_with_the_shipped_broker_files_guard_robot_and_operator_do_all_that_they_must(
    tmp_path: Path,
) -> None:
    async def story(at: Stage) -> None:
        settings = MqttSettings(**at.account("guard"), reset_key=RESET_KEY)
        async with (
            MqttActuator(settings, 7) as guard,
            demo_robot(at.robot_settings()) as driven,
            shepherded(guard) as shepherd,
        ):
            await guard.ready()
            await shepherd.wait_for(RobotSeen)
            await driven.at_speed(Speed.FULL)
            await guard.halt(HALT)
            await guard.notify(WHY)
            await shepherd.wait_for(HaltConfirmed)
            async with following(at, "state", "operator") as states, at.client("operator") as op:
                _, payload, _ = await states.wait_for(lambda p: b'"nonce":"' in p)
                await op.publish("hdguard/rosie/reset", reset(decode_state(payload)), 1)
                await shepherd.wait_for(ResetRequested)

    with shipped_broker(tmp_path) as broker:
        run(story(Stage(broker.port, passwords=True, process=broker)))


def reset(state: StateMessage) -> bytes:
    """The operator's answer to a halted guard."""
    assert state.nonce is not None
    message = ResetMessage(halt_id=HALT.halt_id, nonce=state.nonce, operator="ada")
    return seal("hdguard/rosie/reset", encode(message), check_key(RESET_KEY, "key"))


@pytest.mark.parametrize(
    ("user", "topic"),
    [
        ("robot", "permit"),
        ("robot", "halt"),
        ("robot", "reset"),
        ("operator", "permit"),
        ("operator", "halt"),
        ("operator", "ack"),
        ("guard", "robot"),
        ("guard", "ack"),
        ("guard", "reset"),
    ],
)
def test_with_the_shipped_access_list_nobody_speaks_for_another(
    user: str, topic: str, shared_broker: Mosquitto
) -> None:
    """Everything is read back by the guard, to whom each of these topics matters."""

    async def story() -> None:
        at = Stage(shared_broker.port, passwords=True, process=shared_broker)
        allowed = {"robot": "ack", "operator": "reset", "guard": "permit"}[user]
        async with at.client("guard") as guard, at.client(user) as speaker:
            await guard.subscribe("hdguard/+/+", 1)
            async with asyncio.TaskGroup() as group:
                first = group.create_task(anext_topic(guard))
                await speaker.publish(f"hdguard/rosie/{topic}", b"forged", 1)
                await speaker.publish(f"hdguard/rosie/{allowed}", b"own", 1)
            assert first.result() == f"hdguard/rosie/{allowed}"

    run(story())


async def anext_topic(client: aiomqtt.Client) -> str:
    async for message in client.messages:
        return message.topic.value
    raise AssertionError("the broker closed the connection")


def test_the_shipped_broker_lets_nobody_in_without_a_name(shared_broker: Mosquitto) -> None:
    async def story() -> None:
        async with aiomqtt.Client("127.0.0.1", shared_broker.port, timeout=5.0):
            pass

    with pytest.raises(aiomqtt.MqttError, match="Not authorized"):
        run(story())


def test_the_broker_is_told_not_to_hold_back_the_first_message() -> None:
    conf = (SYSTEMD / "mosquitto" / "hdguard.conf").read_text()
    assert "\nset_tcp_nodelay true\n" in conf
    assert PASSWORD not in conf


@pytest.fixture(scope="module")
def shared_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mosquitto]:
    with shipped_broker(tmp_path_factory.mktemp("mosquitto")) as broker:
        yield broker

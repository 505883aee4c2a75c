"""The commands of the daemon and its operators: `run`, `reset`, `halt`."""

import asyncio
import getpass
import http.client
import ssl
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote, urlsplit

import msgspec
import typer

from hdguard.actuators.connection import MqttEndpoint
from hdguard.cli_errors import errors, say_error
from hdguard.cli_robot import read_secret, same_broker
from hdguard.config import ConfigError, load_config
from hdguard.live import LivePlan
from hdguard.resetting import RESET_WITHIN, ResetError, Resetter
from hdguard.seating import with_brains

RUN_EXAMPLES = (
    "Examples:\n\n  hdguard run --config hdguard.toml\n\n"
    "  hdguard run --config hdguard.toml --profile laptop"
)
RESET_EXAMPLES = (
    "Examples:\n\n  hdguard reset 7-3 --config hdguard.toml\n\n"
    "  hdguard reset 7-3 --host hub --robot rosie --key-file reset.key --username operator "
    "--password-file operator.password"
)
HALT_EXAMPLE = "Example:\n\n  hdguard halt --url http://127.0.0.1:8090 --token-file operator.token"

NOBODY = "an operator without an account"
"""Who asks for a reset, where neither option nor machine tell: the guard takes no empty name."""

HTTP_WITHIN = 5.0
"""Seconds for the guard to answer a person."""


def run(
    config: Annotated[Path, typer.Option(help="Configuration (TOML).", metavar="FILE")],
    profile: Annotated[
        str | None, typer.Option(help="Brains and deadlines; `hdguard models` lists them.")
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(help="For models that name none: cuda:N, a GPU's UUID, or cpu."),
    ] = None,
) -> None:
    """Guard a robot: watch its cameras, permit it to move, halt it; until SIGTERM or Ctrl-C."""
    with errors():
        chosen = load_config(config)
        if profile is not None:
            chosen = replace(chosen, profile=profile)
        # A web server and a logging library are loaded only by whoever runs one.
        from hdguard.log_secrets import secrets_of  # noqa: PLC0415
        from hdguard.logs import logging_to  # noqa: PLC0415

        with logging_to(sys.stderr, chosen.log, secrets_of(chosen)):
            from hdguard.sidecar import run_sidecar  # noqa: PLC0415

            run_sidecar(LivePlan(with_brains(chosen, device)))


def reset(  # noqa: PLR0913, PLR0917 - one parameter per option
    halt_id: Annotated[str, typer.Argument(help="The halt in force, as the status shows it.")],
    config: Annotated[
        Path | None, typer.Option(help="The guard's configuration (TOML).", metavar="FILE")
    ] = None,
    host: Annotated[str | None, typer.Option(help="The broker.")] = None,
    port: Annotated[int | None, typer.Option(help="Its port.")] = None,
    robot: Annotated[str | None, typer.Option(help="The robot's name in the topics.")] = None,
    username: Annotated[str | None, typer.Option(help="For the broker.")] = None,
    password_file: Annotated[
        Path | None, typer.Option(help="Holds the password.", metavar="FILE")
    ] = None,
    key_file: Annotated[
        Path | None, typer.Option(help="Holds the guard's reset_key.", metavar="FILE")
    ] = None,
    operator: Annotated[str, typer.Option(help="Who asks, for the audit log.")] = "",
) -> None:
    """End a halt; accepted while every required brain sees GREEN."""
    with errors():
        given: dict[str, Any] = {
            "host": host,
            "port": port,
            "robot": robot,
            "username": username,
            "password": read_secret(password_file),
        }
        key = read_secret(key_file)
        endpoint = MqttEndpoint()
        if config is not None:
            settings = load_config(config).mqtt
            endpoint = same_broker(settings)
            key = key or settings.reset_key
        if not key:
            msg = "--key-file: name the file that holds the guard's reset_key"
            raise ConfigError(msg)
        try:
            endpoint = replace(endpoint, **{k: v for k, v in given.items() if v is not None})
            asked = _reset(endpoint, key, halt_id, operator or _user() or NOBODY)
            asyncio.run(asked)
        except ValueError as error:
            raise ConfigError(str(error)) from error
        except ResetError as error:
            say_error(f"halt {halt_id}: {error}")
            raise typer.Exit(1) from error
    typer.echo(f"halt {halt_id}: released")


async def _reset(endpoint: MqttEndpoint, key: str, halt_id: str, operator: str) -> None:
    await Resetter(endpoint, key, operator).reset(halt_id, RESET_WITHIN)


def halt(
    url: Annotated[str, typer.Option(help="The guard's HTTP address.")] = "http://127.0.0.1:8090",
    token_file: Annotated[
        Path | None, typer.Option(help="Holds the operators' token.", metavar="FILE")
    ] = None,
    ca_file: Annotated[
        Path | None, typer.Option(help="PEM of who signed its certificate.", metavar="FILE")
    ] = None,
    operator: Annotated[str, typer.Option(help="Who asks, for the audit log.")] = "",
) -> None:
    """Halt the robot. It moves again only after `hdguard reset`."""
    with errors():
        try:
            said = _post_halt(url, read_secret(token_file) or "", ca_file, operator)
        except (OSError, http.client.HTTPException, ValueError) as error:
            say_error(f"{url}: {error}; the robot may not be halted: use its own stop")
            raise typer.Exit(1) from error
    typer.echo(said)


def _post_halt(url: str, token: str, ca_file: Path | None, operator: str) -> str:
    """What the guard says of the halt that is in force now.

    Raises:
        OSError: it cannot be reached.
        ValueError: the URL is none, the guard refuses, or it is no guard that answers.
    """
    where = urlsplit(url)
    if where.scheme not in {"http", "https"} or where.hostname is None:
        msg = "not an http or https address"
        raise ValueError(msg)
    connection: http.client.HTTPConnection
    if where.scheme == "https":
        context = ssl.create_default_context(cafile=ca_file)
        connection = http.client.HTTPSConnection(
            where.hostname, where.port, timeout=HTTP_WITHIN, context=context
        )
    else:
        connection = http.client.HTTPConnection(where.hostname, where.port, timeout=HTTP_WITHIN)
    try:
        name = quote(operator or _user(), errors="replace")  # no name keeps a halt back
        headers = {"Authorization": f"Bearer {token}"}
        connection.request("POST", f"/api/v1/halt?operator={name}", headers=headers)
        answer = connection.getresponse()
        body = answer.read(1 << 16)
    finally:
        connection.close()
    if answer.status != 200:
        msg = f"refused with {answer.status} {answer.reason}: {body.decode(errors='replace')}"
        raise ValueError(msg)
    try:
        return str(msgspec.json.decode(body, type=_Answer).halt)
    except msgspec.DecodeError as error:
        msg = f"what answers does not say which halt is in force: {error}"
        raise ValueError(msg) from error


class _Halt(msgspec.Struct, rename={"halt_class": "class"}):
    halt_id: str
    halt_class: str
    cause: str

    def __str__(self) -> str:
        return f"halt {self.halt_id} is in force: {self.halt_class}, {self.cause}"


class _Answer(msgspec.Struct):
    halt: _Halt


def _user() -> str:
    """Who runs this; empty if the machine does not know, which must not keep a halt back."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):  # what it raises without an account, by version
        return ""

"""What operators and service managers are told by the daemon's commands, and the exit codes."""

import http.server
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest
from typer.testing import CliRunner, Result

from hdguard import sidecar
from hdguard.cli import cli

CAMERA = '[[camera]]\nname = "kitchen"\nurl = "rtsp://127.0.0.1/live"\n'


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "hdguard.toml"


def said(*words: str) -> Result:
    return CliRunner().invoke(cli, list(words))


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("", "camera: name at least one [[camera]] that is required"),
        (CAMERA + "[live]\nstate_dri = 'x'", "live.state_dri: unknown key"),
        (CAMERA + "[live.hook]\ncommand = ['']", "live.hook: command: must begin with a program"),
        (CAMERA + "[mqtt]\nport = 0", "mqtt: port: 0 must be 1 to 65535"),
        (CAMERA + "[mqtt]\nrobot = 'a/b'", "mqtt: robot: 'a/b' must be"),
        (CAMERA + "[http]\nhost = '0.0.0.0'", "http: tls_cert: must be given"),
        (CAMERA + "[policy]\npreset = 'paper'", "policy.preset: paper is for replays"),
        (CAMERA.replace("rtsp", "gopher"), "camera.0.url: 'gopher://127.0.0.1/live' must begin"),
        (CAMERA.replace("kitchen", "the kitchen"), "camera.0: name: 'the kitchen' must be"),
        (CAMERA + "[[fast]]\nbrain = 'oracle'", "fast.0.brain: no brain is called 'oracle'"),
        (CAMERA + "[mqtt]\npassword = { from_env = 'NOT_SET' }", "mqtt.password: the environment"),
    ],
)
def test_a_bad_configuration_ends_with_78_and_the_keys_path_before_anything_is_opened(
    config: Path, text: str, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def opened(*_: object) -> None:
        raise AssertionError("something was opened")

    for name in ("bind", "connect"):
        monkeypatch.setattr(socket.socket, name, opened)
    monkeypatch.setattr(sidecar, "claimed", opened)
    config.write_text(text)
    result = said("run", "--config", str(config))
    assert result.exit_code == 78, result.output
    assert key in result.stderr


def test_a_torn_state_file_ends_with_78_and_says_what_to_do(config: Path, tmp_path: Path) -> None:
    config.write_text(f"{CAMERA}[live]\nstate_dir = '{tmp_path}'\n")
    (tmp_path / "robot.state.json").write_text('{"format":"hdguard-sta')
    result = said("run", "--config", str(config))
    assert result.exit_code == 78
    assert "robot.state.json: not a state file" in result.stderr
    assert "look at the robot, then delete the file" in result.stderr


def test_check_config_shows_no_secret_of_the_live_part(config: Path) -> None:
    config.write_text(
        CAMERA.replace("rtsp://", "rtsp://ada:hunter2@")
        + 'options = { open_timeout = 1.0 }\n[mqtt]\nusername = "guard"\npassword = "hunter2"\n'
        'reset_key = "hunter2hunter2hunter2"\nrobot_key = "hunter2hunter2hunter2"\n'
        '[http]\ntoken = "hunter2hunter2hunter2"\n'
        '[http.publish_tokens]\nkitchen = "hunter2hunter2hunter2"\n'
    )
    result = said("check-config", str(config))
    assert result.exit_code == 0, result.output
    assert "hunter2" not in result.output
    shown = json.loads(result.stdout)
    assert shown["camera"][0]["url"] == "rtsp://***@127.0.0.1/live"
    assert shown["mqtt"]["username"] == "guard"
    assert shown["mqtt"]["password"] == shown["http"]["token"] == "***"


def test_a_reset_without_a_key_or_with_a_bad_one_is_refused_with_78(tmp_path: Path) -> None:
    result = said("reset", "7-1")
    assert (result.exit_code, "--key-file" in result.stderr) == (78, True)
    (tmp_path / "key").write_text("short")
    result = said("reset", "7-1", "--key-file", str(tmp_path / "key"))
    assert (result.exit_code, "at least 16 characters" in result.stderr) == (78, True)


def test_a_reset_that_fails_ends_with_1_and_says_why(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hdguard.cli_live.RESET_WITHIN", 0.2)
    config.write_text('[mqtt]\nport = 1\nreset_key = "a key that is long"\n')
    result = said("reset", "7-1", "--config", str(config), "--robot", "rosie")
    assert result.exit_code == 1
    assert "halt 7-1: no connection to 127.0.0.1:1" in result.stderr


class Desk(http.server.BaseHTTPRequestHandler):
    """Plays the guard's HTTP edge."""

    asked: ClassVar[list[tuple[str, str | None]]]
    code = 200
    answer = b'{"halt": {"halt_id": "7-1", "class": "operator", "cause": "operator", "more": 1}}'

    def do_POST(self) -> None:
        self.asked.append((self.path, self.headers["Authorization"]))
        body = self.answer
        self.send_response(self.code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        return


@pytest.fixture
def desk() -> Iterator[tuple[str, type[Desk]]]:
    class Here(Desk):
        asked: ClassVar = []

    with http.server.HTTPServer(("127.0.0.1", 0), Here) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))  # noqa: TID251
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", Here
        server.shutdown()
        thread.join()


def test_an_operators_halt_carries_the_token_and_a_name_and_says_which_halt_is_in_force(
    desk: tuple[str, type[Desk]], tmp_path: Path
) -> None:
    url, here = desk
    (tmp_path / "token").write_text("an-operators-token\n")
    options = ("--token-file", str(tmp_path / "token"), "--operator", "ada l")
    result = said("halt", "--url", url, *options)
    assert (result.exit_code, result.stdout) == (
        0,
        "halt 7-1 is in force: operator, operator\n",
    )
    assert here.asked == [("/api/v1/halt?operator=ada%20l", "Bearer an-operators-token")]
    assert said("halt", "--url", url, "--operator", "ad\udce4").exit_code == 0  # Latin-1 terminal


def test_a_halt_that_is_refused_or_reaches_nobody_says_that_the_robot_may_go_on(
    desk: tuple[str, type[Desk]],
) -> None:
    url, here = desk
    here.code = 401
    for where in (url, "http://127.0.0.1:1", "ftp://hub"):
        result = said("halt", "--url", where)
        assert result.exit_code == 1
        assert "the robot may not be halted: use its own stop" in result.stderr


@pytest.mark.parametrize("answer", [b"{}", b'{"halt": null}', b'{"halt": {}}', b"[]", b"<html>"])
def test_an_answer_of_something_else_than_a_guard_is_not_taken_for_a_halt(
    desk: tuple[str, type[Desk]], answer: bytes
) -> None:
    url, here = desk
    here.answer = answer
    result = said("halt", "--url", url)
    assert result.exit_code == 1
    assert "the robot may not be halted: use its own stop" in result.stderr


@pytest.mark.parametrize("error", [KeyError("uid not found: 4242"), OSError("No username set")])
def test_a_container_without_an_account_keeps_no_halt_and_no_reset_back(
    desk: tuple[str, type[Desk]],
    config: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
) -> None:
    def unknown() -> str:
        raise error

    monkeypatch.setattr("getpass.getuser", unknown)
    monkeypatch.setattr("hdguard.cli_live.RESET_WITHIN", 0.2)
    url, here = desk
    result = said("halt", "--url", url)
    assert (result.exit_code, here.asked[0][0]) == (0, "/api/v1/halt?operator=")
    config.write_text('[mqtt]\nport = 1\nreset_key = "a key that is long"\n')
    assert "no connection to 127.0.0.1:1" in said("reset", "7-1", "--config", str(config)).stderr

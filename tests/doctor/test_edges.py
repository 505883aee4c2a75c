"""The hook that would be called, and the port that would be opened."""

import socket
from pathlib import Path

import pytest

from hdguard.doctor.edges import check_hook, check_http, check_token
from hdguard.doctor.findings import Status
from hdguard.observe.settings import HttpError, HttpSettings
from hdguard.runtime.hooks import HookSettings

OK, WARN, FAIL = Status.OK, Status.WARN, Status.FAIL
TOKEN = "an operator's token, long".replace(" ", "-")


def test_without_a_hook_it_is_said_what_then_stops_the_robot() -> None:
    (found,) = check_hook(HookSettings())
    assert (found.status, "lease" in found.said) == (OK, True)


def test_a_hook_that_can_be_called_is_well_and_not_called(tmp_path: Path) -> None:
    program, line = tmp_path / "stop", tmp_path / "value"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/called\n")
    program.chmod(0o700)
    line.write_text("0")
    found = check_hook(HookSettings((str(program), "--now"), str(line)))
    assert [f.status for f in found] == [OK, OK]
    assert line.read_text() == "0"
    assert not (tmp_path / "called").exists()


def test_a_hook_that_cannot_be_called_is_found_before_it_is_needed(tmp_path: Path) -> None:
    program = tmp_path / "stop"
    program.write_text("#!/bin/sh\n")
    found = check_hook(HookSettings((str(program),), str(tmp_path / "gpio17" / "value")))
    assert [f.status for f in found] == [FAIL, FAIL]


def test_a_free_port_is_well() -> None:
    (found,) = check_http(HttpSettings(port=0))
    assert found.status is OK


def test_without_a_token_nobody_can_halt() -> None:
    assert check_token(HttpSettings(token=TOKEN)) == []
    (found,) = check_token(HttpSettings())
    assert (found.status, found.do) == (WARN, "set http.token")


def test_a_port_that_another_program_has_fails() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        settings = HttpSettings(port=other.getsockname()[1], token=TOKEN)
        (found,) = check_http(settings)
        assert found.status is FAIL


def test_a_certificate_that_cannot_be_used_is_an_error_that_names_it(tmp_path: Path) -> None:
    crt, key = str(tmp_path / "guard.crt"), str(tmp_path / "guard.key")
    with pytest.raises(HttpError, match=r"guard\.crt"):
        check_http(HttpSettings(token=TOKEN, tls_cert=crt, tls_key=key))


def test_an_address_of_another_machine_is_an_error() -> None:
    settings = HttpSettings(host="127.0.0.1", port=0, token=TOKEN)
    object.__setattr__(settings, "host", "192.0.2.1")
    with pytest.raises(OSError, match="assign"):
        check_http(settings)

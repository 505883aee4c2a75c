"""A real mosquitto on a free loopback port, with names, passwords and an access list."""

import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PASSWORD = "only for tests"

ACCESS = """\
user guard
topic write hdguard/+/permit
topic write hdguard/+/halt
topic write hdguard/+/state
topic write hdguard/+/availability
topic read hdguard/#

user robot
topic write hdguard/+/robot
topic write hdguard/+/ack
topic read hdguard/+/permit
topic read hdguard/+/halt

user operator
topic write hdguard/+/reset
topic read hdguard/+/state
topic read hdguard/+/halt

user anyone
topic readwrite #
"""
USERS = ("guard", "robot", "operator", "anyone")


def free_port() -> int:
    """A port of the loopback interface that is free now."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


class Mosquitto:
    """The broker's process. `start` blocks until it listens; that takes about 40 ms."""

    def __init__(self, folder: Path, extra: str = "") -> None:
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        program = shutil.which(
            "mosquitto", path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin"
        )
        assert program is not None, "these tests need mosquitto: apt-get install mosquitto"
        self._program = program
        self._config = folder / "mosquitto.conf"
        passwords, access = folder / "passwords", folder / "access"
        passwords.touch(mode=0o600)
        for user in USERS:
            subprocess.run(
                ["mosquitto_passwd", "-b", str(passwords), user, PASSWORD],
                check=True,
                capture_output=True,
            )
        access.write_text(ACCESS)
        access.chmod(0o600)
        self._config.write_text(
            f"listener {self.port} 127.0.0.1\n{extra}\n"
            f"allow_anonymous false\npassword_file {passwords}\nacl_file {access}\n"
            "persistence false\nset_tcp_nodelay true\n"
            "log_dest stderr\nlog_type error\nlog_type information\n"
            "user root\n"  # as another user it could not read files in a test's folder
        )

    def start(self) -> None:
        self._process = subprocess.Popen(
            [self._program, "-c", str(self._config)], stderr=subprocess.PIPE
        )
        assert self._process.stderr is not None
        said = []
        for line in self._process.stderr:
            said.append(line.decode(errors="replace"))
            if b"running" in line:
                return
        self.kill()
        raise AssertionError(f"mosquitto did not start: {''.join(said)}")

    def freeze(self) -> None:
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            assert self._process.stderr is not None
            self._process.stderr.close()
            self._process = None

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)


@contextmanager
def mosquitto(folder: Path, extra: str = "") -> Iterator[Mosquitto]:
    """A running broker, killed at the end."""
    broker = Mosquitto(folder, extra)
    broker.start()
    try:
        yield broker
    finally:
        broker.kill()

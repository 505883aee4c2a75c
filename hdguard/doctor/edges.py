"""Whether the guard's other ways out can be used: the fall-back hook and the HTTP port."""

import errno
import os
import shutil
import socket
from pathlib import Path

from hdguard.doctor.findings import Finding, fail, ok, warn
from hdguard.observe.settings import HttpSettings
from hdguard.runtime.hooks import HookSettings


def check_hook(hook: HookSettings) -> list[Finding]:
    """Whether what is to be called can be called; it is not called."""
    if not hook.command and not hook.gpio:
        return [ok("hook", "none is set: without a broker the robot's own lease stops it")]
    found = []
    if hook.command:
        program = shutil.which(hook.command[0])
        if program is None:
            how = "correct live.hook.command; the service's user must be allowed to run it"
            found.append(fail("hook", f"{hook.command[0]} is no program that can be run", how))
        else:
            found.append(ok("hook", f"{program} can be run; it was not"))
    if hook.gpio:
        if Path(hook.gpio).is_file() and os.access(hook.gpio, os.W_OK):
            found.append(ok("hook", f"{hook.gpio} can be written; it was not"))
        else:
            how = "export the line first, and let the service's user write it"
            found.append(fail("hook", f"{hook.gpio} is no file that can be written", how))
    return found


def check_http(http: HttpSettings) -> list[Finding]:
    """Whether the port is free and the certificate can be used; while no guard runs.

    Raises:
        HttpError: the certificate or its key cannot be used.
        OSError: the address is none of this machine's, or not ours to take.
    """
    scheme = "http" if http.tls() is None else "https"
    where = f"{scheme}://{http.host}:{http.port}"
    family = socket.AF_INET6 if ":" in http.host else socket.AF_INET
    with socket.socket(family) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the server does
        try:
            sock.bind((http.host, http.port))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            how = "end the program that has it, or set http.port"
            return [fail("http", f"{where}: another program listens there", how)]
    return [ok("http", f"{where} is free")]


def check_token(http: HttpSettings) -> list[Finding]:
    """Whether an operator can halt the robot over HTTP; nothing is said if so."""
    if http.token is None:
        return [warn("http", "no operator can halt the robot over it", "set http.token")]
    return []

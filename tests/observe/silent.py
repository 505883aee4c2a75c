"""Clients that keep a server waiting, to be run as a process: `python silent.py PORT CERT HEX`.

Opens 64 connections at once and then 30 a second, over TLS if CERT is a file. On each it sends
these bytes and is silent from then on: it reads nothing, and leaves only when it is killed. Prints
a line once the 64 are there.
"""

import socket
import ssl
import sys
import time

CROWD = 64


def opened(port: int, tls: ssl.SSLContext | None, said: bytes) -> socket.socket | None:
    """One that has said its words; None if it was refused."""
    try:
        sock = socket.create_connection(("127.0.0.1", port), timeout=2.0)
        if tls is not None:
            sock = tls.wrap_socket(sock, server_hostname="127.0.0.1")
        sock.sendall(said)
    except OSError:
        return None
    return sock


def main() -> None:
    """Come in a crowd, and go on coming."""
    port, cert, said = int(sys.argv[1]), sys.argv[2], bytes.fromhex(sys.argv[3])
    tls = ssl.create_default_context(cafile=cert) if cert else None
    held = [opened(port, tls, said) for _ in range(CROWD)]
    sys.stdout.write("there\n")
    sys.stdout.flush()
    while True:
        held.append(opened(port, tls, said))
        time.sleep(0.03)  # noqa: TID251 - another process, with no loop


if __name__ == "__main__":
    main()

"""A rude client, to be run as a process: `python flood.py PORT SECONDS`.

Eight threads open connection after connection and send what hurts most: scrapes, bodies that are
too long, heads that do not end, chunks, and nothing at all. Prints how many it opened.
"""

import itertools
import socket
import sys
import threading
import time

RUDE = [
    b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n",
    b"POST /whip/kitchen HTTP/1.1\r\nHost: x\r\nContent-Length: 1500000\r\n\r\n" + b"x" * 1500000,
    b"GET /livez HTTP/1.1\r\nHost: x\r\n" + b"X-Filler: " + b"x" * 15000,
    b"POST /api/v1/halt HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    + b"1\r\nx\r\n" * 20000,
    b"",
    b"GET / HTTP/1.1\r\n" + b"a:\r\n" * 4000,
    b"POST /api/v1/halt HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer guess-guess-guess\r\n\r\n",
]


def flood(port: int, until: float, opened: list[int]) -> None:
    """Connection after connection."""
    for raw in itertools.cycle(RUDE):
        if time.monotonic() > until:  # noqa: TID251 - another process, with no loop
            return
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=0.5) as sock:
                opened.append(1)
                sock.settimeout(0.05)
                sock.sendall(raw)
                sock.recv(1000)
        except OSError:
            pass


def main() -> None:
    """Flood from eight threads at once."""
    port, seconds = int(sys.argv[1]), float(sys.argv[2])
    until = time.monotonic() + seconds  # noqa: TID251
    opened: list[int] = []
    threads = [
        threading.Thread(target=flood, args=(port, until, opened))  # noqa: TID251 - as above
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.stdout.write(f"{len(opened)}\n")


if __name__ == "__main__":
    main()

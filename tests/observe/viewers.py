"""Many who look at the page, to be run as a process: `python viewers.py PORT SECONDS READERS MUTE`.

READERS follow the stream of events and ask again when it ends, as browsers do; MUTE ask for it and
read nothing. Prints how many events were read in all, and the fewest that one reader got.
"""

import selectors
import socket
import sys
import time

ASK = b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n"
SCRAPE = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"
SCRAPE_EVERY = 0.5  # s: many times as often as Prometheus does


def now() -> float:
    """Seconds; this process has no loop."""
    return time.monotonic()  # noqa: TID251


def asked(port: int, what: bytes = ASK) -> socket.socket:
    """A connection on which that is asked for."""
    sock = socket.create_connection(("127.0.0.1", port), timeout=5.0)
    sock.sendall(what)
    return sock


def look(port: int, seconds: float, readers: int, mute: int) -> list[int]:
    """How many events each reader got."""
    chosen = selectors.DefaultSelector()
    counts = [0] * readers
    silent = [asked(port) for _ in range(mute)]
    for number in range(readers):
        chosen.register(asked(port), selectors.EVENT_READ, number)
    until, scrape_at = now() + seconds, now()
    while now() < until:
        for key, _ in chosen.select(0.05):
            sock = key.fileobj
            assert isinstance(sock, socket.socket)
            try:
                data = sock.recv(1 << 16)
            except ConnectionError:
                data = b""
            if data:
                counts[key.data] += data.count(b"data: ")
                continue
            chosen.unregister(sock)
            sock.close()
            chosen.register(asked(port), selectors.EVENT_READ, key.data)
        if now() > scrape_at:
            scrape_at += SCRAPE_EVERY
            with asked(port, SCRAPE) as sock:
                while sock.recv(1 << 16):
                    pass
    for sock in silent:
        sock.close()
    return counts


if __name__ == "__main__":
    found = look(int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
    sys.stdout.write(f"{sum(found)} {min(found)}\n")

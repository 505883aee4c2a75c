"""A real RTSP server on a free loopback port: GStreamer's, run by the system's Python.

Run as a script it is the server, and obeys one command per line of its standard input; imported it
is the class that starts the script.
"""

import argparse
import importlib
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SYSTEM_PYTHON = "/usr/bin/python3"
USER, PASSWORD = "guard", "p@ss/word"


class RtspServer:
    """The server's process; it is up when the constructor returns, after about 0.3 s."""

    def __init__(self, fps: int = 10, size: str = "320x240", *, locked: bool = False) -> None:
        extra = ["--locked"] if locked else []
        self.process = subprocess.Popen(
            [SYSTEM_PYTHON, __file__, "--fps", str(fps), "--size", size, *extra],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        said = self._answer()
        assert said.isdecimal(), (
            "these tests need GStreamer's RTSP server: apt-get install python3-gi "
            f"gir1.2-gst-rtsp-server-1.0 gstreamer1.0-plugins-ugly (it said {said!r})"
        )
        self.port = int(said)

    @property
    def url(self) -> str:
        return f"rtsp://127.0.0.1:{self.port}/cam"

    def tell(self, command: str) -> None:
        """Give a command and wait until it is carried out.

        `stop`: drop every client and listen no more; `start`: listen again on the same port;
        `pause`: send no more pictures over connections that stay open; `resume`;
        `pattern NAME`: show another of GStreamer's test pictures, `black` or `blue` for a still.
        """
        assert self.process.stdin is not None
        self.process.stdin.write(f"{command}\n")
        self.process.stdin.flush()
        said = self._answer()
        assert said == "done", f"{command}: {said!r}"

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()

    def _answer(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()


@contextmanager
def rtsp_server(
    fps: int = 10, size: str = "320x240", *, locked: bool = False
) -> Iterator[RtspServer]:
    """A running server, killed at the end; `locked` asks for USER and PASSWORD."""
    server = RtspServer(fps, size, locked=locked)
    try:
        yield server
    finally:
        server.kill()


class _Script:
    """The server itself."""

    def __init__(self, options: argparse.Namespace) -> None:
        gi = importlib.import_module("gi")
        gi.require_version("Gst", "1.0")
        gi.require_version("GstRtspServer", "1.0")
        self.glib: Any = importlib.import_module("gi.repository.GLib")
        self.rtsp: Any = importlib.import_module("gi.repository.GstRtspServer")
        importlib.import_module("gi.repository.Gst").init(None)
        width, height = options.size.split("x")
        factory = self.rtsp.RTSPMediaFactory()
        factory.set_launch(
            "( videotestsrc name=picture is-live=true pattern=ball"
            f" ! video/x-raw,width={width},height={height},framerate={options.fps}/1"
            f" ! x264enc tune=zerolatency speed-preset=ultrafast key-int-max={options.fps}"
            " ! valve name=valve ! rtph264pay name=pay0 pt=96 config-interval=1 )"
        )
        factory.set_shared(True)
        factory.connect("media-configure", self._made)
        self.server = self.rtsp.RTSPServer()
        self.server.set_address("127.0.0.1")
        self.server.set_service("0")
        if options.locked:
            self._lock(factory)
        self.server.get_mount_points().add_factory("/cam", factory)
        self.media: list[Any] = []
        self.wanted: dict[tuple[str, str], object] = {}  # element, property: value
        self.listening = self.server.attach(None)
        self.server.set_service(str(self.server.get_bound_port()))

    def _lock(self, factory: Any) -> None:
        auth = self.rtsp.RTSPAuth()
        token = self.rtsp.RTSPToken()
        token.set_string("media.factory.role", "user")
        auth.add_basic(self.rtsp.RTSPAuth.make_basic(USER, PASSWORD), token)
        self.server.set_auth(auth)
        factory.add_role_from_structure(
            importlib.import_module("gi.repository.Gst").Structure.from_string(
                "user,media.factory.access=true,media.factory.construct=true"
            )[0]
        )

    def _made(self, _: Any, media: Any) -> None:
        self.media = [media]
        self._apply()

    def _set(self, element: str, name: str, value: object) -> None:
        self.wanted[element, name] = value
        self._apply()

    def _apply(self) -> None:
        for media in self.media:
            for (element, name), value in self.wanted.items():
                found = media.get_element().get_by_name(element)
                if isinstance(value, str):
                    importlib.import_module("gi.repository.Gst").util_set_object_arg(
                        found, name, value
                    )
                else:
                    found.set_property(name, value)

    def obey(self, command: str) -> str:
        match command.split():
            case ["stop"]:
                self.glib.source_remove(self.listening)
                self.server.client_filter(lambda *_: self.rtsp.RTSPFilterResult.REMOVE)
            case ["start"]:
                self.listening = self.server.attach(None)
            case ["pause" | "resume" as word]:
                self._set("valve", "drop", word == "pause")
            case ["pattern", name]:
                self._set("picture", "pattern", name)
            case _:
                return "what?"
        return "done"

    def run(self) -> None:
        loop = self.glib.MainLoop()

        def heard(*_: object) -> bool:
            line = sys.stdin.readline()
            if not line:
                loop.quit()
                return False
            print(self.obey(line.strip()), flush=True)  # noqa: T201 - how it answers
            return True

        condition = self.glib.IOCondition
        self.glib.io_add_watch(sys.stdin.fileno(), 0, condition.IN | condition.HUP, heard)
        print(self.server.get_bound_port(), flush=True)  # noqa: T201 - how it answers
        loop.run()


def _main() -> None:
    parser = argparse.ArgumentParser(prog=Path(__file__).name)
    parser.add_argument("--fps", type=int, default=10)
    parser.add_argument("--size", default="320x240")
    parser.add_argument("--locked", action="store_true")
    _Script(parser.parse_args()).run()


if __name__ == "__main__":
    _main()

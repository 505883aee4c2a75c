"""Which cameras there are, and what a sidecar is made of: the live half of the composition root.

What the configuration says is turned into parts here and checked before anything is opened; the
parts are run by `hdguard.sidecar`.
"""

import importlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from hdguard.config import CameraConfig, Config, ConfigError, settings_of
from hdguard.core.policy import Policy, SourcePlan, WhenFrozen
from hdguard.ingest.base import FrameSource, SourceError
from hdguard.ingest.redact import redacted
from hdguard.recording import check_recording
from hdguard.seating import Seating


@dataclass(frozen=True, slots=True)
class SourceKind:
    """A kind of camera: the source and its settings, as `module:Class`.

    Attributes:
        source: the class of the source; made from its settings alone.
        settings: the dataclass of its settings.
        place: the setting that says where the camera is.
        of_url: that setting's value, made from the URL.
        also: further settings that a live camera needs.
    """

    source: str
    settings: str
    place: str = "url"
    of_url: Callable[[str], str] = str
    also: tuple[tuple[str, Any], ...] = ()


def _path(url: str) -> str:
    """What stands behind the scheme; `file:///x` and `file:x` both name a path."""
    return url.partition(":")[2].removeprefix("//")


_RTSP = SourceKind("hdguard.ingest.rtsp:RtspSource", "hdguard.ingest.rtsp:RtspSettings")
_WHEP = SourceKind(
    "hdguard.ingest.webrtc_whep:WhepSource",
    "hdguard.ingest.webrtc_whep:WhepSettings",
    of_url=lambda url: url.removeprefix("whep+"),
)
SOURCES = {
    "rtsp": _RTSP,
    "rtsps": _RTSP,
    "tcp": _RTSP,  # MPEG-TS, as some encoders send it
    "v4l2": SourceKind(
        "hdguard.ingest.camera:CameraSource",
        "hdguard.ingest.camera:CameraSettings",
        place="device",
        of_url=_path,
    ),
    "file": SourceKind(
        "hdguard.ingest.file:FileSource",
        "hdguard.ingest.file:FileSettings",
        place="path",
        of_url=_path,
        also=(("loop", True),),
    ),
    "whip": SourceKind("hdguard.ingest.webrtc:WhipSource", "hdguard.ingest.webrtc:WhipSettings"),
    "whep+http": _WHEP,
    "whep+https": _WHEP,
}
"""The kinds of cameras by their URL's scheme. `/dev/video0` alone is v4l2."""


def source_kind(camera: CameraConfig, where: str) -> SourceKind:
    """What kind of camera this is.

    Raises:
        ConfigError: its URL's scheme is not known; names `where`.
    """
    scheme = "v4l2" if camera.url.startswith("/dev/") else camera.url.partition(":")[0].lower()
    if scheme not in SOURCES or (":" not in camera.url and scheme != "v4l2"):
        known = ", ".join(f"{name}:" for name in SOURCES)
        msg = f"{where}.url: {redacted(camera.url)!r} must begin with one of {known}"
        raise ConfigError(msg)
    return SOURCES[scheme]


def default_when_frozen(camera: CameraConfig) -> WhenFrozen:
    """A recording may stand still by right; of all else the guard is told the strictest."""
    return "ignore" if camera.url.startswith("file:") else "halt"


def make_source(camera: CameraConfig, where: str = "camera") -> FrameSource:
    """The camera's source, not opened.

    Raises:
        ConfigError: its URL or an option is wrong; names `where` and the key.
    """
    kind = source_kind(camera, where)
    settings_class = _resolve(kind.settings)
    known = {f.name for f in fields(settings_class)}
    url = f"v4l2:{camera.url}" if camera.url.startswith("/dev/") else camera.url
    given: dict[str, Any] = {
        "source_id": camera.name,
        kind.place: kind.of_url(url),
        "interval": camera.interval,
        "ignore_regions": camera.ignore_regions,
        **dict(kind.also),
    }
    taken = sorted(camera.options.keys() & given.keys())
    if taken:
        msg = f"{where}.options.{taken[0]}: set by the camera's own keys"
        raise ConfigError(msg)
    raw = {k: v for k, v in given.items() if k in known}
    settings = settings_of(settings_class, {**raw, **camera.options}, f"{where}.options")
    try:
        source: FrameSource = _resolve(kind.source)(settings)
    except SourceError as error:  # an optional part of hdguard is not installed
        raise ConfigError(f"{where}.url: {error}") from error
    return source


@dataclass(frozen=True, slots=True)
class LivePlan:
    """How a sidecar is made; plain values.

    Attributes:
        config: the configuration, with its brains: see `with_brains`.
    """

    config: Config

    @property
    def seating(self) -> Seating:
        """The brains."""
        return Seating(self.config, "realtime")

    @property
    def policy(self) -> Policy:
        """The policy with its brains and sources; a `ConfigError` if they are wrong."""
        plans = (
            SourcePlan(c.name, c.required, c.interval, c.when_frozen or default_when_frozen(c))
            for c in self.config.camera
        )
        return replace(self.seating.policy, sources=tuple(plans))

    def sources(self) -> tuple[FrameSource, ...]:
        """Every camera's source, not opened.

        Raises:
            ConfigError: as `make_source`.
        """
        cameras = enumerate(self.config.camera)
        return tuple(make_source(camera, f"camera.{n}") for n, camera in cameras)

    def check(self) -> None:
        """Refuse what must not watch a real robot, before anything is opened or loaded.

        Raises:
            ConfigError: names the key and says what to do.
            HttpError: the certificate or its key cannot be used.
        """
        config = self.config
        if config.policy.preset == "paper":
            msg = "policy.preset: paper is for replays: it has no deadlines; use sidecar"
            raise ConfigError(msg)
        if not any(camera.required for camera in config.camera):
            msg = "camera: name at least one [[camera]] that is required"
            raise ConfigError(msg)
        for name, count in Counter(camera.name for camera in config.camera).items():
            if count > 1:
                msg = f"camera: {count} cameras are called {name!r}"
                raise ConfigError(msg)
        self._check_tokens()
        try:
            config.mqtt.tls_context()
        except OSError as error:
            msg = f"mqtt.ca_file: {config.mqtt.ca_file}: {error.strerror or error}"
            raise ConfigError(msg) from error
        config.http.tls()
        check_recording(config)
        self.seating.check_parsers()
        _ = self.policy
        self.sources()

    def _check_tokens(self) -> None:
        """Whoever may publish is named by a camera that is published to, and the reverse."""
        published = {c.name for c in self.config.camera if c.url.lower().startswith("whip:")}
        tokens = self.config.http.publish_tokens
        for name in sorted(published - tokens.keys()):
            msg = f"http.publish_tokens.{name}: give the camera a token, or nobody can publish it"
            raise ConfigError(msg)
        for name in sorted(tokens.keys() - published):
            msg = f"http.publish_tokens.{name}: no [[camera]] of that name has a whip: url"
            raise ConfigError(msg)

    def state_file(self, what: str) -> Path:
        """The path of what is kept about this robot: `boot`, `state.json`, `lock`, ..."""
        return self.config.live.folder / f"{self.config.mqtt.robot}.{what}"


def _resolve(target: str) -> Any:
    module, _, name = target.partition(":")
    return getattr(importlib.import_module(module), name)

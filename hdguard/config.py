"""The whole configuration: one TOML file, checked before anything starts.

An unknown key is an error with its path: a typing mistake in a safety setting must not pass for
its default. A value may come from elsewhere: `{ from_env = "NAME" }` or `{ from_file = "PATH" }`.
"""

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from hdguard.actuators.broker import BrokerSettings
from hdguard.actuators.mqtt import MqttSettings
from hdguard.actuators.recording import RecordingSettings
from hdguard.core.policy import (
    PRESETS,
    Overdue,
    Pending,
    Policy,
    Resample,
    WhenFrozen,
    Window,
)
from hdguard.ingest.file import FileSettings
from hdguard.ingest.redact import redacted
from hdguard.observe.incidents.settings import IncidentSettings
from hdguard.observe.settings import HttpSettings
from hdguard.runtime.hooks import HookSettings
from hdguard.runtime.log_settings import LogSettings
from hdguard.workers.supervisor import WorkerSettings

SECRET = "***"
ABSENT = "absent"

Count = Annotated[int, Field(ge=1)]
Positive = Annotated[float, Field(gt=0)]
NotNegative = Annotated[float, Field(ge=0)]


class Elsewhere(str):
    """A value that the file does not hold: it is used, and never shown or written down."""

    __slots__ = ()


class ConfigError(Exception):
    """The configuration cannot be used: names the file and the key, and says what is wrong."""


@dataclass(frozen=True, slots=True)
class PolicyConfig:
    """`[policy]`: a preset, and the settings in which it is changed."""

    preset: Literal["paper", "sidecar"] = "sidecar"
    start_greens: Count | None = None
    release_greens: Count | None = None
    failures_to_halt: Count | None = None
    fast_deadline: Positive | None = None
    review_deadline: Positive | None = None
    review_overdue: Overdue | None = None
    pending: Pending | None = None
    resample: Resample | None = None
    window: Window | None = None
    fault_clear: Literal["auto", "reset"] | None = None

    def policy(self) -> Policy:
        """The preset with its changes."""
        changes = {k: v for k, v in asdict(self).items() if k != "preset" and v is not None}
        return replace(PRESETS[self.preset], **changes)


@dataclass(frozen=True, slots=True)
class FastConfig:
    """`[[fast]]`: a FastBrain.

    Attributes:
        brain: its name in the table of brains.
        settings: the brain's own settings.
        required, fps, deadline: see `BrainPlan`.
        adaptive: see `BrainPlan`; if not set, what the brain was made for.
        seat: where it sits in realtime: on a thread of the daemon, or in a process of its own; if
            not set, what the brain needs.
        cost: seconds per frame in the virtual pace, if not what the brain declares.
        python: the interpreter of its process, if not the worker's: another environment.
        ready_timeout: seconds in which it must be loaded, if not what such a brain is given.
    """

    brain: str
    settings: dict[str, Any] = field(default_factory=dict)
    required: bool = True
    adaptive: bool | None = None
    fps: Positive = 5.0
    deadline: Positive | None = None
    seat: Literal["thread", "process"] | None = None
    cost: NotNegative | None = None
    python: str = ""
    ready_timeout: Positive | None = None


@dataclass(frozen=True, slots=True)
class SlowConfig:
    """`[slow]`: the SlowBrain; always in a process of its own in realtime. As `FastConfig`."""

    brain: str
    settings: dict[str, Any] = field(default_factory=dict)
    cost: NotNegative | None = None
    python: str = ""
    ready_timeout: Positive | None = None


@dataclass(frozen=True, slots=True)
class SourceConfig:
    """`[source]`: how the files of a dataset are read; see `FileSettings`."""

    ignore_regions: tuple[tuple[float, float, float, float], ...] = ()
    image_fps: float = 10.0

    def __post_init__(self) -> None:
        """The file source has the last word on what it can do."""
        FileSettings("any", ignore_regions=self.ignore_regions, image_fps=self.image_fps)


@dataclass(frozen=True, slots=True)
class CameraConfig:
    """`[[camera]]`: a camera that `hdguard run` watches.

    Attributes:
        name: in permits, halts and metrics, and of the WHIP endpoint; A-Z a-z 0-9 _ -.
        url: where it is; its scheme says what it is: see `hdguard.live.SOURCES`.
        required: its staleness halts the robot; an optional one only slows it.
        interval: seconds between frames if it is slower than 5 a second; see `SourcePlan`.
        when_frozen: see `SourcePlan`; if not set, `halt`, for files `ignore`.
        ignore_regions: x0, y0, x1, y1 as fractions of the upright picture, painted black.
        options: further settings of that kind of source, by their own names.
    """

    name: str
    url: str
    required: bool = True
    interval: NotNegative = 0.0
    when_frozen: WhenFrozen | None = None
    ignore_regions: tuple[tuple[float, float, float, float], ...] = ()
    options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """A name must be fit for a topic's payload, a label and a path."""
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", self.name):
            msg = f"name: {self.name!r} must be 1 to 64 of the characters A-Z a-z 0-9 _ -"
            raise ValueError(msg)


@dataclass(frozen=True, slots=True)
class LiveConfig:
    """`[live]`: what `hdguard run` keeps and calls.

    Attributes:
        state_dir: folder of the boot number, the halt in force, the lock and the audit log; empty:
            systemd's STATE_DIRECTORY, else `hdguard` in XDG_STATE_HOME.
        hook: how the robot is stopped when the broker cannot do it.
    """

    state_dir: str = ""
    hook: HookSettings = field(default_factory=HookSettings)

    @property
    def folder(self) -> Path:
        """The state's folder."""
        if self.state_dir:
            return Path(self.state_dir).expanduser()
        if given := os.environ.get("STATE_DIRECTORY"):
            return Path(given.split(":")[0])  # systemd lists several with colons between
        base = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
        return Path(base).expanduser() / "hdguard"


@dataclass(frozen=True, slots=True)
class Config:
    """Everything.

    Attributes:
        policy, fast, slow, source, robot, broker, worker: see there.
        camera, mqtt, http, live, log, incidents: of `hdguard run` alone; see there.
        share_device: two models may sit on one GPU, where they take turns.
        profile: gives brains and deadlines where nothing else does; empty: the embedded brains.
        remote_code_python: interpreter of the environment in which a profile's models that bring
            their own code run; naming it is the consent to run that code.
    """

    policy: PolicyConfig = field(default_factory=PolicyConfig)
    fast: tuple[FastConfig, ...] = ()
    slow: SlowConfig | None = None
    source: SourceConfig = field(default_factory=SourceConfig)
    robot: RecordingSettings = field(default_factory=RecordingSettings)
    broker: BrokerSettings = field(default_factory=BrokerSettings)
    worker: WorkerSettings = field(default_factory=WorkerSettings)
    share_device: bool = False
    profile: str = ""
    remote_code_python: str = ""
    camera: tuple[CameraConfig, ...] = ()
    mqtt: MqttSettings = field(default_factory=MqttSettings)
    http: HttpSettings = field(default_factory=HttpSettings)
    live: LiveConfig = field(default_factory=LiveConfig)
    log: LogSettings = field(default_factory=LogSettings)
    incidents: IncidentSettings = field(default_factory=IncidentSettings)


LIVE_KEYS = frozenset({"camera", "mqtt", "http", "live", "log", "incidents"})
"""Keys that change nothing in a replay."""

_STRICT = ConfigDict(extra="forbid", allow_inf_nan=False)


def _adapter(*kinds: type[Any]) -> TypeAdapter[Any]:
    """Checks the first of these dataclasses; the others are those inside it.

    Parts declare plain dataclasses and know nothing of pydantic, so strictness is put on here.
    """
    for kind in kinds:
        kind.__pydantic_config__ = _STRICT
    return TypeAdapter(kinds[0])


_ADAPTER = _adapter(
    Config,
    PolicyConfig,
    FastConfig,
    SlowConfig,
    SourceConfig,
    RecordingSettings,
    BrokerSettings,
    WorkerSettings,
    CameraConfig,
    MqttSettings,
    HttpSettings,
    LiveConfig,
    HookSettings,
    LogSettings,
    IncidentSettings,
)


def load_config(path: Path) -> Config:
    """Read and check a configuration file.

    Raises:
        ConfigError: it cannot be read, is no TOML, or a key or value in it is wrong.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        msg = f"{path}: cannot be read: {error}"
        raise ConfigError(msg) from error
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        msg = f"{path}: not TOML: {error}"
        raise ConfigError(msg) from error
    config: Config = validate(_resolved(raw, path, ""), _ADAPTER, str(path))
    return config


def settings_of(kind: type[Any], raw: Mapping[str, Any], where: str) -> Any:
    """A part's own settings, checked.

    Raises:
        ConfigError: names `where` and the key.
    """
    return validate(_plain(raw), _adapter(kind), where)


def validate(raw: object, adapter: TypeAdapter[Any], where: str) -> Any:
    """Check plain data against its type.

    Raises:
        ConfigError: names every key that is wrong.
    """
    try:
        return adapter.validate_python(raw)
    except ValidationError as error:
        found = [
            f"{where}: {'.'.join(str(part) for part in e['loc'])}: {_words(e['type'], e['msg'])}"
            for e in error.errors()
        ]
        raise ConfigError("\n".join(found)) from error


def _words(kind: str, message: str) -> str:
    if kind in {"unexpected_keyword_argument", "extra_forbidden"}:
        return "unknown key"
    return message.removeprefix("Value error, ")


def _resolved(raw: Any, path: Path, key: str) -> Any:
    """Values from the environment and from files put in their places."""
    if isinstance(raw, list):
        return [_resolved(each, path, f"{key}.{n}") for n, each in enumerate(raw)]
    if not isinstance(raw, dict):
        return raw
    if set(raw) == {"from_env"}:
        name = str(raw["from_env"])
        if name not in os.environ:
            msg = f"{path}: {key}: the environment has no {name}"
            raise ConfigError(msg)
        return Elsewhere(os.environ[name])
    if set(raw) == {"from_file"}:
        file = path.parent / str(raw["from_file"])
        try:
            return Elsewhere(file.read_text(encoding="utf-8").strip())
        except (OSError, UnicodeDecodeError) as error:
            msg = f"{path}: {key}: {file} cannot be read: {error}"
            raise ConfigError(msg) from error
    return {k: _resolved(v, path, f"{key}.{k}" if key else k) for k, v in raw.items()}


def shown(config: Config) -> dict[str, Any]:
    """The effective configuration as plain data, without secrets.

    Not shown are a brain's setting from elsewhere, what a part's settings keep out of their own
    `repr`, and a camera's credentials.
    """
    effective: dict[str, Any] = _plain(config, SECRET)
    for camera in effective["camera"]:
        camera["url"] = redacted(camera["url"])
        camera["options"] = {
            k: SECRET if k in {"token", "password"} else v for k, v in camera["options"].items()
        }
    return effective


def _plain(value: Any, instead: str | None = None) -> Any:
    """Plain data; values from elsewhere as they are, or `instead` of them."""
    match value:
        case Mapping():
            return {k: _plain(v, instead) for k, v in value.items()}
        case list() | tuple():
            return [_plain(each, instead) for each in value]
        case Elsewhere():
            return str(value) if instead is None else instead
        case _ if is_dataclass(value):
            kept = {f.name: getattr(value, f.name) for f in fields(value) if f.repr}
            secret = {f.name: getattr(value, f.name) for f in fields(value) if not f.repr}
            hidden = {k: instead if instead and v else v for k, v in secret.items()}
            return {k: _plain(v, instead) for k, v in {**kept, **hidden}.items()}
        case _:
            return value

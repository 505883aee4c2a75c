"""A configuration becomes cameras, or is refused with the key's path before anything is opened."""

from pathlib import Path
from typing import Any

import pytest

from hdguard.actuators.mqtt import MqttSettings
from hdguard.config import CameraConfig, Config, ConfigError, FastConfig, LiveConfig, PolicyConfig
from hdguard.core.policy import SourcePlan
from hdguard.ingest.camera import CameraSource
from hdguard.ingest.file import FileSource
from hdguard.ingest.rtsp import RtspSource
from hdguard.ingest.webrtc import WhipSource
from hdguard.ingest.webrtc_whep import WhepSource
from hdguard.live import SOURCES, LivePlan, make_source
from hdguard.observe.settings import HttpSettings

KITCHEN = CameraConfig("kitchen", "rtsp://10.0.0.9/live")
TOKENS = {"hall": "the-hall-camera-s-token"}


def plan(*cameras: CameraConfig, **fields: Any) -> LivePlan:
    return LivePlan(Config(fast=(FastConfig("reflex"),), camera=cameras or (KITCHEN,), **fields))


def wrong(made: LivePlan) -> str:
    with pytest.raises(ConfigError) as caught:
        made.check()
    return str(caught.value)


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("rtsp://10.0.0.9/live", RtspSource),
        ("rtsps://10.0.0.9/live", RtspSource),
        ("tcp://10.0.0.9:9000", RtspSource),
        ("/dev/video0", CameraSource),
        ("v4l2:/dev/video0", CameraSource),
        ("file:clip.mp4", FileSource),
        ("file:///srv/clip.mp4", FileSource),
        ("whip:", WhipSource),
        ("whep+http://10.0.0.9:8889/cam/whep", WhepSource),
        ("whep+https://10.0.0.9:8889/cam/whep", WhepSource),
    ],
)
def test_the_scheme_of_a_url_says_what_kind_of_camera_it_is(url: str, kind: type[object]) -> None:
    source = make_source(CameraConfig("hall", url))
    assert isinstance(source, kind)
    assert source.source_id == "hall"


def test_every_kind_of_camera_is_tried_here() -> None:
    assert set(SOURCES) == {
        *("rtsp", "rtsps", "tcp", "v4l2", "file", "whip", "whep+http", "whep+https")
    }


def test_a_file_stands_for_a_camera_that_goes_on_for_ever() -> None:
    assert make_source(CameraConfig("hall", "file:clip.mp4")).retry_after() is not None


@pytest.mark.parametrize("url", ["http://10.0.0.9", "kitchen.mp4", "", "rtsp"])
def test_a_url_of_no_known_kind_is_refused_with_those_there_are(url: str) -> None:
    said = wrong(plan(KITCHEN, CameraConfig("hall", url)))
    assert said.startswith("camera.1.url: ")
    assert "rtsp:, rtsps:, tcp:, v4l2:, file:, whip:" in said


def test_credentials_of_a_camera_stand_in_no_error() -> None:
    said = wrong(plan(CameraConfig("hall", "http://ada:hunter2@10.0.0.9/live")))
    assert "hunter2" not in said


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"open_timeout": "soon"}, "camera.0.options: open_timeout: "),
        ({"opn_timeout": 2.0}, "camera.0.options: opn_timeout: unknown key"),
        ({"source_id": "x"}, "camera.0.options.source_id: set by the camera's own keys"),
        ({"url": "rtsp://x"}, "camera.0.options.url: set by the camera's own keys"),
    ],
)
def test_a_wrong_option_is_named_by_its_path(options: dict[str, Any], said: str) -> None:
    camera = CameraConfig("kitchen", KITCHEN.url, options=options)
    assert wrong(plan(camera)).startswith(said)


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (plan(policy=PolicyConfig("paper")), "policy.preset: paper is for replays"),
        (LivePlan(Config(fast=(FastConfig("reflex"),))), "camera: name at least one"),
        (plan(CameraConfig("a", KITCHEN.url, required=False)), "camera: name at least one"),
        (plan(KITCHEN, KITCHEN), "camera: 2 cameras are called 'kitchen'"),
        (plan(CameraConfig("hall", "whip:")), "http.publish_tokens.hall: give the camera a token"),
        (
            plan(http=HttpSettings(publish_tokens=TOKENS)),
            "http.publish_tokens.hall: no [[camera]] of that name",
        ),
    ],
)
def test_what_must_not_watch_a_real_robot_is_refused(made: LivePlan, said: str) -> None:
    assert wrong(made).startswith(said)


@pytest.mark.parametrize("text", [None, "no certificate"])
def test_an_authority_of_the_broker_that_cannot_be_used_is_named_before_anything_is_opened(
    tmp_path: Path, text: str | None
) -> None:
    path = tmp_path / "ca.pem"
    if text is not None:
        path.write_text(text)
    settings = MqttSettings(tls=True, ca_file=str(path))
    assert wrong(plan(mqtt=settings)).startswith(f"mqtt.ca_file: {path}: ")


def test_a_brain_that_reads_nonsense_as_green_is_refused_before_it_is_loaded() -> None:
    settings = {"path": "nowhere", "parser": "released"}
    config = Config(fast=(FastConfig("generate", settings),), camera=(KITCHEN,))
    assert wrong(LivePlan(config)).startswith("fast.0.settings.parser: released says GREEN")


def test_the_guard_is_told_which_cameras_halt_and_how_slow_they_are() -> None:
    made = plan(
        KITCHEN,
        CameraConfig("hall", "whip:", required=False, interval=0.5, when_frozen="slow"),
        CameraConfig("tape", "file:clip.mp4"),
        http=HttpSettings(publish_tokens=TOKENS),
    )
    made.check()
    assert made.policy.sources == (
        SourcePlan("kitchen"),
        SourcePlan("hall", required=False, interval=0.5, when_frozen="slow"),
        SourcePlan("tape", when_frozen="ignore"),
    )
    assert [source.source_id for source in made.sources()] == ["kitchen", "hall", "tape"]


def test_the_state_is_kept_per_robot_where_systemd_or_the_user_keep_such_things(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("STATE_DIRECTORY", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", "/x")
    assert plan().state_file("boot") == Path("/x/hdguard/robot.boot")
    monkeypatch.setenv("STATE_DIRECTORY", "/var/lib/a:/var/lib/b")
    assert plan().state_file("boot") == Path("/var/lib/a/robot.boot")
    own = plan(live=LiveConfig(state_dir=str(tmp_path)))
    assert own.state_file("boot") == tmp_path / "robot.boot"

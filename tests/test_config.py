"""A wrong configuration is named by file and key before anything starts."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from hdguard.brains.trace import TraceFastSettings
from hdguard.config import SECRET, Config, ConfigError, load_config, settings_of, shown
from hdguard.core.policy import PAPER, SIDECAR

FULL = """
[policy]
preset = "paper"
start_greens = 2
review_deadline = 4.0
window = "paper"

[[fast]]
brain = "trace"
settings = { path = "t.json", name = "reflex" }
adaptive = false
fps = 5.0

[[fast]]
brain = "trace"
settings = { path = "t.json", name = "vlm" }
required = false
deadline = 0.8
seat = "process"
cost = 0.3

[slow]
brain = "trace"
settings = { path = "t.json" }

[source]
ignore_regions = [[0.0, 0.0, 0.2, 0.1]]
image_fps = 4.0

[robot]
stop_time = 1.2

[worker]
ready_timeout = 60.0

[[camera]]
name = "kitchen"
url = "rtsp://10.0.0.9/live"
options = { open_timeout = 1.0 }

[[camera]]
name = "hall"
url = "whip:"
required = false
interval = 0.5
when_frozen = "slow"

[mqtt]
host = "hub"
robot = "rosie"
stop_category = 2

[http]
port = 0

[live]
state_dir = "/x"

[live.hook]
command = ["relay", "--line", "4"]

[log]
format = "json"
level = "debug"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "hdguard.toml"


def load(file: Path, text: str) -> Config:
    file.write_text(text, encoding="utf-8")
    return load_config(file)


def error(file: Path, text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        load(file, text)
    return str(caught.value)


def test_every_part_of_a_full_configuration_is_read(file: Path) -> None:
    config = load(file, FULL)
    reflex, vlm = config.fast
    assert (reflex.settings["name"], reflex.adaptive, reflex.required) == ("reflex", False, True)
    assert (vlm.required, vlm.deadline, vlm.seat, vlm.cost) == (False, 0.8, "process", 0.3)
    assert config.slow is not None
    assert config.slow.brain == "trace"
    assert config.source.ignore_regions == ((0.0, 0.0, 0.2, 0.1),)
    assert config.source.image_fps == 4.0
    assert config.robot.stop_time == 1.2
    assert config.worker.ready_timeout == 60.0
    kitchen, hall = config.camera
    assert (kitchen.required, kitchen.when_frozen, kitchen.options) == (
        True,
        None,
        {"open_timeout": 1.0},
    )
    assert (hall.required, hall.interval, hall.when_frozen) == (False, 0.5, "slow")
    assert (config.mqtt.host, config.mqtt.robot, config.mqtt.stop_category) == ("hub", "rosie", 2)
    assert config.http.port == 0
    assert config.live.hook.command == ("relay", "--line", "4")
    assert (config.log.format, config.log.level) == ("json", "debug")


def test_an_empty_file_means_the_defaults(file: Path) -> None:
    config = load(file, "")
    assert config == Config()
    assert config.policy.policy() == SIDECAR


def test_a_policy_is_its_preset_with_the_named_changes_and_no_others(file: Path) -> None:
    policy = load(file, FULL).policy.policy()
    assert (policy.start_greens, policy.review_deadline, policy.window) == (2, 4.0, "paper")
    assert (policy.name, policy.release_greens, policy.review_overdue) == (
        PAPER.name,
        PAPER.release_greens,
        PAPER.review_overdue,
    )


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("polizy = 1", "polizy"),
        ("[policy]\nstart_green = 3", "policy.start_green"),
        ('[[fast]]\nbrain = "trace"\n[[fast]]\nbrain = "trace"\ndeadlin = 1.0', "fast.1.deadlin"),
        ('[slow]\nbrain = "trace"\nseat = "thread"', "slow.seat"),
        ("[source]\nregions = []", "source.regions"),
        ("[robot]\nstop_tme = 1.0", "robot.stop_tme"),
        ("[worker]\nrestarts = 3", "worker.restarts"),
        ('[[camera]]\nname = "a"\nurl = "whip:"\nrequird = false', "camera.0.requird"),
        ("[mqtt]\nhots = 3", "mqtt.hots"),
        ("[http]\ntokn = 3", "http.tokn"),
        ("[live.hook]\ngpoi = 3", "live.hook.gpoi"),
    ],
)
def test_an_unknown_key_is_named_with_its_path_at_every_level(
    file: Path, text: str, key: str
) -> None:
    assert error(file, text) == f"{file}: {key}: unknown key"


@pytest.mark.parametrize(
    ("text", "key", "words"),
    [
        ('[robot]\nstop_time = "soon"', "robot.stop_time", "valid number"),
        ("[policy]\nstart_greens = 1.5", "policy.start_greens", "valid integer"),
        ('[policy]\npreset = "brave"', "policy.preset", "'paper' or 'sidecar'"),
        ('[policy]\nreview_overdue = "shrug"', "policy.review_overdue", "'halt'"),
        ('[[fast]]\nbrain = "trace"\nseat = "sofa"', "fast.0.seat", "'thread' or 'process'"),
        ("[[fast]]\nfps = 5.0", "fast.0.brain", "required"),
        ('[fast]\nbrain = "trace"', "fast", "tuple"),
        ('[[fast]]\nbrain = "trace"\nsettings = 3', "fast.0.settings", "dictionary"),
        ("[source]\nignore_regions = [[0.0, 0.0, 1.0]]", "source.ignore_regions.0.3", "required"),
        ("policy = 3", "policy", "dict"),
    ],
)
def test_a_wrong_value_is_named_and_what_it_should_be(
    file: Path, text: str, key: str, words: str
) -> None:
    said = error(file, text)
    assert said.startswith(f"{file}: {key}: ")
    assert words in said


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", '"nan"'])
@pytest.mark.parametrize(
    ("table", "key"),
    [("policy", "fast_deadline"), ("robot", "stop_time"), ("worker", "ping_interval")],
)
def test_a_number_that_is_none_is_refused(file: Path, table: str, key: str, value: str) -> None:
    said = error(file, f"[{table}]\n{key} = {value}")
    assert said.startswith(f"{file}: {table}.{key}: ")
    assert "finite number" in said


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("[policy]\nstart_greens = 0", "policy.start_greens"),
        ("[policy]\nrelease_greens = -1", "policy.release_greens"),
        ("[policy]\nfailures_to_halt = 0", "policy.failures_to_halt"),
        ("[policy]\nfast_deadline = 0.0", "policy.fast_deadline"),
        ("[policy]\nreview_deadline = -1.0", "policy.review_deadline"),
        ('[[fast]]\nbrain = "trace"\nfps = 0', "fast.0.fps"),
        ('[[fast]]\nbrain = "trace"\nfps = -5.0', "fast.0.fps"),
        ('[[fast]]\nbrain = "trace"\ndeadline = 0', "fast.0.deadline"),
        ('[[fast]]\nbrain = "trace"\ncost = -0.1', "fast.0.cost"),
        ('[slow]\nbrain = "trace"\ncost = -0.1', "slow.cost"),
        ("[source]\nimage_fps = 0", "source: image_fps"),
        ("[source]\nignore_regions = [[0.5, 0.0, 0.2, 1.0]]", "source: ignore_regions"),
        ("[robot]\nstop_time = -0.1", "robot: stop_time"),
    ],
)
def test_a_number_that_means_nothing_is_refused(file: Path, text: str, key: str) -> None:
    assert error(file, text).startswith(f"{file}: {key}: ")


def test_every_mistake_is_named_at_once(file: Path) -> None:
    said = error(file, "polizy = 1\n[robot]\nstop_time = 'x'\n[policy]\npreset = 'brave'")
    assert [line.split(": ")[1] for line in said.splitlines()] == [
        "policy.preset",
        "robot.stop_time",
        "polizy",
    ]


def test_an_absent_or_unreadable_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"gone\.toml: cannot be read: .*No such file"):
        load_config(tmp_path / "gone.toml")
    with pytest.raises(ConfigError, match=r"cannot be read: .*Is a directory"):
        load_config(tmp_path)
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match=r"binary\.toml: cannot be read: .*utf-8"):
        load_config(tmp_path / "binary.toml")


def test_what_is_not_toml_is_named_with_its_line(file: Path) -> None:
    assert error(file, "[policy]\nstart_greens 3").startswith(f"{file}: not TOML: ")
    assert "line 2" in error(file, "[policy]\nstart_greens 3")
    assert "not TOML" in error(file, "[policy]\npreset = 'paper'\npreset = 'paper'")


# Values from elsewhere.

KEY = "HDGUARD_TEST_KEY"
MODEL = '[[fast]]\nbrain = "openai"\n[fast.settings]\nurl = "http://x"\n'


def test_a_value_is_taken_from_the_environment(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY, "0.9")
    config = load(file, f'[robot]\nstop_time = {{ from_env = "{KEY}" }}')
    assert config.robot.stop_time == 0.9
    config = load(file, f'{MODEL}api_key = {{ from_env = "{KEY}" }}')
    assert config.fast[0].settings == {"url": "http://x", "api_key": "0.9"}


def test_a_value_is_taken_from_a_file_beside_the_configuration(file: Path) -> None:
    (file.parent / "key").write_text("hunter2\n")
    config = load(file, MODEL + 'api_key = { from_file = "key" }')
    assert config.fast[0].settings["api_key"] == "hunter2"


def test_a_value_that_is_not_there_is_named_with_its_key(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(KEY, raising=False)
    said = error(file, f'{MODEL}api_key = {{ from_env = "{KEY}" }}')
    assert said == f"{file}: fast.0.settings.api_key: the environment has no {KEY}"
    said = error(file, MODEL + 'api_key = { from_file = "gone" }')
    assert said.startswith(f"{file}: fast.0.settings.api_key: {file.parent / 'gone'} cannot be")


def test_a_wrong_value_from_elsewhere_is_still_checked(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY, "soon")
    said = error(file, f'[robot]\nstop_time = {{ from_env = "{KEY}" }}')
    assert said.startswith(f"{file}: robot.stop_time: ")


def test_a_secret_is_used_but_never_shown_at_any_depth(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY, "hunter2")
    (file.parent / "key").write_text("hunter2")
    text = MODEL + (
        f'api_key = {{ from_env = "{KEY}" }}\n'
        'headers = { auth = { from_file = "key" } }\n'
        f'keys = [{{ from_env = "{KEY}" }}, "plain"]\n'
    )
    config = load(file, text)
    effective = shown(config)
    settings = effective["fast"][0]["settings"]
    assert settings == {
        "url": "http://x",
        "api_key": SECRET,
        "headers": {"auth": SECRET},
        "keys": [SECRET, "plain"],
    }
    assert b"hunter2" not in msgspec.json.encode(effective)
    assert config.fast[0].settings["keys"] == ["hunter2", "plain"]


def test_what_is_shown_is_complete_and_plain(file: Path) -> None:
    effective = shown(load(file, FULL))
    parts = {"policy", "fast", "slow", "source", "robot", "broker", "worker"}
    live = {"camera", "mqtt", "http", "live", "log", "incidents"}
    assert set(effective) == parts | live | {"share_device", "profile", "remote_code_python"}
    assert effective["robot"] == {"stop_time": 1.2}
    assert effective["fast"][1]["seat"] == "process"
    assert msgspec.json.decode(msgspec.json.encode(effective)) == effective


# A part's own settings.


def settings(raw: dict[str, Any]) -> TraceFastSettings:
    made: TraceFastSettings = settings_of(TraceFastSettings, raw, "fast.0.settings")
    return made


def test_a_parts_settings_are_checked_as_strictly() -> None:
    assert settings({"path": "t.json", "width": 320}) == TraceFastSettings("t.json", width=320)
    for raw, words in (
        ({}, "fast.0.settings: path: "),
        ({"path": "t.json", "widht": 3}, "fast.0.settings: widht: unknown key"),
        ({"path": "t.json", "width": "wide"}, "fast.0.settings: width: "),
        ({"path": 7}, "fast.0.settings: path: "),
    ):
        with pytest.raises(ConfigError) as caught:
            settings(raw)
        assert str(caught.value).startswith(words)


def test_a_secret_among_a_parts_settings_arrives_as_a_plain_word(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY, "t.json")
    config = load(file, f'[[fast]]\nbrain = "trace"\nsettings.path = {{ from_env = "{KEY}" }}')
    assert type(settings(config.fast[0].settings).path) is str

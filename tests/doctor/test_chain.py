"""The whole chain: one in which all is well, and one in which nothing is."""

from pathlib import Path

import pytest

from hdguard.config import load_config
from hdguard.doctor import chain, link
from hdguard.doctor.chain import Chain, diagnose
from hdguard.doctor.findings import Finding, Status, examine
from hdguard.live import LivePlan
from hdguard.runtime.lock import locked
from tests.actuators.support import run
from tests.e2e.stage import REPOSITORY, demo_robot, stage
from tests.mosquitto import PASSWORD, free_port

CLIP = REPOSITORY / "hdguard" / "examples" / "clips" / "06_safe.mp4"


@pytest.fixture(autouse=True)
def _briefly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits that a person bears and a test run need not."""
    monkeypatch.setattr(chain, "WATCHED", 1.0)
    monkeypatch.setattr(link, "CONNECTS_WITHIN", 0.5)


def written(folder: Path, port: int, cameras: str, more: str = "") -> Path:
    path = folder / "hdguard.toml"
    path.write_text(
        f"{more}\n{cameras}\n[http]\nport = 0\n"
        f'[mqtt]\nport = {port}\nrobot = "rosie"\nusername = "guard"\npassword = "{PASSWORD}"\n'
        f'[live]\nstate_dir = "{folder}"\n'
    )
    return path


FRONT = f'[[camera]]\nname = "front"\nurl = "file:{CLIP}"\n'


def test_a_chain_in_which_all_is_well_says_so_link_by_link(tmp_path: Path) -> None:
    async def story() -> list[Finding]:
        told: list[Finding] = []
        async with stage("mosquitto", tmp_path) as at, demo_robot(at.robot_settings()):
            file = written(tmp_path, at.port, FRONT)
            await diagnose(file, told.append, halt_robot=True)
        return told

    told = run(story(), patience=60.0)
    assert [f.step for f in told] == [
        "configuration",
        "state",
        "disk",
        "clock",
        "camera front",
        "picture front",
        "gpu",
        "brains",
        "brain reflex",
        "broker",
        "echo",
        "robot",
        "hook",
        "http",
        "http",
        "halt",
    ]
    timed = {"clock", "camera front", "brain reflex", "echo", "robot"}  # as busy as the machine is
    assert [f for f in told if f.status is not Status.OK and f.step not in {*timed, "http"}] == []
    assert "no operator can halt" in told[-2].said
    assert told[0].said == "robot rosie; cameras front; brains reflex, reflex-slow"


def test_a_chain_in_which_nothing_is_well_is_told_to_its_end(tmp_path: Path) -> None:
    port = free_port()
    gone = FRONT.replace("06_safe", "gone") + '[[camera]]\nname = "head"\nurl = "whip:"\n'
    brains = '[[fast]]\nbrain = "transformers"\n[fast.settings]\npath = "/nowhere"\n'
    file = written(tmp_path, port, f"{gone}\n{brains}")
    (tmp_path / "rosie.boot").write_text("seven")
    told: list[Finding] = []
    run(diagnose(file, told.append, halt_robot=True), patience=60.0)
    failed = {f.step for f in told if f.status is Status.FAIL}
    assert failed >= {
        "state",
        "camera front",
        "camera head",
        "gpu",
        "brains",
        "broker",
        "echo",
        "robot",
        "halt",
    }
    assert all(f.do for f in told if f.status is not Status.OK)


def test_a_wrong_key_is_named_and_the_machine_is_looked_at_all_the_same(tmp_path: Path) -> None:
    file = written(tmp_path, 1883, FRONT, more="no_such_key = 1")
    told: list[Finding] = []
    run(diagnose(file, told.append, halt_robot=False))
    assert [f.step for f in told] == ["configuration", "clock", "all else"]
    assert "no_such_key: unknown key" in told[0].said
    assert told[2].status is Status.FAIL


def test_the_robot_is_halted_only_if_that_is_asked_for(tmp_path: Path) -> None:
    plan = LivePlan(load_config(written(tmp_path, 1883, FRONT)))
    assert [step.name for step in Chain(plan).steps()][-1] == "http"
    assert [step.name for step in Chain(plan).steps(halt_robot=True)][-1] == "halt"


@pytest.mark.parametrize(
    ("more", "status", "said"),
    [
        ("", Status.FAIL, "nobody may publish it"),
        ('[http.publish_tokens]\nhead = "0123456789abcdef"\n', Status.WARN, "publishes to us"),
    ],
)
def test_a_camera_that_comes_to_us_needs_a_token_and_a_guard_that_runs(
    more: str, status: Status, said: str, tmp_path: Path
) -> None:
    head = '[[camera]]\nname = "head"\nurl = "whip:"\n'
    file = written(tmp_path, 1883, head)
    file.write_text(f"{file.read_text()}\n{more}")
    (step,) = [s for s in Chain(LivePlan(load_config(file))).steps() if s.name == "camera head"]
    told: list[Finding] = []
    run(examine([step], told.append))
    assert (told[0].status, said in told[0].said) == (status, True)


def test_beside_a_guard_that_runs_neither_its_cameras_nor_its_brains_are_taken(
    tmp_path: Path,
) -> None:
    gone = FRONT.replace("06_safe", "gone")  # were it opened, it would fail
    plan = LivePlan(load_config(written(tmp_path, 1883, gone)))
    steps = [step for step in Chain(plan).steps() if step.name in {"camera front", "brains"}]
    told: list[Finding] = []
    with locked(plan.state_file("lock")):
        run(examine(steps, told.append))
    assert [(f.step, f.status) for f in told] == [
        ("camera front", Status.WARN),
        ("brains", Status.WARN),
    ]
    assert told[0].said == "was not opened: a running guard has it"
    assert "a guard of this robot runs here" in told[1].said


def test_the_guard_that_runs_is_asked_whether_it_is_ready(tmp_path: Path) -> None:
    file = written(tmp_path, 1883, FRONT)
    file.write_text(file.read_text().replace("port = 0", f"port = {free_port()}"))
    plan = LivePlan(load_config(file))
    (step,) = [step for step in Chain(plan).steps() if step.name == "http"]
    told: list[Finding] = []
    with locked(plan.state_file("lock")):
        run(examine([step], told.append))
    assert [f.status for f in told] == [Status.FAIL, Status.WARN]
    assert "a guard runs and cannot be asked" in told[0].do
    assert "no operator can halt" in told[1].said


def test_a_camera_that_gives_a_frame_every_ten_seconds_is_watched_for_two(tmp_path: Path) -> None:
    slow = FRONT + "interval = 10.0\n"
    (step,) = [
        s
        for s in Chain(LivePlan(load_config(written(tmp_path, 1883, slow)))).steps()
        if s.name == "camera front"
    ]
    assert step.within == 100.0

"""The place for the state, the disk, the loop's punctuality, the GPUs."""

import asyncio
import os
import shutil
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from hdguard.actuators.boot import raise_boot
from hdguard.doctor.findings import Finding, Status
from hdguard.doctor.machine import MIB, check_clock, check_gpus, check_kept, check_state
from hdguard.machine import Gpu
from hdguard.runtime.state_file import Kept, write_state
from hdguard.runtime.virtual_time import run_virtual
from tests.actuators.support import HALT

H200 = Gpu("GPU-5a", "NVIDIA H200", 139.8)


def state_of(folder: Path) -> list[Finding]:
    return check_state(folder, folder / "rosie.boot")


def test_a_folder_that_can_be_written_is_well_and_left_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "rosie.boot").write_text("41\n")
    found = state_of(tmp_path)
    assert [(f.step, f.status) for f in found] == [("state", Status.OK), ("disk", Status.OK)]
    assert [path.name for path in tmp_path.iterdir()] == ["rosie.boot"]
    assert (tmp_path / "rosie.boot").read_text() == "41\n"


def test_a_folder_that_is_not_there_yet_is_not_made(tmp_path: Path) -> None:
    (found,) = state_of(tmp_path / "var" / "hdguard")
    assert found.status is Status.OK
    assert "will be made at the first start" in found.said
    assert not (tmp_path / "var").exists()


def test_a_folder_that_may_not_be_made_fails_and_says_how(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    (found,) = state_of(tmp_path / "hdguard")
    assert found.status is Status.FAIL
    assert "install -d" in found.do


def test_a_folder_that_cannot_be_written_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / ".doctor").mkdir()  # root may write anywhere, so the name is taken instead
    with pytest.raises(OSError, match="doctor"):
        state_of(tmp_path)


def test_a_boot_file_with_nonsense_in_it_fails(tmp_path: Path) -> None:
    (tmp_path / "rosie.boot").write_text("seven")
    found = {f.step: f for f in state_of(tmp_path) if f.status is Status.FAIL}
    assert "rosie.boot holds no boot number" in found["state"].said


@pytest.mark.parametrize("text", ["0", " 41\n", "9" * 15, "9" * 16, "-1", "1.0", "", "x", "\xff"])
def test_a_boot_file_is_well_exactly_if_the_guard_would_start_with_it(
    text: str, tmp_path: Path
) -> None:
    boot = tmp_path / "rosie.boot"
    boot.write_text(text)
    well = Status.FAIL not in {f.status for f in state_of(tmp_path)}
    try:
        raise_boot(boot)
    except ValueError:
        assert not well
    else:
        assert well


def test_a_halt_that_an_earlier_life_left_in_force_is_named(tmp_path: Path) -> None:
    file = tmp_path / "rosie.state.json"
    assert check_kept(file, "rosie") == []
    write_state(file, Kept(robot="rosie"))
    assert check_kept(file, "rosie") == []
    write_state(file, Kept(robot="rosie", halt=HALT, newest=HALT.halt_id))
    (found,) = check_kept(file, "rosie")
    assert (found.status, found.said) == (Status.WARN, "halt 7-1 (fast_red) is in force")
    assert "hdguard reset 7-1" in found.do


def test_a_state_file_with_which_the_guard_would_not_start_fails(tmp_path: Path) -> None:
    file = tmp_path / "rosie.state.json"
    file.write_text("{")
    (found,) = check_kept(file, "rosie")
    assert (found.status, "not a state file" in found.said) == (Status.FAIL, True)
    write_state(file, Kept(robot="another"))
    (found,) = check_kept(file, "rosie")
    assert (found.status, "is of the robot 'another'" in found.said) == (Status.FAIL, True)


def test_another_users_folder_is_warned_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 54321)
    found = state_of(tmp_path)
    (warned,) = [f for f in found if f.status is Status.WARN]
    assert "not to #54321" in warned.said
    assert "sudo -u" in warned.do


@pytest.mark.parametrize(
    ("free", "status"),
    [(5 * MIB, Status.FAIL), (50 * MIB, Status.WARN), (5000 * MIB, Status.OK)],
)
def test_a_full_disk_is_found_before_a_halt_needs_it(
    free: int, status: Status, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Usage:
        def __init__(self) -> None:
            self.free = free

    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage())
    assert [f.status for f in state_of(tmp_path) if f.step == "disk"] == [status]


# The clock.


def test_a_loop_that_wakes_in_time_is_well_and_ntp_is_not_asked_for() -> None:
    (found,) = run_virtual(check_clock())
    assert found.status is Status.OK
    assert "neither the time of day nor NTP matters" in found.said


@pytest.mark.parametrize(("late", "status"), [(0.03, Status.WARN), (0.2, Status.FAIL)])
def test_a_loop_that_wakes_late_is_found(
    late: float, status: Status, monkeypatch: pytest.MonkeyPatch
) -> None:
    sleep = asyncio.sleep

    def overslept(seconds: float) -> Coroutine[Any, Any, None]:
        return sleep(seconds + late)

    monkeypatch.setattr(asyncio, "sleep", overslept)
    (found,) = run_virtual(check_clock())
    assert found.status is status
    assert "cores of its own" in found.do


# GPUs.


@pytest.mark.parametrize("device", ["cuda:0", "GPU-5a", "MIG-77", "cpu"])
def test_a_device_that_is_there_is_well(device: str) -> None:
    (found,) = check_gpus({"qwen": device}, [H200])
    assert (found.status, "NVIDIA H200" in found.said) == (Status.OK, True)


@pytest.mark.parametrize("device", ["cuda:1", "GPU-other"])
def test_a_device_that_is_not_there_fails_and_names_brain_and_device(device: str) -> None:
    (found,) = check_gpus({"qwen": device, "reflex": "cpu"}, [H200])
    assert found.status is Status.FAIL
    assert f"qwen wants {device}" in found.said
    assert "nvidia-smi" in found.do


def test_without_a_gpu_the_embedded_brains_need_none() -> None:
    (found,) = check_gpus({}, [])
    assert (found.status, found.said) == (Status.OK, "none is needed; seen: none")

"""What a machine says of itself, and what that means for a model."""

import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hdguard.brains.catalogue import MODELS
from hdguard.config import ConfigError
from hdguard.machine import ANSWER_WITHIN, EXTRAS, Fit, Gpu, Machine, fit, look_at_machine

ENTRY = MODELS["qwen3-vl-4b"]  # needs 10.3 GiB
MODERN = {
    "accelerate": "1.15.0",
    "pillow": "13.0.0",
    "safetensors": "0.8.0",
    "torch": "2.13.0+cpu",
    "transformers": "5.24.0",
}


def gpu(gib: float) -> Gpu:
    return Gpu("GPU-1", "card", gib)


def test_what_must_be_installed_is_what_the_package_declares() -> None:
    pyproject = Path(__file__).resolve().parent.parent / "pyproject.toml"
    declared = tomllib.loads(pyproject.read_text())["project"]["optional-dependencies"]
    for extra, packages in EXTRAS.items():
        for package, (least, below) in packages.items():
            assert f"{package}>={least},<{below}" in declared[extra]


def test_a_gpu_with_room_runs_it() -> None:
    assert fit(ENTRY, Machine((gpu(8.0), gpu(24.0)), 4.0, MODERN)) == Fit("gpu", "")


def test_two_small_gpus_are_not_one_large_one() -> None:
    found = fit(ENTRY, Machine((gpu(8.0), gpu(8.0)), 4.0, MODERN))
    assert found == Fit("none", "the largest GPU has 8.0 GiB, the machine 4.0 GiB")


def test_memory_alone_is_a_way_that_is_called_slow() -> None:
    found = fit(ENTRY, Machine((), 16.0, MODERN))
    assert found.on == "cpu"
    assert "no NVIDIA GPU is seen" in found.why
    assert "too slow" in found.why


@pytest.mark.parametrize(
    ("package", "version", "words"),
    [
        ("torch", None, "torch is not installed"),
        ("transformers", "4.57.6", "transformers 4.57.6 is not 5.20 to below 6"),
        ("transformers", "6.0.0", "transformers 6.0.0 is not"),
        ("transformers", "5.9.1", "transformers 5.9.1 is not"),  # 9 is less than 20
        ("transformers", "main", "transformers main is not"),
    ],
)
def test_a_missing_or_wrong_package_is_named_with_its_extra(
    package: str, version: str | None, words: str
) -> None:
    versions = {name: v for name, v in MODERN.items() if name != package}
    if version is not None:
        versions[package] = version
    found = fit(ENTRY, Machine((gpu(80.0),), 64.0, versions))
    assert found.on == "none"
    assert words in found.why
    assert "pip install 'hdguard[models]'" in found.why


def test_minicpm_does_not_run_beside_transformers_5() -> None:
    entry = MODELS["minicpm-o-4.5"]
    found = fit(entry, Machine((gpu(80.0),), 64.0, MODERN))
    assert found.on == "none"
    assert "transformers 5.24.0 is not 4.57 to below 5" in found.why
    assert "--python" in found.why
    old = {**MODERN, "transformers": "4.57.6", "librosa": "0.11.0", "soundfile": "0.13.1"}
    assert fit(entry, Machine((gpu(80.0),), 64.0, old)).on == "gpu"


# nvidia-smi.

Run = Callable[..., Any]


def pretend(monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    monkeypatch.setattr("hdguard.machine.shutil.which", lambda _: "/usr/bin/nvidia-smi")
    monkeypatch.setattr("hdguard.machine.subprocess.run", run)


def test_gpus_are_read_with_their_memory_and_odd_lines_are_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = (
        "GPU-aaaa, NVIDIA H200, 143771\n"
        "GPU-bbbb, Card, with a comma, 8192\n"
        "GPU-cccc, NVIDIA GB10, [N/A]\n"
        "No devices were found\n"
    )

    def run(words: list[str], **options: Any) -> Any:
        assert options["timeout"] == ANSWER_WITHIN
        return subprocess.CompletedProcess(words, 0, stdout=said)

    pretend(monkeypatch, run)
    assert look_at_machine().gpus == (
        Gpu("GPU-aaaa", "NVIDIA H200", 143771 / 1024),
        Gpu("GPU-bbbb", "Card, with a comma", 8.0),
    )


@pytest.mark.parametrize(
    "failure",
    [
        subprocess.TimeoutExpired("nvidia-smi", 5.0),
        subprocess.CalledProcessError(9, "nvidia-smi"),
        PermissionError("nvidia-smi"),
    ],
)
def test_a_driver_that_hangs_or_fails_is_a_machine_without_gpu(
    monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    def run(*_: object, **__: object) -> Any:
        raise failure

    pretend(monkeypatch, run)
    assert look_at_machine().gpus == ()


def test_a_machine_without_the_tool_has_memory_and_packages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("hdguard.machine.shutil.which", lambda _: None)
    found = look_at_machine()
    assert found.gpus == ()
    assert found.memory_gib > 0.1
    assert "typing-extensions" in found.versions


# Another environment.


def test_another_environments_packages_are_asked_of_its_interpreter() -> None:
    assert look_at_machine(sys.executable).versions == look_at_machine().versions


def test_a_package_that_was_removed_halfway_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken-1.0.dist-info").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    here, there = look_at_machine().versions, look_at_machine(sys.executable).versions
    assert "typing-extensions" in here
    assert here == there


def test_an_interpreter_that_is_none_is_a_wrong_option(tmp_path: Path) -> None:
    for python in (tmp_path / "gone", Path("/bin/true")):
        with pytest.raises(ConfigError, match=f"--python {python}: does not answer"):
            look_at_machine(str(python))


def test_to_look_imports_no_model_library() -> None:
    code = (
        "import sys; from hdguard.cli_models import models; from hdguard.machine import *; "
        "look_at_machine(); bad = {'torch', 'transformers', 'huggingface_hub'} & set(sys.modules); "
        "assert not bad, bad"
    )
    subprocess.run([sys.executable, "-c", code], check=True)

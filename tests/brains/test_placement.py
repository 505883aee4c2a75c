import json
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from hdguard.brains.base import BrainError
from hdguard.brains.families.qwen3_vl import Qwen3VL
from hdguard.brains.placement import Placement
from tests.brains.conftest import Folder

CPU = Placement("cpu", "float32")


def in_child(code: str, *words: str) -> str:
    """What a fresh Python prints: torch is not imported there, and its limits are its own."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code), *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


# Settings.


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("device", "cuda"),
        ("device", "gpu:0"),
        ("device", "auto"),
        ("device", ""),
        ("dtype", "float16"),
        ("quantize", "8bit"),
        ("memory_gib", -1.0),
        ("memory_gib", float("nan")),
    ],
)
def test_a_wrong_setting_is_named(field: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"^{field}: "):
        Placement(**{field: value})


@pytest.mark.parametrize("device", ["cpu", "cuda:0", "cuda:11", "GPU-8c1c1a6e-0000", "MIG-1f/2/0"])
def test_a_device_is_a_number_a_name_or_the_cpu(device: str) -> None:
    assert Placement(device).torch_device == ("cpu" if device == "cpu" else "cuda:0")


def test_four_bits_compute_in_bfloat16_only() -> None:
    with pytest.raises(ValueError, match="quantize: "):
        Placement("cpu", "float32", "4bit")


# Pinning.

PIN = """
    import os, sys
    from hdguard.brains.base import BrainError
    from hdguard.brains.placement import Placement
    device, visible, early = sys.argv[1:]
    os.environ.pop("CUDA_VISIBLE_DEVICES", None)
    if visible != "unset":
        os.environ["CUDA_VISIBLE_DEVICES"] = visible
    if early == "imported":
        sys.modules["torch"] = sys  # as good as the real one: only whether it is there is asked
    try:
        Placement(device).pin()
        Placement(device).pin()  # a second brain on the same device
    except BrainError as error:
        print("refused:", error)
    else:
        print(os.environ.get("CUDA_DEVICE_ORDER"), os.environ.get("CUDA_VISIBLE_DEVICES"))
"""


@pytest.mark.parametrize(
    ("device", "visible", "seen"),
    [
        ("cuda:1", "unset", "PCI_BUS_ID 1"),
        ("GPU-8c1c1a6e", "unset", "PCI_BUS_ID GPU-8c1c1a6e"),
        ("cuda:1", "0,1,2", "PCI_BUS_ID 1"),
        ("cpu", "0,1,2", "None"),
    ],
)
def test_the_worker_sees_one_device(device: str, visible: str, seen: str) -> None:
    assert in_child(PIN, device, visible, "no") == seen


def test_a_device_that_was_not_lent_to_us_is_not_taken() -> None:
    said = in_child(PIN, "cuda:0", "3", "no")
    assert said.startswith("refused: device 'cuda:0': the environment has CUDA_VISIBLE_DEVICES='3'")


def test_after_torch_the_device_cannot_be_fixed_any_more() -> None:
    assert "torch is imported already" in in_child(PIN, "cuda:1", "unset", "imported")
    assert in_child(PIN, "cpu", "unset", "imported") == "None None"


def test_the_blame_is_not_on_the_environment_for_what_hdguard_has_put_there() -> None:
    assert "torch is imported already" in in_child(PIN, "cuda:1", "0", "imported")
    code = """
        import os, subprocess, sys
        from hdguard.brains.base import BrainError
        from hdguard.brains.placement import Placement
        os.environ.pop("CUDA_VISIBLE_DEVICES", None)
        for device in sys.argv[1].split():
            Placement(device).pin()
            print(repr(os.environ["CUDA_VISIBLE_DEVICES"]), end=" ")
        os.environ["CUDA_VISIBLE_DEVICES"] = "5"  # and this is somebody else's word
        try:
            Placement("cuda:0").pin()
        except BrainError as error:
            print(error)
    """
    said = in_child(code, "cpu cuda:0 cuda:1 cpu cuda:2")
    assert said.startswith("'' '0' '1' '' '2' device 'cuda:0': the environment has CUDA_VISIBLE")
    assert "='5'" in said


def test_a_worker_that_inherits_a_pinned_device_may_still_have_any_that_was_lent() -> None:
    code = """
        import os, subprocess, sys
        from hdguard.brains.placement import Placement
        os.environ["CUDA_VISIBLE_DEVICES"] = "1,2"
        Placement("cuda:1").pin()
        pin = "from hdguard.brains.placement import Placement; Placement(%r).pin()"
        for device in ("cuda:2", "cuda:3"):
            done = subprocess.run([sys.executable, "-c", pin % device], capture_output=True)
            print(done.returncode, "CUDA_VISIBLE_DEVICES='1,2'" in done.stderr.decode())
    """
    assert in_child(code).splitlines() == ["0 False", "1 True"]


def test_pinning_imports_nothing_heavy() -> None:
    code = """
        import sys
        from hdguard.brains.model import ModelSettings
        ModelSettings("folder", "name").placement.pin()
        print(sorted({"torch", "transformers", "tokenizers"} & set(sys.modules)))
    """
    assert in_child(code) == "[]"


# Loading.


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a CUDA device")
def test_without_a_gpu_the_model_does_not_run_on_the_cpu_instead(tiny_folder: Folder) -> None:
    folder = tiny_folder("qwen3_vl")
    with pytest.raises(BrainError, match=r'no CUDA device .* set device = "cpu"'):
        Qwen3VL.open(folder, Placement("cuda:0").load)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_model_is_loaded_in_the_precision_asked_for(tiny_folder: Folder, dtype: Any) -> None:
    model = Qwen3VL.open(tiny_folder("qwen3_vl"), Placement("cpu", dtype).load).model
    assert str(next(model.parameters()).dtype) == f"torch.{dtype}"
    assert not model.training


@pytest.mark.parametrize("kind", ["parameter", "buffer"])
def test_a_tensor_that_lies_elsewhere_is_found(kind: str) -> None:
    model = torch.nn.Linear(2, 2)
    elsewhere = torch.empty(2, device="meta")
    if kind == "parameter":
        model.bias = torch.nn.Parameter(elsewhere)
    else:
        model.register_buffer("offset", elsewhere)
    name = "bias" if kind == "parameter" else "offset"
    with pytest.raises(BrainError, match=f"^{name} lies on meta, not on cpu"):
        CPU.check(model)


def test_a_model_in_another_precision_is_found(tiny_folder: Folder) -> None:
    model = Qwen3VL.open(tiny_folder("qwen3_vl"), CPU.load).model
    with pytest.raises(BrainError, match=r"the model is torch\.float32, not bfloat16"):
        Placement("cpu").check(model)


def test_missing_weights_are_not_made_up(tiny_folder: Folder, tmp_path: Path) -> None:
    """The library fills them with random numbers and prints a line."""
    folder = shutil.copytree(tiny_folder("qwen3_vl"), tmp_path / "model")
    weights = load_file(folder / "model.safetensors")
    del weights["model.language_model.norm.weight"]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(BrainError, match=r"1 weights are missing, such as .*norm\.weight"):
        Qwen3VL.open(folder, CPU.load)


def test_a_cut_off_weight_file_is_an_error_of_the_folder(
    tiny_folder: Folder, tmp_path: Path
) -> None:
    folder = shutil.copytree(tiny_folder("qwen3_vl"), tmp_path / "model")
    with (folder / "model.safetensors").open("r+b") as file:
        file.truncate(2**20)
    with pytest.raises(BrainError, match="cannot be loaded"):
        Qwen3VL.open(folder, CPU.load)


def test_code_of_the_models_own_runs_only_if_it_is_allowed(tmp_path: Path) -> None:
    with pytest.raises(BrainError, match="allow_remote_code = true"):
        CPU.load(None, tmp_path, remote_code=True)


def test_nothing_is_printed_while_loading(
    tiny_folder: Folder, capfd: pytest.CaptureFixture[str]
) -> None:
    Qwen3VL.open(tiny_folder("qwen3_vl"), CPU.load)
    assert capfd.readouterr() == ("", "")


def test_four_bits_are_for_the_language_model_only(tiny_folder: Folder) -> None:
    pytest.importorskip("bitsandbytes", reason="4-bit needs bitsandbytes")
    for name in ("qwen3_vl", "qwen3_vl_moe"):
        load = Placement("cpu", quantize="4bit").load
        model = Qwen3VL.open(tiny_folder(name), load).model
        packed = [n for n, m in model.named_modules() if type(m).__name__ == "Linear4bit"]
        assert packed
        assert all(n.startswith("model.language_model.") for n in packed)
        assert all(p.dtype == torch.bfloat16 for p in model.model.visual.parameters())


# The memory cap.

CAP = """
    import sys
    from hdguard.brains.base import BrainError
    from hdguard.brains.model import Model, ModelSettings
    for folder in sys.argv[1:]:
        try:
            Model(ModelSettings(folder, "capped", "cpu", "float32", "none", 3.0))
            print("loaded")
        except BrainError as error:
            print("refused:", error)
"""


def widen_vocabulary(path: Path, rows: int) -> None:
    """Give a weight file that many words, as a hole in it that takes up no disk."""
    raw = path.read_bytes()
    length = int.from_bytes(raw[:8], "little")
    header, weights = json.loads(raw[8 : 8 + length]), raw[8 + length :]
    words = header["model.language_model.embed_tokens.weight"]
    words["shape"][0] = rows
    end = len(weights) + 4 * rows * words["shape"][1]
    used = {"data_offsets": words["data_offsets"], "shape": [0], "dtype": "U8"}
    used["shape"] = [used["data_offsets"][1] - used["data_offsets"][0]]
    words["data_offsets"] = [len(weights), end]
    head = json.dumps(header | {"unused": used}).encode()
    path.write_bytes(len(head).to_bytes(8, "little") + head + weights)
    with path.open("r+b") as file:
        file.truncate(8 + len(head) + end)


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is the kernel's on Linux only")
def test_a_cap_above_what_the_process_is_allowed_names_the_setting(tmp_path: Path) -> None:
    code = """
        import resource, sys
        from pathlib import Path
        from hdguard.brains.base import BrainError
        from hdguard.brains.placement import Placement
        resource.setrlimit(resource.RLIMIT_DATA, (4 * 2**30, 4 * 2**30))
        try:
            Placement("cpu", memory_gib=8.0).load(None, Path(sys.argv[1]))
        except BrainError as error:
            print(error)
    """
    said = in_child(code, str(tmp_path))
    assert said.startswith("memory_gib: 8 is above what this process is allowed, 4.0 GiB")


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel keeps to the limit on Linux only")
def test_a_model_above_its_memory_cap_fails_instead_of_taking_the_machine(
    tmp_path: Path, tiny_folder: Folder
) -> None:
    fits = tiny_folder("qwen3_vl")
    too_large = shutil.copytree(fits, tmp_path / "large")
    config = json.loads((too_large / "config.json").read_text())
    config["text_config"]["vocab_size"] = rows = 2**24
    (too_large / "config.json").write_text(json.dumps(config))
    widen_vocabulary(too_large / "model.safetensors", rows)
    first, second = in_child(CAP, str(fits), str(too_large)).splitlines()
    assert first == "loaded"
    assert second.startswith("refused:")
    assert "within memory_gib = 3.0: " in second
    assert "memory" in second.partition(" = 3.0: ")[2].lower()

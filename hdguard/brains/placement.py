"""Where a model runs: one device fixed before torch is imported, and nowhere else.

A library left to itself puts what does not fit on the CPU, or shares a model out over all devices,
and says nothing; a safety monitor would be ten times slower and look well. So the worker sees one
device, every tensor is checked to be on it, and a missing device is an error.
"""

import importlib
import math
import os
import re
import sys
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Literal, get_args

from hdguard.brains.base import BrainError

Dtype = Literal["bfloat16", "float32"]
Quantize = Literal["none", "4bit"]

EXTRA = 'install the extra: pip install "hdguard[models]"'
DEVICE = re.compile(r"cpu|cuda:\d+|(GPU|MIG)-[0-9A-Za-z/-]+")
VISIBLE = "CUDA_VISIBLE_DEVICES"
PINNED = "HDGUARD_PINNED"
"""Says "X of Y": `pin` has put X into CUDA_VISIBLE_DEVICES, where Y stood before, or nothing did if
Y is "any". In the environment, because a process started from here inherits what was put there."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Device, precision and memory of a model.

    Attributes:
        device: "cuda:N", the N-th GPU of the machine in the order of the PCI bus; a GPU's or a MIG
            part's UUID as `nvidia-smi -L` shows it; or "cpu".
        dtype: of weights and arithmetic; probabilities are always float32.
        quantize: "4bit": the language model's weights in 4 bits (NF4), the rest as `dtype`.
        memory_gib: at most this much; 0: no cap. On CUDA the memory of the device that this
            process may take; on a CPU all memory that this process may write to (Linux), where
            loading needs the weights twice: as a mapped file and as themselves.
        allow_remote_code: whether code that comes with a model's files may run.

    Raises:
        ValueError: names the field.
    """

    device: str = "cuda:0"
    dtype: Dtype = "bfloat16"
    quantize: Quantize = "none"
    memory_gib: float = 0.0
    allow_remote_code: bool = False

    def __post_init__(self) -> None:
        if not DEVICE.fullmatch(self.device):
            raise ValueError(
                f'device: "cuda:N", "GPU-...", "MIG-..." or "cpu", not {self.device!r}'
            )
        if self.dtype not in get_args(Dtype):
            raise ValueError(f"dtype: one of {get_args(Dtype)}, not {self.dtype!r}")
        if self.quantize not in get_args(Quantize):
            raise ValueError(f"quantize: one of {get_args(Quantize)}, not {self.quantize!r}")
        if self.quantize == "4bit" and self.dtype != "bfloat16":
            raise ValueError('quantize: "4bit" computes in bfloat16: leave dtype = "bfloat16"')
        if not (math.isfinite(self.memory_gib) and self.memory_gib >= 0):
            raise ValueError(f"memory_gib: 0 (no cap) or more, not {self.memory_gib}")

    @property
    def torch_device(self) -> str:
        """The device's name once it is pinned."""
        return "cpu" if self.device == "cpu" else "cuda:0"

    def pin(self) -> None:
        """Let this process see that one device; the first thing that a brain's constructor does.

        Raises:
            BrainError: torch is imported already and may have looked, or the environment keeps
                this device from us.
        """
        # Weights are never fetched while watching; `hdguard models fetch` does that before.
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
        imported = "torch" in sys.modules
        if self.device == "cpu":
            if not imported:
                _show("")
            return
        name = self.device.removeprefix("cuda:")
        wanted = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", VISIBLE: name}
        if all(os.environ.get(key) == value for key, value in wanted.items()):
            return
        if imported:
            raise BrainError(
                f"device {self.device!r}: torch is imported already, so the device cannot be "
                f"fixed: give this brain a worker of its own"
            )
        lent = _lent()
        # Whoever set it may have lent us those devices only: another is somebody else's.
        if lent is not None and name not in map(str.strip, lent.split(",")):
            raise BrainError(
                f"device {self.device!r}: the environment has {VISIBLE}={lent!r}: "
                f"name one of these devices, or start hdguard without it"
            )
        os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
        _show(name)

    def load(
        self,
        model_class: Any,
        folder: Path,
        *,
        skip: tuple[str, ...] = (),
        remote_code: bool = False,
        **extra: Any,
    ) -> Any:
        """Load a model onto the device and check that all of it is there.

        Args:
            model_class: anything of transformers with `from_pretrained`.
            folder: in the shape of the model hub, weights as safetensors.
            skip: modules that stay unquantised, by their whole path.
            remote_code: whether the model needs the code that lies in its folder.
            extra: further arguments of `from_pretrained`.

        Raises:
            BrainError: no such device, not enough memory, weights missing, or anything elsewhere.
        """
        if remote_code and not self.allow_remote_code:
            raise BrainError(
                f"{folder}: this model runs code of its own files: read it, and set "
                f"allow_remote_code = true if you trust it"
            )
        self._find_device()
        self._cap_memory()
        quiet()
        if remote_code:
            extra["trust_remote_code"] = True
        if self.device != "cpu" or self.quantize != "none":
            extra["device_map"] = {"": 0 if self.device != "cpu" else "cpu"}
        try:
            if self.quantize == "4bit":
                extra["quantization_config"] = _four_bits(skip)
            model, report = model_class.from_pretrained(
                str(folder),
                dtype=_torch().__dict__[self.dtype],
                local_files_only=True,
                use_safetensors=True,  # anything else may hide code
                output_loading_info=True,
                **extra,
            )
        except _refusals() as error:
            cap = f" within memory_gib = {self.memory_gib}" if self.memory_gib else ""
            raise BrainError(
                f"{folder}: cannot be loaded{cap}: {str(error) or 'no memory'}"
            ) from error
        missing = [*report["missing_keys"], *report["mismatched_keys"]]
        if missing:
            # The library fills in random numbers for them.
            raise BrainError(f"{folder}: {len(missing)} weights are missing, such as {missing[0]}")
        self.check(model)
        return model.eval()

    def check(self, model: Any) -> None:
        """See that every parameter and buffer is on the device, in the precision asked for.

        Raises:
            BrainError: one is not.
        """
        wanted = _torch().device(self.torch_device)
        for name, tensor in chain(model.named_parameters(), model.named_buffers()):
            if tensor.device != wanted:
                raise BrainError(
                    f"{name} lies on {tensor.device}, not on {wanted} ({self.device}): "
                    f"it does not fit, or the library shared the model out"
                )
        if self.quantize == "none" and str(model.dtype) != f"torch.{self.dtype}":
            raise BrainError(f"the model is {model.dtype}, not {self.dtype}")

    def _find_device(self) -> None:
        if self.device == "cpu":
            return
        cuda = _torch().cuda
        if not cuda.is_available():
            raise BrainError(
                f"device {self.device!r}: this machine has no CUDA device that torch can use: "
                f'set device = "cpu"'
            )
        if (count := cuda.device_count()) != 1:
            raise BrainError(f"device {self.device!r}: {count} devices are visible, not one")
        uuid = str(cuda.get_device_properties(0).uuid)
        if self.device.startswith("GPU-") and uuid not in self.device:
            raise BrainError(f"device {self.device!r}: the visible one is GPU-{uuid}")

    def _cap_memory(self) -> None:
        if not self.memory_gib:
            return
        size = int(self.memory_gib * 2**30)
        if self.device != "cpu":
            cuda = _torch().cuda
            whole = cuda.get_device_properties(0).total_memory
            cuda.set_per_process_memory_fraction(min(1.0, size / whole), 0)
            return
        import resource  # noqa: PLC0415 - not on every system

        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        if hard != resource.RLIM_INFINITY and size > hard:
            raise BrainError(
                f"memory_gib: {self.memory_gib:g} is above what this process is allowed, "
                f"{hard / 2**30:.1f} GiB (`ulimit -H -d`): lower it, or raise that limit"
            )
        resource.setrlimit(resource.RLIMIT_DATA, (size, hard))


def _show(devices: str) -> None:
    """Let this process see these devices, and note what it was lent before."""
    lent = _lent()
    os.environ[PINNED] = f"{devices} of {'any' if lent is None else lent}"
    os.environ[VISIBLE] = devices


def _lent() -> str | None:
    """The devices that somebody else lets us see; None: all."""
    visible = os.environ.get(VISIBLE)
    ours, known, before = os.environ.get(PINNED, "").partition(" of ")
    if not known or ours != visible:  # somebody has set it since
        return visible
    return None if before == "any" else before


def quiet() -> None:
    """Keep transformers from printing: what matters is raised, and a worker has no terminal."""
    logging: Any = importlib.import_module("transformers.utils.logging")
    logging.set_verbosity_error()
    logging.disable_progress_bar()


def _refusals() -> tuple[type[Exception], ...]:
    """What a library raises over files, memory and devices; anything else is a defect of ours."""
    broken: Any = importlib.import_module("safetensors").SafetensorError
    return (OSError, ValueError, RuntimeError, MemoryError, ImportError, broken)


def _torch() -> Any:
    try:
        import torch  # noqa: PLC0415 - the daemon never imports it
    except ImportError as error:
        raise BrainError(f"torch cannot be imported ({error}): {EXTRA}") from error
    return torch


def _four_bits(skip: tuple[str, ...]) -> Any:
    transformers: Any = importlib.import_module("transformers")
    return transformers.BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_compute_dtype=_torch().bfloat16,
        # Whole paths: a bare "visual" matches nothing and the picture would be quantised.
        llm_int8_skip_modules=[*skip, "lm_head"],
    )

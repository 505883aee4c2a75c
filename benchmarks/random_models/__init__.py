"""Vision-language models with random weights: the real mechanics of a family without a download.

Tests build tiny ones and load them as they would load real ones; benchmarks build larger ones, up
to the true shapes of published models, because time depends on shapes and not on what the weights
say. Each family has a module here that says what its shapes are.
"""

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast

if TYPE_CHECKING:
    from hdguard.brains.families.base import Family

Size = Literal["tiny", "mid", "true"]
Dtype = Literal["float32", "bfloat16"]

MODULES = {
    "qwen3_vl": "benchmarks.random_models.qwen3_vl",
    "qwen3_vl_moe": "benchmarks.random_models.qwen3_vl_moe",
    "internvl": "benchmarks.random_models.internvl",
    "smolvlm": "benchmarks.random_models.smolvlm",
    "minicpmo": "benchmarks.random_models.minicpmo",
}


class Maker(Protocol):
    """What a family's module offers."""

    def config(self, size: Size) -> Any:
        """The family's native configuration; token ids are those of our own tokenizer."""
        ...

    def build(self, size: Size, folder: Path, *, dtype: Dtype, seed: int, thinks: bool) -> Path:
        """Write a model as the model hub has it."""
        ...

    def assemble(self, size: Size, device: str, *, dtype: Dtype, seed: int) -> "Family":
        """A family around a model made on the device, with no file in between."""
        ...


def _maker(family: str) -> Maker:
    return cast("Maker", importlib.import_module(MODULES[family]))


def config(family: str, size: Size) -> Any:
    """The configuration of a family at a size; its token ids are those of our own tokenizer."""
    return _maker(family).config(size)


def build(
    family: str,
    size: Size,
    folder: Path,
    *,
    dtype: Dtype = "float32",
    seed: int = 0,
    thinks: bool = False,
) -> Path:
    """Write a model of random weights into a folder in the shape of the model hub.

    Args:
        family: a name in `MODULES`.
        size: "true" has the published model's shapes: up to 61 GB, better assembled in place.
        folder: made if it is not there.
        dtype: of the weights in the files.
        seed: the same seed gives the same weights.
        thinks: whether its chat template opens a thinking block, as that of a "Thinking" model.
    """
    folder.mkdir(parents=True, exist_ok=True)
    return _maker(family).build(size, folder, dtype=dtype, seed=seed, thinks=thinks)


def assemble(
    family: str, size: Size, device: str, *, dtype: Dtype = "bfloat16", seed: int = 0
) -> "Family":
    """A family with random weights made on the device ("cpu" or "cuda:0"), without files."""
    return _maker(family).assemble(size, device, dtype=dtype, seed=seed)

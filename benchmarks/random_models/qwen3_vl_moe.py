"""Qwen3-VL as a mixture of experts, of random weights, up to the shape of the 30B-A3B models.

The true shape is that of Qwen/Qwen3-VL-30B-A3B-Instruct's config.json (Thinking has the same
shape), but for the token ids.
"""

from pathlib import Path
from typing import Any

from benchmarks.random_models import Dtype, Size, native
from benchmarks.random_models.qwen3_vl import ROPE, SPECIAL, shared
from hdguard.brains.families.qwen3_vl import Qwen3VL

EXPERTS: dict[Size, dict[str, Any]] = {
    "tiny": {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 64},
    "mid": {"num_experts": 16, "num_experts_per_tok": 4, "moe_intermediate_size": 256},
    "true": {
        "num_experts": 128,
        "num_experts_per_tok": 8,
        "moe_intermediate_size": 768,
        "hidden_size": 2048,
        "intermediate_size": 6144,
        "num_hidden_layers": 48,
        "num_attention_heads": 32,
        "num_key_value_heads": 4,
        "head_dim": 128,
        "rope_parameters": ROPE | {"mrope_section": [24, 20, 20]},
    },
}


def config(size: Size) -> Any:
    """The native configuration."""
    from transformers import Qwen3VLMoeConfig  # noqa: PLC0415 - it costs a second to import

    parts = shared(size)
    parts["text_config"] |= EXPERTS[size]
    parts["vision_config"]["out_hidden_size"] = parts["text_config"]["hidden_size"]
    return Qwen3VLMoeConfig(**parts)


def model(size: Size, device: str, dtype: Dtype, seed: int) -> Any:
    """The model with random weights."""
    from transformers import Qwen3VLMoeForConditionalGeneration  # noqa: PLC0415

    return native.on_device(Qwen3VLMoeForConditionalGeneration, config(size), device, dtype, seed)


def build(size: Size, folder: Path, *, dtype: Dtype, seed: int, thinks: bool) -> Path:
    """Write it as the model hub has it."""
    return native.write(model(size, "cpu", dtype, seed), folder, SPECIAL, thinks=thinks)


def assemble(size: Size, device: str, *, dtype: Dtype, seed: int) -> Qwen3VL:
    """The family around it, without files."""
    made = model(size, device, dtype, seed)
    return Qwen3VL(made, native.vocabulary(SPECIAL)[0], thinks=False)

"""Qwen3-VL of random weights: tiny, 60 million parameters, and the shape of the 8B model.

The true shape is that of Qwen/Qwen3-VL-8B-Instruct's config.json, but for the token ids.
"""

from pathlib import Path
from typing import Any

from benchmarks.random_models import Dtype, Size, native
from hdguard.brains.families.qwen3_vl import Qwen3VL

SPECIAL = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|image_pad|>",
    "<|video_pad|>",
    "<think>",
    "</think>",
)
ROPE = {"rope_type": "default", "rope_theta": 5e6, "mrope_interleaved": True}

TEXT: dict[Size, dict[str, Any]] = {
    # Every width a multiple of 64, which is what a 4-bit block takes.
    "tiny": {
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "rope_parameters": ROPE | {"mrope_section": [4, 2, 2]},
        # Wide enough that a picture, a position and a word each move the logits visibly.
        "initializer_range": 0.1,
    },
    "mid": {
        "hidden_size": 512,
        "intermediate_size": 1536,
        "num_hidden_layers": 12,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "head_dim": 64,
        "rope_parameters": ROPE | {"mrope_section": [12, 10, 10]},
    },
    "true": {
        "hidden_size": 4096,
        "intermediate_size": 12288,
        "num_hidden_layers": 36,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "rope_parameters": ROPE | {"mrope_section": [24, 20, 20]},
    },
}
VISION: dict[Size, dict[str, Any]] = {
    "tiny": {
        "depth": 3,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_heads": 2,
        "deepstack_visual_indexes": [0, 1],
        "initializer_range": 0.1,
    },
    "mid": {
        "depth": 6,
        "hidden_size": 256,
        "intermediate_size": 1024,
        "num_heads": 4,
        "deepstack_visual_indexes": [2, 4],
    },
    "true": {},  # the configuration class's own numbers are the published ones
}
WORDS: dict[Size, int] = {"tiny": 0, "mid": 24576, "true": 151936}
"""Least size of the vocabulary."""


def shared(size: Size) -> dict[str, Any]:
    """What the dense model and the mixture of experts have in common, as a configuration's."""
    tokens, words = native.vocabulary(SPECIAL, WORDS[size])
    ends = {"bos_token_id": None, "eos_token_id": tokens.token_to_id("<|im_end|>")}
    ends["pad_token_id"] = tokens.token_to_id("<|endoftext|>")
    width = TEXT[size]["hidden_size"]
    return {
        "text_config": TEXT[size] | ends | {"vocab_size": words, "max_position_embeddings": 32768},
        "vision_config": VISION[size] | {"out_hidden_size": width, "num_position_embeddings": 2304},
        "image_token_id": tokens.token_to_id("<|image_pad|>"),
        "video_token_id": tokens.token_to_id("<|video_pad|>"),
        "vision_start_token_id": tokens.token_to_id("<|vision_start|>"),
        "vision_end_token_id": tokens.token_to_id("<|vision_end|>"),
        "tie_word_embeddings": size != "true",
    }


def config(size: Size) -> Any:
    """The native configuration."""
    from transformers import Qwen3VLConfig  # noqa: PLC0415 - it costs a second to import

    return Qwen3VLConfig(**shared(size))


def model(size: Size, device: str, dtype: Dtype, seed: int) -> Any:
    """The model with random weights."""
    from transformers import Qwen3VLForConditionalGeneration  # noqa: PLC0415

    return native.on_device(Qwen3VLForConditionalGeneration, config(size), device, dtype, seed)


def build(size: Size, folder: Path, *, dtype: Dtype, seed: int, thinks: bool) -> Path:
    """Write it as the model hub has it."""
    return native.write(model(size, "cpu", dtype, seed), folder, SPECIAL, thinks=thinks)


def assemble(size: Size, device: str, *, dtype: Dtype, seed: int) -> Qwen3VL:
    """The family around it, without files."""
    made = model(size, device, dtype, seed)
    return Qwen3VL(made, native.vocabulary(SPECIAL)[0], thinks=False)

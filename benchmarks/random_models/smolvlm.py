"""SmolVLM of random weights: tiny, 65 million parameters, and the shape of SmolVLM2-2.2B.

The true shape is that of HuggingFaceTB/SmolVLM2-2.2B-Instruct's config.json: SmolLM2-1.7B and
SigLIP-so400m at 384 pixels; but for the token ids.
"""

import json
from pathlib import Path
from typing import Any

from benchmarks.random_models import Dtype, Size, native
from hdguard.brains.families.pictures import HALVES
from hdguard.brains.families.smolvlm import AROUND, GLOBAL, IMAGE, SmolVLM

SPECIAL = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<end_of_utterance>",
    AROUND,
    GLOBAL,
    IMAGE,
)

ROPE = {"rope_type": "default", "rope_theta": 130000.0}

TEXT: dict[Size, dict[str, Any]] = {
    # Every width a multiple of 64, which is what a 4-bit block takes.
    "tiny": {
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
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
    },
    "true": {
        "hidden_size": 2048,
        "intermediate_size": 8192,
        "num_hidden_layers": 24,
        "num_attention_heads": 32,
        "num_key_value_heads": 32,
        "head_dim": 64,
    },
}
VISION: dict[Size, dict[str, Any]] = {
    "tiny": {
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        # Not the size of a frame: the family resizes.
        "image_size": 112,
        "patch_size": 14,
        "initializer_range": 0.1,
    },
    "mid": {
        "hidden_size": 384,
        "intermediate_size": 1536,
        "num_hidden_layers": 4,
        "num_attention_heads": 6,
        "image_size": 448,
        "patch_size": 14,
    },
    "true": {
        "hidden_size": 1152,
        "intermediate_size": 4304,
        "num_hidden_layers": 27,
        "num_attention_heads": 16,
        "image_size": 384,
        "patch_size": 14,
    },
}
SCALE: dict[Size, int] = {"tiny": 2, "mid": 4, "true": 3}
"""Side, in patches, of what becomes one token."""
WORDS: dict[Size, int] = {"tiny": 0, "mid": 32768, "true": 49280}
"""Least size of the vocabulary."""


def config(size: Size) -> Any:
    """The native configuration."""
    import transformers  # noqa: PLC0415 - it costs a second to import

    tokens, words = native.vocabulary(SPECIAL, WORDS[size])
    ends = {"bos_token_id": None, "eos_token_id": tokens.token_to_id("<end_of_utterance>")}
    ends["pad_token_id"] = tokens.token_to_id("<|endoftext|>")
    more = {"model_type": "llama", "vocab_size": words, "max_position_embeddings": 32768}
    made: Any = transformers.SmolVLMConfig
    return made(
        text_config=TEXT[size] | ends | more | {"rope_parameters": ROPE},
        vision_config=VISION[size],
        scale_factor=SCALE[size],
        pad_token_id=ends["pad_token_id"],
        image_token_id=tokens.token_to_id(IMAGE),
        tie_word_embeddings=size != "true",
    )


def model(size: Size, device: str, dtype: Dtype, seed: int) -> Any:
    """The model with random weights."""
    from transformers import SmolVLMForConditionalGeneration  # noqa: PLC0415

    return native.on_device(SmolVLMForConditionalGeneration, config(size), device, dtype, seed)


def build(size: Size, folder: Path, *, dtype: Dtype, seed: int, thinks: bool) -> Path:
    """Write it as the model hub has it."""
    mean, deviation = HALVES
    side = {"longest_edge": VISION[size]["image_size"]}
    pictures = {
        "image_processor_type": "SmolVLMImageProcessor",
        "image_mean": mean,
        "image_std": deviation,
        "max_image_size": side,
        "size": side,
    }
    (folder / "preprocessor_config.json").write_text(json.dumps(pictures), encoding="utf-8")
    return native.write(model(size, "cpu", dtype, seed), folder, SPECIAL, thinks=thinks)


def assemble(size: Size, device: str, *, dtype: Dtype, seed: int) -> SmolVLM:
    """The family around it, without files."""
    made = model(size, device, dtype, seed)
    return SmolVLM(made, native.vocabulary(SPECIAL)[0], thinks=False)

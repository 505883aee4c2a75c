"""InternVL of random weights: tiny, 63 million parameters, and the shape of InternVL3-8B.

The true shape is that of OpenGVLab/InternVL3-8B-hf's config.json: the configuration classes' own
numbers for the eye, Qwen2.5-7B's for the language model; but for the token ids.
"""

import json
from pathlib import Path
from typing import Any

from benchmarks.random_models import Dtype, Size, native
from hdguard.brains.families.internvl import CLOSE, CONTEXT, OPEN, InternVL
from hdguard.brains.families.pictures import IMAGENET

SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", OPEN, CLOSE, CONTEXT)

ROPE = {"rope_type": "default", "rope_theta": 1e6}

TEXT: dict[Size, dict[str, Any]] = {
    # Every width a multiple of 64, which is what a 4-bit block takes.
    "tiny": {
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        # Wide enough that a picture, a position and a word each move the logits visibly.
        "initializer_range": 0.1,
    },
    "mid": {
        "hidden_size": 512,
        "intermediate_size": 1536,
        "num_hidden_layers": 12,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
    },
    "true": {
        "hidden_size": 3584,
        "intermediate_size": 18944,
        "num_hidden_layers": 28,
        "num_attention_heads": 28,
        "num_key_value_heads": 4,
    },
}
VISION: dict[Size, dict[str, Any]] = {
    "tiny": {
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        # Not the size of a frame: the family resizes.
        "image_size": (112, 112),
        "initializer_range": 0.1,
    },
    "mid": {
        "hidden_size": 384,
        "intermediate_size": 1536,
        "num_hidden_layers": 4,
        "num_attention_heads": 6,
    },
    "true": {},
}
WORDS: dict[Size, int] = {"tiny": 0, "mid": 32768, "true": 151674}
"""Least size of the vocabulary."""


def config(size: Size) -> Any:
    """The native configuration."""
    import transformers  # noqa: PLC0415 - it costs a second to import

    tokens, words = native.vocabulary(SPECIAL, WORDS[size])
    ends = {"bos_token_id": None, "eos_token_id": tokens.token_to_id("<|im_end|>")}
    ends["pad_token_id"] = tokens.token_to_id("<|endoftext|>")
    more = {"model_type": "qwen2", "vocab_size": words, "max_position_embeddings": 32768}
    made: Any = transformers.InternVLConfig
    return made(
        text_config=TEXT[size] | ends | more | {"rope_parameters": ROPE},
        vision_config=VISION[size],
        image_token_id=tokens.token_to_id(CONTEXT),
        tie_word_embeddings=size != "true",
    )


def model(size: Size, device: str, dtype: Dtype, seed: int) -> Any:
    """The model with random weights."""
    from transformers import InternVLForConditionalGeneration  # noqa: PLC0415

    return native.on_device(InternVLForConditionalGeneration, config(size), device, dtype, seed)


def build(size: Size, folder: Path, *, dtype: Dtype, seed: int, thinks: bool) -> Path:
    """Write it as the model hub has it."""
    mean, deviation = IMAGENET
    height, width = VISION[size].get("image_size", (448, 448))
    pictures = {
        "image_processor_type": "GotOcr2ImageProcessor",
        "image_mean": mean,
        "image_std": deviation,
        "size": {"height": height, "width": width},
    }
    (folder / "preprocessor_config.json").write_text(json.dumps(pictures), encoding="utf-8")
    return native.write(model(size, "cpu", dtype, seed), folder, SPECIAL, thinks=thinks)


def assemble(size: Size, device: str, *, dtype: Dtype, seed: int) -> InternVL:
    """The family around it, without files."""
    made = model(size, device, dtype, seed)
    return InternVL(made, native.vocabulary(SPECIAL)[0], thinks=False)

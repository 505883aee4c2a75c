"""MiniCPM-o-shaped models of random weights, with code of their own as the real ones have it.

Tiny, 204 million parameters, and the shape of the real one.

The true shape is that of openbmb/MiniCPM-o-4_5. The text part of its config.json is Qwen/Qwen3-8B's
with a vocabulary of 151,748, here rounded up to a multiple of 64; SigLIP2 of 27 layers of which 26
run, and a resampler to 64 vectors, are the defaults of its configuration_minicpmo.py. No ears, no
voice. The code is ours (`minicpmo_code`).
"""

import shutil
from pathlib import Path
from typing import Any

from benchmarks.random_models import Dtype, Size, native
from hdguard.brains.families.minicpmo import CLOSE, OPEN, SEEN, MiniCPMo

SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>", SEEN, OPEN, CLOSE)
CODE = Path(__file__).parent / "minicpmo_code"

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
        "hidden_size": 4096,
        "intermediate_size": 12288,
        "num_hidden_layers": 36,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 128,
    },
}
VISION: dict[Size, dict[str, Any]] = {
    "tiny": {
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 3,
        "num_attention_heads": 2,
    },
    "mid": {
        "hidden_size": 384,
        "intermediate_size": 1536,
        "num_hidden_layers": 5,
        "num_attention_heads": 6,
    },
    "true": {
        "hidden_size": 1152,
        "intermediate_size": 4304,
        "num_hidden_layers": 27,
        "num_attention_heads": 16,
    },
}
WORDS: dict[Size, int] = {"tiny": 0, "mid": 151748, "true": 151748}
"""Least size of the vocabulary: the published one is most of a small model's work."""


def config(size: Size) -> Any:
    """The configuration, by our own class."""
    from benchmarks.random_models.minicpmo_code.configuration_minicpmo import (  # noqa: PLC0415
        MiniCPMOConfig,
    )

    tokens, words = native.vocabulary(SPECIAL, WORDS[size])
    return MiniCPMOConfig(
        **TEXT[size],
        vision_config=VISION[size] | {"image_size": 980, "patch_size": 14},
        init_audio=False,
        init_tts=False,
        vocab_size=words,
        max_position_embeddings=40960,
        rope_theta=1_000_000,
        tie_word_embeddings=False,
        eos_token_id=tokens.token_to_id("<|im_end|>"),
        pad_token_id=tokens.token_to_id("<|endoftext|>"),
    )


def model(size: Size, device: str, dtype: Dtype, seed: int) -> Any:
    """The model with random weights."""
    from benchmarks.random_models.minicpmo_code.modeling_minicpmo import MiniCPMO  # noqa: PLC0415

    return native.on_device(MiniCPMO, config(size), device, dtype, seed)


def build(size: Size, folder: Path, *, dtype: Dtype, seed: int, thinks: bool) -> Path:
    """Write it as the model hub has it, code included; it always has a thinking block."""
    del thinks
    made = model(size, "cpu", dtype, seed)
    made.config.auto_map = {
        "AutoConfig": "configuration_minicpmo.MiniCPMOConfig",
        "AutoModel": "modeling_minicpmo.MiniCPMO",
    }
    native.write(made, folder, SPECIAL, thinks=True)
    for name in ("configuration_minicpmo.py", "modeling_minicpmo.py"):
        shutil.copyfile(CODE / name, folder / name)
    return folder


def assemble(size: Size, device: str, *, dtype: Dtype, seed: int) -> MiniCPMo:
    """The family around it, without files."""
    made = model(size, device, dtype, seed)
    return MiniCPMo(made, native.vocabulary(SPECIAL)[0], thinks=True)

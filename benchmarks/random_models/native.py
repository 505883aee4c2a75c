"""What the families that transformers itself brings share when they are made of random weights."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer

from benchmarks.random_models.tokenizers import tokenizer, write_tokenizer
from hdguard.brains.placement import quiet

THINKS = "{{ '<|im_start|>assistant\\n<think>\\n' }}"
"""All that is read of a chat template: whether it knows a thinking block."""
SPEAKS = "{{ '<|im_start|>assistant\\n' }}"


def vocabulary(special: Sequence[str], least: int = 0) -> tuple[Tokenizer, int]:
    """Our tokenizer, and a vocabulary size that holds it: a multiple of 64, `least` or more."""
    made = tokenizer(special)
    return made, -(-max(made.get_vocab_size(), least) // 64) * 64


def on_device(model_class: Any, config: Any, device: str, dtype: str, seed: int) -> Any:
    """A model of random weights, made on the device where it shall stay."""
    torch.manual_seed(seed)
    before = torch.get_default_dtype()
    torch.set_default_dtype(getattr(torch, dtype))
    try:
        with torch.device(device):
            return model_class(config).eval()
    finally:
        torch.set_default_dtype(before)


def write(model: Any, folder: Path, special: Sequence[str], *, thinks: bool) -> Path:
    """The model and its tokenizer as files."""
    quiet()
    model.save_pretrained(folder)
    write_tokenizer(folder, special, THINKS if thinks else SPEAKS)
    return folder

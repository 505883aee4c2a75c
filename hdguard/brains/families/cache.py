"""Keys and values in and out of transformers' cache, whose names changed between its versions."""

import inspect
from collections.abc import Sequence
from typing import Any

import torch

Kv = tuple[tuple[torch.Tensor, torch.Tensor], ...]
"""Keys and values per layer, (1, heads, length, head size) each."""


def cache_argument(model: Any) -> str:
    """What a model's forward calls its cache."""
    known = inspect.signature(type(model).forward).parameters
    return "cache" if "cache" in known else "past_key_values"


def filled_cache(kv: Sequence[tuple[torch.Tensor, torch.Tensor]]) -> Any:
    """A cache that begins with these keys and values, which it never writes to.

    It grows by concatenation, so one prefix may be continued any number of times.
    """
    from transformers import DynamicCache  # noqa: PLC0415 - it costs a second to import

    cache = DynamicCache()
    for layer, (keys, values) in enumerate(kv):
        cache.update(keys, values, layer)
    return cache


def cached(cache: Any) -> Kv:
    """What a cache holds."""
    if hasattr(cache, "layers"):
        return tuple((layer.keys, layer.values) for layer in cache.layers)
    return tuple(zip(cache.key_cache, cache.value_cache, strict=True))

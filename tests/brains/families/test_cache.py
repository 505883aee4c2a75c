import warnings
from types import SimpleNamespace
from typing import Any

import torch

from hdguard.brains.families.cache import cache_argument, cached, filled_cache


def layers() -> tuple[tuple[torch.Tensor, torch.Tensor], ...]:
    torch.manual_seed(0)
    return tuple((torch.randn(1, 2, 5, 4), torch.randn(1, 2, 5, 4)) for _ in range(3))


def test_what_goes_in_comes_out() -> None:
    kv = layers()
    for given, found in zip(kv, cached(filled_cache(kv)), strict=True):
        assert all(torch.equal(a, b) for a, b in zip(given, found, strict=True))


def test_a_forward_that_fills_the_cache_leaves_the_kept_prefix_alone() -> None:
    kv = layers()
    before = [k.clone() for k, _ in kv]
    cache = filled_cache(kv)
    for layer in range(3):
        cache.update(torch.ones(1, 2, 7, 4), torch.ones(1, 2, 7, 4), layer)
    assert [k.shape[2] for k, _ in cached(cache)] == [12, 12, 12]
    assert all(torch.equal(a, b) for a, (b, _) in zip(before, kv, strict=True))


def test_a_cache_of_older_transformers_is_read_too() -> None:
    old = SimpleNamespace(key_cache=[torch.zeros(1)], value_cache=[torch.ones(1)])
    ((keys, values),) = cached(old)
    assert (float(keys), float(values)) == (0.0, 1.0)


def test_the_cache_is_called_what_the_models_forward_calls_it() -> None:
    class New:
        def forward(self, cache: Any = None) -> None: ...

    class Old:
        def forward(self, past_key_values: Any = None) -> None: ...

    assert cache_argument(New()) == "cache"
    assert cache_argument(Old()) == "past_key_values"


def test_the_installed_library_does_not_call_it_deprecated(tiny_model: Any) -> None:
    family = tiny_model("qwen3_vl").family
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert family.feed([1, 2], family.feed([3], EMPTY).state).state.length == 3


EMPTY: Any = SimpleNamespace(kv=(), length=0, position=0)

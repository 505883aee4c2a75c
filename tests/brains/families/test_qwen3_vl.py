import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import Qwen2VLImageProcessorPil

from benchmarks import random_models
from benchmarks.random_models import qwen3_vl, qwen3_vl_moe
from hdguard.brains.base import BrainError, Rgb
from hdguard.brains.families.base import Chat
from hdguard.brains.families.cache import filled_cache
from hdguard.brains.families.qwen3_vl import FlatPatches, Qwen3VL, patchify
from hdguard.brains.model import Model
from tests.brains.conftest import Folder, Loaded, tiny_settings

SYSTEM = "You watch the camera of a household robot."


def picture(seed: int, height: int = 64, width: int = 64) -> Rgb:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def chat(*seeds: int, **more: Any) -> Chat:
    shots = [part for seed in seeds for part in (f"t = {seed}.5 s", picture(seed))]
    return Chat(SYSTEM, ("The picture now:", *shots, "One word."), **more)


def apart(a: torch.Tensor, b: torch.Tensor) -> float:
    return float((a - b).abs().max())


@pytest.fixture(params=["qwen3_vl", "qwen3_vl_moe"])
def model(request: pytest.FixtureRequest, tiny_model: Loaded) -> Model:
    return tiny_model(request.param)


# Pictures.


@pytest.mark.parametrize("size", [(448, 448), (64, 96), (32, 32)])
def test_pixels_are_bit_for_bit_those_of_the_published_processor(size: tuple[int, int]) -> None:
    pixels = size[0] * size[1]
    published = Qwen2VLImageProcessorPil(
        patch_size=16,
        image_mean=[0.5] * 3,
        image_std=[0.5] * 3,
        size={"shortest_edge": pixels, "longest_edge": pixels},
    )
    rgb = picture(3, *size)
    expected = published(images=[rgb], return_tensors="np")["pixel_values"]
    assert np.array_equal(patchify(rgb), expected)


def test_a_camera_frame_of_448_pixels_is_196_tokens(model: Model) -> None:
    inputs = model.family.build(Chat(SYSTEM, (picture(0, 448, 448),)))
    assert inputs.tensors["pixel_values"].shape == (784, 1536)
    assert int(inputs.tensors["mm_token_type_ids"].sum()) == 196


@pytest.mark.parametrize("size", [(448, 450), (40, 64), (0, 32)])
def test_a_picture_that_does_not_fit_the_grid_is_refused(
    tiny_model: Loaded, size: tuple[int, int]
) -> None:
    with pytest.raises(BrainError, match="takes multiples of 32"):
        tiny_model("qwen3_vl").family.build(Chat(SYSTEM, (np.zeros((*size, 3), np.uint8),)))


@pytest.mark.parametrize(
    "wrong",
    [
        np.zeros((64, 64), np.uint8),
        np.zeros((64, 64, 4), np.uint8),
        np.zeros((64, 64, 3), np.float32),
    ],
    ids=["grey", "with alpha", "float"],
)
def test_a_picture_that_is_not_of_rgb_bytes_is_refused(tiny_model: Loaded, wrong: Any) -> None:
    with pytest.raises(BrainError, match="picture: needs RGB bytes, not"):
        tiny_model("qwen3_vl").family.build(Chat(SYSTEM, (wrong,)))


def test_the_flat_embedding_is_the_published_convolution() -> None:
    torch.manual_seed(1)
    proj = torch.nn.Conv3d(3, 40, kernel_size=(2, 16, 16), stride=(2, 16, 16))
    rows = torch.from_numpy(patchify(picture(5)))
    with torch.inference_mode():
        published = proj(rows.view(-1, 3, 2, 16, 16)).view(-1, 40)
        assert apart(FlatPatches(proj)(rows), published) < 1e-5


def test_the_picture_decides_what_the_model_says(model: Model) -> None:
    assert apart(model.ask(chat(1)).logits, model.ask(chat(2)).logits) > 0.01


# Positions and the kept prefix.


@pytest.mark.parametrize("seeds", [(1,), (1, 2, 3)])
def test_with_a_kept_prefix_the_logits_are_the_same(model: Model, seeds: tuple[int, ...]) -> None:
    kept, whole = model.ask(chat(*seeds)), model.ask_whole(chat(*seeds))
    assert apart(kept.logits, whole.logits) < 1e-4
    assert (kept.state.length, kept.state.position) == (whole.state.length, whole.state.position)


def test_a_fresh_model_and_one_that_has_read_something_else_agree(tiny_folder: Folder) -> None:
    """Left to itself the model keeps an offset from its last call, and has none in its first."""
    fresh = Model(tiny_settings(tiny_folder("qwen3_vl")))
    first = fresh.ask(chat(1)).logits
    fresh.ask_whole(chat(4, 5, 6))
    assert apart(fresh.ask(chat(1)).logits, first) == 0.0
    assert apart(fresh.ask_whole(chat(1)).logits, first) < 1e-4


def test_the_whole_forward_is_the_librarys_own(model: Model) -> None:
    """Nothing of ours in the way: no positions, no cache, all logits."""
    family = model.family
    assert isinstance(family, Qwen3VL)
    inputs = family.build(chat(1, 2))
    given = {k: t for k, t in inputs.tensors.items() if k != "position_ids"}
    with torch.inference_mode():
        own = family.model(input_ids=inputs.ids, use_cache=False, **given).logits[0, -1]
    assert apart(model.ask(chat(1, 2)).logits, own) < 1e-4


def test_without_positions_a_kept_prefix_is_silently_wrong(tiny_folder: Folder) -> None:
    """Why every call says them: the library raises nothing."""
    fresh = Model(tiny_settings(tiny_folder("qwen3_vl")))
    family = fresh.family
    assert isinstance(family, Qwen3VL)
    inputs = family.build(chat(1))
    prefix = family.read_prefix(inputs)
    with torch.inference_mode():
        wrong = family.model(
            input_ids=inputs.ids[:, inputs.prefix :],
            mm_token_type_ids=inputs.tensors["mm_token_type_ids"][:, inputs.prefix :],
            pixel_values=inputs.tensors["pixel_values"],
            image_grid_thw=inputs.tensors["image_grid_thw"],
            cache=filled_cache(prefix.kv),
            use_cache=True,
            logits_to_keep=1,
        ).logits[0, -1]
    assert apart(wrong, family.read(inputs, prefix).logits) > 0.01


@pytest.mark.parametrize("seeds", [(1,), (1, 2, 3)])
def test_text_fed_afterwards_is_as_if_read_at_once(model: Model, seeds: tuple[int, ...]) -> None:
    text = "red is what I would say, or yellow"
    once = model.ask_whole(chat(*seeds, answer=text))
    step = model.ask(chat(*seeds))
    fed = model.family.feed(model.family.encode(text), step.state)
    assert apart(fed.logits, once.logits) < 1e-4
    for token in model.family.encode(text):  # and one by one
        step = model.family.feed([token], step.state)
    assert apart(step.logits, once.logits) < 1e-4
    assert step.state.position == once.state.position


def test_two_conversations_in_turns_do_not_disturb_each_other(model: Model) -> None:
    family = model.family
    one, two = model.ask(chat(1)), model.ask(chat(2, 3))
    alone = family.feed(family.encode("red because"), one.state).logits
    for word in ("red", " because"):
        one = family.feed(family.encode(word), one.state)
        two = family.feed(family.encode(word), two.state)
    assert apart(one.logits, alone) < 1e-4


def test_positions_of_a_picture_count_its_longer_side(tiny_model: Loaded) -> None:
    family = tiny_model("qwen3_vl").family
    wide = Chat(SYSTEM, ("Now:", picture(0, 64, 128), "One word."))
    step = family.read(family.build(wide))
    # 2 x 4 tokens take up 4 positions.
    assert step.state.length - step.state.position == 8 - 4


# Thinking, and the folder.


def test_an_instruct_model_has_no_thinking_block(tiny_model: Loaded) -> None:
    family = tiny_model("qwen3_vl").family
    assert family.think_end == ""
    assert family.ending(chat(1, think=True)).endswith("<|im_start|>assistant\n")


def test_a_thinking_model_thinks_or_is_told_that_it_has(tiny_model: Loaded) -> None:
    family = tiny_model("qwen3_vl+thinks").family
    assert family.think_end == "</think>"
    assert family.ending(chat(1, think=True)).endswith("assistant\n<think>\n")
    assert family.ending(chat(1, answer="Hm")).endswith("assistant\n<think>\n\n</think>\n\nHm")


def test_files_of_two_models_are_refused(tiny_folder: Folder, tmp_path: Path) -> None:
    mixed = shutil.copytree(tiny_folder("qwen3_vl"), tmp_path / "mixed")
    config = json.loads((mixed / "config.json").read_text())
    config["image_token_id"] -= 1
    (mixed / "config.json").write_text(json.dumps(config))
    with pytest.raises(BrainError, match="image_token_id"):
        Model(tiny_settings(mixed))


def test_a_tokenizer_of_another_family_is_refused(tiny_folder: Folder, tmp_path: Path) -> None:
    mixed = shutil.copytree(tiny_folder("qwen3_vl"), tmp_path / "mixed")
    text = (mixed / "tokenizer.json").read_text().replace("<|vision_start|>", "<|other|>")
    (mixed / "tokenizer.json").write_text(text)
    with pytest.raises(BrainError, match=r"has no <\|vision_start\|>"):
        Model(tiny_settings(mixed))


def test_bfloat16_keeps_the_prefix_within_its_precision(tiny_folder: Folder) -> None:
    for name in ("qwen3_vl", "qwen3_vl_moe"):
        half = Model(replace(tiny_settings(tiny_folder(name)), dtype="bfloat16"))
        assert half.ask(chat(1)).logits.dtype == torch.float32
        assert 0 < half.check_prefix(chat(1)) < 0.25


def test_the_true_shapes_are_the_published_ones() -> None:
    """Sizes that the models are named after: 8 billion, and 30 of which 3 are active."""
    for maker, billions in ((qwen3_vl, 8.8), (qwen3_vl_moe, 31.1)):
        with torch.device("meta"):
            made = maker.model("true", "meta", "bfloat16", 0)
        found = sum(p.numel() for p in made.parameters()) / 1e9
        assert found == pytest.approx(billions, abs=0.05)


def test_a_family_is_assembled_without_files() -> None:
    family = random_models.assemble("qwen3_vl", "tiny", "cpu", dtype="bfloat16")
    step = family.read(family.build(chat(1)))
    assert torch.isfinite(step.logits).all()

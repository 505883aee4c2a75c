"""InternVL: what is the published processor's and template's, checked against them."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from benchmarks import random_models
from hdguard.brains.base import BrainError
from hdguard.brains.families.base import Chat
from hdguard.brains.families.internvl import InternVL
from hdguard.brains.model import Model
from tests.brains.conftest import Folder, Loaded, tiny_settings

NOISE = np.random.default_rng(5).integers(0, 256, (448, 448, 3)).astype(np.uint8)


@pytest.fixture
def family(tiny_model: Loaded) -> InternVL:
    found = tiny_model("internvl").family
    assert isinstance(found, InternVL)
    return found


def test_pixels_are_those_of_the_published_processor(family: InternVL, tiny_folder: Folder) -> None:
    from transformers.models.got_ocr2.image_processing_pil_got_ocr2 import (  # noqa: PLC0415
        GotOcr2ImageProcessorPil,
    )

    published: Any = GotOcr2ImageProcessorPil.from_pretrained(
        str(tiny_folder("internvl")), crop_to_patches=False
    )
    for shown in (NOISE[:112, :112], NOISE, NOISE[:60, :60]):
        expected = published(images=[shown], return_tensors="pt")["pixel_values"]
        made = family.tensors(torch.tensor([[0]]), [shown])["pixel_values"]
        assert made.shape == expected.shape == (1, 3, 112, 112)
        assert float((made - expected).abs().max()) < 1e-6


def test_a_picture_of_448_pixels_is_256_tokens() -> None:
    vision = random_models.config("internvl", "mid")
    assert vision.vision_config.image_size in ([448, 448], (448, 448))
    assert (448 // 14 * vision.downsample_ratio) ** 2 == vision.image_seq_length == 256


def test_the_chat_is_written_as_the_published_template_writes_it(family: InternVL) -> None:
    chat = Chat("Watch.", ("Now:", NOISE, "Is it red?", NOISE, "Or not?"), answer="It")
    ids = family.build(chat).ids[0].tolist()
    seen = "<img>" + "<IMG_CONTEXT>" * 16 + "</img>\n"
    assert family.decode(ids) == (
        "<|im_start|>system\nWatch.<|im_end|>\n"
        f"<|im_start|>user\nNow:{seen}Is it red?{seen}Or not?<|im_end|>\n"
        "<|im_start|>assistant\nIt"
    )
    assert ids == family.encode(family.decode(ids))
    assert family.think_end == ""


def test_every_pixel_of_every_picture_is_seen(family: InternVL) -> None:
    inputs = family.build(Chat("Watch.", ("Then:", NOISE, "Now:", NOISE, "?")))
    (context,) = family.encode("<IMG_CONTEXT>")
    assert inputs.tensors["pixel_values"].shape == (2, 3, 112, 112)
    assert int(torch.eq(inputs.ids, context).sum()) == 32


def test_files_of_two_models_are_told_apart(tiny_folder: Folder, tmp_path: Path) -> None:
    mixed = tmp_path / "mixed"
    shutil.copytree(tiny_folder("internvl"), mixed)
    config = json.loads((mixed / "config.json").read_text())
    (mixed / "config.json").write_text(json.dumps(config | {"image_token_id": 7}))
    with pytest.raises(BrainError, match="image_token_id: is 7"):
        Model(tiny_settings(mixed))


def test_the_folder_s_range_is_used(tiny_folder: Folder, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(tiny_folder("internvl"), other)
    said = {"image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]}
    (other / "preprocessor_config.json").write_text(json.dumps(said))
    family = Model(tiny_settings(other)).family
    white = np.full((112, 112, 3), 255, np.uint8)
    pixels = family.build(Chat("", ("Now:", white, "?"))).tensors["pixel_values"]
    assert float(pixels.max()) == float(pixels.min()) == 1.0

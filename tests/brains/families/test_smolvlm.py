"""SmolVLM: what is the published processor's and template's, checked against them."""

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
from hdguard.brains.families.smolvlm import SmolVLM
from hdguard.brains.model import Model
from tests.brains.conftest import Folder, Loaded, tiny_settings

NOISE = np.random.default_rng(5).integers(0, 256, (448, 448, 3)).astype(np.uint8)


@pytest.fixture
def family(tiny_model: Loaded) -> SmolVLM:
    found = tiny_model("smolvlm").family
    assert isinstance(found, SmolVLM)
    return found


def test_pixels_are_those_of_the_published_processor_without_tiles(
    family: SmolVLM, tiny_folder: Folder
) -> None:
    from transformers.models.smolvlm.image_processing_pil_smolvlm import (  # noqa: PLC0415
        SmolVLMImageProcessorPil,
    )

    published: Any = SmolVLMImageProcessorPil.from_pretrained(
        str(tiny_folder("smolvlm")), do_image_splitting=False
    )
    for shown in (NOISE[:112, :112], NOISE, NOISE[:60, :60]):
        expected = published(images=[[shown, shown]], return_tensors="pt")
        made = family.tensors(torch.tensor([[0]]), [shown, shown])
        assert made.keys() == {"pixel_values", "pixel_attention_mask"}
        for name, tensor in made.items():
            assert tensor.shape == expected[name].shape
            assert tensor.dtype == expected[name].dtype
            assert float((tensor - expected[name]).abs().max()) < 1e-6


def test_a_frame_is_64_tokens_at_mid_size_and_81_at_the_published_one() -> None:
    for size, count in (("mid", 64), ("true", 81)):
        config = random_models.config("smolvlm", size)  # type: ignore[arg-type]
        vision = config.vision_config
        assert (vision.image_size // vision.patch_size // config.scale_factor) ** 2 == count


SEEN = "<fake_token_around_image><global-img>" + "<image>" * 16 + "<fake_token_around_image>"


def test_the_chat_is_written_as_the_published_template_writes_it(family: SmolVLM) -> None:
    ids = family.build(Chat("Watch.", ("Now:", NOISE, "Is it red?"))).ids[0].tolist()
    assert family.decode(ids) == (
        "<|im_start|>System: Watch.<end_of_utterance>\n"
        f"User: Now:{SEEN}Is it red?<end_of_utterance>\nAssistant:"
    )
    assert ids == family.encode(family.decode(ids))


def test_no_blank_stands_before_a_picture_that_comes_first(family: SmolVLM) -> None:
    inputs = family.build(Chat("Watch.", (NOISE, "Is it red?")))
    assert f"\nUser:{SEEN}Is" in family.decode(inputs.ids[0].tolist())
    assert inputs.prefix > 0


def test_an_answer_stands_one_blank_after_the_colon(family: SmolVLM) -> None:
    for answer in ("It is", " It is"):
        assert family.ending(Chat("", (NOISE, "?"), answer=answer)).endswith("\nAssistant: It is")
        assert family.turn(answer, "Why?") == (
            " It is<end_of_utterance>\nUser: Why?<end_of_utterance>\nAssistant:"
        )
    assert family.turn("", "Why?").startswith("<end_of_utterance>")


def test_an_answer_ends_with_the_utterance(family: SmolVLM) -> None:
    assert family.tokenizer.token_to_id("<end_of_utterance>") in family.ends


def test_files_of_two_models_are_told_apart(tiny_folder: Folder, tmp_path: Path) -> None:
    mixed = tmp_path / "mixed"
    shutil.copytree(tiny_folder("smolvlm"), mixed)
    config = json.loads((mixed / "config.json").read_text())
    (mixed / "config.json").write_text(json.dumps(config | {"image_token_id": 7}))
    with pytest.raises(BrainError, match="image_token_id: is 7"):
        Model(tiny_settings(mixed))


def test_the_folder_s_range_is_used(tiny_folder: Folder, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(tiny_folder("smolvlm"), other)
    said = {"image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]}
    (other / "preprocessor_config.json").write_text(json.dumps(said))
    family = Model(tiny_settings(other)).family
    white = np.full((112, 112, 3), 255, np.uint8)
    pixels = family.build(Chat("", ("Now:", white, "?"))).tensors["pixel_values"]
    assert float(pixels.max()) == float(pixels.min()) == 1.0

"""MiniCPM-o: code from the model's folder, run only if allowed, and only as far as it works."""

import numpy as np
import pytest
import torch

from benchmarks import random_models
from hdguard.brains.base import BrainError
from hdguard.brains.families.base import Chat
from hdguard.brains.families.minicpmo import MiniCPMo, strip
from hdguard.brains.model import Model, ModelSettings
from tests.brains.conftest import Folder, Loaded

NOISE = np.random.default_rng(7).integers(0, 256, (448, 448, 3)).astype(np.uint8)


@pytest.fixture
def family(tiny_model: Loaded) -> MiniCPMo:
    found = tiny_model("minicpmo").family
    assert isinstance(found, MiniCPMo)
    return found


def test_code_from_a_model_s_folder_runs_only_if_allowed(tiny_folder: Folder) -> None:
    settings = ModelSettings(str(tiny_folder("minicpmo")), "tiny", "cpu", "float32")
    with pytest.raises(BrainError, match="allow_remote_code = true"):
        Model(settings)


def test_the_code_that_runs_is_the_folder_s(family: MiniCPMo) -> None:
    assert type(family.model).__module__.startswith("transformers_modules.")
    assert {name for name, _ in family.model.named_children()} == {"llm", "vpm", "resampler"}


def test_a_strip_holds_the_patches_in_reading_order() -> None:
    pixels = np.arange(3 * 448 * 448, dtype=np.float32).reshape(3, 448, 448)
    made = strip(pixels)
    assert made.shape == (3, 14, 14336)
    unfolded = torch.nn.functional.unfold(torch.from_numpy(pixels)[None], 14, stride=14)
    patches = unfolded[0].reshape(3, 14, 14, 1024)
    for n in (0, 1, 31, 32, 1023):
        assert np.array_equal(made[:, :, 14 * n : 14 * n + 14], patches[..., n].numpy())


def test_the_chat_is_written_as_the_published_code_writes_it(family: MiniCPMo) -> None:
    ids = family.build(Chat("Watch.", ("Then:", NOISE, "Now:", NOISE, "Red?"))).ids[0].tolist()
    seen = "<image>" + "<unk>" * 64 + "</image>"
    assert family.decode(ids) == (
        "<|im_start|>system\nWatch.<|im_end|>\n"
        f"<|im_start|>user\nThen:\n{seen}\nNow:\n{seen}\nRed?<|im_end|>\n"
        "<|im_start|>assistant\n<think>\n\n</think>\n\n"
    )
    assert ids == family.encode(family.decode(ids))


def test_a_model_that_shall_think_is_left_to(family: MiniCPMo) -> None:
    chat = Chat("", (NOISE, "Red?"), think=True)
    assert family.ending(chat).endswith("<|im_start|>assistant\n<think>\n")
    assert family.think_end == "</think>"


def test_pictures_stand_where_their_bounds_say(family: MiniCPMo) -> None:
    inputs = family.build(Chat("Watch.", (NOISE, "Then.", NOISE, NOISE, "Red?")))
    (unknown,) = family.encode("<unk>")
    ids = inputs.ids[0]
    covered = torch.zeros_like(ids, dtype=torch.bool)
    for start, end in inputs.tensors["image_bound"].tolist():
        assert end - start == 64
        covered[start:end] = True
    assert torch.equal(covered, torch.eq(ids, unknown))
    assert inputs.tensors["pixel_values"].shape == (3, 3, 14, 14336)


class Watched:
    """A model that notes what it is asked."""

    def __init__(self, model: object) -> None:
        self._model = model
        self.asked: list[str] = []

    def __getattr__(self, name: str) -> object:
        self.asked.append(name)
        return getattr(self._model, name)

    def forward(self) -> None:
        raise AssertionError("the published forward asks for the ears")


def test_nothing_but_the_forward_is_called_of_the_published_code(tiny_model: Loaded) -> None:
    real = tiny_model("minicpmo").family
    assert isinstance(real, MiniCPMo)
    watched = Watched(real.model)
    family = MiniCPMo(watched, real.tokenizer, thinks=True)
    watched.asked.clear()
    inputs = family.build(Chat("Watch.", ("Now:", NOISE, "Red?")))
    step = family.read(inputs, family.read_prefix(inputs))
    family.feed(family.encode("red"), step.state)
    assert set(watched.asked) == {"get_vllm_embedding", "llm"}


def test_the_shapes_are_the_published_ones() -> None:
    from benchmarks.random_models.minicpmo_code.modeling_minicpmo import MiniCPMO  # noqa: PLC0415

    with torch.device("meta"):
        model = MiniCPMO(random_models.config("minicpmo", "true"))
    sizes = {
        name: sum(p.numel() for p in part.parameters()) / 1e9
        for name, part in model.named_children()
    }
    # Billions: 36 layers of 0.1929, words in and out 0.62 each; 26 layers of sight; 64 queries.
    assert sizes == pytest.approx({"llm": 8.19, "vpm": 0.40, "resampler": 0.09}, abs=0.01)
    assert model.resampler.query.shape == (64, 4096)
    assert len(model.vpm.layers) == 26

import json
import math
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from hdguard.brains.base import BrainError
from hdguard.brains.families.base import Chat, Inputs, State, Step
from hdguard.brains.labels import LIGHTS
from hdguard.brains.model import PREFIXES, Model, ModelSettings, Writer, family_of
from tests.brains.conftest import Folder, Loaded, tiny_settings

SETTINGS = ModelSettings("folder", "model", "cpu", "float32")


def chat(seed: int = 0, system: str = "Watch.") -> Chat:
    shot = np.random.default_rng(seed).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    return Chat(system, ("Now:", shot, "One word."))


class Scripted:
    """A family whose next token is a function of all that it has read, and which counts."""

    ends = frozenset({9})

    def __init__(self, off: float = 0.0) -> None:
        self.off = off
        self.forwards: list[str] = []

    def build(self, chat: Chat) -> Inputs:
        ids = [len(chat.system), 2, 3]
        return Inputs(torch.tensor([ids]), prefix=2 if len(chat.parts) > 1 else 0)

    def read(self, inputs: Inputs, prefix: State | None = None) -> Step:
        self.forwards.append("whole" if prefix is None else "rest")
        step = self.say(sum(inputs.ids[0].tolist()))
        return step if prefix is None else replace(step, logits=step.logits + self.off)

    def read_prefix(self, inputs: Inputs) -> State:
        self.forwards.append("prefix")
        return State((), inputs.prefix, inputs.prefix)

    def feed(self, ids: Any, state: State) -> Step:
        self.forwards.append(f"feed {list(ids)}")
        return self.say(state.length + sum(ids))

    def say(self, total: int) -> Step:
        logits = torch.zeros(10)
        logits[min(total, 9)] = 5.0
        return Step(logits, State((), total, total))


def scripted(off: float = 0.0, dtype: Any = "float32") -> tuple[Model, Scripted]:
    family: Any = Scripted(off)
    return Model(replace(SETTINGS, dtype=dtype), family), family


# Settings.


@pytest.mark.parametrize(
    ("field", "value"),
    [("path", ""), ("name", ""), ("device", "gpu"), ("dtype", "half"), ("memory_gib", -1.0)],
)
def test_a_wrong_setting_is_named(field: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"^{field}: "):
        ModelSettings(**{"path": "folder", "name": "model", field: value})


def test_a_brains_settings_inherit_those_of_its_model() -> None:
    @dataclass(frozen=True, slots=True)
    class Mine(ModelSettings):
        name: str = "mine"
        labels: str = "colours"

    mine = Mine("folder", device="cpu")
    assert (mine.name, mine.placement.device, mine.placement.dtype) == ("mine", "cpu", "bfloat16")
    with pytest.raises(ValueError, match="device: "):
        Mine("folder", device="gpu")


def test_reading_the_settings_imports_no_torch() -> None:
    code = "import sys, hdguard.brains.model; print({'torch', 'transformers'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


# Finding the family.


def test_a_folder_that_is_no_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(BrainError, match=r"config\.json: cannot be read"):
        Model(tiny_settings(tmp_path))


def test_a_family_that_we_do_not_have_is_named(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llava"}))
    with pytest.raises(
        BrainError, match=r"model_type: 'llava' is none of .*qwen3_vl, qwen3_vl_moe"
    ):
        family_of(tmp_path)


def test_without_the_extra_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "qwen3_vl"}))
    monkeypatch.setitem(sys.modules, "hdguard.brains.families.qwen3_vl", None)
    with pytest.raises(BrainError, match=r'pip install "hdguard\[models\]"'):
        family_of(tmp_path)


# The kept prefix.


def test_the_prefix_is_read_once_for_all_frames() -> None:
    model, family = scripted()
    for _ in range(3):
        model.ask(Chat("same", ("Now:", np.zeros((32, 32, 3), np.uint8))))
    assert family.forwards == ["prefix", "rest", "rest", "rest"]


def test_each_prompt_has_its_own_prefix_and_the_oldest_is_forgotten() -> None:
    model, family = scripted()
    shot = np.zeros((32, 32, 3), np.uint8)
    prompts = ["x" * n for n in range(PREFIXES + 1)]
    for system in [*prompts, prompts[-1], prompts[0]]:
        model.ask(Chat(system, ("Now:", shot)))
    assert family.forwards.count("prefix") == PREFIXES + 2


def test_a_chat_without_pictures_has_no_prefix_to_keep() -> None:
    model, family = scripted()
    model.ask(Chat("system", ("Now",)))
    assert family.forwards == ["whole"]


def test_a_prefix_that_changes_the_logits_is_refused() -> None:
    shot = np.zeros((32, 32, 3), np.uint8)
    question = Chat("system", ("Now:", shot))
    assert scripted(off=0.001)[0].check_prefix(question) == pytest.approx(0.001, abs=1e-5)
    for off in (0.02, -0.02, math.nan, math.inf):
        with pytest.raises(BrainError, match="with a kept prefix the logits are"):
            scripted(off)[0].check_prefix(question)
    assert scripted(0.2, "bfloat16")[0].check_prefix(question) < 0.25
    with pytest.raises(BrainError, match=r"more than 0\.25"):
        scripted(0.3, "bfloat16")[0].check_prefix(question)


def test_a_real_model_passes_its_own_check(tiny_model: Loaded) -> None:
    assert tiny_model("qwen3_vl").check_prefix(chat()) < 1e-4


# Probabilities.


def test_the_labels_probabilities_are_of_the_whole_vocabulary(tiny_model: Loaded) -> None:
    model = tiny_model("qwen3_vl")
    step = model.ask(chat())
    ids = model.label_ids(model.family.ending(chat()), LIGHTS["colours"])
    shares = torch.softmax(step.logits.double(), dim=-1)
    expected = [math.log(float(shares[list(group)].sum())) for group in ids]
    assert model.logprobs(step, ids) == pytest.approx(expected, abs=1e-5)
    everything = [list(range(len(step.logits)))]
    assert model.logprobs(step, everything)[0] == pytest.approx(0.0, abs=1e-5)


def test_groups_of_different_sizes_are_not_padded_with_a_tokens_probability() -> None:
    model, family = scripted()
    step = family.say(0)  # token 0 is by far the likeliest
    zero, *rest = model.logprobs(step, [[0], [1, 2, 3], [4]])
    assert zero == pytest.approx(5 - math.log(math.exp(5) + 9))
    assert rest == pytest.approx([math.log(3) + zero - 5, zero - 5])


def test_logits_that_are_no_numbers_stay_none() -> None:
    model, family = scripted()
    broken = replace(family.say(0), logits=torch.full((10,), math.nan))
    assert all(math.isnan(x) for x in model.logprobs(broken, [[0], [1, 2]]))


# Writing.


def test_text_is_written_greedily_up_to_the_end() -> None:
    model, family = scripted()
    writer = model.write(family.say(1), 20)
    # 1, then 1 + 1 = 2, 2 + 2 = 4, 4 + 4 = 8, 8 + 8 above 9: the end, which is not text.
    assert list(writer) == [1, 2, 4, 8]
    assert writer.ids == [1, 2, 4, 8]


def test_text_is_cut_at_its_limit_without_a_forward_for_the_next_token() -> None:
    model, family = scripted()
    assert list(model.write(family.say(1), 2)) == [1, 2]
    assert family.forwards == ["feed [1]"]
    assert list(model.write(family.say(1), 0)) == []


def test_a_writer_can_be_left_and_its_text_continued() -> None:
    model, family = scripted()
    writer = model.write(family.say(1), 20)
    next(writer)
    next(writer)
    assert writer.step.state.length == 4  # it has read both
    assert family.forwards == ["feed [1]", "feed [2]"]
    assert list(writer) == [4, 8]


def test_what_is_written_is_what_reading_it_at_once_gives(tiny_model: Loaded) -> None:
    model = tiny_model("qwen3_vl")
    writer: Writer = model.write(model.ask(chat()), 6)
    ids = list(writer)
    once = model.family.feed(ids, model.ask(chat()).state)
    assert float((writer.step.logits - once.logits).abs().max()) < 1e-4


@pytest.mark.parametrize("broken", [math.nan, math.inf])
def test_a_writer_does_not_go_on_from_no_numbers(broken: float) -> None:
    model, family = scripted()
    step = family.say(1)
    step.logits[3] = broken
    with pytest.raises(BrainError, match="logits are no numbers"):
        next(model.write(step, 5))


# The fingerprint.


def test_the_fingerprint_knows_the_precision_and_the_brains_choices(tiny_folder: Folder) -> None:
    settings = tiny_settings(tiny_folder("qwen3_vl"))
    model = Model(settings)
    half = Model(replace(settings, dtype="bfloat16"), model.family)
    found = {model.fingerprint(), model.fingerprint(prompt="1"), half.fingerprint()}
    assert len(found) == 3
    assert model.fingerprint(prompt="1") in found

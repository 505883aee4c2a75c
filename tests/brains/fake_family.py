"""A family whose model says what a test tells it to, word by word, through the real `Model`.

Its tokens are words; what it has read is kept in its state just as a real model's keys and values
are, so that a brain which goes on from the wrong state reads the wrong text here.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from hdguard.brains.base import Rgb
from hdguard.brains.families import FAMILIES
from hdguard.brains.families.base import Chat, Inputs, Loader, State, Step

PIECES = re.compile(r"<[^<>]*>| ?[^\W\d]+|\d|.", re.DOTALL)
VOCABULARY = 4096
PICTURE, END = "<picture>", "<end>"

Colour = tuple[int, int, int]
Says = Callable[[str, Sequence[Colour]], Mapping[str, float]]
"""From all text read, `<picture>` for pictures, and their mean colours to the next word's
probabilities; what is missing from 1 is spread over the rest of the vocabulary."""


def painted(colour: Colour) -> Rgb:
    """A picture of about that colour, with detail that can be seen."""
    picture = np.full((448, 448, 3), colour, np.uint8)
    picture[::16] //= 2
    return picture


def surely(word: str) -> Mapping[str, float]:
    return {word: 0.98}


def writing(reply: str, but: Says | None = None) -> Says:
    """Writes this as its answer and then ends; where it has something to say, `but` comes first."""
    words = [*PIECES.findall(reply), END]

    def says(text: str, colours: Sequence[Colour]) -> Mapping[str, float]:
        if but is not None and (said := but(text, colours)):
            return said
        written = text.partition("<assistant>")[2].removeprefix("<think>")
        at = next(n for n in range(len(words)) if "".join(words[:n]) == written)
        return {words[at]: 0.9}

    return says


class FakeFamily:
    """Families are made by the real `Model`, so the script is the class's."""

    name: ClassVar[str] = "fake"
    vision: ClassVar[tuple[str, ...]] = ()
    remote_code: ClassVar[bool] = False
    says: ClassVar[Says] = staticmethod(lambda text, colours: surely("green"))
    thinks: ClassVar[bool] = False
    stale: ClassVar[bool] = False
    """Answers for the picture before, as a cache that forgot to look at the picture does."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self.ids: dict[str, int] = {}
        self.reads: list[str] = []
        self.before: list[Colour] | None = None
        self.model = torch.nn.Linear(1, 1)
        self.device = torch.device("cpu")
        self.think_end = "</think>" if self.thinks else ""
        self.ends = frozenset(self.encode(END))

    @classmethod
    def open(cls, folder: Path, load: Loader) -> Self:
        return cls()

    def encode(self, text: str) -> list[int]:
        found = []
        for word in PIECES.findall(text):
            if word not in self.ids:
                self.ids[word] = len(self.words)
                self.words.append(word)
            found.append(self.ids[word])
        return found

    def decode(self, ids: Sequence[int]) -> str:
        return "".join(self.words[i] if i < len(self.words) else f"<{i}>" for i in ids)

    def ending(self, chat: Chat) -> str:
        after = chat.parts[max(i for i, p in enumerate(chat.parts) if not isinstance(p, str)) + 1 :]
        return "".join(p for p in after if isinstance(p, str)) + self._answering(think=chat.think)

    def turn(self, answer: str, question: str) -> str:
        return f"{answer}<end><user>{question}{self._answering(think=False)}"

    def _answering(self, *, think: bool) -> str:
        if not self.thinks:
            return "<assistant>"
        return "<assistant><think>" if think else "<assistant><think></think>"

    def build(self, chat: Chat) -> Inputs:
        text, colours = f"<system>{chat.system}<user>", []
        prefix = 0
        for part in chat.parts:
            if isinstance(part, str):
                text += part
                continue
            prefix = prefix or len(self.encode(text))
            text += PICTURE
            colours.append(part.reshape(-1, 3).mean(axis=0).round())
        ids = self.encode(text + self._answering(think=chat.think) + chat.answer)
        means = torch.tensor([[list(map(float, c)) for c in colours]])
        return Inputs(torch.tensor([ids]), prefix, {"colours": means})

    def read(self, inputs: Inputs, prefix: State | None = None) -> Step:
        start = 0 if prefix is None else prefix.length
        return self._read(inputs.ids[0, start:].tolist(), prefix, inputs.tensors["colours"])

    def read_prefix(self, inputs: Inputs) -> State:
        return self._read(inputs.ids[0, : inputs.prefix].tolist(), None).state

    def feed(self, ids: Sequence[int], state: State) -> Step:
        return self._read(list(ids), state)

    def _read(
        self, ids: list[int], before: State | None, colours: torch.Tensor | None = None
    ) -> Step:
        """All that was read is the state: ids as keys, colours as values."""
        kept = before.kv[0] if before else (torch.zeros(1, 1, 0, 1), torch.zeros(1, 1, 0, 3))
        keys = torch.cat([kept[0], torch.tensor(ids).float().reshape(1, 1, -1, 1)], dim=2)
        values = kept[1] if colours is None else torch.cat([kept[1], colours[None]], dim=2)
        self.reads.append(self.decode(ids))
        text = self.decode([int(i) for i in keys.flatten()])
        seen: list[Colour] = [(int(r), int(g), int(b)) for r, g, b in values[0, 0]]
        if self.stale and colours is not None:
            seen, self.before = self.before or seen, seen
        length = keys.shape[2]
        return Step(self._logits(text, seen), State(((keys, values),), length, length))

    def _logits(self, text: str, colours: list[Colour]) -> torch.Tensor:
        # What stands before the first picture is never answered.
        says = type(self).says(text, colours) if colours else {}
        said = {self.encode(word)[0]: p for word, p in says.items()}
        rest = max(1.0 - sum(said.values()), 1e-9) / (VOCABULARY - len(said))
        logits = torch.full((VOCABULARY,), math.log(rest))
        for token, p in said.items():
            logits[token] = math.log(p) if p > 0 else -math.inf if p == 0 else math.nan
        # Each picture leaves its trace, far away from any word, as it does in a real model.
        for i, (r, g, b) in enumerate(colours):
            logits[-1 - i] += (r + 2 * g + 4 * b) / 1000.0
        return logits


def fake_model(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    says: Says | str,
    *,
    thinks: bool = False,
    stale: bool = False,
) -> str:
    """A folder from which `Model` opens the fake; one word is said always."""
    script = says if callable(says) else lambda text, colours: surely(says)
    monkeypatch.setitem(FAMILIES, "fake", "tests.brains.fake_family:FakeFamily")
    monkeypatch.setattr(FakeFamily, "says", staticmethod(script))
    monkeypatch.setattr(FakeFamily, "thinks", thinks)
    monkeypatch.setattr(FakeFamily, "stale", stale)
    (folder / "config.json").write_text('{"model_type": "fake"}')
    (folder / "tokenizer.json").write_text("{}")
    save_file({"weight": torch.zeros(1)}, folder / "model.safetensors")
    return str(folder)

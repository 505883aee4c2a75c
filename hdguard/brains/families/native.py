"""The families whose model code transformers itself brings: what they have in common.

A family says how a picture becomes tokens and tensors, how turns are written down and how
positions count. Everything here is one forward over a conversation, whole or from a kept prefix.

PyTorch's number of threads is left as it is: on a CPU a forward takes all cores.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from tokenizers import Tokenizer

from hdguard.brains.base import BrainError, Rgb
from hdguard.brains.families.base import Chat, Inputs, Loader, State, Step
from hdguard.brains.families.cache import Kv, cache_argument, cached, filled_cache
from hdguard.brains.families.tokens import (
    CHATML,
    THINK,
    THINK_END,
    Turns,
    knows_thinking,
    neutral,
    read_tokenizer,
    special_tokens,
)
from hdguard.brains.fingerprint import read_json


class NativeFamily(ABC):
    """A family of transformers' own models; the contract is `families.base.Family`."""

    name: ClassVar[str]
    vision: ClassVar[tuple[str, ...]]
    remote_code: ClassVar[bool] = False
    turns: ClassVar[Turns] = CHATML
    needs: ClassVar[tuple[str, ...]] = ()
    """Special tokens that the tokenizer must have."""
    stops: ClassVar[tuple[str, ...]] = ("<|im_end|>", "<|endoftext|>")
    """Tokens that end an answer, those of them that the tokenizer has."""
    per_token: ClassVar[frozenset[str]] = frozenset()
    """Which tensors' last axis runs along the ids."""

    def __init__(self, model: Any, tokenizer: Tokenizer, *, thinks: bool) -> None:
        missing = [t for t in self.needs if tokenizer.token_to_id(t) is None]
        if missing:
            raise BrainError(f"tokenizer.json: has no {', '.join(missing)}: another family's?")
        self.model = model
        self.tokenizer = tokenizer
        self.device: torch.device = next(model.parameters()).device
        self.think_end = THINK_END if thinks else ""
        ids = (tokenizer.token_to_id(t) for t in self.stops)
        self.ends = frozenset(i for i in ids if i is not None)
        self._special = special_tokens(tokenizer)
        self._cache_argument = cache_argument(model)

    @classmethod
    def open(cls, folder: Path, load: Loader) -> Self:
        """Load from a folder; see `Family.open`."""
        config = read_json(folder, "config.json")
        tokenizer = read_tokenizer(folder)
        model = load(cls.model_class(config), folder, skip=cls.vision)
        return cls(model, tokenizer, thinks=knows_thinking(folder))

    # What a family says.

    @classmethod
    @abstractmethod
    def model_class(cls, config: dict[str, Any]) -> Any:
        """The class in transformers that a config.json asks for."""

    @abstractmethod
    def picture(self, rgb: Rgb) -> list[int]:
        """The ids that stand for a picture, with those that open and close it.

        Raises:
            BrainError: a shape that the family cannot take.
        """

    @abstractmethod
    def tensors(self, ids: torch.Tensor, pictures: Sequence[Rgb]) -> dict[str, torch.Tensor]:
        """What a forward over a chat needs beside its ids; made on the CPU, moved afterwards.

        Args:
            ids: (1, L), on the CPU.
            pictures: in their order; at least one.
        """

    def text_tensors(self, position: int, length: int) -> dict[str, torch.Tensor]:
        """What a forward over mere text needs beside its ids, on the model's device.

        Nothing, where positions count tokens: the model counts them itself.
        """
        del position, length
        return {}

    def position_after(self, inputs: Inputs) -> int:
        """The rotary position of the token after a chat with pictures."""
        return inputs.ids.shape[1]

    # What a brain calls.

    def build(self, chat: Chat) -> Inputs:
        """Write the chat down; see `Family.build`."""
        ids: list[int] = []
        pictures: list[Rgb] = []
        prefix = 0
        before, run = self._opening(chat), ""
        for part in chat.parts:
            if isinstance(part, str):
                run += part
                continue
            # A picture begins and ends with a special token, across which nothing merges.
            ids += self.encode(before + neutral(run, self._special))
            before = run = ""
            prefix = prefix or len(ids)
            pictures.append(part)
            ids += self.picture(part)
        # Only a run as a whole can be cleaned: two texts side by side may make a special token.
        ids += self.encode(before + neutral(run, self._special) + self._closing(chat))
        table = torch.tensor([ids])
        tensors = self.tensors(table, pictures) if pictures else {}
        moved = {name: tensor.to(self.device) for name, tensor in tensors.items()}
        return Inputs(table.to(self.device), prefix, moved)

    def read(self, inputs: Inputs, prefix: State | None = None) -> Step:
        """One forward over everything, or over what follows the prefix."""
        if not inputs.tensors:
            return self._read_text(inputs.ids, prefix)
        start = 0 if prefix is None else prefix.length
        tensors = {
            name: tensor[..., start:] if name in self.per_token else tensor
            for name, tensor in inputs.tensors.items()
        }
        position = self.position_after(inputs)
        return self._forward(inputs.ids[:, start:], prefix, position, tensors)

    def read_prefix(self, inputs: Inputs) -> State:
        """Read only what stands before the first picture."""
        return self._read_text(inputs.ids[:, : inputs.prefix], None).state

    def feed(self, ids: Sequence[int], state: State) -> Step:
        """Go on with text: one forward over these ids."""
        return self._read_text(torch.tensor([list(ids)], device=self.device), state)

    def encode(self, text: str) -> list[int]:
        """Token ids of a text in the middle of a conversation, special tokens included."""
        return list(self.tokenizer.encode(text, add_special_tokens=False).ids)

    def decode(self, ids: Sequence[int]) -> str:
        """The text of these ids, special tokens included."""
        return str(self.tokenizer.decode(list(ids), skip_special_tokens=False))

    def ending(self, chat: Chat) -> str:
        """The chat's text after its last picture, up to where the next token comes."""
        before, run = self._opening(chat), ""
        for part in chat.parts:
            if isinstance(part, str):
                run += part
            else:
                before = run = ""
        return before + neutral(run, self._special) + self._closing(chat)

    def turn(self, answer: str, question: str) -> str:
        """The rest of a conversation up to a further answer; see `Family.turn`."""
        turns = self.turns
        said, asked = (neutral(text, self._special) for text in (answer, question))
        return f"{said}{turns.close}{turns.user}{asked}{turns.close}{self._answering(think=False)}"

    # How.

    def _opening(self, chat: Chat) -> str:
        turns, system = self.turns, neutral(chat.system, self._special)
        return f"{turns.start}{turns.system}{system}{turns.close}{turns.user}"

    def _closing(self, chat: Chat) -> str:
        return f"{self.turns.close}{self._answering(think=chat.think)}{chat.answer}"

    def _answering(self, *, think: bool) -> str:
        """The beginning of an answer: within a thinking block, or with the block closed at once."""
        if not self.think_end:
            return self.turns.assistant
        block = f"{THINK}\n" if think else f"{THINK}\n\n{THINK_END}\n\n"
        return f"{self.turns.assistant}{block}"

    def _read_text(self, ids: torch.Tensor, state: State | None) -> Step:
        position = 0 if state is None else state.position
        length = ids.shape[1]
        tensors = self.text_tensors(position, length)
        return self._forward(ids, state, position + length, tensors)

    def _forward(
        self, ids: torch.Tensor, state: State | None, position: int, tensors: dict[str, Any]
    ) -> Step:
        kv: Kv = () if state is None else state.kv
        cache = filled_cache(kv)
        with torch.inference_mode():
            out = self.model(
                input_ids=ids,
                # None, not ones: with a mask of its own length a model takes the cache for absent.
                attention_mask=None,
                use_cache=True,
                logits_to_keep=1,
                **{self._cache_argument: cache},
                **tensors,
            )
            logits = out.logits[0, -1].float()
        read = (0 if state is None else state.length) + ids.shape[1]
        return Step(logits, State(cached(cache), read, position))

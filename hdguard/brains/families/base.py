"""What a family of vision-language models is to a brain: text and pictures in, logits out.

Families differ in how a picture becomes tokens, how a conversation is written down and how
positions count; everything above this file is the same for all of them. A new family is one file
beside this one and one line in `families.FAMILIES`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self

import torch

from hdguard.brains.base import Rgb

Loader = Callable[..., Any]
"""`placement.Placement.load`: from a model class and a folder to the model, placed and checked."""


@dataclass(frozen=True, slots=True)
class Chat:
    """What a model is asked: one system turn, one user turn, and how its answer begins.

    Attributes:
        system: the system turn's text; the same for every frame of a brain.
        parts: the user turn, texts and pictures in their order; a picture is RGB, uint8,
            (height, width, 3). What stands before the first picture is the constant prefix.
            Special tokens in texts are blanked, here and in the system turn.
        answer: what the assistant's turn begins with, put into its mouth; taken as it is.
        think: the answer begins inside an open thinking block. False closes thinking at once,
            where the family has such a thing.
    """

    system: str
    parts: tuple[str | Rgb, ...]
    answer: str = ""
    think: bool = False


@dataclass(frozen=True, slots=True)
class Inputs:
    """A chat as a family's forward takes it.

    Attributes:
        ids: token ids, int64, (1, L), on the model's device.
        prefix: how many of them stand before the first picture's first token; 0: no picture.
        tensors: what the family's forward needs beside: pixels, grids, types.
    """

    ids: torch.Tensor
    prefix: int
    tensors: dict[str, torch.Tensor] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class State:
    """What the model has read so far. Never changed in place: it may be continued many times.

    Attributes:
        kv: keys and values per layer, (1, heads, length, head size) each.
        length: tokens read.
        position: the rotary position of the next token (not `length`, where pictures have a
            grid of positions).
    """

    kv: tuple[tuple[torch.Tensor, torch.Tensor], ...]
    length: int
    position: int


@dataclass(frozen=True, slots=True)
class Step:
    """One forward's outcome: logits of the next token, float32, (vocabulary,), and the state."""

    logits: torch.Tensor
    state: State


class Family(Protocol):
    """A loaded model with its tokenizer; one thread at a time."""

    name: ClassVar[str]
    """Its name in `FAMILIES`."""
    vision: ClassVar[tuple[str, ...]]
    """Modules, by their path in the model, that are never quantised."""
    remote_code: ClassVar[bool]
    """True if the model's own repository brings the code that runs it."""

    think_end: str
    """The tag that closes a thinking block; empty where the model has none."""
    ends: frozenset[int]
    """Token ids that end an answer."""

    @classmethod
    def open(cls, folder: Path, load: Loader) -> Self:
        """Load from a folder in the shape of the model hub; nothing is fetched.

        Raises:
            BrainError: the folder lacks something, or holds another family.
        """
        ...

    def build(self, chat: Chat) -> Inputs:
        """Write the chat down as tokens and pixels.

        Raises:
            BrainError: a picture of a shape that the family cannot take.
        """
        ...

    def read(self, inputs: Inputs, prefix: State | None = None) -> Step:
        """One forward over everything, or over what follows the prefix."""
        ...

    def read_prefix(self, inputs: Inputs) -> State:
        """Read only what stands before the first picture."""
        ...

    def feed(self, ids: Sequence[int], state: State) -> Step:
        """Go on with text: one forward over these ids."""
        ...

    def encode(self, text: str) -> list[int]:
        """Token ids of a text in the middle of a conversation, special tokens included."""
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """The text of these ids, special tokens included."""
        ...

    def ending(self, chat: Chat) -> str:
        """The chat's text after its last picture, up to where the next token comes."""
        ...

    def turn(self, answer: str, question: str) -> str:
        """Text to feed after a state whose next token would begin an answer.

        `answer` is put into the model's mouth and its turn closed; then come a user turn with the
        question and the opening of the next answer, without thinking. Give "" where the model's
        own answer has been read already. Special tokens in both are blanked.
        """
        ...

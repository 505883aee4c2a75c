"""What the families share that give every picture the same square and as many tokens."""

from pathlib import Path
from typing import Self

from hdguard.brains.base import BrainError, Rgb
from hdguard.brains.families.base import Loader
from hdguard.brains.families.native import NativeFamily
from hdguard.brains.families.pictures import Range, folder_range


class SquareFamily(NativeFamily):
    """A family whose pictures are all of one size; a subclass fills in the three below."""

    side: int
    range: Range
    _picture: list[int]

    @classmethod
    def open(cls, folder: Path, load: Loader) -> Self:
        """Load from a folder, with its own range of values for pictures."""
        values = folder_range(folder)
        family = super().open(folder, load)
        family.range = values
        return family

    def picture(self, rgb: Rgb) -> list[int]:
        """As many tokens for every picture."""
        return self._picture

    def image_token(self, word: str) -> int:
        """The token that stands for a piece of a picture.

        Raises:
            BrainError: the model and the tokenizer do not agree on it.
        """
        (token,) = self.encode(word)
        expected = self.model.config.image_token_id
        if token != expected:
            raise BrainError(
                f"config.json: image_token_id: is {expected}, but tokenizer.json's "
                f"{word} is {token}: the files are not of one model"
            )
        return token

"""InternVL 3 as transformers loads it (the "-hf" models), one tile per picture.

Its own processor cuts a picture into up to twelve tiles and a thumbnail, each as many tokens as
the whole; a frame of a camera at 448 x 448 is one tile.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import torch
from tokenizers import Tokenizer

from hdguard.brains.base import Rgb
from hdguard.brains.families.base import Chat, Inputs
from hdguard.brains.families.pictures import IMAGENET, fitted, normalised
from hdguard.brains.families.square import SquareFamily

OPEN, CONTEXT, CLOSE = "<img>", "<IMG_CONTEXT>", "</img>"


class InternVL(SquareFamily):
    """InternVL; square pictures, 256 tokens each at the published 448 pixels."""

    name: ClassVar[str] = "internvl"
    vision: ClassVar[tuple[str, ...]] = ("model.vision_tower", "model.multi_modal_projector")
    needs: ClassVar[tuple[str, ...]] = ("<|im_start|>", "<|im_end|>", OPEN, CONTEXT, CLOSE)

    def __init__(self, model: Any, tokenizer: Tokenizer, *, thinks: bool) -> None:
        super().__init__(model, tokenizer, thinks=thinks)
        config, vision = model.config, model.config.vision_config
        self.side = int(vision.image_size[0])
        self.range = IMAGENET
        context = self.image_token(CONTEXT)
        across = int(self.side // vision.patch_size[0] * config.downsample_ratio)
        self._picture = [*self.encode(OPEN), *[context] * across**2, *self.encode(CLOSE)]

    @classmethod
    def model_class(cls, config: dict[str, Any]) -> Any:
        """The one that there is."""
        import transformers  # noqa: PLC0415 - it costs a second to import

        return transformers.InternVLForConditionalGeneration

    def tensors(self, ids: torch.Tensor, pictures: Sequence[Rgb]) -> dict[str, torch.Tensor]:
        """Pixels, (pictures, 3, side, side)."""
        tiles = [normalised(fitted(p, self.side, "bicubic"), self.range) for p in pictures]
        return {"pixel_values": torch.from_numpy(np.stack(tiles))}

    def build(self, chat: Chat) -> Inputs:
        """Write the chat down, each picture the end of a line."""
        return super().build(_lines(chat))

    def ending(self, chat: Chat) -> str:
        """The text after the last picture; begins with a line's end."""
        return super().ending(_lines(chat))


def _lines(chat: Chat) -> Chat:
    """With a line's end after each picture, as the published template writes it."""
    parts: list[str | Rgb] = []
    for part in chat.parts:
        parts += [part] if isinstance(part, str) else [part, "\n"]
    return replace(chat, parts=tuple(parts))

"""SmolVLM 2 (2.2B, 500M, 256M), one tile per picture.

Its own processor enlarges a picture to four times the side of its eye and cuts it into tiles;
without that a picture is one tile, the "global" one. It writes turns in its own way.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from tokenizers import Tokenizer

from hdguard.brains.base import Rgb
from hdguard.brains.families.base import Chat
from hdguard.brains.families.pictures import HALVES, fitted, normalised
from hdguard.brains.families.square import SquareFamily
from hdguard.brains.families.tokens import Turns

AROUND, GLOBAL, IMAGE = "<fake_token_around_image>", "<global-img>", "<image>"


class SmolVLM(SquareFamily):
    """SmolVLM 2; square pictures, resized to the side that its eye takes."""

    name: ClassVar[str] = "smolvlm"
    vision: ClassVar[tuple[str, ...]] = ("model.vision_model", "model.connector")
    turns: ClassVar[Turns] = Turns(
        start="<|im_start|>",
        system="System: ",
        user="User: ",
        assistant="Assistant:",
        close="<end_of_utterance>\n",
    )
    needs: ClassVar[tuple[str, ...]] = ("<|im_start|>", "<end_of_utterance>", AROUND, GLOBAL, IMAGE)
    stops: ClassVar[tuple[str, ...]] = ("<end_of_utterance>", "<|im_end|>", "<|endoftext|>")

    def __init__(self, model: Any, tokenizer: Tokenizer, *, thinks: bool) -> None:
        super().__init__(model, tokenizer, thinks=thinks)
        config, vision = model.config, model.config.vision_config
        self.side = int(vision.image_size)
        self.range = HALVES
        image = self.image_token(IMAGE)
        across = self.side // vision.patch_size // config.scale_factor
        around, whole = self.encode(AROUND), self.encode(GLOBAL)
        self._picture = [*around, *whole, *[image] * across**2, *around]

    @classmethod
    def model_class(cls, config: dict[str, Any]) -> Any:
        """The one that there is."""
        import transformers  # noqa: PLC0415 - it costs a second to import

        return transformers.SmolVLMForConditionalGeneration

    def tensors(self, ids: torch.Tensor, pictures: Sequence[Rgb]) -> dict[str, torch.Tensor]:
        """Pixels, (1, pictures, 3, side, side), and that none of them is padding."""
        tiles = [normalised(fitted(p, self.side, "lanczos"), self.range) for p in pictures]
        pixels = torch.from_numpy(np.stack(tiles))[None]
        mask = torch.ones((1, len(pictures), self.side, self.side), dtype=torch.int64)
        return {"pixel_values": pixels, "pixel_attention_mask": mask}

    def turn(self, answer: str, question: str) -> str:
        """As other families write it, with the blank that stands before an answer here."""
        return super().turn(_after_colon(answer), question)

    def _opening(self, chat: Chat) -> str:
        text = super()._opening(chat)
        picture_first = bool(chat.parts) and not isinstance(chat.parts[0], str)
        return text.removesuffix(" ") if picture_first else text

    def _closing(self, chat: Chat) -> str:
        bare = super()._closing(chat).removesuffix(chat.answer)
        return bare + _after_colon(chat.answer)


def _after_colon(answer: str) -> str:
    return answer if not answer or answer[0].isspace() else f" {answer}"

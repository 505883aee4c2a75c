"""MiniCPM-o 4.5, whose code comes with its weights: eyes and language model only, forward only.

The published code is written for transformers 4.51 and works from 4.57 on up to the forward; its
`chat` and `generate` do not, and search with three beams besides. So nothing of it is called but
what turns ids and patches into vectors, and the language model. Ears and voice are not loaded.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import torch
from tokenizers import Tokenizer

from hdguard.brains.base import Rgb
from hdguard.brains.families.base import Chat, Inputs, Loader, State, Step
from hdguard.brains.families.cache import cache_argument, cached, filled_cache
from hdguard.brains.families.native import NativeFamily
from hdguard.brains.families.pictures import HALVES, fitted, normalised
from hdguard.brains.families.tokens import knows_thinking, read_tokenizer

OPEN, SEEN, CLOSE = "<image>", "<unk>", "</image>"
SIDE, PATCH = 448, 14
"""Pixels of a picture's and of a patch's side."""


class MiniCPMo(NativeFamily):
    """MiniCPM-o; square pictures, one slice and 64 tokens each, without a number."""

    name: ClassVar[str] = "minicpmo"
    vision: ClassVar[tuple[str, ...]] = ("vpm", "resampler")
    remote_code: ClassVar[bool] = True
    needs: ClassVar[tuple[str, ...]] = ("<|im_start|>", "<|im_end|>", OPEN, SEEN, CLOSE)

    def __init__(self, model: Any, tokenizer: Tokenizer, *, thinks: bool) -> None:
        super().__init__(model, tokenizer, thinks=thinks)
        self._cache_argument = cache_argument(model.llm)
        (opening,), (seen,), (closing,) = (self.encode(t) for t in (OPEN, SEEN, CLOSE))
        self._opening_id = opening
        self._queries = int(model.config.query_num)
        self._picture = [opening, *[seen] * self._queries, closing]

    @classmethod
    def open(cls, folder: Path, load: Loader) -> Self:
        """Load from a folder, by the code in it if the placement allows that."""
        tokenizer = read_tokenizer(folder)
        model = load(
            cls.model_class({}),
            folder,
            skip=cls.vision,
            remote_code=True,
            attn_implementation="sdpa",
            init_vision=True,
            init_audio=False,
            init_tts=False,
        )
        return cls(model, tokenizer, thinks=knows_thinking(folder))

    @classmethod
    def model_class(cls, config: dict[str, Any]) -> Any:
        """Whichever its config.json names."""
        import transformers  # noqa: PLC0415 - it costs a second to import

        return transformers.AutoModel

    def picture(self, rgb: Rgb) -> list[int]:
        """As many tokens for every picture."""
        return self._picture

    def tensors(self, ids: torch.Tensor, pictures: Sequence[Rgb]) -> dict[str, torch.Tensor]:
        """Patches, (pictures, 3, 14, 14336), and from and to which id each picture stands."""
        strips = [strip(normalised(fitted(p, SIDE, "bicubic"), HALVES)) for p in pictures]
        first = torch.eq(ids[0], self._opening_id).nonzero()[:, 0] + 1
        bounds = torch.stack((first, first + self._queries), 1)
        return {"pixel_values": torch.from_numpy(np.stack(strips)), "image_bound": bounds}

    def build(self, chat: Chat) -> Inputs:
        """Write the chat down, a line for each part."""
        return super().build(_lines(chat))

    def ending(self, chat: Chat) -> str:
        """The text after the last picture; begins with a line's end."""
        return super().ending(_lines(chat))

    def _forward(
        self, ids: torch.Tensor, state: State | None, position: int, tensors: dict[str, Any]
    ) -> Step:
        past = 0 if state is None else state.length
        cache = filled_cache(() if state is None else state.kv)
        with torch.inference_mode():
            vectors, _ = self.model.get_vllm_embedding(_surface(ids, past, tensors))
            out = self.model.llm(
                inputs_embeds=vectors,
                use_cache=True,
                logits_to_keep=1,
                **{self._cache_argument: cache},
            )
            logits = out.logits[0, -1].float()
        return Step(logits, State(cached(cache), past + ids.shape[1], position))


def strip(pixels: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Patches side by side, row after row; (3, 448, 448) to (3, 14, 14336)."""
    across = SIDE // PATCH
    # (colour, row, y, column, x) -> (colour, y, row, column, x)
    cut = pixels.reshape(3, across, PATCH, across, PATCH).transpose(0, 2, 1, 3, 4)
    return cut.reshape(3, PATCH, across * across * PATCH)


def _lines(chat: Chat) -> Chat:
    """Its parts with a line's end between any two, as the published code joins them."""
    parts = [part for each in chat.parts for part in ("\n", each)]
    return replace(chat, parts=tuple(parts[1:]))


def _surface(ids: torch.Tensor, past: int, tensors: dict[str, Any]) -> dict[str, Any]:
    """One conversation as the published code takes it; bounds count from the first of the ids."""
    if not tensors:
        return {"input_ids": ids, "pixel_values": [[]], "tgt_sizes": [[]], "image_bound": [[]]}
    pixels = list(tensors["pixel_values"])
    return {
        "input_ids": ids,
        "pixel_values": [pixels],
        # These two are only counted with; on a GPU every look at one would wait for the device.
        "tgt_sizes": [torch.full((len(pixels), 2), SIDE // PATCH, dtype=torch.int32)],
        "image_bound": [tensors["image_bound"].cpu() - past],
    }

"""Qwen3-VL, dense and mixture of experts, Instruct and Thinking.

Its positions have three axes, and a picture takes up as many as its longer side. Left to itself
the model remembers an offset from its last call, which is silently wrong for any other
conversation or after a kept prefix; so every call here says its positions.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer

from hdguard.brains.base import BrainError, Rgb
from hdguard.brains.families.base import Inputs
from hdguard.brains.families.native import NativeFamily

PATCH, MERGE, FRAMES = 16, 2, 2
"""Pixels of a patch's side, patches of a token's side, and frames of a patch in time."""


class Qwen3VL(NativeFamily):
    """Qwen3-VL; pictures whose sides are multiples of 32 pixels."""

    name: ClassVar[str] = "qwen3_vl"
    vision: ClassVar[tuple[str, ...]] = ("model.visual",)
    needs: ClassVar[tuple[str, ...]] = (
        "<|im_start|>",
        "<|im_end|>",
        "<|vision_start|>",
        "<|vision_end|>",
        "<|image_pad|>",
    )
    per_token: ClassVar[frozenset[str]] = frozenset({"mm_token_type_ids", "position_ids"})

    def __init__(self, model: Any, tokenizer: Tokenizer, *, thinks: bool) -> None:
        super().__init__(model, tokenizer, thinks=thinks)
        token = tokenizer.token_to_id("<|image_pad|>")
        if token != model.config.image_token_id:
            raise BrainError(
                f"config.json: image_token_id: {model.config.image_token_id} is not the "
                f"tokenizer's <|image_pad|>, {token}: the files are of two models"
            )
        visual = model.model.visual
        visual.patch_embed = FlatPatches(visual.patch_embed.proj)

    @classmethod
    def model_class(cls, config: dict[str, Any]) -> Any:
        """Dense or mixture of experts."""
        import transformers  # noqa: PLC0415 - it costs a second to import

        if config["model_type"] == "qwen3_vl_moe":
            return transformers.Qwen3VLMoeForConditionalGeneration
        return transformers.Qwen3VLForConditionalGeneration

    def picture(self, rgb: Rgb) -> list[int]:
        """One token per 32 x 32 pixels, between two marks."""
        if rgb.ndim != 3 or rgb.shape[2] != 3 or rgb.dtype != np.uint8:
            raise BrainError(f"picture: needs RGB bytes, not {rgb.shape} of {rgb.dtype}")
        height, width = rgb.shape[:2]
        side = PATCH * MERGE
        if height % side or width % side or not height or not width:
            raise BrainError(
                f"a picture of {width} x {height} pixels: Qwen3-VL takes multiples of {side}"
            )
        config = self.model.config
        pads = [config.image_token_id] * ((height // side) * (width // side))
        return [config.vision_start_token_id, *pads, config.vision_end_token_id]

    def tensors(self, ids: torch.Tensor, pictures: Sequence[Rgb]) -> dict[str, torch.Tensor]:
        """Patches, the pictures' grids, which ids are pictures, and the positions."""
        types = (ids == self.model.config.image_token_id).to(torch.int32)
        grid = torch.tensor([(1, p.shape[0] // PATCH, p.shape[1] // PATCH) for p in pictures])
        positions, _ = self.model.model.get_rope_index(
            ids, mm_token_type_ids=types, image_grid_thw=grid
        )
        patches = np.concatenate([patchify(p) for p in pictures])
        return {
            "pixel_values": torch.from_numpy(patches),
            "image_grid_thw": grid,
            "mm_token_type_ids": types,
            "position_ids": positions,
        }

    def text_tensors(self, position: int, length: int) -> dict[str, torch.Tensor]:
        """The same position on all three axes; (3, 1, length)."""
        line = torch.arange(position, position + length, device=self.device)
        return {"position_ids": line.expand(3, 1, length)}

    def position_after(self, inputs: Inputs) -> int:
        """One after the greatest on any axis."""
        return int(inputs.tensors["position_ids"].max()) + 1


class FlatPatches(torch.nn.Module):
    """The patches' embedding as one matrix product.

    The published one is a three-dimensional convolution whose stride is its kernel: the same
    numbers in a slow way. For a 448 x 448 picture at the true width of 1152 a CPU core takes
    107 ms for it, and 17 ms for this.
    """

    def __init__(self, proj: torch.nn.Conv3d) -> None:
        super().__init__()
        self.proj = proj

    def forward(self, patches: torch.Tensor) -> torch.Tensor:
        """(patches, values) to (patches, width)."""
        weight = self.proj.weight
        rows = patches.to(weight.dtype)
        return torch.nn.functional.linear(rows, weight.flatten(1), self.proj.bias)


# As the published processor does it: scaled in float64, centred in float32.
SCALE = ((np.arange(256) / 255).astype(np.float32) - np.float32(0.5)) / np.float32(0.5)
"""What each value of a pixel becomes: mean and deviation 0.5, from -1 to 1."""


def patchify(rgb: Rgb) -> NDArray[np.float32]:
    """A picture as rows of patches, in the order in which the model merges two by two.

    A picture is a video of one frame, shown twice.

    Returns:
        (patches, 3 * 2 * 16 * 16), float32.
    """
    rows, columns = (side // (PATCH * MERGE) for side in rgb.shape[:2])
    cut = rgb.reshape(rows, MERGE, PATCH, columns, MERGE, PATCH, 3)
    # -> (rows, columns, row in token, column in token, colour, y, x)
    ordered = cut.transpose(0, 3, 1, 4, 6, 2, 5)[:, :, :, :, :, None]
    twice = np.broadcast_to(ordered, (*ordered.shape[:5], FRAMES, PATCH, PATCH))
    return SCALE[twice.reshape(rows * columns * MERGE * MERGE, 3 * FRAMES * PATCH * PATCH)]

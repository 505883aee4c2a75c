"""A random model with MiniCPM-o 4.5's surface, from our own code; copied into its folder.

What the family's adapter calls is here under the published names: `get_vllm_embedding(data)`,
`llm`, `vpm`, `resampler`, the `init_*` choices; what it must not call (`chat`, the ears and the
voice) is missing. Shapes and kinds of layers are the published ones, so that times measured with
random weights are worth something; the weights' names inside `vpm` are not.
Works with transformers 4.57 and 5.x.
"""

from typing import Any

import torch
from torch import nn
from torch.nn import functional
from transformers import PreTrainedModel, Qwen3ForCausalLM

from .configuration_minicpmo import MiniCPMOConfig


class Embeddings(nn.Module):
    """Patches, laid side by side as one picture 14 pixels high, to vectors with a place each."""

    def __init__(self, width: int, patch: int, side: int) -> None:
        super().__init__()
        self.side = side
        self.patch_embedding = nn.Conv2d(3, width, kernel_size=patch, stride=patch)
        self.position_embedding = nn.Embedding(side * side, width)

    def forward(self, pixels: torch.Tensor, sizes: torch.Tensor) -> torch.Tensor:
        """Args: pixels (pictures, 3, 14, 14 x patches), sizes (pictures, 2) in patches."""
        places = []
        for height, width in sizes.tolist():
            rows = torch.arange(height) * self.side // height
            columns = torch.arange(width) * self.side // width
            places.append((rows[:, None] * self.side + columns[None, :]).flatten())
        found: torch.Tensor = self.patch_embedding(pixels).flatten(2).transpose(1, 2)
        placed: torch.Tensor = self.position_embedding(torch.stack(places).to(pixels.device))
        return found + placed


class Layer(nn.Module):
    """One layer of the eye; attention is written out, as the published code runs it beside sdpa."""

    def __init__(self, width: int, heads: int, inner: int) -> None:
        super().__init__()
        self.heads = heads
        self.layer_norm1 = nn.LayerNorm(width, eps=1e-6)
        self.layer_norm2 = nn.LayerNorm(width, eps=1e-6)
        self.q_proj = nn.Linear(width, width)
        self.k_proj = nn.Linear(width, width)
        self.v_proj = nn.Linear(width, width)
        self.out_proj = nn.Linear(width, width)
        self.fc1 = nn.Linear(width, inner)
        self.fc2 = nn.Linear(inner, width)

    def _split(self, x: torch.Tensor) -> torch.Tensor:
        return x.reshape(*x.shape[:2], self.heads, -1).transpose(1, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Args: x (pictures, patches, width)."""
        normed = self.layer_norm1(x)
        q, k, v = (self._split(p(normed)) for p in (self.q_proj, self.k_proj, self.v_proj))
        weights = (q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5).softmax(-1, dtype=torch.float32)
        mixed = (weights.to(v.dtype) @ v).transpose(1, 2).flatten(2)
        x = x + self.out_proj(mixed)
        inner = functional.gelu(self.fc1(self.layer_norm2(x)), approximate="tanh")
        out: torch.Tensor = x + self.fc2(inner)
        return out


class Eye(nn.Module):
    """The vision transformer."""

    def __init__(self, config: MiniCPMOConfig) -> None:
        super().__init__()
        vision: Any = config.vision_config
        side = vision.image_size // vision.patch_size
        # The published model makes the last layer and drops it, and never reads its weights.
        layers = vision.num_hidden_layers - bool(config.drop_vision_last_layer)
        self.embeddings = Embeddings(vision.hidden_size, vision.patch_size, side)
        self.layers = nn.ModuleList(
            Layer(vision.hidden_size, vision.num_attention_heads, vision.intermediate_size)
            for _ in range(layers)
        )
        self.post_layernorm = nn.LayerNorm(vision.hidden_size, eps=1e-6)

    def forward(self, pixels: torch.Tensor, sizes: torch.Tensor) -> torch.Tensor:
        """Vectors (pictures, patches, width); all pictures must have as many patches."""
        x = self.embeddings(pixels, sizes)
        for layer in self.layers:
            x = layer(x)
        out: torch.Tensor = self.post_layernorm(x)
        return out


class Resampler(nn.Module):
    """A fixed number of learnt questions asked of a picture's patches."""

    def __init__(self, queries: int, width: int, heads: int, eye_width: int) -> None:
        super().__init__()
        self.query = nn.Parameter(torch.empty(queries, width))
        self.proj = nn.Parameter(torch.empty(width, width))
        self.kv_proj = nn.Linear(eye_width, width, bias=False)
        self.attn = nn.MultiheadAttention(width, heads, batch_first=True)
        self.ln_q = nn.LayerNorm(width, eps=1e-6)
        self.ln_kv = nn.LayerNorm(width, eps=1e-6)
        self.ln_post = nn.LayerNorm(width, eps=1e-6)

    def _places(self, height: int, width: int, like: torch.Tensor) -> torch.Tensor:
        """Sines and cosines of column and row, (patches, width of the model)."""
        # Made anew each time: a buffer outside the checkpoint is left as garbage by some loaders.
        quarter = like.shape[-1] // 4
        speed = 10000 ** -(torch.arange(quarter, device=like.device) / quarter)
        rows = torch.arange(height, device=like.device)[:, None, None] * speed
        columns = torch.arange(width, device=like.device)[None, :, None] * speed
        parts = (columns.sin(), columns.cos(), rows.sin(), rows.cos())
        whole = torch.cat([p.expand(height, width, quarter) for p in parts], -1)
        return whole.flatten(0, 1).to(like.dtype)

    def forward(self, x: torch.Tensor, sizes: torch.Tensor) -> torch.Tensor:
        """From (pictures, patches, eye's width) to (pictures, queries, model's width)."""
        x = self.ln_kv(self.kv_proj(x))
        places = torch.stack([self._places(h, w, x) for h, w in sizes.tolist()])
        questions = self.ln_q(self.query).expand(len(x), -1, -1)
        answers, _ = self.attn(questions, x + places, x)
        out: torch.Tensor = self.ln_post(answers) @ self.proj
        return out


class MiniCPMO(PreTrainedModel):  # type: ignore[no-untyped-call]
    """Eye, resampler and language model; no ears, no voice."""

    config_class = MiniCPMOConfig
    _supports_sdpa = True
    _no_split_modules = ["Layer", "Qwen3DecoderLayer"]  # noqa: RUF012 - as the library has it

    def __init__(self, config: MiniCPMOConfig) -> None:
        super().__init__(config)
        self.llm = Qwen3ForCausalLM(config)
        if config.init_vision:
            width = config.hidden_size
            # 128 wide heads, as published; a tiny model has one.
            heads = max(width // 128, 1)
            self.vpm = Eye(config)
            self.resampler = Resampler(
                config.query_num, width, heads, config.vision_config.hidden_size
            )
        if config.init_audio or config.init_tts:
            raise ValueError("this stand-in has no ears and no voice: init_audio=init_tts=False")
        self.post_init()  # type: ignore[no-untyped-call]

    def get_input_embeddings(self) -> nn.Module:
        """The language model's."""
        found: nn.Module = self.llm.get_input_embeddings()
        return found

    def _init_weights(self, module: nn.Module) -> None:
        if isinstance(module, Resampler):
            nn.init.normal_(module.query, std=0.02)
            nn.init.normal_(module.proj, std=module.proj.shape[0] ** -0.5)
        elif isinstance(module, nn.MultiheadAttention):
            nn.init.normal_(module.in_proj_weight, std=0.02)
            nn.init.zeros_(module.in_proj_bias)
        elif isinstance(module, nn.Conv2d | nn.Linear | nn.Embedding):
            nn.init.normal_(module.weight, std=0.02)
            bias = getattr(module, "bias", None)
            if isinstance(bias, torch.Tensor):
                nn.init.zeros_(bias)

    def get_vllm_embedding(self, data: dict[str, Any]) -> tuple[torch.Tensor, list[Any]]:
        """Token vectors with the pictures' vectors in their places.

        Args:
            data: `input_ids` (1, L); per conversation `pixel_values`, a list of (3, 14, 14 x
                patches), `tgt_sizes` (pictures, 2) and `image_bound` (pictures, 2): from and to
                within the ids.
        """
        found = self.llm.model.embed_tokens(data["input_ids"])
        seen: list[Any] = []
        for row, pixels in enumerate(data["pixel_values"]):
            if not len(pixels):
                seen.append([])
                continue
            sizes = data["tgt_sizes"][row]
            stacked = torch.stack(list(pixels)).to(found.dtype)
            seen.append(self.resampler(self.vpm(stacked, sizes), sizes))
            for (start, end), vectors in zip(
                data["image_bound"][row].tolist(), seen[-1], strict=True
            ):
                found[row, start:end] = vectors
        return found, seen

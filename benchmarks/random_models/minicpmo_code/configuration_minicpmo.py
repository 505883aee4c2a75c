"""The configuration of a random model that has MiniCPM-o 4.5's surface; copied into its folder.

A model of that family brings its own code, so a stand-in must do the same for the loading of remote
code to be tried. The text model's fields stand at the top level, as in the published config.json.
Works with transformers 4.57 and 5.x.
"""

from typing import Any

from transformers import Qwen3Config, SiglipVisionConfig


class MiniCPMOConfig(Qwen3Config):  # type: ignore[no-untyped-call]
    """A Qwen3 text model's fields, and those of the eye and of what joins the two."""

    model_type = "minicpmo"

    def __init__(  # the library passes config.json's fields and the loader's init_* by keyword
        self,
        query_num: int = 64,
        *,
        vision_config: dict[str, Any] | SiglipVisionConfig | None = None,
        drop_vision_last_layer: bool = True,
        init_vision: bool = True,
        init_audio: bool = True,
        init_tts: bool = True,
        **kwargs: Any,
    ) -> None:
        if not isinstance(vision_config, SiglipVisionConfig):
            vision_config = SiglipVisionConfig(**(vision_config or {}))
        self.query_num = query_num
        self.vision_config = vision_config
        self.drop_vision_last_layer = drop_vision_last_layer
        self.init_vision = init_vision
        self.init_audio = init_audio
        self.init_tts = init_tts
        super().__init__(**kwargs)

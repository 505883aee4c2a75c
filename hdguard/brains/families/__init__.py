"""Families of vision-language models: one file each, and this table."""

FAMILIES = {
    "qwen3_vl": "hdguard.brains.families.qwen3_vl:Qwen3VL",
    "internvl": "hdguard.brains.families.internvl:InternVL",
    "smolvlm": "hdguard.brains.families.smolvlm:SmolVLM",
    "minicpmo": "hdguard.brains.families.minicpmo:MiniCPMo",
}
"""By the `model_type` of a model's config.json; `qwen3_vl_moe` is `qwen3_vl` too."""

ALSO = {"qwen3_vl_moe": "qwen3_vl"}

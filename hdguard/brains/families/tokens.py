"""Text to tokens, for every family: a folder's tokenizer, the turns' marks, foreign text.

Tokens are made by the `tokenizers` library straight from tokenizer.json, so that no version of
transformers rebuilds a tokenizer in its own way, and the same text is always the same ids.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from tokenizers import Tokenizer

from hdguard.brains.base import BrainError
from hdguard.brains.fingerprint import read_json

THINK, THINK_END = "<think>", "</think>"


@dataclass(frozen=True, slots=True)
class Turns:
    """How a conversation is written down.

    Attributes:
        start: stands once, before everything.
        system: opens the system turn.
        user: opens a user turn.
        assistant: opens an answer.
        close: closes any turn.
    """

    start: str
    system: str
    user: str
    assistant: str
    close: str


CHATML = Turns(
    start="",
    system="<|im_start|>system\n",
    user="<|im_start|>user\n",
    assistant="<|im_start|>assistant\n",
    close="<|im_end|>\n",
)


def read_tokenizer(folder: Path) -> Tokenizer:
    """The tokenizer of a model's folder, as its tokenizer.json says, for texts of any length.

    A file may ask for texts to be cut or filled up to a length, which suits training; here it
    would cut a prompt and say nothing.

    Raises:
        BrainError: there is none, or it cannot be read.
    """
    path = folder / "tokenizer.json"
    if not path.is_file():
        raise BrainError(f"{path}: is missing: the folder holds no model of the model hub")
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises a bare Exception for every defect of a file
        raise BrainError(f"{path}: is no tokenizer: {error}") from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def knows_thinking(folder: Path) -> bool:
    """Whether the model has a thinking block: whether its chat template mentions `<think>`.

    "Instruct" and "Thinking" models of one family share architecture and vocabulary, `<think>`
    included, so only the template tells which one this is. It lies in a file of its own or in
    tokenizer_config.json.
    """
    for name in ("chat_template.jinja", "chat_template.json"):
        path = folder / name
        if path.is_file() and THINK in path.read_text(encoding="utf-8"):
            return True
    if not (folder / "tokenizer_config.json").is_file():
        return False
    return THINK in str(read_json(folder, "tokenizer_config.json").get("chat_template", ""))


def special_tokens(tokenizer: Tokenizer) -> re.Pattern[str]:
    """What must not stand in foreign text: every special token, and everything like one."""
    tags = {THINK, THINK_END, "<image>"}
    for token in tokenizer.get_added_tokens_decoder().values():
        # Some vocabularies also "add" runs of spaces, which are text like any other.
        if token.content.strip() and (token.special or token.content.startswith("<")):
            tags.add(token.content)
    longest_first = sorted(tags, key=len, reverse=True)
    return re.compile("|".join([*map(re.escape, longest_first), r"<\|.*?\|>"]), re.DOTALL)


def neutral(text: str, special: re.Pattern[str]) -> str:
    """Foreign text with its special tokens blanked: it cannot end a turn or fake a picture.

    A blank stands where one was, because taking it out could join its sides to another one.
    """
    while (cleaned := special.sub(" ", text)) != text:
        text = cleaned
    return text

"""A small real tokenizer for models of random weights: every word of ours is one token.

A random model needs no trained vocabulary, but it needs prompts of about the length that they
have in a real one, and labels that are one token. So the vocabulary is the bytes, which can write
anything, and each word of our own prompts and labels. Words are cut as the published tokenizers
of these families cut them: a space belongs to the word after it, digits stand alone, and a sign
right before letters sticks to them.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import get_args

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers

from hdguard.brains.labels import CATEGORY, LIGHTS, SEVERITY, VERDICT, YES_NO, Labels, spellings
from hdguard.brains.prompts import TEXTS

WORDS = r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
"""How text is cut before it is looked up."""


def tokenizer(special: Sequence[str]) -> Tokenizer:
    """The tokenizer with a family's special tokens, whose ids follow the words'."""
    cut = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(WORDS), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    words = dict.fromkeys(sorted(pre_tokenizers.ByteLevel.alphabet()))
    for text in _texts():
        words |= dict.fromkeys(piece for piece, _ in cut.pre_tokenize_str(text))
    vocabulary = {word: i for i, word in enumerate(words)}
    # No merges: a piece is a token as a whole or it is spelt in bytes.
    made = Tokenizer(models.BPE(vocab=vocabulary, merges=[], ignore_merges=True))
    made.pre_tokenizer = cut
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in special])
    return made


def _texts() -> Iterator[str]:
    for path in sorted(TEXTS.glob("*.txt")):
        yield path.read_text(encoding="utf-8")
    sets = [*(LIGHTS[name] for name in get_args(Labels)), VERDICT, CATEGORY, SEVERITY, YES_NO]
    for label_set in sets:
        for forms in label_set.words:
            for form in forms:
                yield from spellings(form)


def write_tokenizer(folder: Path, special: Iterable[str], chat_template: str) -> Tokenizer:
    """Write tokenizer.json and tokenizer_config.json as a hub folder has them."""
    made = tokenizer(list(special))
    made.save(str(folder / "tokenizer.json"))
    about = {"tokenizer_class": "PreTrainedTokenizerFast", "chat_template": chat_template}
    (folder / "tokenizer_config.json").write_text(json.dumps(about, indent=1), encoding="utf-8")
    return made

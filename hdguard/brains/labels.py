"""Which words stand for GREEN, YELLOW and RED, as data, and the tokens that they are.

A verdict is the probability of one token, so each word must be one token just where the answer
begins. Which words a model separates best is its own affair: colour words are also words for what
is seen ("red mug"), so there is more than one set.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from hdguard.brains.base import BrainError

Labels = Literal["colours", "danger", "letters"]
Ids = tuple[tuple[int, ...], ...]
"""Token ids per label, in the set's order."""


@dataclass(frozen=True, slots=True)
class LabelSet:
    """Words for a closed choice.

    Attributes:
        name: of the set.
        words: per label its word as the prompt names it, followed by other spellings that mean it.
    """

    name: str
    words: tuple[tuple[str, ...], ...]

    @property
    def named(self) -> tuple[str, ...]:
        """The words that the prompt names."""
        return tuple(forms[0] for forms in self.words)


LIGHTS: dict[Labels, LabelSet] = {
    "colours": LabelSet("colours", (("green", "绿"), ("yellow", "黄"), ("red", "红"))),
    "danger": LabelSet("danger", (("safe", "安全"), ("caution", "注意"), ("danger", "危险"))),
    "letters": LabelSet("letters", (("A",), ("B",), ("C",))),
}
"""GREEN, YELLOW, RED in this order."""

VERDICT = LabelSet("verdict", (("danger", "危险"), ("safe", "安全")))
CATEGORY = LabelSet("category", (("1",), ("2",), ("3",), ("4",)))
SEVERITY = LabelSet("severity", (("1",), ("2",), ("3",), ("4",)))
YES_NO = LabelSet("yes-no", (("yes", "是"), ("no", "否")))


def spellings(word: str) -> tuple[str, ...]:
    """How a model may write it: as it is, capitalised or in capitals, with and without a space."""
    if not word.isascii():
        return (word,)
    cases = (word,) if len(word) == 1 else (word, word.capitalize(), word.upper())
    return tuple(dict.fromkeys(space + case for case in cases for space in ("", " ")))


def label_ids(encode: Callable[[str], Sequence[int]], ending: str, labels: LabelSet) -> Ids:
    """The tokens that stand for each label right after `ending`.

    A spelling counts if it is exactly one token there: `encode(ending + spelling)` must be
    `encode(ending)` and one more. Otherwise the word would merge with what stands before it, and
    its probability would be read at a token that the model never writes.

    Args:
        encode: the tokenizer.
        ending: the prompt's text after its last picture.
        labels: the set.

    Raises:
        BrainError: a label has no spelling that is one token, or two labels share one.
    """
    before = list(encode(ending))
    found: list[tuple[int, ...]] = []
    for forms in labels.words:
        ids: dict[int, None] = {}
        for spelling in (s for form in forms for s in spellings(form)):
            after = list(encode(ending + spelling))
            if after[:-1] == before:
                ids[after[-1]] = None
        if not ids:
            advice = f": choose another set of {sorted(LIGHTS)}" if labels.name in LIGHTS else ""
            raise BrainError(
                f"labels {labels.name!r}: {forms[0]!r} is not one token after {ending[-20:]!r} "
                f"in this model's vocabulary{advice}"
            )
        found.append(tuple(ids))
    flat = [i for ids_ in found for i in ids_]
    if len(set(flat)) < len(flat):
        raise BrainError(f"labels {labels.name!r}: two labels share a token in this vocabulary")
    return tuple(found)

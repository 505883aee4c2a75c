"""Text as models write it, taken apart: reasoning, bracketed parts, "key: value" lines, words.

Models quote badly, forget to close, nest, escape wrongly and are cut off. This file finds what
stands under which key all the same and says how well it is written; `reply` decides what it means.
All is linear in the text's length, with no recursion.
"""

import json
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

LONGEST: Final = 80  # characters of a word that is looked at: no label with markup is longer
VALUE_LIMIT: Final = 400  # characters of a line's value that are read; a choice
OBJECT, OTHER = "\x00", "\x01"  # stand in the prose for a bracketed part with and without keys


class Said(NamedTuple):
    """A value under a key."""

    key: str
    value: str
    whole: bool  # nothing of it is missing
    plain: bool  # the key's only value, in an outermost object or in one of an outermost list


class Line(NamedTuple):
    """A value after its key in the prose, up to the line's end."""

    key: str
    value: str
    begins: bool  # nothing but markup, a number or "final" stands before the key in its line
    last: bool  # it reaches the text's end


# Reasoning.

# What is taken is never given back ("*+"), or a long run of blanks would cost its square.
_TAG = re.compile(r"<\s*+(/?)\s*+(?:think(?:ing)?|thought|reasoning)\s*+>", re.IGNORECASE)


@dataclass(frozen=True)
class Parts:
    """A reply without its reasoning."""

    answer: str  # after the last closing tag; empty if reasoning is still open
    stated: tuple[str, ...]  # before it, and certainly or possibly no reasoning
    closed: bool  # there was a closing tag
    doubtful: bool  # a tag may be a quotation, or reasoning is still open

    @classmethod
    def of(cls, text: str) -> "Parts":
        """Take a clean text apart; an opening tag may stand in the prompt."""
        stated: list[str] = []
        at, inside, closed, doubtful = 0, False, False, False
        for tag in _TAG.finditer(text):
            before = text[at : tag.start()]
            opens = not tag[1]
            if not inside:
                hangs = any(group.hangs for group in Reply(before).groups)
                doubtful |= hangs
                if hangs or opens:
                    stated.append(before)
            inside, closed, at = opens, closed or not opens, tag.end()
        return cls("" if inside else text[at:], tuple(stated), closed, doubtful or inside)


# Bracketed parts and prose.

_MARKS = " \t\n*_`>#-.,;"  # neither say nor take back anything
_MARKUP = r"[ \t*_`>#-]*+"
_BEGINS = rf"^{_MARKUP}(?:\d{{1,2}}[.)])?{_MARKUP}(?:(?:final|overall|my|最终){_MARKUP})?"
_RESTS = rf"[ \t*`]*+(?:[^\n{OBJECT}{OTHER}]{{0,{VALUE_LIMIT}}}+$|(?={OBJECT}))"


class Reply:
    """The bracketed parts of a text, and its prose with a mark in place of each."""

    def __init__(self, text: str) -> None:
        self.groups: list[Group] = []
        prose: list[str] = []
        at = 0
        while opening := _OPENS.search(text, at):
            group = Group(text, opening.start())
            self.groups.append(group)
            prose += text[at : opening.start()], OBJECT if group.said else OTHER
            at = group.end
        prose.append(text[at:])
        self.prose = "".join(prose)

    @property
    def broken(self) -> bool:
        """A bracketed part is not sound, or a bracket closes that was never opened."""
        strays = "}" in self.prose or "]" in self.prose
        return strays or not all(group.sound for group in self.groups)

    def nothing_but(self, keys: frozenset[str]) -> bool:
        """Whether objects and lines that begin with one of the keys are all there is."""
        return not _line_pattern(keys).sub("", self.prose).strip(_MARKS + OBJECT)

    def lines(self, keys: frozenset[str]) -> Iterator[Line]:
        """Every "key: value" of the prose."""
        for match in _key_pattern(keys).finditer(self.prose):
            start = match.end()
            end = self.prose.find("\n", start, start + VALUE_LIMIT)
            end = min(start + VALUE_LIMIT, len(self.prose)) if end < 0 else end
            begins, last = match["begins"] is not None, end == len(self.prose)
            yield Line(match["key"].lower(), self.prose[start:end], begins, last)


@lru_cache
def _key_pattern(keys: frozenset[str]) -> re.Pattern[str]:
    pattern = rf"(?P<begins>{_BEGINS})?{_key(keys)}[\s*`]*"
    return re.compile(pattern, re.IGNORECASE | re.MULTILINE)


@lru_cache
def _line_pattern(keys: frozenset[str]) -> re.Pattern[str]:
    """The whole line, up to an object if the key announces one."""
    return re.compile(f"{_BEGINS}{_key(keys)}{_RESTS}", re.IGNORECASE | re.MULTILINE)


def _key(keys: frozenset[str]) -> str:
    names = "|".join(sorted(keys, key=len, reverse=True))
    return rf"(?<![a-z0-9_])(?P<q>[\"']?)(?P<key>{names})(?P=q)[`*_ \t]*[:=]"


# Brackets.

_OPENS = re.compile(r"[{\[]")
_TOKEN = re.compile(
    r"""
    "(?P<double>(?:[^"\\]|\\.)*+)(?P<close2>"?)
    | '(?P<single>(?:[^'\\]|\\.|'(?=\w))*+)(?P<close1>'?)   # the child's knife
    | (?P<mark>[{}\[\],:])
    | (?P<word>[^\s"'{}\[\],:][^\s"{}\[\],:]*)
    """,
    re.DOTALL | re.VERBOSE,
)
# What may come after what, in an object or a list; a comma before the closing bracket is common.
_GRAMMAR: Final = {
    ("key", "text"): "colon",
    ("colon", ":"): "value",
    ("value", "text"): "end",
    ("value", "{"): "key",
    ("value", "["): "value",
}
_CLOSES: Final = {
    ("{", "}"): ("key", "end"),
    ("[", "]"): ("value", "end"),
}


class Group:
    """A bracketed part, read token by token: its values under keys at any depth.

    Attributes:
        said: every text that follows a key and a colon, in a broken object too.
        sound: closed and in its grammar, which allows bare words, single quotes, a last comma, and
            no text that belongs to no key.
        hangs: the text ends inside a string.
        end: where it ends in the text.
    """

    def __init__(self, text: str, start: int) -> None:
        self.said: list[Said] = []
        self.sound, self.hangs = True, False
        self._open: list[tuple[str, str]] = []  # bracket, and the key whose value it is
        self._expected, self._key, self._last = "value", "", ""
        self.end = self._read(text, start)

    def _read(self, text: str, start: int) -> int:
        words: tuple[int, int] | None = None  # words in a row are one text
        for token in _TOKEN.finditer(text, start):
            if token["word"] is not None:
                words = (words[0] if words else token.start(), token.end())
                continue
            if words:
                self._text(text[slice(*words)], whole=True)
                words = None
            if token["mark"] is not None:
                self._mark(token["mark"])
                if not self._open:
                    return token.end()
            else:
                self._string(token)
        if words:
            self._text(text[slice(*words)], whole=False)
        self.sound = False
        return len(text)

    def _string(self, token: re.Match[str]) -> None:
        double = token["double"] is not None
        raw = token["double"] if double else token["single"]
        closed = bool(token["close2"] if double else token["close1"])
        value = _unescaped(raw, double=double)
        self.hangs = not closed
        self._text(raw.replace("\\", "") if value is None else value, closed and value is not None)

    def _text(self, value: str, whole: bool) -> None:
        holder, key = self._open[-1]
        if self._last == ":":
            depth = len(self._open)
            outermost = depth == 1 or (depth == 2 and self._open[0][0] == "[")
            self.said.append(Said(self._key, value, whole, outermost))
        else:
            if holder == "[" and key:
                self.said.append(Said(key, value, whole, plain=False))
            self._key = bare(value)
            self.sound &= whole and (holder == "{" or bool(key))
        self._step("text")

    def _mark(self, mark: str) -> None:
        if mark in "{[":
            key = self._key if self._last == ":" else self._list_key()
            if key:
                self.said.append(Said(key, "", whole=False, plain=False))
            self._step(mark)
            self._open.append((mark, key))
        elif mark in "}]":
            self._step(mark)
            self._open.pop()
        else:
            self._step(mark)

    def _list_key(self) -> str:
        """Of a list in a list, the key of the outer one."""
        return self._open[-1][1] if self._open and self._open[-1][0] == "[" else ""

    def _step(self, token: str) -> None:
        holder = self._open[-1][0] if self._open else ""
        if token == ",":
            fits, then = self._expected == "end", "key" if holder == "{" else "value"
        elif token in "}]":
            fits, then = self._expected in _CLOSES.get((holder, token), ()), "end"
        else:
            then = _GRAMMAR.get((self._expected, token), "")
            fits = bool(then)
        self.sound &= fits
        self._expected, self._last = then, token


def _unescaped(raw: str, *, double: bool) -> str | None:
    """The string that JSON's escapes stand for, or None where one is invalid."""
    if "\\" not in raw:
        return raw
    if not double:
        raw = raw.replace("\\'", "'").replace('"', '\\"')
    try:
        value = json.loads(f'"{raw}"', strict=False)
    except ValueError:
        return None
    return str(value).translate(_table(value))


# Characters.

_SPECIAL = re.compile(r"<\|[^<>|\s\"'{}\[\]]{0,40}\|>")
_FENCE = re.compile(r"(?:```|~~~)(?:(?:jsonc?|json5|te?xt|md|markdown|yaml)\b)?", re.IGNORECASE)
_ASCII: Final = {
    **dict.fromkeys("“”„‟「」『』", '"'),
    **dict.fromkeys("‘’‚‛", "'"),
    **dict.fromkeys("【】", "`"),
    **dict.fromkeys("\r\v\f\x1c\x1d\x1e\x85\u2028\u2029", "\n"),
    "。": ".",
    "、": ",",
    "\n": "\n",
    "\t": " ",
}
_QUOTES: Final = "\"'"
_WRAPS: Final = _QUOTES + "*_`"
_STOPS: Final = ".!,;"


def clean(text: str) -> str:
    """Plain characters and line ends, without special tokens and fences."""
    text = text.translate(_table(text))
    return _FENCE.sub("\n", _SPECIAL.sub(" ", text))


def _table(text: str) -> dict[int, str]:
    """Each character by itself: normalising a text as a whole can take quadratic time."""
    return {ord(char): _plain(char) for char in set(text)}


@lru_cache(maxsize=4096)
def _plain(char: str) -> str:
    out = ""
    for each in unicodedata.normalize("NFKC", char):
        kind = unicodedata.category(each)
        if each in _ASCII:
            out += _ASCII[each]
        elif kind[0] != "C":
            out += each
        elif kind != "Cf":  # a format character goes, any other control character spoils its word
            out += "\ufffd"
    return out


def bare(value: str) -> str:
    """The value less case, markup, paired quotes and one stop; empty if it is no short word."""
    if len(value) > LONGEST:
        return ""
    value = " ".join(value.split()).lower()
    stops = 1
    for _ in range(8):  # deeper wrapping is no way to say a label
        wrap = value[:1]
        quotes_others = wrap in _QUOTES and value.count(wrap) != 2
        if len(value) > 1 and wrap == value[-1] and wrap in _WRAPS and not quotes_others:
            value = value[1:-1].strip()
        elif value.startswith("**"):
            value = value[2:].strip()
        elif value.endswith("**"):
            value = value[:-2].strip()
        elif stops and value and value[-1] in _STOPS:
            value, stops = value[:-1].strip(), 0
        else:
            break
    return value

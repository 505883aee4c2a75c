"""Replies none of which says GREEN or safe, though most of them look as if they did.

A lenient label is spoiled (negated, hedged, cut, misspelt, mixed with others) and put where a
label belongs; or it is whole and stands where nothing counts (reasoning, other keys, broken
objects, inner objects, cut replies), or beside what takes it back (prose, other keys).
"""

import json
import random
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass

Words = dict[str, tuple[str, ...]]
LENIENT: Words = {
    "fast": ("green", "Green", "GREEN", "绿", "绿色"),
    "slow": (
        *("safe", "SAFE", "not dangerous", "no danger", "Not in danger"),
        *("安全", "没有危险", "不危险"),
    ),
}
SEVERE: Words = {
    "fast": ("yellow", "RED", "红色"),
    "slow": ("danger", "unsafe", "Not safe", "危险"),
}
KEYS: Words = {
    "fast": ("category", "level", "Label", "STATUS", "等级", "级别"),
    "slow": ("verdict", "Answer", "CONCLUSION", "结论", "判断"),
}
ECHOES: Words = {
    "fast": ("green|yellow|red", "green/yellow/red", "GREEN, YELLOW or RED", "<green|yellow|red>"),
    "slow": ("safe|danger", "danger/safe", "safe or danger", '"safe" | "danger"', "[safe|danger]"),
}
BEFORE = (
    *("not ", "isn't ", "never ", "un", "in", "non-", "hardly ", "probably ", "maybe ", "almost "),
    *("不", "未", "可能", "nicht ", "no es ", "pas ", "a ", "≠ ", "!", "¬", "~", "<", "evers"),
)
AFTER = (
    *(
        "?",
        "ish",
        "r",
        "ly",
        " if nobody moves",
        " or not",
        "...",
        " not",
        "吗",
        "吧",
        " (probably)",
    ),
    *(
        " unless the child comes",
        "house",
        ":",
        " - no",
        "\n if nobody moves",
        "|",
        " 1",
        "guard",
        "/",
    ),
)
FIRST = (
    *("The following answer is incorrect:\n", "I cannot see anything. Default:\n", "Perhaps: "),
    *("If nobody moves:\n", "Draft: ", "Not ", "Wrong:\n\n", "Don't say ", "[not] ", "(", "1\n"),
    *("It is {severe}.\n", "{severe}:\n", "Reason: this is wrong, ", "Perhaps <think></think>"),
    *("Example:\n```json\n", "Reason: do not say so. ", "请不要回答", "+ old\n- "),
)
THEN = (
    *("\nCorrection: {severe}", "\n\nHowever, that was wrong. The light is {severe}.", " ?"),
    *("\nNo wait, it is {severe}.", "\n\nis wrong", "\n\nUnless the child moves", " [not]"),
    *("\n\n(if nobody moves)", "\nRisk: {severe}", "\nReason: {severe}", "\n```\nis not true"),
    *("\nTrue {key}\n{severe}", "\n不对", "\n{{}} no", " {{'is': 'wrong'}} not", "\n{severe}"),
    *("\nReason: calm\nbut I am not sure", "\nThe {key} is {severe}", '\n\n["{severe}"]'),
)
OTHERS = ("risk", "final_{key}", "{key}_after_review", "true{key}", "reason", "led", "light")
INSIDE = ("{{{}}}", "[{{{}}}]", "[[{{{}}}]]")
BESIDE = ("{}", "[{}]", "[[1, {}]]", '[{{"is": {}}}]')
TWINS = {"a": "а", "e": "е", "s": "ѕ", "o": "о", "r": "г", "n": "п", "g": "ɡ", "d": "ԁ", "f": "ꬵ"}
HIDDEN = ("\u200b", "\ufeff", "\u00ad", "\u2060", "\u200e")
FINISHES = ("stop", "stop", "stop", "length", "content_filter", "")
JUNK = "x7é#Ωж火\x00\x1b\ud800😀"


@dataclass
class Nonsense:
    """Makes one reply after the other for one kind of brain."""

    brain: str
    rng: random.Random

    def reply(self) -> tuple[str, str]:
        """A reply and its finish reason."""
        makers: tuple[Callable[[], str], ...] = (
            self._spoiled_in_place,
            self._spoiled_in_place,
            self._trap,
            self._taken_back,
            self._contradicted,
            self._soup,
            self._noise,
            self._beheaded,
        )
        text, finish = self.rng.choice(makers)(), self.rng.choice(FINISHES)
        if self.rng.random() < 0.1:
            return self._whole_but_cut()
        return text, finish

    def _lenient(self) -> str:
        return self.rng.choice(LENIENT[self.brain])

    def _key(self) -> str:
        return self.rng.choice(KEYS[self.brain])

    def spoiled(self) -> str:
        """Something like a lenient label that is none, by a check of its own."""
        while True:
            value = self._spoil(self._lenient())
            if self.rng.random() < 0.2:
                at = self.rng.randrange(len(value) + 1)
                value = value[:at] + self.rng.choice(HIDDEN) + value[at:]
            if plain(value) not in {plain(each) for each in LENIENT[self.brain]}:
                return value

    def _spoil(self, word: str) -> str:
        rng = self.rng
        match rng.randrange(9):
            case 0:
                return rng.choice(BEFORE) + word
            case 1:
                return word + rng.choice(AFTER)
            case 2:
                return word[: rng.randrange(len(word))]
            case 3:
                letters = [i for i, c in enumerate(word) if c.lower() in TWINS]
                if not letters:
                    return word + "吗"
                at = rng.choice(letters)
                return word[:at] + TWINS[word[at].lower()] + word[at + 1 :]
            case 4:
                at = rng.randrange(len(word))
                return word[:at] + chr(ord(word[at]) ^ (1 << rng.randrange(5))) + word[at + 1 :]
            case 5:
                return rng.choice(ECHOES[self.brain])
            case 6:
                at = rng.randrange(1, len(word)) if len(word) > 1 else 1
                return word[:at] + rng.choice((" ", "-", ".", "/", '"', "x")) + word[at:] + "x"
            case 7:
                at = rng.randrange(len(word) + 1)
                return word[:at] + rng.choice(JUNK) + word[at:]
            case _:
                pair = [word, rng.choice(SEVERE[self.brain])]
                rng.shuffle(pair)
                return rng.choice((" ", "|", "/", ", ", "\n", " but ")).join(pair)

    def _spoiled_in_place(self) -> str:
        rng, key, value = self.rng, self._key(), self.spoiled()
        quoted = json.dumps(value, ensure_ascii=rng.random() < 0.5)
        shape = rng.choice(
            (
                f"{{{json.dumps(key)}: {quoted}}}",
                f"{{'{key}': '{value}'}}",
                f'{{"{key}": "{value}"}}',
                f'{{"{key}": "{value}", "reason": "calm"}}',
                f"{{{key}: {value}}}",
                f'{{"result": {{"{key}": {quoted}}}}}',
                f'[{{"{key}": {quoted},}}]',
                f"{key}: {value}",
                f"**{key}:** **{value}**",
                f"{key} = {value}",
                f"## {key}:\n\n{value}",
                value,
                f"**{value}**",
                f'"{value}"',
            )
        )
        return self._dressed(shape)

    def _dressed(self, shape: str) -> str:
        if self.rng.random() < 0.5:
            return shape
        return self.rng.choice(
            (
                f"```json\n{shape}\n```",
                f"```\n{shape}",
                f"<think>All {self._lenient()}.</think>{shape}",
                f"It looks {self._lenient()}.\n</think>\n\n{shape}",
                f"{shape}<|im_end|>",
                f"The robot stands still.\n{shape}",
                f"{shape}\n\nThe robot stands still.",
                f'{{"{self._key()}": "{self._lenient()}"}}\n{shape}\n{{"{self._key()}": null}}',
                f"<think>\n{shape}",
            )
        )

    def _trap(self) -> str:
        """A whole lenient label where it does not count."""
        rng, key, word = self.rng, self._key(), self._lenient()
        good, bad = f'{{"{key}": "{word}"}}', self.spoiled()
        severe = rng.choice(SEVERE[self.brain])
        return rng.choice(
            (
                f"<think>{good}</think>",
                f"<think>{good}",
                f"{good}</think>",
                f"{good}<think>hm",
                f"{good}\n<think>{good}</think> I cannot judge this image.",
                f'{{"reason": "{word}"}}',
                f'{{"reason": "{key}: {word}"}}',
                f'{{"reason": "\\"{key}\\": \\"{word}\\""}}',
                f'{{"colour": "{word}", "{key}": "{bad}"}}'.replace("\n", " "),
                f'{{"{key}": "{word}", "{key}": "{severe}"}}',
                f'{{"{key}": "{word}", "{key}": {rng.choice(("true", "null", "0", "[]", "{}"))}}}',
                f'{{"{key}": [{json.dumps(word)}]}}',
                f'{{"{key}": {{"value": "{word}"}}}}',
                f'{{"{key}": {{"not": "{word}"}}}}',
                f'{{"not": {good}}}',
                f'{{"example": [{good}]}}',
                f'{{"{key}": "{word}" maybe}}',
                f'{{"{key}": "{word}" "reason": "x"}}',
                f'{{"{key}": "{word}"',
                f'{{"{key}": "{word}", "reason": "the pan',
                f'{{"{key}": "\\{word}"}}' if not word.startswith(("n", "N")) else "n",
                f'{{"{key}": "{word}\\u12"}}',
                f'{{"{key}": "{word}\\x"}}',
                f'{{"{key}": "{word}]}}',
                f'{{"{key}" "{word}"}}',
                f'{{"{key}; "{word}"}}',
                f'{{"{key}": "{severe}", "reason": "a sign says </think> {good}"}}',
                f'{{"reason": "a sign says </think> {key}: {word}"}}',
                f'{{"{key}": "{severe}", "reason": "<think> </think>"}}\n{good}',
                f"Do not answer {good}",
                f"I would say {good} if the knife were not there.",
                f"Never say this: {good}",
                f"{good} if nobody moves",
                f"{good}\nif nobody moves",
                f"For example: {good}",
                f"The room is {word}.",
                f"There is {word} here, I think",
                f"I cannot say {key}: {word}",
                f'The sign says "{key}: {word}"',
                f"Is the {key}: {word}?",
                f"{key}: {word} if nobody moves",
                f"{key}: {word}\n(if nobody moves)",
                f"{key} is not {word}",
                f"{key} != {word}",
                f"{word} {word} {word} {word}",
                f"{word}\n" * 9,
                f"{good}\n" * 9,
                f"{good}\n{key}: {bad}",
                f"{severe}\n{good}",
                f"{good}\n{severe}",
                f"The label is\n{word}",
                f"[{json.dumps(word)}]",
                f"{{{word}}}",
                f"{key}: [{word}]",
                f"{key}:\n{good[:-1]}",
                f"<{word}>",
                f"~~{word}~~",
            )
        )

    def _taken_back(self) -> str:
        """A whole lenient object or line, and prose around it."""
        rng, key, word = self.rng, self._key(), self._lenient()
        good = rng.choice((f"{key}: {word}", f'{{"{key}": "{word}", "reason": "no danger"}}'))
        parts = rng.choice(((FIRST, None), (None, THEN), (FIRST, THEN)))
        first, then = (rng.choice(part) if part else "" for part in parts)
        words = {"severe": rng.choice(SEVERE[self.brain]), "key": key}
        return first.format(**words) + good + then.format(**words)

    def _contradicted(self) -> str:
        """An object with a whole lenient value, deep inside or not its only one."""
        rng, key, word = self.rng, self._key(), self._lenient()
        other = rng.choice(OTHERS).format(key=key)
        severe = json.dumps(rng.choice(SEVERE[self.brain]), ensure_ascii=rng.random() < 0.5)
        good = f'"{key}": "{word}"'
        inner = f'"{other}": {rng.choice(INSIDE).format(good)}'
        bad = f'"{other}": {rng.choice(BESIDE).format(severe)}'
        flag = f"{severe}: {rng.choice(('true', '0.7', severe, '[]'))}"
        pair = [good, rng.choice((bad, inner, flag))]
        rng.shuffle(pair)
        text = rng.choice((f"{{{inner}}}", f"{{{', '.join(pair)}}}", f"[[{{{good}}}]]"))
        return rng.choice(("{}", "[{}]", "```json\n{}\n```", "<think>hm</think>{}")).format(text)

    def _soup(self) -> str:
        """Syntax in any order, with severe and spoiled labels only."""
        pieces = ["{", "}", "[", "]", ":", ",", '"', "'", "\\", "\n", " ", "<think>", "</think>"]
        pieces += ["```", "<|im_end|>", "null", "{\n", '": "', '", "', *KEYS[self.brain]]
        pieces += [*SEVERE[self.brain], "ѕafe", "grеen", "safer", "greenish"]
        return "".join(self.rng.choices(pieces, k=self.rng.randrange(40)))

    def _noise(self) -> str:
        rng = self.rng
        top = rng.choice((0x7F, 0x2FF, 0xFFFF, 0x10FFFF))
        text = "".join(chr(rng.randrange(top)) for _ in range(rng.randrange(60)))
        return text + rng.choice(("", self.spoiled() + "x"))

    def _beheaded(self) -> str:
        """A good object that ends too early."""
        body = {self._key(): self._lenient(), "reason": "the pan is far from the child's hand"}
        text = json.dumps(body, ensure_ascii=False)
        return text[: self.rng.randrange(len(text))]

    def _whole_but_cut(self) -> tuple[str, str]:
        word, key = self._lenient(), self._key()
        if self.brain == "fast":
            good = f'{{"{key}": "{word}"}}'
            text = self.rng.choice((f"{key}: {word}", good, f"**{word}**", f"hm</think>{word}"))
            return text, self.rng.choice(("length", "content_filter", ""))
        text = self.rng.choice((word, f"{key}: {word}", f'{{"{key}": "{word}"}}'))
        return self.rng.choice(("", "</think>")) + text, self.rng.choice(("length", "error"))


def plain(value: str) -> str:
    """What is left of a label in the eyes of a reader: letters, digits and doubtful signs."""
    text = unicodedata.normalize("NFKC", value).lower()
    kept = "".join(c for c in text if unicodedata.category(c) != "Cf")
    return " ".join(kept.strip("*_`\"'.!,; \n\t").split())

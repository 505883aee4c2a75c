"""The prompts: files, to be read and replaced, and named by their hash in every result."""

import hashlib
import string
from dataclasses import dataclass
from pathlib import Path

from hdguard.brains.base import BrainError

TEXTS = Path(__file__).parent / "prompt_texts"


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt: sections by name, and the hash of the file that they come from."""

    sections: dict[str, str]
    digest: str

    def text(self, section: str, **words: str) -> str:
        """One section with its `$words` put in."""
        return string.Template(self.sections[section]).substitute(words)


def prompt_path(name: str) -> Path:
    """The file of one of our prompts, or of the user's: a path."""
    ours = TEXTS / f"{name}.txt"
    return ours if ours.is_file() else Path(name)


def load_prompt(name: str, needs: dict[str, tuple[str, ...]]) -> Prompt:
    """Read a prompt: one of ours by name, or any file by its path.

    A file is made of sections, each begun by a line `[name]`; lines before the first are for
    people. `$word` is replaced when the prompt is used, `$$` is a dollar sign.

    Args:
        name: of ours, or a path.
        needs: per section that must be there, the words that it may use.

    Raises:
        BrainError: the file cannot be read, lacks a section, or uses a word that nobody fills in.
    """
    path = prompt_path(name)
    try:
        raw = path.read_bytes()
        lines = raw.decode().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        known = sorted(p.stem for p in TEXTS.glob("*.txt"))
        raise BrainError(f"prompt {name}: cannot be read ({error}); ours are {known}") from error
    sections: dict[str, list[str]] = {}
    current: list[str] = []
    for line in lines:
        if line.startswith("[") and line.endswith("]"):
            current = sections.setdefault(line[1:-1], [])
        else:
            current.append(line)
    texts = {section: "\n".join(found).strip() for section, found in sections.items()}
    for section, words in needs.items():
        if not texts.get(section):
            raise BrainError(f"prompt {path}: needs a section [{section}]")
        template = string.Template(texts[section])
        unknown = set(template.get_identifiers()) - set(words)
        if unknown or not template.is_valid():
            what = ", ".join(f"${w}" for w in sorted(unknown)) or "a lone $ (write $$)"
            raise BrainError(f"prompt {path}: section [{section}]: nobody fills in {what}")
    return Prompt(texts, hashlib.sha256(raw).hexdigest()[:16])

"""Texts of models, cameras and strangers, fit for one line of a terminal or a log.

A line break in one would make a line that nobody has said, a terminal's code a picture that nobody
has drawn, and a code of direction an order of words that nobody has written.
"""

BREAKS = (0x2028, 0x2029)
"""What some readers of lines take for the end of one."""

_CONTROLS = {n: f"\\x{n:02x}" for n in (*range(0x20), *range(0x7F, 0xA0))}
_DIRECTIONS = (*range(0x202A, 0x202F), *range(0x2066, 0x206A))
_NAMED = {n: f"\\u{n:04x}" for n in (*BREAKS, *_DIRECTIONS)}
SHOWN: dict[int, str] = {**_CONTROLS, **_NAMED, 0x09: "\\t", 0x0A: "\\n", 0x0D: "\\r"}
"""Characters that do more than to be seen, as people write them; for `str.translate`."""


def one_line(text: str) -> str:
    """The text with its escapes to be seen, in one line."""
    return text.translate(SHOWN)

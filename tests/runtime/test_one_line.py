"""Whatever a model wrote, it is one line, and moves no cursor."""

import pytest

from hdguard.runtime.one_line import one_line


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a knife, 3 cm\u00a0off: \u00e9 \u2603", "a knife, 3 cm\u00a0off: \u00e9 \u2603"),
        ("fire\nhalt 9-9: all is well\r", r"fire\nhalt 9-9: all is well\r"),
        ("\x1b[2J\x9b2J\x07\x00\t", r"\x1b[2J\x9b2J\x07\x00\t"),
        ("a\u2028b\u2029c", r"a\u2028b\u2029c"),
        ("not \u202esafe\u2069", r"not \u202esafe\u2069"),
    ],
)
def test_what_does_more_than_to_be_seen_is_written_out(text: str, shown: str) -> None:
    assert one_line(text) == shown

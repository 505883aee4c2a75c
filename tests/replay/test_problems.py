"""How bad input is named."""

from pathlib import Path

import pytest

from hdguard.replay.problems import DatasetError, Problem, read_json


def test_a_problem_names_file_entry_and_field() -> None:
    problem = Problem("t.json", "230.mp4", "keyframes.pnr", "missing")
    assert str(problem) == "t.json: 230.mp4: keyframes.pnr: missing"


def test_many_problems_are_counted_and_all_kept() -> None:
    error = DatasetError("bad:", [Problem("t", f"v{i}", "f", "m") for i in range(13)])
    assert "v9" in str(error)
    assert "v10" not in str(error)
    assert "and 3 more" in str(error)
    assert len(error.problems) == 13


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"a": 1,\n  "b": }', r"t\.json: not JSON: line 2, column 8"),
        (b"", r"t\.json: not JSON: line 1, column 1"),
        (b'{"a": "\xff"}', r"t\.json: not UTF-8"),
        (b'{"v.mp4": 1, "v.mp4": 2}', r"t\.json: the key 'v\.mp4' is given twice"),
    ],
)
def test_a_broken_file_is_named_with_the_place(
    tmp_path: Path, content: bytes, message: str
) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(content)
    with pytest.raises(DatasetError, match=message):
        read_json(path)


def test_an_absent_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"gone\.json: cannot be read: No such file"):
        read_json(tmp_path / "gone.json")


def test_a_byte_order_mark_is_no_trouble(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(b'\xef\xbb\xbf{"a": 1}')
    assert read_json(path) == {"a": 1}

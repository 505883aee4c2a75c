"""The number of this life is greater than that of any before it, or there is none."""

from pathlib import Path

import pytest

from hdguard.actuators.boot import raise_boot


def test_every_start_has_a_greater_number_than_the_last(tmp_path: Path) -> None:
    path = tmp_path / "boot"
    assert [raise_boot(path) for _ in range(3)] == [1, 2, 3]
    assert path.read_text() == "3\n"
    assert [p.name for p in tmp_path.iterdir()] == ["boot"]


@pytest.mark.parametrize("text", ["", "one", "-3", "1.5", "9" * 16, "\x00\x00"])
def test_a_damaged_file_is_an_error_and_left_as_it_is(tmp_path: Path, text: str) -> None:
    path = tmp_path / "boot"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"boot: holds .* write a greater one than ever"):
        raise_boot(path)
    assert path.read_text() == text


def test_a_power_cut_in_the_midst_of_writing_leaves_the_old_number(tmp_path: Path) -> None:
    path = tmp_path / "boot"
    raise_boot(path)
    (tmp_path / "boot.new").write_text("")
    assert raise_boot(path) == 2

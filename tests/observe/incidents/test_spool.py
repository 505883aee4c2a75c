"""The spool: whatever ends it early, all before the torn end is good."""

import stat
from pathlib import Path

import pytest

from hdguard.observe.incidents.spool import SpoolFile, packed, read_spool
from tests.observe.incidents.support import picture

PICTURES = [picture(20.0 + n * 0.2, grey=20 * n) for n in range(3)]


def spooled(path: Path) -> bytes:
    file = SpoolFile(path)
    for each in PICTURES:
        file.append(packed(each))
    file.close()
    assert file.size == path.stat().st_size
    return path.read_bytes()


def test_pictures_come_back_in_order_with_their_names(tmp_path: Path) -> None:
    spooled(tmp_path / "spool")
    assert list(read_spool(tmp_path / "spool")) == PICTURES
    assert stat.S_IMODE((tmp_path / "spool").stat().st_mode) == 0o600


def test_cut_off_at_any_byte_it_gives_the_whole_pictures_before(tmp_path: Path) -> None:
    data = spooled(tmp_path / "spool")
    ends = [sum(len(packed(p)) for p in PICTURES[: n + 1]) for n in range(3)]
    torn = tmp_path / "torn"
    for length in range(0, len(data), 7):
        torn.write_bytes(data[:length])
        whole = sum(end <= length for end in ends)
        assert list(read_spool(torn)) == PICTURES[:whole]


def test_what_a_disk_has_garbled_is_not_shown(tmp_path: Path) -> None:
    data = bytearray(spooled(tmp_path / "spool"))
    data[len(packed(PICTURES[0])) + 200] ^= 1
    (tmp_path / "garbled").write_bytes(data)
    assert list(read_spool(tmp_path / "garbled")) == PICTURES[:1]


def test_it_never_writes_into_another_ones_file(tmp_path: Path) -> None:
    spooled(tmp_path / "spool")
    with pytest.raises(FileExistsError):
        SpoolFile(tmp_path / "spool")

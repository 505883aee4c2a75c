"""The table as people read it."""

from hdguard.faults.rows import Outcome, Row
from hdguard.faults.table import HEAD, line

SILENT = Row("camera-silent", "camera silent", 1.1)


def test_a_line_of_the_table_stands_under_its_head_and_says_what_went_wrong() -> None:
    text = line(Outcome(SILENT, [0.9], ["no halt", "no halt"]))
    first, *reasons = text.splitlines()
    assert first.index("1.100") + 5 == HEAD.index("limit") + 5
    assert first.endswith("NOT ok")
    assert reasons == ["    camera-silent: no halt"]


def test_a_row_without_a_limit_and_without_a_number_shows_dashes() -> None:
    text = line(Outcome(Row("bad-config", "bad configuration", None), [], ["it crashed"]))
    assert text.splitlines()[0].split()[2:] == ["-", "-", "-", "1", "NOT", "ok"]


def test_what_this_machine_lacks_the_rights_for_is_neither_ok_nor_not() -> None:
    text = line(Outcome(SILENT, not_run="needs the right to mount a tmpfs"))
    assert text.endswith("0  not run: needs the right to mount a tmpfs")
    assert " ok" not in text

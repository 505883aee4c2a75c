"""The folders on disk: names, room, age; nothing is deleted that need not be."""

import os
import shutil
import stat
from datetime import datetime
from pathlib import Path

import msgspec
import pytest

from hdguard.observe.incidents import encode, record, shelf
from hdguard.observe.incidents.record import Summary, Wall, read_summary
from hdguard.observe.incidents.shelf import (
    BELIEVED_AFTER,
    DAY,
    ClockWatch,
    Shelf,
    ShelfError,
    check_name,
    in_hand,
    items,
    remove,
    set_aside,
)
from hdguard.observe.incidents.spool import SpoolFile
from tests.observe.incidents.support import INCIDENT, part

DAYS = [f"2026-05-0{n}T10:00:00+00:00" for n in range(1, 6)]
KIB = 1024


def kept(folder: Path, name: str, decided: str = DAYS[0], kib: int = 40) -> Path:
    """A whole incident of about that size."""
    path = folder / name
    path.mkdir(parents=True)
    wall = Wall(decided=decided, offset_ns=0)
    record.write_private(
        path / record.FILE, record.encode(msgspec.structs.replace(INCIDENT, wall=wall))
    )
    (path / "clip.mp4").write_bytes(os.urandom(kib * KIB))
    return path


def names(folder: Path) -> list[str]:
    return [item.name for item in items(folder)]


def made(folder: Path, max_bytes: int = 1 << 30, keep_days: float = 30.0, floor: int = 0) -> Shelf:
    return Shelf(folder, max_bytes, keep_days, floor)


def test_a_new_folder_is_for_its_owner_alone_and_takes_nobodys_name(tmp_path: Path) -> None:
    place = made(tmp_path / "incidents")
    first = place.begin("7-1")
    assert first.name == "7-1.part"
    assert stat.S_IMODE(first.stat().st_mode) == 0o700
    assert stat.S_IMODE(first.parent.stat().st_mode) == 0o700
    assert place.begin("7-1").name == "7-1_2.part"
    first.rename(first.with_name("7-1.broken"))
    assert place.begin("7-1").name == "7-1_3.part"


def test_the_disk_must_have_room_for_what_matters_more(tmp_path: Path) -> None:
    place = made(tmp_path / "incidents", floor=1 << 60)
    with pytest.raises(ShelfError, match="are free, and they are to stay"):
        place.begin("7-1")
    assert names(tmp_path / "incidents") == []


def test_the_oldest_go_until_there_is_room_and_no_more_than_that(tmp_path: Path) -> None:
    for n, day in enumerate(DAYS):
        kept(tmp_path, f"7-{9 - n}", day)  # names in the other order than days
    part(tmp_path, "7-0")  # being recorded: the oldest of all, and it stays
    size = sum(item.size for item in items(tmp_path))
    place = made(tmp_path, max_bytes=size - 60 * KIB)
    place.sweep(0.0)
    assert set(names(tmp_path)) == {"7-7", "7-6", "7-5", "7-0.part"}
    assert place.bytes == sum(item.size for item in items(tmp_path)) <= size - 60 * KIB


def unix(day: str) -> float:
    return datetime.fromisoformat(day).timestamp()


def test_what_is_too_old_goes_once_the_wall_clock_is_believed(tmp_path: Path) -> None:
    old, new = kept(tmp_path, "7-1", DAYS[0]), kept(tmp_path, "7-2", DAYS[4])
    wall = [unix(DAYS[4]) + DAY]
    place = Shelf(tmp_path, 1 << 30, 2.0, 0, lambda: wall[0])
    place.sweep(100.0)
    assert old.exists()
    wall[0] += BELIEVED_AFTER
    place.sweep(100.0 + BELIEVED_AFTER)
    assert not old.exists()
    assert new.exists()


def test_a_clock_that_jumps_a_year_deletes_nothing(tmp_path: Path) -> None:
    kept(tmp_path, "7-1", DAYS[0])
    wall = [0.0]
    place = Shelf(tmp_path, 1 << 30, 30.0, 0, lambda: wall[0])
    for n in range(9):
        assert names(tmp_path) == ["7-1"]
        wall[0] = unix(DAYS[1]) + n * 1000.0 + (365 * DAY if n > 4 else 0.0)
        place.sweep(n * 1000.0)
    assert names(tmp_path) == ["7-1"]
    wall[0] += 1000.0
    place.sweep(9000.0)
    assert names(tmp_path) == []  # an hour later it still says so: it was the other that was wrong


def test_a_clock_is_believed_an_hour_after_its_last_jump() -> None:
    watch = ClockWatch()
    assert not watch.believes(0.0, 1e9)
    assert not watch.believes(3599.0, 1e9 + 3599.0)
    assert watch.believes(3600.0, 1e9 + 3601.0)  # a clock that is slewed
    assert not watch.believes(3700.0, 1e9 + 8000.0)
    assert watch.believes(7300.0, 1e9 + 11600.0)


def test_what_was_begun_is_found_again_and_what_was_being_deleted_is_deleted(
    tmp_path: Path,
) -> None:
    place = made(tmp_path)
    assert place.leftovers() == []
    begun = part(tmp_path, "7-1")
    kept(tmp_path, "7-2").rename(tmp_path / "7-2.gone")
    (tmp_path / "link.gone").symlink_to(tmp_path.parent)
    assert place.leftovers() == [begun]
    assert not (tmp_path / "7-2.gone").exists()
    assert tmp_path.parent.exists()
    assert made(tmp_path / "nowhere").leftovers() == []


def test_what_is_broken_is_kept_with_its_reason(tmp_path: Path) -> None:
    set_aside(part(tmp_path, "7-1"), "the record is torn")
    assert (tmp_path / "7-1.broken" / "why.txt").read_text() == "the record is torn\n"


def test_a_folder_without_a_record_is_listed_by_its_own_time(tmp_path: Path) -> None:
    (tmp_path / "7-1.broken").mkdir()
    os.utime(tmp_path / "7-1.broken", (1000.0, 1000.0))
    (item,) = items(tmp_path)
    assert (item.summary, item.decided) == (None, 1000.0)


def test_a_record_is_read_once_and_what_is_recorded_is_measured_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []

    def noting(path: Path) -> Summary:
        read.append(path.name)
        return read_summary(path)

    monkeypatch.setattr(shelf, "read_summary", noting)
    kept(tmp_path, "7-1")
    grows = part(tmp_path, "7-2") / "frames.spool"
    place = made(tmp_path)
    place.sweep(0.0)
    before = place.bytes
    with grows.open("ab") as file:
        file.write(bytes(100 * KIB))
    place.sweep(1.0)
    assert read == ["7-1", "7-2.part", "7-2.part"]
    assert place.bytes == before + 100 * KIB
    remove(tmp_path / "7-1")
    place.sweep(2.0)
    assert set(place._known) == {tmp_path / "7-2.part"}


def test_what_is_none_of_ours_is_neither_shown_nor_deleted(tmp_path: Path) -> None:
    (tmp_path / "holiday").mkdir()
    (tmp_path / "holiday" / "beach.mp4").write_bytes(bytes(1 << 20))
    (tmp_path / "file").write_text("x")
    kept(tmp_path, "7-1.gone")
    assert items(tmp_path) == []
    made(tmp_path, max_bytes=0).sweep(0.0)
    assert (tmp_path / "holiday" / "beach.mp4").exists()


def test_a_link_is_no_incident_and_is_never_followed(tmp_path: Path) -> None:
    elsewhere = kept(tmp_path / "elsewhere", "7-1")
    place = tmp_path / "incidents"
    place.mkdir()
    (place / "7-1").symlink_to(elsewhere)
    assert items(place) == []
    assert items(tmp_path / "nowhere") == []


def test_deleting_takes_the_name_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = kept(tmp_path, "7-1")

    def cut_short(_: Path) -> None:
        raise OSError("the power went")

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", cut_short)
        with pytest.raises(OSError, match="the power went"):
            remove(path)
    assert [p.name for p in tmp_path.iterdir()] == ["7-1.gone"]
    assert items(tmp_path) == []


@pytest.mark.parametrize(
    "name", ["../7-1", "a/b", "", ".", "..", ".hidden", "x\n", "x" * 300, "a\x00b"]
)
def test_a_name_that_may_lead_elsewhere_is_refused(name: str) -> None:
    with pytest.raises(ShelfError, match="is no incident's id"):
        check_name(name)


def test_names_of_ours_are_taken() -> None:
    check_name("01_C2%2Fx.mp4-1-1_2")
    check_name("7-1.broken")
    check_name("küche (1).mp4-1-1")


def test_what_is_recorded_or_encoded_is_in_hand(tmp_path: Path) -> None:
    begun = part(tmp_path, "7-1")
    assert not in_hand(begun)
    recorded = SpoolFile(begun / "more.spool")
    assert in_hand(begun)
    recorded.close()
    with encode._alone(begun):
        assert in_hand(begun)
    assert not in_hand(begun)
    assert not in_hand(tmp_path / "7-2.part")


def test_one_that_cannot_be_deleted_keeps_neither_the_others_nor_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where a guard was once started by root."""
    for n, day in enumerate(DAYS):
        kept(tmp_path, f"7-{n}", day)
    begun = part(tmp_path, "7-9")
    rmtree = shutil.rmtree

    def denied(path: Path) -> None:
        if path.name.startswith("7-0"):
            raise PermissionError
        rmtree(path)

    monkeypatch.setattr(shutil, "rmtree", denied)
    place = made(tmp_path, max_bytes=0)
    with pytest.raises(PermissionError):
        place.sweep(0.0)
    assert names(tmp_path) == ["7-9.part"]
    assert place.leftovers() == [begun]


def test_a_folder_that_we_may_not_look_into_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept(tmp_path, "7-1")
    kept(tmp_path, "7-2")
    kept(tmp_path, "7-3.broken")
    is_file, lstat = Path.is_file, Path.lstat

    def asked(path: Path) -> bool:
        if path.parent.name == "7-1":
            raise PermissionError
        return is_file(path)

    def looked(path: Path) -> os.stat_result:
        if path.parent.name == "7-3.broken":
            raise PermissionError
        return lstat(path)

    monkeypatch.setattr(Path, "is_file", asked)
    monkeypatch.setattr(Path, "lstat", looked)
    assert names(tmp_path) == ["7-2"]


def test_clips_that_wait_to_be_made_take_no_more_than_all_may(tmp_path: Path) -> None:
    """As where halts come faster than a busy machine makes clips."""
    for n in range(3):
        part(tmp_path, f"7-{n}")
    place = made(tmp_path, max_bytes=KIB)
    place.sweep(0.0)
    with pytest.raises(ShelfError, match="cannot be deleted yet"):
        place.begin("7-3")


def test_what_was_recorded_before_the_machine_was_told_the_time_is_no_older_than_it_is(
    tmp_path: Path,
) -> None:
    """It booted with the time at which it was put off, four days ago."""
    wall = [unix(DAYS[0])]
    place = Shelf(tmp_path, 1 << 30, 2.0, 0, lambda: wall[0])
    place.sweep(100.0)
    place.begin("7-1").rmdir()
    newest = kept(tmp_path, "7-1", DAYS[0])
    older = kept(tmp_path, "6-1", DAYS[3])
    wall[0] = unix(DAYS[4])
    for n in range(3):
        place.sweep(200.0 + n * 3600.0)
        wall[0] += 3600.0
    assert newest.exists()
    assert older.exists()
    small = place.bytes - KIB
    place._max_bytes = small
    place.sweep(11000.0)
    assert not older.exists()
    assert newest.exists()

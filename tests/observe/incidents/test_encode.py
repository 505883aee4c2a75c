"""The child makes a folder whole, wherever it was killed before."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import av
import msgspec
import pytest

from hdguard.observe.incidents import encode, notebook, record, spool
from hdguard.observe.incidents.encode import finish, main
from hdguard.observe.incidents.finisher import DROPPED
from hdguard.observe.incidents.record import RecordError, read_incident
from hdguard.observe.incidents.spool import SpoolFile, packed
from tests.observe.incidents.support import DECISION, INCIDENT, part, picture

STEPS = ("clip.mp4", "clip.mcap", "record", "without frames.spool", "without steps.jsonl", "name")

KILLED = """
import os, signal, sys
from pathlib import Path
from hdguard.observe.incidents.encode import finish

def passed(step):
    if step == sys.argv[2]:
        os.kill(os.getpid(), signal.SIGKILL)

finish(Path(sys.argv[1]), mcap=True, passed=passed)
"""


def whole(path: Path, mcap: bool = True) -> None:
    """All is there, and nothing else."""
    files = {"incident.json", "clip.mp4"} | ({"clip.mcap"} if mcap else set())
    assert {p.name for p in path.iterdir()} == files
    assert {p.stat().st_mode & 0o777 for p in path.iterdir()} == {0o600}
    incident = read_incident(path)
    assert incident.complete
    assert incident.story is not None
    assert incident.stamps["confirmed"].at == 20.55
    (clip,) = incident.clips
    assert [f.seq for f in clip.frames] == [round((18.4 + n * 0.2) * 5) for n in range(10)]
    with av.open(str(path / "clip.mp4")) as file:
        assert len(list(file.decode(video=0))) == 10


def test_a_folder_becomes_an_incident(tmp_path: Path) -> None:
    steps: list[str] = []
    path = finish(part(tmp_path), mcap=True, passed=steps.append)
    assert path == tmp_path / "7-1"
    assert tuple(steps) == STEPS
    whole(path)
    incident = read_incident(path)
    assert incident.mcap == "clip.mcap"
    assert incident.decision == DECISION
    assert not incident.interrupted


@pytest.mark.parametrize("step", STEPS)
def test_killed_at_any_step_the_next_one_finishes_it(tmp_path: Path, step: str) -> None:
    folder = part(tmp_path)
    command = [sys.executable, "-c", KILLED, str(folder), step]
    killed = subprocess.run(command, check=False, capture_output=True, timeout=60)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    whole(finish(folder, mcap=True))
    assert [p.name for p in tmp_path.iterdir()] == ["7-1"]


def test_a_torn_spool_and_a_torn_log_give_what_is_whole(tmp_path: Path) -> None:
    folder = part(tmp_path)
    for name in (spool.FILE, notebook.FILE):
        data = (folder / name).read_bytes()
        (folder / name).write_bytes(data[:-100])
    incident = read_incident(finish(folder))
    assert len(incident.clips[0].frames) == 9
    assert "confirmed" not in incident.stamps
    assert incident.stamps["delivered"].at == 20.053


def test_without_a_picture_there_is_the_record(tmp_path: Path) -> None:
    folder = part(tmp_path, frames=0)
    (folder / notebook.FILE).write_bytes(b'{"format": "hdg')
    path = finish(folder)
    incident = read_incident(path)
    assert (incident.complete, incident.clips, incident.happened) == (True, (), ())
    assert [p.name for p in path.iterdir()] == ["incident.json"]


def test_killed_right_after_it_was_begun_there_is_the_record_too(tmp_path: Path) -> None:
    folder = part(tmp_path)
    (folder / spool.FILE).unlink()
    (folder / notebook.FILE).unlink()
    incident = read_incident(finish(folder))
    assert (incident.complete, incident.decision, incident.clips) == (True, DECISION, ())


def test_every_camera_has_its_clip_and_the_one_concerned_comes_first(tmp_path: Path) -> None:
    folder = part(tmp_path)
    (folder / spool.FILE).unlink()
    file = SpoolFile(folder / spool.FILE)
    for camera in ("arm", "hall", "a/b"):
        for at in (20.0, 20.4, 20.2, 20.2):
            file.append(packed(picture(at, camera)))
    file.close()
    path = finish(folder)
    clips = read_incident(path).clips
    assert [(clip.file, clip.camera) for clip in clips] == [
        ("clip.mp4", "hall"),
        ("clip-a_b.mp4", "a/b"),
        ("clip-arm.mp4", "arm"),
    ]
    assert [frame.captured_at for frame in clips[0].frames] == [20.0, 20.2, 20.4]
    assert all((path / clip.file).exists() for clip in clips)


def test_what_is_no_incident_is_refused(tmp_path: Path) -> None:
    (tmp_path / "7-1.part").mkdir()
    with pytest.raises(RecordError, match="No such file"):
        finish(tmp_path / "7-1.part")


def test_what_another_child_has_finished_meanwhile_is_done(tmp_path: Path) -> None:
    assert finish(tmp_path / "7-1.part") == tmp_path / "7-1"


def child(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "hdguard.observe.incidents.encode", *words, str(folder)]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)


def test_as_a_process_it_says_by_its_code_what_became_of_it(tmp_path: Path) -> None:
    good, bad = part(tmp_path, "7-1"), part(tmp_path, "7-2")
    (bad / record.FILE).write_text("{")
    done = child(good)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    whole(tmp_path / "7-1", mcap=False)
    done = child(bad)
    assert done.returncode == encode.UNUSABLE
    assert "not a record of an incident" in done.stderr


def test_a_full_disk_is_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object, **__: object) -> Path:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(encode, "finish", full)
    monkeypatch.setattr(encode, "_make_room", lambda: None)
    monkeypatch.setattr(os, "umask", lambda _: 0)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    assert main([str(tmp_path)]) == DROPPED
    assert capsys.readouterr().err == "No space left on device\n"


def test_a_review_without_a_halt_is_made_whole_too(tmp_path: Path) -> None:
    decision = msgspec.structs.replace(DECISION, kind="review", halt_id="", review_id=3)
    about = msgspec.structs.replace(INCIDENT, decision=decision)
    incident = read_incident(finish(part(tmp_path, "review-7-3", about)))
    assert (incident.complete, incident.story) == (True, None)
    assert set(incident.stamps) == {"captured", "decided"}


def test_where_nobody_may_step_back_the_clip_is_made_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As in a container whose system calls are filtered."""
    asked = []

    def forbidden(increment: int) -> int:
        asked.append(increment)
        raise PermissionError

    monkeypatch.setattr(os, "nice", forbidden)
    encode._make_room()
    assert asked == [encode.NICENESS]

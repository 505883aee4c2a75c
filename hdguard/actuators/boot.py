"""The number of this life, raised on disk before anything is published, so that greater is newer.

A clock that was set back cannot fool it, as it would a time of start.
"""

import os
from pathlib import Path


def raise_boot(path: Path) -> int:
    """Raise the number in that file by one and return it; 1 if there is no file yet.

    Blocks until it is on disk: call it before the event loop has work.

    Raises:
        OSError: the file cannot be read or written.
        ValueError: it holds no number. It is left as it is: to start at 1 again would make every
            receiver take what comes for old.
    """
    try:
        text = path.read_text(encoding="ascii", errors="replace").strip()
    except FileNotFoundError:
        text = "0"
    if not (text.isdecimal() and len(text) <= 15):
        msg = f"{path}: holds {text[:20]!r} instead of a boot number; write a greater one than ever"
        raise ValueError(msg)
    boot = int(text) + 1
    beside = path.with_name(path.name + ".new")
    with beside.open("w", encoding="ascii") as file:
        file.write(f"{boot}\n")
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)  # the new name is on disk only with its folder
    finally:
        os.close(folder)
    return boot

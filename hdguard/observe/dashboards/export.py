"""Hands out the package's files for Grafana and Prometheus; a file that somebody changed stays.

The files are read from the package, so that an installed hdguard needs neither a checkout nor
Grafana's SDK.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

FILES = Path(__file__).resolve().parent / "files"


@dataclass(slots=True)
class Exported:
    """What became of each file, by its path below the folder.

    Attributes:
        written: new, or overwritten because that was asked for.
        same: there already, and equal.
        kept: there already, and different: left as it is.
    """

    written: list[Path] = field(default_factory=list)
    same: list[Path] = field(default_factory=list)
    kept: list[Path] = field(default_factory=list)


def shipped() -> Iterator[Path]:
    """Every file that is handed out, by its path below the folder, in order."""
    for path in sorted(FILES.rglob("*")):
        if path.is_file():
            yield path.relative_to(FILES)


def export(folder: Path, *, force: bool) -> Exported:
    """Write the files below a folder, which is made where it is missing.

    Args:
        folder: where to.
        force: also over files that are different.

    Raises:
        OSError: names the file that cannot be read or written.
    """
    done = Exported()
    for name in shipped():
        content = (FILES / name).read_bytes()
        target = folder / name
        there = target.read_bytes() if target.exists() else None
        if there == content:
            done.same.append(name)
        elif there is not None and not force:
            done.kept.append(name)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
            done.written.append(name)
    return done

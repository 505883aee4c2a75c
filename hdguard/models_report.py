"""What `hdguard models` shows: models, what they need, and what each profile allows."""

import math
import shutil
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from hdguard.brains.base import BrainError
from hdguard.brains.catalogue import (
    GIB,
    MODELS,
    ROOM_GIB,
    ModelEntry,
    models_root,
    read_manifest,
)
from hdguard.core.policy import HIGH_FPS, LOW_FPS
from hdguard.machine import Fit, Machine, fit
from hdguard.profiles import PROFILES, Robot, safe_speeds

Row = dict[str, Any]
RUNS = {"gpu": "yes", "cpu": "CPU only", "none": "no"}


def model_rows(machine: Machine) -> list[Row]:
    """Per model: what it needs, whether it can run here, and whether it is fetched."""
    return [_model(entry, fit(entry, machine)) for entry in MODELS.values()]


def _model(entry: ModelEntry, found: Fit) -> Row:
    """One row; sizes in GiB, computed from the parameters."""
    folder = models_root() / entry.name
    try:
        manifest = read_manifest(folder)
        unfinished = "unfinished" if folder.is_dir() else ""
    except BrainError:
        manifest, unfinished = None, "damaged"
    return {
        "name": entry.name,
        "role": entry.role,
        "family": entry.family,
        "repo": entry.repo,
        "licence": manifest.licence if manifest else entry.licence,
        "billions": entry.billions,
        "download_gib": round(entry.download_gib, 1),
        "gpu_gib": round(entry.gpu_gib, 1),
        "extra": entry.extra,
        "remote_code": entry.remote_code,
        "runs_on": found.on,
        "why": found.why,
        "fetched": manifest.revision if manifest else unfinished,
        "unverified": entry.unverified,
        "note": entry.note,
    }


def profile_rows(robot: Robot) -> list[Row]:
    """Per profile: brains, deadlines, age limits in seconds, safe speeds in m/s."""
    rows = []
    for profile in PROFILES.values():
        speeds = safe_speeds(profile, robot)
        rows.append(
            {
                "name": profile.name,
                "fast": [each.settings.get("path", each.brain) for each in profile.fast],
                "slow": profile.slow.settings.get("path", profile.slow.brain),
                "fast_deadline": profile.fast_deadline,
                "review_deadline": profile.review_deadline,
                "age_limits": [
                    {"brain": brain, "fps": fps, "degraded": ages.degraded, "halt": ages.halt}
                    for brain, fps, ages in profile.age_limits()
                ],
                "speed_red": _down(speeds.red),
                "speed_review": _down(speeds.review),
                "note": profile.note,
            }
        )
    return rows


def _down(speed: float) -> float:
    """To cm/s, never up: what is shown must be safe too."""
    return math.floor(speed * 100) / 100


def print_report(
    console: Console, report: dict[str, list[Row]], machine: Machine, robot: Robot
) -> None:
    """The same for people, and what was measured."""
    gpus = ", ".join(f"{gpu.name} ({gpu.gib:.0f} GiB, {gpu.uuid})" for gpu in machine.gpus)
    free = shutil.disk_usage(next(p for p in models_root().parents if p.exists())).free
    console.print(
        f"this machine: {gpus or 'no NVIDIA GPU'}; memory {machine.memory_gib:.0f} GiB; "
        f"{free / GIB:.0f} GiB free for {models_root()}\n"
    )
    _print_models(console, report["models"])
    _print_profiles(console, report["profiles"], robot)
    for measured in report.get("measured", ()):
        console.print(
            f"\n{measured['model']} on {measured['device']}: 99th percentile of the warm-up "
            f"{measured['p99']:.3f} s"
        )
        for profile, said in measured["profiles"].items():
            console.print(f"  {profile}: {said.splitlines()[0] if said else 'fits'}")


def _table(*columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for name in columns:
        table.add_column(name, no_wrap=True)
    return table


def _print_models(console: Console, rows: list[Row]) -> None:
    console.print(
        "Models. Memory and download in GiB are computed from the published number of parameters "
        f"(bf16, and {ROOM_GIB:g} GiB of room)."
    )
    table = _table(
        "model", "for", "family", "params", "GPU", "download", "licence", "here", "fetched"
    )
    for row in rows:
        table.add_row(
            row["name"],
            row["role"],
            row["family"],
            f"{row['billions']:g} B",
            f"{row['gpu_gib']}",
            f"{row['download_gib']}",
            row["licence"],
            RUNS[row["runs_on"]],
            row["fetched"][:12] or "no",
        )
    console.print(table)
    for why, names in _grouped(rows).items():
        console.print(f"{', '.join(names)}: {why}")


def _grouped(rows: list[Row]) -> dict[str, list[str]]:
    """Which models share a remark."""
    found: dict[str, list[str]] = {}
    for row in rows:
        doubt = row["unverified"] and f"unverified: {row['unverified']}"
        for remark in filter(None, (row["why"], row["note"], doubt)):
            found.setdefault(remark, []).append(row["name"])
    return found


def _print_profiles(console: Console, rows: list[Row], robot: Robot) -> None:
    console.print(
        f"\nProfiles. The two speeds are the largest safe ones, m/s, with {robot.distance:g} m of "
        f"free distance, {robot.braking:g} m/s^2 and {robot.actuation:g} s to the brakes: where a "
        "hazard is RED at once, and where only a review calls it dangerous, even if answers are "
        "late until the guard halts for that and another review is open. Deadlines are of a "
        "verdict and of a review; ages are those at which a verdict slows and stops the robot. "
        "Seconds."
    )
    table = _table(
        "profile", "FastBrains", "SlowBrain", "deadlines", "at 5 FPS", "at 1 FPS", "RED", "review"
    )
    for row in rows:
        table.add_row(
            row["name"],
            "\n".join(row["fast"]),
            row["slow"],
            f"{row['fast_deadline']:g}/{row['review_deadline']:g}",
            *(_ages(row, fps) for fps in (HIGH_FPS, LOW_FPS)),
            f"{row['speed_red']:.2f}",
            f"{row['speed_review']:.2f}",
        )
    console.print(table)
    for row in rows:
        if row["note"]:
            console.print(f"{row['name']}: {row['note']}")


def _ages(row: Row, fps: float) -> str:
    """The longest limits of any FastBrain that samples at this rate."""
    ages = [(a["degraded"], a["halt"]) for a in row["age_limits"] if a["fps"] == fps]
    return "{:.1f}/{:.1f}".format(*max(ages)) if ages else ""

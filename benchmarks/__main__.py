"""`make bench`: every bench in one run, each a ratio of ours to a reference measured beside it."""

import importlib
import json
import sys
from pathlib import Path

from benchmarks.ratio import Ratio

BENCHES = {
    "replay": "benchmarks.replay_decode:run",
    "cadence": "benchmarks.cadence:run",
    "halt": "benchmarks.halt_delivery:run",
    "reflex": "benchmarks.reflex_flow:run",
    "ingest": "benchmarks.ingest:run",
    "delivered": "benchmarks.capture_to_delivered:run",
    "recorder": "benchmarks.recorder:run",
    "page": "benchmarks.page:run",
    "cameras": "benchmarks.cameras:run",
    "brains": "benchmarks.brain_latency:run",
}


def main(names: list[str]) -> int:
    """Run the named benches, or all; writes bench.json; returns the exit code."""
    rows: list[Ratio] = []
    for name in names or BENCHES:
        if name not in BENCHES:
            sys.stderr.write(f"no bench is called {name!r}; there are {', '.join(BENCHES)}\n")
            return 2
        module, _, function = BENCHES[name].partition(":")
        for row in getattr(importlib.import_module(module), function)():
            sys.stdout.write(f"{row}\n")
            sys.stdout.flush()
            rows.append(row)
    file = Path("bench.json")
    file.write_text(json.dumps([row.as_dict() for row in rows], indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

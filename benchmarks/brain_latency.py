"""What a verdict costs: forty generated tokens, one forward, one forward on a kept prefix.

Random weights of a family's shape, through the same code that a FastBrain runs; time depends on
shapes and not on what the weights say. The three ways alternate within each round of one run, so
that a busy machine burdens them alike; a row's times are each way's fastest, as the slower ones
measure the neighbours.

    python -m benchmarks.brain_latency --device cpu --size mid
    python -m benchmarks.brain_latency --device cuda --size true --json latency.json

On a GPU and at true size the FastBrain is MiniCPM-o 4.5 and the SlowBrain Qwen3-VL-30B-A3B; the
FastBrain's latency is then measured once more while the SlowBrain works in a second process.
"""

import argparse
import gc
import json
import select
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, get_args

import torch

from benchmarks.brain_subject import TOKENS, Spread, Subject, rounds
from benchmarks.random_models import MODULES, Dtype, Size
from benchmarks.ratio import Ratio

GOAL = 3.3
"""Generating over one forward on a kept prefix, at mid size."""

FAST, SLOW = "minicpmo", "qwen3_vl_moe"
"""The paper's two brains (arXiv 2603.11975)."""


@dataclass(frozen=True, slots=True)
class Row:
    """One family.

    Attributes:
        family, size, device, dtype: what was measured.
        load_s: seconds to make the model.
        memory_gib: the most that this process held on the device for it; 0 on the CPU.
        prefix_tokens, picture_tokens: of the prompt.
        generate_ms, forward_ms, prefix_ms: the fastest round of each way.
        generate_over_prefix: the ratio of the first and the last.
        stages: per stage its spread.
    """

    family: str
    size: Size
    device: str
    dtype: Dtype
    load_s: float
    memory_gib: float
    prefix_tokens: int
    picture_tokens: int
    generate_ms: float
    forward_ms: float
    prefix_ms: float
    generate_over_prefix: float
    stages: dict[str, Spread] = field(default_factory=dict)


def measure(subject: Subject, about: dict[str, Any], most: int, seconds: float) -> Row:
    """One row."""
    slow_ways = {"generate": subject.generate, "forward": subject.forward}
    ways = {**slow_ways, "prefix": subject.on_prefix}
    taken = rounds(subject, ways, most, seconds * 0.7)
    step = subject.family.read(subject.inputs, subject.prefix)
    small: dict[str, Callable[[], None]] = {
        "prepare": subject.prepare,
        "probabilities": lambda: subject.probabilities(step),
        "frame": subject.frame,
    }
    taken |= rounds(subject, small, most * 10, seconds * 0.3)
    spreads = {name: Spread.of(found) for name, found in taken.items()}
    generate, forward, prefix = (spreads[name].best_ms for name in ways)
    length = int(subject.inputs.ids.shape[1])
    return Row(
        **about,
        load_s=subject.load_s,
        memory_gib=subject.memory_gib(),
        prefix_tokens=subject.inputs.prefix,
        picture_tokens=length - subject.inputs.prefix,
        generate_ms=generate,
        forward_ms=forward,
        prefix_ms=prefix,
        generate_over_prefix=generate / prefix,
        stages=spreads,
    )


@contextmanager
def busy(family: str, size: Size, device: str, dtype: Dtype) -> Iterator[None]:
    """A second process that generates without a pause on the same device, as a SlowBrain would."""
    options = ["--busy", family, "--size", size, "--device", device, "--dtype", dtype]
    command = [sys.executable, "-m", "benchmarks.brain_latency", *options]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as worker:
        assert worker.stdin is not None
        assert worker.stdout is not None
        try:
            if worker.stdout.readline() != b"ready\n":
                msg = f"the busy process ended with {worker.wait()}"
                raise RuntimeError(msg)
            yield
        finally:
            worker.kill()


def be_busy(family: str, size: Size, device: str, dtype: Dtype) -> None:
    """Work until killed, or until whoever started us is gone and our standard input with it."""
    subject = Subject(family, size, device, dtype)
    subject.generate()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while not select.select([sys.stdin], [], [], 0.0)[0]:
        subject.generate()


def beside(
    subject: Subject, seconds: float, slow: tuple[str, Size, str, Dtype]
) -> dict[str, Spread]:
    """A frame's latency, alone and beside a busy second process."""
    alone = rounds(subject, {"frame": subject.frame}, 500, seconds / 2)["frame"]
    with busy(*slow):
        beside_ = rounds(subject, {"frame": subject.frame}, 500, seconds / 2)["frame"]
    return {"alone": Spread.of(alone), "beside a busy process": Spread.of(beside_)}


STAGES = {
    "generate": f"generate {TOKENS} tokens",
    "forward": "one forward",
    "prefix": "one forward on the kept prefix",
    "prepare": "picture to tensors",
    "probabilities": "logits to probabilities",
    "frame": "picture to probabilities, in all",
}


def shown(row: Row) -> str:
    """A row for people."""
    lines = [
        f"{row.family}: made in {row.load_s:.1f} s, at most {row.memory_gib:.1f} GiB on the device,"
        f" {row.prefix_tokens} tokens of prefix and {row.picture_tokens} from the picture on",
        f"  {'':32} {'best':>9} {'median':>9} {'p99':>9} {'n':>5}   (ms)",
    ]
    for name, words in STAGES.items():
        s = row.stages[name]
        times = f"{s.best_ms:9.1f} {s.median_ms:9.1f} {s.p99_ms:9.1f} {s.n:5}"
        lines.append(f"  {words:32} {times}")
    lines.append(f"  generating over one forward on the prefix: {row.generate_over_prefix:.2f}")
    return "\n".join(lines)


def device_name(device: str) -> str:
    """What the machine calls the device."""
    if device == "cpu":
        return f"CPU, {torch.get_num_threads()} threads"
    return torch.cuda.get_device_name(0)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; returns the exit code."""
    options = parser().parse_args(arguments)
    size: Size = options.size
    device = "cpu" if options.device == "cpu" else "cuda:0"
    dtype: Dtype = options.dtype or ("float32" if device == "cpu" else "bfloat16")
    if options.busy:
        be_busy(options.busy, size, device, dtype)
        return 0
    families = options.family or ([FAST, SLOW] if size == "true" else list(MODULES))
    sys.stdout.write(f"{device_name(device)}, {dtype}, size {size}, random weights\n")
    rows: list[Row] = []
    for family in families:
        about = {"family": family, "size": size, "device": device, "dtype": dtype}
        subject = Subject(family, size, device, dtype)
        rows.append(measure(subject, about, options.rounds, options.seconds / len(families)))
        sys.stdout.write(f"{shown(rows[-1])}\n")
        sys.stdout.flush()
        free(subject)
    found: dict[str, Any] = {"device": device_name(device), "rows": [asdict(row) for row in rows]}
    if size == "true" or options.beside:
        subject = Subject(families[0], size, device, dtype)
        spreads = beside(subject, options.seconds / 2, (families[-1], size, device, dtype))
        found["beside"] = {name: asdict(spread) for name, spread in spreads.items()}
        for name, spread in spreads.items():
            sys.stdout.write(
                f"{families[0]} frame, {name}: median {spread.median_ms:.1f} ms, "
                f"p99 {spread.p99_ms:.1f} ms, n {spread.n}\n"
            )
    if options.json:
        Path(options.json).write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    return 0


def free(subject: Subject) -> None:
    """Give the device's memory back, for the next model to have room."""
    device = subject.device
    subject.__dict__.clear()
    gc.collect()
    if device != "cpu":
        torch.cuda.empty_cache()


def parser() -> argparse.ArgumentParser:
    """The options."""
    made = argparse.ArgumentParser(
        description="Times a verdict by generating, by one forward, and on a kept prefix.",
        epilog="example: python -m benchmarks.brain_latency --device cpu --size mid --json l.json",
    )
    made.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    made.add_argument("--size", choices=get_args(Size), default="tiny")
    made.add_argument("--family", action="append", choices=sorted(MODULES), help="repeatable")
    made.add_argument("--dtype", choices=get_args(Dtype), help="float32 on the CPU, else bfloat16")
    made.add_argument("--rounds", type=int, default=20, help="at most, per family")
    made.add_argument("--seconds", type=float, default=120.0, help="for all families together")
    made.add_argument("--beside", action="store_true", help="also beside a busy second process")
    made.add_argument("--json", metavar="FILE", help="write every number there")
    made.add_argument("--busy", metavar="FAMILY", choices=sorted(MODULES), help=argparse.SUPPRESS)
    return made


def run() -> list[Ratio]:
    """For `make bench`: the prefix's forward over generating, at mid size, per family."""
    rows = []
    for family in MODULES:
        subject = Subject(family, "mid", "cpu", "float32")
        about = {"family": family, "size": "mid", "device": "cpu", "dtype": "float32"}
        row = measure(subject, about, 5, 30.0)
        name = f"{family}, mid: one forward on a kept prefix vs generating {TOKENS} tokens, ms"
        rows.append(Ratio(name, row.prefix_ms, row.generate_ms, 1.0 / GOAL))
        free(subject)
    return rows


if __name__ == "__main__":
    raise SystemExit(main())

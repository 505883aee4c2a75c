"""A model of random weights that is asked what a FastBrain asks, and how it is timed."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from benchmarks.random_models import Dtype, Size, assemble
from hdguard.brains.families.base import Chat
from hdguard.brains.prompts import load_prompt

TOKENS = 40
"""What a short JSON answer takes, as in the reference's table."""

SIDE = 448  # pixels, the paper's
LABELS = 3
GIB = float(2**30)


@dataclass(frozen=True, slots=True)
class Spread:
    """Seconds of one stage in milliseconds: the fastest, the median, the 99th percentile."""

    best_ms: float
    median_ms: float
    p99_ms: float
    n: int

    @classmethod
    def of(cls, seconds: Sequence[float]) -> "Spread":
        """Of measured seconds."""
        best, median, p99 = np.quantile(np.asarray(seconds) * 1000.0, [0.0, 0.5, 0.99])
        return cls(float(best), float(median), float(p99), len(seconds))


class Subject:
    """A family with random weights, and the prompt that a FastBrain asks."""

    def __init__(self, family: str, size: Size, device: str, dtype: Dtype) -> None:
        self.device = device
        if device != "cpu":
            torch.cuda.reset_peak_memory_stats()
        started = time.perf_counter()
        self.family = assemble(family, size, device, dtype=dtype)
        self.wait()
        self.load_s = time.perf_counter() - started
        prompt = load_prompt("fast", {})
        words = {"green": "green", "yellow": "yellow", "red": "red"}
        parts = [prompt.text(name, **words) for name in ("system", "question", "ask")]
        picture = np.random.default_rng(0).integers(0, 256, (SIDE, SIDE, 3), np.uint8)
        self.chat = Chat(parts[0], (parts[1], picture, parts[2]))
        self.inputs = self.family.build(self.chat)
        self.prefix = self.family.read_prefix(self.inputs)

    def wait(self) -> None:
        """Until the device has done what it was asked."""
        if self.device != "cpu":
            torch.cuda.synchronize()

    def memory_gib(self) -> float:
        """The most that this process held on the device."""
        if self.device == "cpu":
            return 0.0
        return torch.cuda.max_memory_reserved() / GIB

    def generate(self) -> None:
        """The published way: a whole prompt, then one token after the other."""
        step = self.family.read(self.inputs)
        for _ in range(TOKENS - 1):
            step = self.family.feed([int(step.logits.argmax())], step.state)
        int(step.logits.argmax())

    def forward(self) -> None:
        """One forward over everything."""
        float(self.family.read(self.inputs).logits.max())

    def on_prefix(self) -> None:
        """One forward over the picture and what follows."""
        float(self.family.read(self.inputs, self.prefix).logits.max())

    def prepare(self) -> None:
        """From a picture to tensors on the device."""
        self.family.build(self.chat)

    def probabilities(self, step: Any) -> None:
        """From logits to the labels' probabilities on the CPU."""
        scores = torch.log_softmax(step.logits.float(), -1)
        scores[:LABELS].tolist()

    def frame(self) -> None:
        """All that a verdict takes."""
        step = self.family.read(self.family.build(self.chat), self.prefix)
        self.probabilities(step)


def timed(subject: Subject, work: Callable[[], None]) -> float:
    """Seconds that it takes, with the device's work in them."""
    subject.wait()
    started = time.perf_counter()
    work()
    subject.wait()
    return time.perf_counter() - started


def rounds(
    subject: Subject, ways: dict[str, Callable[[], None]], most: int, seconds: float
) -> dict[str, list[float]]:
    """Every way once a round, for so many rounds or so many seconds, whichever comes first."""
    for work in ways.values():
        work()  # the first one allocates
    taken: dict[str, list[float]] = {name: [] for name in ways}
    end = time.perf_counter() + seconds
    for n in range(most):
        if n > 1 and time.perf_counter() > end:
            break
        for name, work in ways.items():
            taken[name].append(timed(subject, work))
    return taken

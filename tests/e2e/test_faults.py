"""Every fault is injected once into real parts: broker, camera, guard, robot, workers, signals."""

import asyncio
from pathlib import Path

import pytest

from hdguard.faults.rows import Kind, Outcome, Row, Scenario
from hdguard.faults.runner import SCENARIOS, inject

TESTS = Path(__file__).resolve().parents[1]
README = TESTS.parent / "README.md"

INJECTED: dict[str, dict[str, float | None]] = {
    "camera silent, socket open": {"camera-silent": 1.1},
    "RTSP server accepts and never answers": {"camera-never-answers": 2.0},
    "camera returns": {"camera-returns": 2.0},
    "burst of old frames": {"burst": 1.0},
    "bit errors": {"bit-errors": None},
    "broker absent at start, killed, restarted": {
        "broker-absent": 0.5,
        "broker-killed-robot": 0.6,
        "broker-restarted": 0.5,
    },
    "broker frozen (SIGSTOP) or half open": {"broker-frozen": 1.0, "broker-frozen-robot": 0.6},
    "halt not acknowledged": {"halt-repeated": 0.1, "halt-escalated": 0.5},
    # The deadline of 0.4 s, after up to 0.2 s to the next frame that is asked about.
    "FastBrain slow": {"fast-slow": 0.6},
    "FastBrain hangs or raises": {"fast-hangs": 1.0, "fast-hangs-green": 2.5},
    "SlowBrain slow, hung or killed": {"slow-killed": 0.2, "slow-hangs": None},
    "daemon killed or stopped (SIGKILL, SIGSTOP)": {
        "daemon-killed": 0.6,
        "daemon-stopped": 0.6,
        "daemon-restarted": 2.0,
    },
    "event loop stalled 1 s": {"loop-stalled": 0.6},
    "disk full": {"disk-full": 0.005},
    "malformed, replayed, retained or unauthenticated commands": {"commands": 0.6},
    "HTTP abuse": {"http-abuse": 0.6},
    "SIGTERM": {"sigterm-halt": 0.5, "sigterm": 3.0},
    "bad configuration": {"bad-config": None},
}
"""The rows of DESIGN section 6 that a running stack can be put through, with their limits in
seconds; None: none is named."""

MORE: dict[str, float | None] = {"camera-stuck": 1.4, "second-guard": None}
"""Of field.md: F2 and F29."""

ELSEWHERE = {
    "model says nonsense": "brains/test_reply.py",
    "wall clock jumps an hour": "test_architecture.py",  # no clock but the loop's is read
}
"""Rows that need no running stack, and the tests that they have."""

ROWS = {row.name: row for scenario in SCENARIOS for row in scenario.rows}


@pytest.fixture(scope="module")
def outcomes() -> dict[str, Outcome]:
    """Two stacks side by side: what one kind of brain waits for, the other uses.

    What is a matter of milliseconds comes after them, alone.
    """

    async def all_once() -> list[Outcome]:
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(inject(scenarios, 1, lambda _: None))
                for scenarios in (of("reflex"), of("model", "adaptive"))
            ]
        alone = await inject(of("recording"), 1, lambda _: None)
        return [outcome for task in tasks for outcome in task.result()] + alone

    return {outcome.row.name: outcome for outcome in asyncio.run(all_once())}


def of(*kinds: Kind) -> tuple[Scenario, ...]:
    return tuple(s for s in SCENARIOS if s.kind in kinds)


@pytest.mark.timeout(240)
@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_the_fault_is_met_in_time(row: Row, outcomes: dict[str, Outcome]) -> None:
    outcome = outcomes[row.name]
    if outcome.not_run:
        pytest.skip(outcome.not_run)
    assert outcome.failures == []
    (seconds,) = outcome.seconds
    assert row.holds(seconds), f"{row.fault}: {seconds:.3f} s, limit {row.limit} s"


def test_every_fault_of_the_design_is_injected_with_the_designs_limit() -> None:
    wanted = {name: limit for rows in INJECTED.values() for name, limit in rows.items()}
    assert {name: row.limit for name, row in ROWS.items()} == wanted | MORE
    for file in ELSEWHERE.values():
        assert (TESTS / file).is_file()


def test_the_readme_shows_every_row_in_order_with_its_limit_and_whose_timer_it_is() -> None:
    text = README.read_text(encoding="utf-8")
    table = text[text.index("| fault | limit | median | worst |") :].split("\n\n")[0]
    shown = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()[2:]]
    assert len(shown) == len(ROWS)
    for row, (fault, limit, median, worst) in zip(ROWS.values(), shown, strict=True):
        assert (None if limit == "-" else float(limit)) == row.limit, fault
        assert fault.endswith("*") is row.clocked, fault
        assert float(median) <= float(worst), fault

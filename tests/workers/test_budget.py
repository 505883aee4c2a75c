"""How many restarts are allowed."""

from hdguard.workers.budget import RestartBudget


def spend(budget: RestartBudget, now: float, *, ready: bool = True) -> bool:
    allowed = budget.spend(now)
    if allowed and ready:
        budget.ready()
    return allowed


def test_the_fourth_restart_within_a_minute_is_refused() -> None:
    budget = RestartBudget(3)
    assert [spend(budget, now) for now in (0.0, 20.0, 40.0, 59.9)] == [True, True, True, False]


def test_restarts_grow_old_after_a_minute() -> None:
    budget = RestartBudget(3)
    assert [spend(budget, now) for now in (0.0, 20.0, 40.0, 60.0, 61.0)] == [
        *[True] * 4,
        False,
    ]


def test_a_brain_that_never_gets_ready_is_not_started_for_ever() -> None:
    budget = RestartBudget(3)
    slowly = [spend(budget, 100.0 * n, ready=False) for n in range(4)]
    assert slowly == [True, True, True, False]


def test_a_brain_that_gets_ready_again_is_forgiven_its_failed_restarts() -> None:
    budget = RestartBudget(3)
    assert spend(budget, 0.0, ready=False)
    assert spend(budget, 100.0, ready=False)
    assert spend(budget, 200.0)
    assert [spend(budget, now) for now in (300.0, 400.0, 500.0, 600.0)] == [True] * 4


def test_no_restarts_at_all_can_be_asked_for() -> None:
    assert not RestartBudget(0).spend(0.0)

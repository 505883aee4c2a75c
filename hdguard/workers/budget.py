"""How often a brain may be replaced before its seat gives up and says so."""


class RestartBudget:
    """Allows so many restarts within a minute.

    A restart whose brain never became ready does not grow old: a model that takes longer to fail
    than the minute lasts would otherwise be started for ever.
    """

    def __init__(self, limit: int, window: float = 60.0) -> None:
        self._limit = limit
        self._window = window  # seconds
        self._spent: list[float] = []
        self._unready = 0

    def spend(self, now: float) -> bool:
        """Take one restart at `now`, seconds of the loop's clock; False when there is none left."""
        self._spent = [at for at in self._spent if now - at < self._window]
        if max(len(self._spent), self._unready) >= self._limit:
            return False
        self._spent.append(now)
        self._unready += 1
        return True

    def ready(self) -> None:
        """The restarted brain answers: the restart is done."""
        self._unready = 0

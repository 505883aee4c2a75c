"""An event loop whose clock jumps to the next timer instead of waiting for it.

Timers, timeouts and TaskGroups work unchanged. Sockets, threads and child processes do not belong
in it: while they work, virtual time would jump past their timeouts. So the virtual pace has none.
"""

import asyncio
import selectors
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar

T = TypeVar("T")


class _JumpingSelector(selectors.BaseSelector):
    """Answers a wait at once and reports how long it would have been."""

    def __init__(self, jump: Callable[[float | None], None]) -> None:
        self._inner = selectors.DefaultSelector()
        self._jump = jump

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._inner.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._inner.unregister(fileobj)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = self._inner.select(0)
        if not ready:
            self._jump(timeout)
        return ready

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._inner.get_map()

    def close(self) -> None:
        self._inner.close()


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop at whose clock nothing ever waits; starts at 0.0 s."""

    def __init__(self) -> None:
        self._now = 0.0
        super().__init__(_JumpingSelector(self._jump))

    def time(self) -> float:
        """Virtual seconds since the loop was made."""
        return self._now

    def _jump(self, timeout: float | None) -> None:
        if timeout is None:
            msg = "virtual time stands still: every task waits and no timer is set"
            raise RuntimeError(msg)
        self._now += max(0.0, timeout)


def run_virtual(main: Coroutine[Any, Any, T]) -> T:
    """Run `main` in virtual time, as `asyncio.run` would in real time.

    Raises:
        RuntimeError: every task waits for something that no timer will bring.
    """
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)

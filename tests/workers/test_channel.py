"""The two ends of a socket pair."""

import socket
from collections.abc import Awaitable, Callable

import pytest

from hdguard.brains.base import BrainError
from hdguard.workers import wire
from hdguard.workers.channel import SupervisorChannel, WorkerChannel
from tests.workers.support import LOOPS, run

Story = Callable[[SupervisorChannel, socket.socket], Awaitable[None]]


def with_channel(story: Story, loop: str = "asyncio") -> None:
    async def main() -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            channel = await SupervisorChannel.open(ours)
            await story(channel, theirs)
            await channel.close()

    run(main(), loop)


@pytest.mark.parametrize("loop", LOOPS)
def test_messages_arrive_whole_and_in_order(loop: str) -> None:
    async def story(channel: SupervisorChannel, theirs: socket.socket) -> None:
        worker = WorkerChannel(theirs)
        await channel.send(wire.Ping())
        await channel.send(wire.Stop())
        assert [worker.receive(), worker.receive()] == [wire.Ping(), wire.Stop()]
        for n in range(3):
            worker.send(wire.Failed(n, "x" * 1000 * n))
        assert [await channel.receive() for _ in range(3)] == [
            wire.Failed(n, "x" * 1000 * n) for n in range(3)
        ]

    with_channel(story, loop)


def test_a_worker_that_is_gone_is_none_even_in_mid_message() -> None:
    async def story(channel: SupervisorChannel, theirs: socket.socket) -> None:
        theirs.sendall(wire.encode(wire.Pong())[:-1])
        theirs.close()
        assert await channel.receive() is None
        await channel.send(wire.Ping())
        assert await channel.receive() is None

    with_channel(story)


def test_a_worker_sees_without_waiting_whether_a_message_is_there() -> None:
    ours, theirs = socket.socketpair()
    worker = WorkerChannel(theirs)
    with theirs:
        with ours:
            assert not worker.waits()
            ours.sendall(wire.encode(wire.Ping()))
            assert worker.waits()
            assert worker.receive() == wire.Ping()
            assert not worker.waits()
        assert worker.waits()  # the end is news too
        assert worker.receive() is None


@pytest.mark.parametrize("cut", [0, 2, 6])
def test_a_supervisor_that_is_gone_is_none_even_in_mid_message(cut: int) -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        with ours:
            ours.sendall(wire.encode(wire.Ping())[:cut])
        assert WorkerChannel(theirs).receive() is None


def test_a_supervisor_that_breaks_off_is_none_and_sending_to_it_is_a_connection_error() -> None:
    ours, theirs = socket.socketpair()
    worker = WorkerChannel(theirs)
    with theirs:
        worker.send(wire.Pong())
        ours.close()  # with our message unread: the worker's end is reset
        assert worker.receive() is None
        with pytest.raises(ConnectionError):
            worker.send(wire.Pong())


def test_a_length_over_the_limit_is_refused_before_anything_is_read() -> None:
    async def story(channel: SupervisorChannel, theirs: socket.socket) -> None:
        theirs.sendall((wire.LIMIT + 1).to_bytes(wire.PREFIX, "big"))
        with pytest.raises(BrainError, match="over the limit"):
            await channel.receive()

    with_channel(story)

"""The running stack that faults are injected into: broker, camera, guard, robot, and a witness.

Broker, guard and robot are processes of their own; the guard is `hdguard run` as a user runs it,
but that a signal holds its loop up. All on loopback, all in a temporary folder, all ended with the
block.
"""

import asyncio
import json
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from hdguard.actuators.connection import MqttEndpoint
from hdguard.actuators.wire import decode_halt
from hdguard.core.types import HaltClass
from hdguard.faults.broker import Broker, free_port
from hdguard.faults.camera import FaultyCamera, faulty_camera
from hdguard.faults.disk import on_small_disk
from hdguard.faults.processes import Program, hdguard, workers_of
from hdguard.faults.rows import FaultError, Kind
from hdguard.faults.stalling import stalling
from hdguard.faults.witness import HookWire, Witness
from hdguard.resetting import RESET_WITHIN, ResetError, Resetter

ROBOT = "rosie"
READY_WITHIN = 30.0
"""Seconds for the stack to be well: the brains are loaded, or the last fault halt clears."""

STARTING = 0.1
"""Seconds in which no guard can have started, but a dead one's last permit may still arrive."""

MODEL = """
[[fast]]
brain = "trace"
seat = "process"
adaptive = {adaptive}
settings = {{ path = "{trace}", name = "model", play = true, width = 64, height = 64 }}
[slow]
brain = "none"
"""
"""A FastBrain that answers after 20 ms, in a process that can be stopped and killed."""

RECORDING = """
[incidents]
keep_days = 1.0
before = 1.0
after = 0.0
width = 320
max_bytes = 16777216
"""
"""Small clips, which end with the halt: many halts follow each other quickly."""

GREENS: dict[Kind, list[dict[str, object]]] = {
    "model": [{"t": 0.0, "light": "green"}],
    # One answer takes a minute, to a frame that is taken after the robot has begun to drive.
    "adaptive": [
        {"t": 0.0, "light": "green"},
        {"t": 6.0, "light": "green", "latency": 60.0},
        {"t": 7.0, "light": "green"},
    ],
}
"""What it answers to frames from the given second of the camera's on."""


class Stack:
    """The parts; see `running_stack`.

    Attributes:
        folder: temporary, of all files.
        state: the guard's state folder.
        broker, camera, guard, robot, witness, hook: the parts.
        http: the port that the guard answers on.
        token: an operator's.
        reset_key: the guard's.
    """

    def __init__(self, folder: Path, kind: Kind, camera: FaultyCamera, broker: Broker) -> None:
        self.folder = folder
        self.state = folder / "state"
        self.camera = camera
        self.broker = broker
        self.http = free_port()
        self.token, self.reset_key = secrets.token_hex(16), secrets.token_hex(16)
        self.witness = Witness(broker.port, ROBOT)
        self.hook = HookWire(folder)
        self.config = folder / "hdguard.toml"
        self.config.write_text(self.configuration(kind), encoding="utf-8")
        command = stalling("run", "--config", str(self.config))
        if kind == "recording":
            self.state.mkdir(mode=0o700)
            command = on_small_disk(self.state, *command)
        self.guard = Program("the guard", *command)
        boot_file = str(folder / "robot.boot")
        words = ("--port", str(broker.port), "--robot", ROBOT, "--boot-file", boot_file)
        self.robot = Program("the robot", *hdguard("robot", *words))
        self._loop = asyncio.get_running_loop()

    def configuration(self, kind: Kind) -> str:
        """The guard's configuration."""
        text = (
            f'[[camera]]\nname = "kitchen"\nurl = "{self.camera.url}"\n'
            f'[mqtt]\nport = {self.broker.port}\nrobot = "{ROBOT}"\n'
            f'reset_key = "{self.reset_key}"\n'
            f'[http]\nport = {self.http}\ntoken = "{self.token}"\n'
            f'[live]\nstate_dir = "{self.state}"\n'
            f'hook = {{ gpio = "{self.hook.path}" }}\n'
        )
        if kind == "reflex":
            return text
        if kind == "recording":
            return text + RECORDING
        trace = self.folder / "trace.json"
        said = {"model": {"latency": 0.02, "videos": {"*": GREENS[kind]}}}
        data = {"format": "hdguard-trace/1", "fast": said, "slow": {}}
        trace.write_text(json.dumps(data), encoding="utf-8")
        return text + MODEL.format(trace=trace, adaptive=str(kind == "adaptive").lower())

    # Being well.

    async def ready(self) -> None:
        """Mend what is broken; returns when the robot drives at full speed.

        Raises:
            FaultError: it does not come to that.
        """
        try:
            async with asyncio.timeout(READY_WITHIN):
                for part in (self.robot, self.guard):
                    if not part.running:
                        part.start()
                while not self.drives:
                    self._ran_out()
                    await self._release()
                    await self._anything()
        except TimeoutError:
            raise FaultError(self._why_not()) from None

    def _ran_out(self) -> None:
        """Raise if a process that should run has ended."""
        for part in (self.broker, self.guard, self.robot):
            _ = part.pid

    @property
    def drives(self) -> bool:
        """The robot drives at full speed, and the guard has just let it."""
        newest, permit = self.witness.last("permit"), self.witness.permit
        return (
            newest is not None
            and newest.at > self.guard.started_at + STARTING
            and permit is not None
            and permit.speed == "full"
            and self.witness.in_force is None
            and bool(self.robot.lines)
            and "full" in self.robot.lines[-1][1]
        )

    async def _anything(self) -> None:
        """Wait until something changes, or for as long as a permit takes."""
        try:
            async with asyncio.timeout(0.2):
                await self.witness.changed()
        except TimeoutError:
            return

    async def _release(self) -> None:
        """Reset what does not clear itself, as an operator would."""
        halt = self.witness.in_force
        if halt is None or (halt.halt_class is HaltClass.FAULT and not halt.latched):
            return
        endpoint = MqttEndpoint(port=self.broker.port, robot=ROBOT)
        try:
            await Resetter(endpoint, self.reset_key, "faults").reset(halt.halt_id, RESET_WITHIN)
        except ResetError:
            return  # it is asked again

    def _why_not(self) -> str:
        permit, halt = self.witness.permit, self.witness.in_force
        said = "the guard permits nothing" if permit is None else f"permits {permit.speed}"
        halted = "" if halt is None else f", halted: {halt.cause}"
        words = f"{self.guard.last_words()}{self.robot.last_words()}"
        return f"not well again in {READY_WITHIN:g} s: {said}{halted}{words}"

    # What scenarios ask for.

    async def robot_stands(self, since: float) -> float:
        """When the robot's lease ended, from then on; waits for it."""
        at, _ = await self.robot.said(lambda line: "may move: none" in line, since)
        return at

    def worker(self) -> int:
        """The process id of the one brain that has a process of its own.

        Raises:
            FaultError: there is not exactly one.
        """
        found = workers_of(self.guard.pid)
        if len(found) != 1:
            words = self.guard.last_words()
            raise FaultError(f"the guard has {len(found)} workers, not one{words}")
        return found[0]

    async def operator_halts(self) -> float:
        """Halt by HTTP, as an operator; returns when the halt was on the broker."""
        asked = self._loop.time()
        status = await self.ask("POST", "/api/v1/halt?operator=faults")
        if status != 200:
            raise FaultError(f"POST /api/v1/halt: {status}")
        return (await self.witness.first("halt", _operators, asked)).at

    def now(self) -> float:
        """Seconds on the loop's clock, by which all is measured."""
        return self._loop.time()

    async def until(self, at: float) -> None:
        """Wait until then."""
        await asyncio.sleep(at - self.now())

    async def anew(self) -> None:
        """Start over after a fault that was not met: nothing of it may disturb the next one.

        Raises:
            FaultError: the broker cannot be started.
        """
        for part in (self.guard, self.robot, self.broker):
            part.end()
        await self.camera.mend()
        self.witness.seen.clear()  # the new broker keeps nothing of it either
        await self.broker.up()

    async def answers(self, path: str, status: int) -> None:
        """Wait until the guard answers so."""
        while await self.ask("GET", path) != status:
            await self.until(self.now() + 0.02)

    def audited(self) -> list[str]:
        """The lines of the guards' audit log."""
        log = self.folder / "state" / f"{ROBOT}.audit.jsonl"
        return log.read_text(encoding="utf-8").splitlines()

    async def metric(self, name: str) -> float:
        """The value of one of the guard's metrics; 0 if nothing has been counted there yet.

        Raises:
            FaultError: the guard does not answer.
        """
        status, text = await self._fetch("GET", "/metrics")
        if status != 200:
            raise FaultError(f"GET /metrics: {status or 'no answer'}")
        lines = (line.rpartition(" ") for line in text.splitlines())
        return next((float(value) for key, _, value in lines if key == name), 0.0)

    async def counts(self, name: str, least: float) -> None:
        """Wait until that metric is at least so large."""
        while await self.metric(name) < least:
            await self.until(self.now() + 0.02)

    async def ask(self, method: str, path: str) -> int:
        """The status of an HTTP answer, 0 if there is none."""
        return (await self._fetch(method, path))[0]

    async def _fetch(self, method: str, path: str) -> tuple[int, str]:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", self.http)
        except OSError:
            return 0, ""
        try:
            writer.write(
                f"{method} {path} HTTP/1.1\r\nHost: guard\r\nAuthorization: Bearer {self.token}\r\n"
                "Content-Length: 0\r\nConnection: close\r\n\r\n".encode()
            )
            answer = (await reader.read()).decode("utf-8", "replace")
        except OSError:
            return 0, ""
        finally:
            writer.close()
        words = answer.split(" ", 2)
        return (int(words[1]) if len(words) > 1 else 0), answer

    def close(self) -> None:
        """End every process."""
        for part in (self.guard, self.robot, self.broker):
            part.end()
        self.hook.close()


def _operators(payload: bytes) -> bool:
    halt = decode_halt(payload)
    return halt.active and halt.cause == "operator"


@asynccontextmanager
async def running_stack(
    folder: Path, kind: Kind, *, embedded: bool = False
) -> AsyncIterator[Stack]:
    """A stack whose broker and camera run; `Stack.ready` starts the rest."""
    async with faulty_camera() as camera:
        broker = Broker(folder, embedded=embedded)
        stack = Stack(folder, kind, camera, broker)
        try:
            await broker.up()
            async with asyncio.TaskGroup() as group:
                reading = group.create_task(stack.witness.read(), name="witness")
                try:
                    yield stack
                finally:
                    reading.cancel()
        finally:
            stack.close()

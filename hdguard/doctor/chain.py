"""Which steps there are for a configuration, in the order of the chain.

The configuration, where the state is kept, the clock, every camera and its picture, the GPUs, the
brains, the broker and the robot, the hook and the HTTP port; and, only if asked for, a real halt.
"""

import importlib
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from hdguard.config import CameraConfig, Config, ConfigError, load_config, settings_of
from hdguard.doctor.brains import check_brains
from hdguard.doctor.cameras import WATCHED, judge, watch
from hdguard.doctor.edges import check_hook, check_http, check_token
from hdguard.doctor.findings import Finding, Step, examine, fail, ok, warn
from hdguard.doctor.halting import check_halt
from hdguard.doctor.link import check_link
from hdguard.doctor.machine import check_clock, check_gpus, check_kept, check_state
from hdguard.doctor.running import ask_guard, guard_runs
from hdguard.ingest.base import Frame
from hdguard.live import LivePlan, make_source
from hdguard.machine import look_at_machine
from hdguard.seating import FAST_BRAINS, LOAD_TIMEOUT, SLOW_BRAINS, with_brains

SOON = 30.0
"""Seconds for a step whose parts have limits of their own, all shorter."""

CORRECT = "correct it: `hdguard check-config` says what each key means in the end"


async def diagnose(file: Path, tell: Callable[[Finding], None], *, halt_robot: bool) -> None:
    """Prove the chain that this configuration describes.

    Args:
        file: the configuration.
        tell: told each finding as soon as it is there.
        halt_robot: really halt the robot, and take the halt back.
    """
    try:
        plan = LivePlan(with_brains(load_config(file)))
    except ConfigError as error:
        tell(fail("configuration", str(error), CORRECT))
        await examine([Step("clock", check_clock, SOON, "")], tell)
        tell(fail("all else", "was not looked at", "the configuration says where things are"))
        return
    await examine(Chain(plan).steps(halt_robot=halt_robot), tell)


class Chain:
    """The steps of one configuration; what the cameras show is kept for the brains."""

    def __init__(self, plan: LivePlan) -> None:
        self._plan = plan
        self._frames: list[Frame] = []

    def steps(self, *, halt_robot: bool = False) -> list[Step]:
        """In order; nothing is looked at yet."""
        mqtt, live = self._plan.config.mqtt, self._plan.config.live
        state = f"see to {live.folder}: its owner, its mode, its disk"
        broker = (
            f"start the broker at {mqtt.host}:{mqtt.port}, or correct mqtt.host and mqtt.port; "
            "if it refuses us: its password and ACL files (systemd/mosquitto)"
        )
        halted = "the halt was not tried, or not to its end: look at the robot"
        return [
            Step("configuration", self._configuration, SOON, CORRECT),
            Step("state", self._state, SOON, state),
            Step("clock", check_clock, SOON, ""),
            *(
                # It opens, is watched and may fall silent: at most 7 intervals, see `watch`.
                Step(
                    f"camera {camera.name}",
                    self._camera(n, camera),
                    SOON + 7.0 * camera.interval,
                    CORRECT,
                )
                for n, camera in enumerate(self._plan.config.camera)
            ),
            Step("gpu", self._gpus, SOON, CORRECT),
            Step("brains", self._brains, LOAD_TIMEOUT + SOON, "see what it says is missing"),
            Step("broker", self._link, SOON, broker, hides=("echo", "robot")),
            Step("hook", self._hook, SOON, "correct live.hook"),
            Step("http", self._http, SOON, "correct [http]"),
            *([Step("halt", self._halt, SOON, halted)] if halt_robot else ()),
        ]

    async def _configuration(self) -> Sequence[Finding]:
        self._plan.check()
        policy = self._plan.policy
        cameras = ", ".join(source.source_id for source in policy.sources)
        brains = ", ".join(filter(None, [*(brain.name for brain in policy.brains), policy.slow]))
        robot = self._plan.config.mqtt.robot
        return [ok("configuration", f"robot {robot}; cameras {cameras}; brains {brains}")]

    async def _state(self) -> Sequence[Finding]:
        plan = self._plan
        return [
            *check_state(plan.config.live.folder, plan.state_file("boot")),
            *check_kept(plan.state_file("state.json"), plan.config.mqtt.robot),
        ]

    def _camera(self, n: int, camera: CameraConfig) -> Callable[[], Awaitable[Sequence[Finding]]]:
        async def look() -> Sequence[Finding]:
            if camera.url.startswith("whip:"):
                return [self._published(camera)]
            source = make_source(camera, f"camera.{n}")
            if self._guard_runs():
                said = "was not opened: a running guard has it"
                return [warn(f"camera {camera.name}", said, "stop the guard to have it tried")]
            seen = await watch(source, max(WATCHED, 2.0 * camera.interval))
            self._frames.extend(seen.frames)
            return judge(source, seen, required=camera.required)

        return look

    def _published(self, camera: CameraConfig) -> Finding:
        """What can be said of a camera that comes to us."""
        step = f"camera {camera.name}"
        if camera.name not in self._plan.config.http.publish_tokens:
            how = f"set http.publish_tokens.{camera.name}, and give that token to the publisher"
            return (fail if camera.required else warn)(step, "nobody may publish it", how)
        said = "it publishes to us, so only a running guard can see it"
        return warn(step, said, "start `hdguard run`, and ask /api/v1/status")

    async def _gpus(self) -> Sequence[Finding]:
        return check_gpus(_devices(self._plan.config), look_at_machine().gpus)

    async def _brains(self) -> Sequence[Finding]:
        if self._guard_runs():
            # A second copy of a model may take the memory of the one that guards the robot.
            said = "were not loaded, because a guard of this robot runs here"
            return [warn("brains", said, "stop it to have them tried")]
        return await check_brains(self._plan.seating, self._frames)

    async def _link(self) -> Sequence[Finding]:
        return await check_link(self._plan.config.mqtt)

    async def _hook(self) -> Sequence[Finding]:
        return check_hook(self._plan.config.live.hook)

    async def _http(self) -> Sequence[Finding]:
        http = self._plan.config.http
        found = await ask_guard(http) if self._guard_runs() else check_http(http)
        return [*found, *check_token(http)]

    async def _halt(self) -> Sequence[Finding]:
        return await check_halt(self._plan)

    def _guard_runs(self) -> bool:
        return guard_runs(self._plan.state_file("lock"))


def _devices(config: Config) -> dict[str, str]:
    """The device of each brain that has one."""
    chosen = [(FAST_BRAINS, each.brain, each.settings) for each in config.fast]
    if config.slow is not None:
        chosen.append((SLOW_BRAINS, config.slow.brain, config.slow.settings))
    found = {}
    for table, brain, raw in chosen:
        module, _, kind = table.get(brain, "").partition(":")
        if module:  # else the configuration's own finding names it
            settings_class = getattr(importlib.import_module(module), kind).Settings
            settings = settings_of(settings_class, raw, brain)
            if device := getattr(settings, "device", ""):
                found[settings.name] = device
    return found

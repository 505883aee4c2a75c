"""A real Prometheus on a free loopback port: scrapes one guard or replay, by the shipped files."""

import asyncio
import http.client
import json
import math
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import yaml  # type: ignore[import-untyped]

from hdguard.observe.dashboards.export import export
from tests.mosquitto import free_port

PATIENCE = 30.0
SCRAPES = "500ms"
"""Between two scrapes: a guard answers five a second."""


class Prometheus:
    """Its process, and what it knows."""

    def __init__(self, port: int) -> None:
        self.port = port

    def get(self, path: str, **words: str) -> Any:
        """The `data` of an answer; blocks."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request("GET", f"/api/v1/{path}?{urlencode(words)}")
            answer = json.loads(connection.getresponse().read())
        finally:
            connection.close()
        assert answer["status"] == "success", (words, answer)
        return answer["data"]

    def numbers(self, expr: str) -> list[float]:
        """What a query gives now; not a number is nothing."""
        found = self.get("query", query=expr)
        values = [found] if found["resultType"] == "scalar" else found["result"]
        numbers = [float(series["value"][1]) for series in values]
        return [number for number in numbers if not math.isnan(number)]

    async def asked(self, expr: str) -> list[float]:
        return await asyncio.to_thread(self.numbers, expr)

    async def gives(self, expr: str) -> list[float]:
        """What a query gives, as soon as it gives something."""
        async with asyncio.timeout(PATIENCE):
            while not (found := await self.asked(expr)):  # noqa: ASYNC110
                await asyncio.sleep(0.2)  # it tells nobody that it has scraped
        return found


def _ready(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request("GET", "/-/ready")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def _configured(folder: Path, job: str, target: int) -> Path:
    """The shipped configuration, exported; faster, and with this target in that job."""
    export(folder, force=False)
    file = folder / "prometheus" / "prometheus.yml"
    config = yaml.safe_load(file.read_text())
    fast = {"scrape_interval": SCRAPES, "scrape_timeout": SCRAPES, "evaluation_interval": SCRAPES}
    config["global"] = fast
    for each in config["scrape_configs"]:
        mine = each["job_name"] == job
        each["static_configs"] = [{"targets": [f"127.0.0.1:{target}"] if mine else []}]
    file.write_text(yaml.safe_dump(config))
    return file


@contextmanager
def prometheus(folder: Path, job: str, target: int) -> Iterator[Prometheus]:
    """It runs, and scrapes that port of this machine as that job; ended and waited for.

    Args:
        folder: for its configuration and its numbers.
        job: `hdguard` or `hdguard-replay`.
        target: the port.
    """
    program = shutil.which("prometheus")
    assert program is not None, "these tests need prometheus: apt-get install prometheus"
    port = free_port()
    words = (
        f"--config.file={_configured(folder, job, target)}",
        f"--storage.tsdb.path={folder / 'tsdb'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--log.level=error",
    )
    with subprocess.Popen([program, *words]) as process:
        try:
            while not _ready(port):
                try:
                    code = process.wait(0.1)
                except subprocess.TimeoutExpired:
                    continue
                raise AssertionError(f"prometheus ended with {code}")
            yield Prometheus(port)
        finally:
            process.terminate()

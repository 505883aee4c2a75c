"""`hdguard replay --metrics-port`: a run is watched while it runs."""

import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from hdguard import app
from hdguard.replay import campaign_metrics
from hdguard.replay.dataset import Entry
from hdguard.replay.folder import RunFolder
from hdguard.replay.results import VideoResult, read_results
from tests.replay.made import make_dataset
from tests.replay.test_campaign_metrics import parsed
from tests.test_cli import replay, says


@pytest.fixture(autouse=True, scope="module")
def _tracker() -> None:
    """Python's own helper of `spawn` outlives every pool; it is not a child left behind."""
    resource_tracker.ensure_running()


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_dataset(tmp_path_factory.mktemp("set") / "data")


class Scraper:
    """Asks for the numbers whenever the run comes to a certain point."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.address = ""
        self.last: dict[str, float] = {}
        serving, save = campaign_metrics.serving, app.save_trace

        @contextmanager
        def noted(*where: object) -> Iterator[str]:
            with serving(*where) as self.address:  # type: ignore[arg-type]
                yield self.address

        def scrape_and_save(folder: RunFolder, entries: list[Entry]) -> None:
            self.last = self.scrape()
            save(folder, entries)

        monkeypatch.setattr(campaign_metrics, "serving", noted)
        monkeypatch.setattr(app, "save_trace", scrape_and_save)

    def scrape(self) -> dict[str, float]:
        with urlopen(self.address, timeout=10) as reply:
            return parsed(reply.read().decode())

    def videos(self) -> tuple[float, float]:
        """How many there are, and how many are done."""
        found = self.scrape()
        return tuple(found[f"hdguard_replay_videos{{state={s}}}"] for s in ("total", "done"))  # type: ignore[return-value]


@pytest.fixture
def scraper(monkeypatch: pytest.MonkeyPatch) -> Scraper:
    return Scraper(monkeypatch)


@pytest.mark.parametrize(
    "more",
    [(), ("--workers", 2), ("--pace", "realtime", "--limit", 1)],
    ids=["virtual", "two processes", "realtime"],
)
def test_at_the_end_the_numbers_are_those_of_the_results(
    more: tuple[object, ...], data: Path, tmp_path: Path, scraper: Scraper
) -> None:
    result = replay(data, tmp_path / "out", "--metrics-port", 0, *more)
    says(result, 0)
    assert re.search(r"^metrics: http://127\.0\.0\.1:\d+/metrics$", result.stderr, re.MULTILINE)
    found, results = scraper.last, read_results(tmp_path / "out")
    assert results.videos[0].warning is not None
    assert found["hdguard_replay_videos{state=done}"] == len(results.videos)
    summary = results.summary
    assert found["hdguard_replay_hdr"] == summary.issued.hdr
    assert found["hdguard_replay_wss{time=stopped}"] == summary.stopped.wss
    assert found["hdguard_replay_warning_latency_seconds_count"] == summary.latency.n > 0
    assert found["hdguard_replay_verdicts_total{light=green}"] == summary.verdicts["green"]


def test_it_can_be_watched_from_before_the_first_video_and_a_resumed_run_counts_the_earlier_ones(
    data: Path, tmp_path: Path, scraper: Scraper, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[float, float]] = []
    run = app.run_virtually

    def interrupted(plan: app.ReplayPlan, folder: RunFolder, entry: Entry) -> VideoResult:
        seen.append(scraper.videos())
        if len(seen) == 3:
            raise KeyboardInterrupt
        return run(plan, folder, entry)

    monkeypatch.setattr(app, "run_virtually", interrupted)
    result = replay(data, tmp_path / "out", "--metrics-port", 0)
    assert result.exit_code == 130
    assert seen == [(5, 0), (5, 1), (5, 2)]
    with pytest.raises(URLError, match="refused"):  # Ctrl-C ends it too
        scraper.scrape()
    says(replay(data, tmp_path / "out", "--metrics-port", 0, "--resume"), 0)
    assert seen[3:] == [(5, 2), (5, 3), (5, 4)]
    assert scraper.last["hdguard_replay_videos{state=done}"] == 5


def test_a_video_that_is_tried_again_counts_only_as_what_it_is_now(
    tmp_path: Path, scraper: Scraper
) -> None:
    data = make_dataset(tmp_path / "data", ["red.mp4", "calm.mp4"])
    whole = (data / "calm.mp4").read_bytes()
    (data / "calm.mp4").write_bytes(b"no video")
    assert replay(data, tmp_path / "out", "--metrics-port", 0).exit_code == 1
    states = {s: scraper.last[f"hdguard_replay_videos{{state={s}}}"] for s in ("done", "failed")}
    assert states == {"done": 1, "failed": 1}
    (data / "calm.mp4").write_bytes(whole)
    says(replay(data, tmp_path / "out", "--metrics-port", 0, "--resume"), 0)
    states = {s: scraper.last[f"hdguard_replay_videos{{state={s}}}"] for s in ("done", "failed")}
    assert states == {"done": 2, "failed": 0}


def test_a_port_that_is_taken_is_78_and_makes_no_folder(data: Path, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        result = replay(data, tmp_path / "out", "--metrics-port", port)
    says(result, 78, f"--metrics-port {port}: cannot listen on 127.0.0.1")
    assert not (tmp_path / "out").exists()

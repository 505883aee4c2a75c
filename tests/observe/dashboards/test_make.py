"""The dashboards are generated, and what is generated is complete: words, places, queries."""

import itertools
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from hdguard.core.guard import Guard
from hdguard.observe.dashboards.make import FOLDER, generated
from hdguard.observe.metrics import Metrics
from hdguard.replay.campaign_metrics import CampaignMetrics
from tests.observe.dashboards.shipped import BOARDS, asked, asked_by_boards, panels, read, rules
from tests.observe.support import POLICY

NAME = re.compile(r"hdguard_[a-z_]+")
every_board = pytest.mark.parametrize("path", BOARDS, ids=lambda path: path.stem)


def test_the_package_holds_what_the_code_makes() -> None:
    """Else: python -m hdguard.observe.dashboards.make."""
    committed = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.iterdir()}
    assert committed == generated()


def test_making_them_again_changes_nothing() -> None:
    assert generated() == generated()


def test_addresses_of_dashboards_do_not_change() -> None:
    """People keep them, and links lead there."""
    assert {path.stem: (read(path)["uid"], read(path)["title"]) for path in BOARDS} == {
        "watching": ("hdguard-watching", "Is it watching?"),
        "latency": ("hdguard-latency", "Latency"),
        "campaign": ("hdguard-campaign", "Replay campaign"),
    }


@every_board
def test_every_panel_says_in_words_what_to_conclude(path: Path) -> None:
    titles = set()
    for panel in panels(read(path)):
        assert len(panel["description"].split()) >= 7, panel["title"]
        assert panel["description"].endswith("."), panel["title"]
        assert panel["title"] not in titles
        titles.add(panel["title"])


@every_board
def test_panels_have_numbers_of_their_own_and_do_not_cover_each_other(path: Path) -> None:
    board = read(path)
    numbers = [panel["id"] for panel in board["panels"]]
    assert numbers == list(range(1, len(numbers) + 1))
    places = [panel["gridPos"] for panel in board["panels"]]
    assert all(p["x"] + p["w"] <= 24 for p in places)
    for one, other in itertools.combinations(places, 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        above = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert beside or above, (one, other)


@every_board
def test_every_query_asks_the_chosen_source_for_the_chosen_guard(path: Path) -> None:
    board = read(path)
    names = {variable["name"] for variable in board["templating"]["list"]}
    assert {"datasource", "job", "instance"} <= names
    for panel in panels(board):
        for target in panel["targets"]:
            assert target["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
            used = set(re.findall(r'"\$(\w+)"', target["expr"]))
            assert {"job", "instance"} <= used <= names, target["expr"]
            selectors = len(re.findall(r"hdguard_[\w:]+\{", target["expr"]))
            assert target["expr"].count('job=~"$job",instance=~"$instance"') == selectors


@every_board
def test_no_variable_is_offered_that_no_query_uses(path: Path) -> None:
    board = read(path)
    queries = " ".join(t["expr"] for p in panels(board) for t in p["targets"])
    for variable in board["templating"]["list"]:
        assert variable["name"] == "datasource" or f'"${variable["name"]}"' in queries


@every_board
def test_it_is_in_the_form_that_grafana_11_reads(path: Path) -> None:
    board = read(path)
    assert board["schemaVersion"] == 41
    known = {"row", "stat", "timeseries", "state-timeline", "table", "bargauge"}
    assert {panel["type"] for panel in board["panels"]} <= known
    for panel in panels(board):
        ids = [target["refId"] for target in panel["targets"]]
        assert ids == [*"ABCDEFGH"][: len(ids)]


def test_every_number_in_a_query_is_one_that_the_guard_gives() -> None:
    guard = Guard(POLICY, 0.0)
    metrics = Metrics(guard, lambda: 0.0, lambda: True)
    known = _names(metrics.registry) | _names(CampaignMetrics().registry) | KEPT
    known |= {rule["record"].split(":")[1] + ":" for _, rule in rules("record")}
    for query in asked():
        recorded = re.sub(r"\w+:hdguard_\w+:\w+", "", query.expr)
        assert set(NAME.findall(recorded)) <= known, query.where


KEPT = {
    # Of the files, the hook and the recorder, which this guard has not.
    "hdguard_write_failures_total",
    "hdguard_audit_dropped_total",
    "hdguard_hook_failures_total",
    "hdguard_refused_total",
    "hdguard_incident_bytes",
}


def _names(registry: Any) -> set[str]:
    """As they stand in a scrape; a histogram has three, a counter ends in _total."""
    found = set()
    for family in registry.collect():
        endings = {"histogram": ("_bucket", "_count", "_sum"), "counter": ("_total",)}
        found |= {family.name + ending for ending in endings.get(family.type, ("",))}
    return found


def test_prometheus_can_read_every_query(tmp_path: Path) -> None:
    queries = [
        {"record": f"query_{number}", "expr": query.expr}
        for number, query in enumerate(asked_by_boards())
    ]
    file = tmp_path / "queries.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "queries", "rules": queries}]}))
    done = subprocess.run(
        ["promtool", "check", "rules", str(file)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr + done.stdout
    assert f"{len(queries)} rules found" in done.stdout

"""Prometheus's own tool reads the shipped files, and sees every alert fire and not fire."""

import subprocess
from pathlib import Path

import yaml  # type: ignore[import-untyped]

from tests.observe.dashboards.shipped import PROMETHEUS, RULES, rules

STORIES = Path(__file__).parent / "alerts.test.yml"


def promtool(*words: str) -> str:
    done = subprocess.run(
        ["promtool", *words], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_promtool_takes_the_configuration_and_the_rules() -> None:
    assert "SUCCESS: 2 rule files found" in promtool("check", "config", str(PROMETHEUS))
    said = promtool("check", "rules", "--lint=all", "--lint-fatal", *map(str, RULES))
    assert said.count("SUCCESS") == 2


def test_every_alert_fires_when_it_should_and_not_before() -> None:
    assert "SUCCESS" in promtool("test", "rules", str(STORIES))


def test_no_alert_and_no_recorded_number_is_without_its_story() -> None:
    text = STORIES.read_text()
    for _, rule in rules("alert"):
        fires = f'alertname="{rule["alert"]}",alertstate="firing"' in text
        assert fires or f"alertname: {rule['alert']}" in text, rule["alert"]
    for _, rule in rules("record"):
        by_its_alert = any(rule["record"] in alert["expr"] for _, alert in rules("alert"))
        assert by_its_alert or f"expr: {rule['record']}" in text, rule["record"]


def test_the_first_story_gives_every_alert_something_to_look_at() -> None:
    """Silence proves nothing where the series is missing."""
    calm = yaml.safe_load(STORIES.read_text())["tests"][0]
    given = " ".join(series["series"] for series in calm["input_series"])
    for _, rule in rules("alert"):
        for name in set(rule["expr"].replace("(", " ").replace("{", " ").split()):
            if name.startswith("hdguard_"):
                assert name.partition("[")[0] in given, (rule["alert"], name)


def test_every_alert_says_how_grave_it_is_and_what_to_do() -> None:
    for _, rule in rules("alert"):
        assert rule["labels"]["severity"] in {"critical", "warning"}
        assert "{{ $labels.instance }}" in rule["annotations"]["summary"], rule["alert"]
        assert len(rule["annotations"]["description"].split()) > 12, rule["alert"]

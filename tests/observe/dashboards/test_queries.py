"""What panels show, worked out by Prometheus's own tool from literal numbers."""

import subprocess
from pathlib import Path

import yaml  # type: ignore[import-untyped]

from tests.observe.dashboards.shipped import asked

QUERIES = {query.where: query.expr for query in asked()}
LIGHT = "watching.json: Light, A"
FRAME = "watching.json: Oldest frame, of its limit, A"
VERDICT = "watching.json: Oldest verdict, of its limit, A"
LATE = "watching.json: Permits too late, in the time shown, A"

Series = dict[str, float | str]
"""Name and labels, without the guard's and the brace -> a value that lasts, or one every 5 s."""

LIMITS: Series = {
    f'hdguard_frame_age_limit_seconds{{source="{s}"': 1.0 for s in ("kitchen", "hall")
}


def shows(folder: Path, where: str, series: Series, expected: float) -> None:
    """Assert that after five minutes the panel shows this one number."""
    given = [
        {
            "series": f'{name},job="hdguard",instance="g"}}',
            "values": value if isinstance(value, str) else f"{value}x60",
        }
        for name, value in series.items()
    ]
    samples = [{"labels": "{}", "value": expected}]
    looked = {"expr": QUERIES[where], "eval_time": "5m", "exp_samples": samples}
    test = {"interval": "5s", "input_series": given, "promql_expr_test": [looked]}
    story = folder / "story.yml"
    story.write_text(yaml.safe_dump({"evaluation_interval": "5s", "tests": [test]}))
    done = subprocess.run(
        ["promtool", "test", "rules", str(story)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_light_is_the_most_severe_and_green_only_where_all_is_known(tmp_path: Path) -> None:
    """One camera that watches must not speak for one that gives nothing; a RED must not hide."""
    kitchen, hall = 'hdguard_light{source="kitchen"', 'hdguard_light{source="hall"'
    shows(tmp_path, LIGHT, {**LIMITS, kitchen: 0, hall: 0}, 0)
    shows(tmp_path, LIGHT, {**LIMITS, kitchen: 0, hall: 2}, 2)
    shows(tmp_path, LIGHT, {**LIMITS, kitchen: 0}, 3)
    shows(tmp_path, LIGHT, {**LIMITS, hall: 2}, 2)
    shows(tmp_path, LIGHT, LIMITS, 3)


def test_ages_are_shown_beside_the_limit_of_their_own_camera_and_brain(tmp_path: Path) -> None:
    """One frame a second, or one every two, is no alarm where that is what was declared."""
    age, limit = "hdguard_{}_age_seconds{{{}", "hdguard_{}_age_limit_seconds{{{}"
    kitchen, door = 'source="kitchen"', 'source="door"'
    cameras: Series = {
        age.format("frame", kitchen): 0.1,
        limit.format("frame", kitchen): 1.0,
        age.format("frame", door): 2.0,
        limit.format("frame", door): 5.0,
    }
    shows(tmp_path, FRAME, cameras, 0.4)
    reflex, model = f'{kitchen},brain="reflex"', f'{kitchen},brain="model"'
    brains: Series = {
        age.format("verdict", reflex): 0.25,
        limit.format("verdict", reflex): 1.0,
        age.format("verdict", model): 1.0,
        limit.format("verdict", model): 2.5,
    }
    shows(tmp_path, VERDICT, brains, 0.4)


def test_permits_of_a_guard_that_was_started_anew_are_not_late(tmp_path: Path) -> None:
    count = 'hdguard_permit_interval_seconds_count{x=""'
    bucket = 'hdguard_permit_interval_seconds_bucket{le="0.6"'
    one_was: Series = {count: "1000+25x20 _x4 11+25x40", bucket: "999+25x20 _x4 11+25x40"}
    shows(tmp_path, LATE, one_was, 0)
    one_is: Series = {count: "1000+25x60", bucket: "1000+25x30 1774+25x30"}
    shows(tmp_path, LATE, one_is, 1)

"""What is said of every panel stands in every panel."""

import json
from typing import Any

from grafana_foundation_sdk.cog.encoder import JSONEncoder

from hdguard.observe.dashboards.panels import (
    AnyPanel,
    Board,
    Query,
    Tile,
    bars,
    chart,
    listing,
    number,
    of,
    quantile,
    recorded,
    small,
    strip,
)

WORDS = {0: ("GREEN", "green"), 2: ("RED", "red")}


def plain(made: AnyPanel | Board) -> Any:
    model = made.built() if isinstance(made, Board) else made.build()
    return json.loads(JSONEncoder().encode(model))


def tile(**changes: Any) -> Tile:
    said = {
        "title": "Light",
        "says": "Look up.",
        "queries": (Query("hdguard_light", "{{source}}"),),
    }
    return Tile(**{**said, **changes})


def test_a_selector_is_of_the_chosen_guard() -> None:
    chosen = 'job=~"$job",instance=~"$instance"'
    assert of("speed") == f"hdguard_speed{{{chosen}}}"
    assert of("light", source="$source") == f'hdguard_light{{{chosen},source=~"$source"}}'
    assert of("state", state="halted") == f'hdguard_state{{{chosen},state="halted"}}'
    assert of("x", outcome="~a|b") == f'hdguard_x{{{chosen},outcome=~"a|b"}}'
    assert recorded("a:b:c") == f"a:b:c{{{chosen}}}"


def test_a_quantile_keeps_the_bounds_and_what_it_is_asked_by() -> None:
    assert quantile(0.5, "lag", "brain", over="5m") == (
        f"histogram_quantile(0.5, sum by (le, brain) (rate({of('lag_bucket')}[5m])))"
    )


def test_limits_are_lines_only_where_there_are_some() -> None:
    def style(panel: Any) -> str:
        return str(panel["fieldConfig"]["defaults"]["custom"]["thresholdsStyle"]["mode"])

    assert style(plain(chart(tile()))) == "off"
    limited = plain(chart(tile(limits=((None, "green"), (1.0, "red")))))
    assert style(limited) == "dashed"
    steps = limited["fieldConfig"]["defaults"]["thresholds"]["steps"]
    assert steps == [{"color": "green", "value": None}, {"color": "red", "value": 1.0}]


def test_a_number_is_the_newest_in_words_and_says_so_when_there_is_none() -> None:
    panel = plain(number(small("Light", "Look up.", "hdguard_light"), WORDS))
    assert (panel["type"], panel["gridPos"]["w"]) == ("stat", 3)
    defaults = panel["fieldConfig"]["defaults"]
    assert defaults["noValue"] == "no data"
    assert defaults["mappings"][0]["options"]["2"] == {"text": "RED", "color": "red", "index": 1}
    assert panel["options"]["reduceOptions"]["calcs"] == ["lastNotNull"]
    assert (panel["targets"][0]["instant"], panel["targets"][0]["range"]) == (True, False)


def test_a_strip_shows_the_course_in_words() -> None:
    panel = plain(strip(tile(), WORDS))
    assert panel["type"] == "state-timeline"
    assert panel["targets"][0]["range"] is True
    assert panel["fieldConfig"]["defaults"]["mappings"][0]["options"]["0"]["text"] == "GREEN"


def test_a_listing_has_rows_with_labels_and_no_time() -> None:
    panel = plain(listing(tile(table=True), "halts"))
    assert panel["targets"][0]["format"] == "table"
    (organize,) = panel["transformations"]
    assert organize["options"]["excludeByName"] == {"Time": True}
    assert organize["options"]["renameByName"] == {"Value": "halts"}


def test_buckets_are_shown_without_what_is_in_the_one_below() -> None:
    panel = plain(bars(tile(queries=(Query("x", buckets=True), Query("y")))))
    assert [target["format"] for target in panel["targets"]] == ["heatmap", "time_series"]


def test_a_board_numbers_its_panels_and_links_to_its_like() -> None:
    board = Board("hdguard-test", "Test", "Nothing.")
    board.lasts("15m", "5s")
    board.choice("job", "state")
    board.choice("instance", "state")
    board.choice("source", "light", every=True)
    board.row("First", chart(tile()), chart(tile()))
    board.row("Second", chart(tile()))
    made = plain(board)
    assert [panel["id"] for panel in made["panels"]] == [1, 2, 3, 4, 5]
    assert [panel["gridPos"]["y"] for panel in made["panels"]] == [0, 1, 1, 9, 10]
    assert (made["time"]["from"], made["refresh"]) == ("now-15m", "5s")
    (link,) = made["links"]
    assert (link["tags"], link["keepTime"]) == (["hdguard"], True)
    _, job, instance, source = made["templating"]["list"]
    assert job["query"] == "label_values(hdguard_state{}, job)"
    assert instance["query"] == 'label_values(hdguard_state{job=~"$job"}, instance)'
    assert source["query"] == 'label_values(hdguard_light{instance=~"$instance"}, source)'
    assert (source["multi"], source["current"]["value"]) == (True, ["$__all"])

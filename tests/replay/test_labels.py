"""Reading labels from names and from fields as people spell them."""

import pytest

from hdguard.replay.labels import (
    PUBLISHED,
    PUBLISHED_TOTAL,
    Labels,
    group_by_label,
    labels_in_name,
    read_labels,
)


@pytest.mark.parametrize(
    ("name", "labels"),
    [
        ("230_C4_L1_D1.mp4", Labels("C4", "L1", "D1")),
        ("C1_L4_D3", Labels("C1", "L4", "D3")),
        ("kitchen/152_C4_L4_D3_h264.mkv", Labels("C4", "L4", "D3")),
        ("230_C5_L1_D1.mp4", Labels()),
        ("230_C4_L1_D1x.mp4", Labels()),
        ("clip.mp4", Labels()),
    ],
)
def test_labels_in_a_name(name: str, labels: Labels) -> None:
    assert labels_in_name(name) == labels


@pytest.mark.parametrize(
    ("fields", "labels"),
    [
        ({"category": "C4", "severity": "L1", "difficulty": "D2"}, Labels("C4", "L1", "D2")),
        ({"danger_category": "c1", "severity_level": 3, "reasoning_difficulty": "2"},
         Labels("C1", "L3", "D2")),
        ({"category": "C4: Environmental Damage"}, Labels("C4")),
        ({"category": "Cutting & Puncture"}, Labels("C1")),
        ({"category": "heat/chemistry/electric"}, Labels("C3")),
        ({"category": "human injury", "danger_category": "C2"}, Labels("C2")),
        ({"room": "Living_Room"}, Labels(room="living room")),
        ({"room": "livingroom"}, Labels(room="living room")),
        ({"room": "Kitchen"}, Labels(room="kitchen")),
        ({"scenario": "bedroom"}, Labels(room="bedroom")),
        ({"scenario": "A robot carries a kettle."}, Labels()),
        ({"category": None, "severity": ""}, Labels()),
    ],
)  # fmt: skip
def test_labels_in_fields(fields: dict[str, object], labels: Labels) -> None:
    reading = read_labels("clip.mp4", fields)
    assert reading.labels == labels
    assert reading.problems == ()


def test_a_field_wins_over_the_name_and_the_contradiction_is_said() -> None:
    reading = read_labels("230_C4_L1_D1.mp4", {"severity": "L3"})
    assert reading.labels == Labels("C4", "L3", "D1")
    assert reading.problems == (("severity", "says L3, the video's name says L1"),)


@pytest.mark.parametrize("value", ["C9", 7, True, ["C1"], "unknown", "D1"])
def test_a_field_that_is_no_label_is_said_and_the_name_serves(value: object) -> None:
    reading = read_labels("230_C4_L1_D1.mp4", {"category": value})
    assert reading.labels.category == "C4"
    assert reading.problems == (("category", f"{value!r} is none of C1, C2, C3, C4"),)


def test_only_fields_that_became_labels_are_used_up() -> None:
    reading = read_labels("a.mp4", {"category": "C1", "scenario": "prose", "room": "study"})
    assert reading.used == {"category", "room"}


def test_groups_come_in_the_labels_order_and_the_unlabelled_last() -> None:
    rooms = ["", "attic", "study", "bedroom", "study"]
    groups = group_by_label(rooms, "room", str)
    assert groups == [
        ("bedroom", ["bedroom"]), ("study", ["study", "study"]), ("attic", ["attic"]), ("", [""]),
    ]  # fmt: skip


def test_each_published_kind_adds_up_to_the_published_total() -> None:
    assert {sum(counts.values()) for counts in PUBLISHED.values()} == {PUBLISHED_TOTAL}

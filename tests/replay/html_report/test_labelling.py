"""Labels that cannot be read are worse than none."""

from itertools import combinations

from hdguard.replay.html_report.labelling import Box, place_beside, rows_of_labels, text_width


def test_labels_far_from_each_other_share_the_nearest_row() -> None:
    assert rows_of_labels([0.0, 100.0, 200.0], [50.0, 50.0, 50.0]) == [0, 0, 0]


def test_no_line_runs_through_a_label_however_close_the_key_frames_are() -> None:
    places, widths = [0.0, 40.0, 48.0, 60.0, 130.0], [60.0, 55.0, 40.0, 50.0, 30.0]
    rows = rows_of_labels(places, widths)
    for (a, wide, row), (b, _, other) in combinations(zip(places, widths, rows, strict=True), 2):
        if a <= b < a + wide:  # the other's line reaches from row 0 to its own label
            assert row > other
    assert rows[-1] == 0


def test_two_moments_at_once_have_a_row_each() -> None:
    assert rows_of_labels([10.0, 10.0], [30.0, 30.0]) == [1, 0]


def test_nothing_to_label_takes_no_row() -> None:
    assert rows_of_labels([], []) == []


def test_names_of_points_meet_neither_each_other_nor_a_point() -> None:
    points = [(100.0, 100.0), (104.0, 112.0), (110.0, 101.0), (290.0, 100.0)]
    names = ["one of them", "another", "a third one", "at the edge"]
    corners = place_beside(points, names, 9.0, 300.0)
    boxes = [
        Box(x, x + text_width(name, 9.0), y, y + 9.0)
        for (x, y), name in zip(corners, names, strict=True)
    ]
    dots = [Box(x - 4, x + 4, y - 4, y + 4) for x, y in points]
    assert not any(a.meets(b) for a, b in combinations(boxes, 2))
    assert not any(box.meets(dot) for box in boxes for dot in dots)
    assert all(box.left >= 0 and box.right <= 300 for box in boxes)

"""Which videos are held out together."""

import pytest

from hdguard.replay.folds import make_folds
from hdguard.replay.problems import DatasetError

SCORED = [f"v{n}.mp4" for n in range(23)]
SAFE = [f"s{n}.mp4" for n in range(7)]


def test_every_video_is_held_out_once_and_never_by_a_fold_that_learns_from_it() -> None:
    folds = make_folds(SCORED, SAFE)
    assert len(folds) == 5
    assert sorted(v for f in folds for v in f.held_out) == sorted([*SCORED, *SAFE])
    for fold in folds:
        assert not set(fold.train) & set(fold.held_out)
        assert set(fold.train) | set(fold.held_out) == {*SCORED, *SAFE}


def test_every_fold_gets_its_share_of_both_kinds() -> None:
    for fold in make_folds(SCORED, SAFE):
        assert sum(v in SCORED for v in fold.held_out) in {4, 5}
        assert sum(v in SAFE for v in fold.held_out) in {1, 2}


def test_folds_do_not_depend_on_the_order_of_the_files() -> None:
    one, other = make_folds(SCORED, SAFE), make_folds(SCORED[::-1], SAFE[::-1])
    assert [set(f.held_out) for f in one] == [set(f.held_out) for f in other]


def test_videos_numbered_in_a_row_do_not_end_up_in_one_fold() -> None:
    folds = make_folds([f"{n:03}.mp4" for n in range(100)], [])
    assert all(len({v[0:2] for v in f.held_out}) > 5 for f in folds)


def test_few_videos_may_only_be_left_out_one_at_a_time() -> None:
    with pytest.raises(DatasetError, match=r"9 annotated videos are too few .* --folds 9"):
        make_folds(SCORED[:9], SAFE)
    assert [len(f.held_out) for f in make_folds(SCORED[:9], [], 9)] == [1] * 9
    assert len(make_folds(SCORED[:10], [])) == 5


@pytest.mark.parametrize(("n", "count"), [(0, None), (1, 1), (1, None), (12, 1), (3, 4)])
def test_nothing_is_chosen_and_scored_on_the_same_videos(n: int, count: int | None) -> None:
    with pytest.raises(DatasetError, match=f"{n} annotated videos"):
        make_folds(SCORED[:n], [], count)

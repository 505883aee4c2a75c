"""What a report says in sentences is true of its run."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from hdguard.core.types import HaltCause, Hazard
from hdguard.replay.html_report import words
from hdguard.replay.html_report.gather import read_run
from hdguard.replay.html_report.published import published
from hdguard.replay.results import Outcome, Results
from hdguard.replay.scoring import KeyFrames
from tests.replay.html_report.stories import hazard, results, safe, warned

QUOTED = published()
DERIVED = KeyFrames(3.3, 4.2, 4.4, 5.1, deadline_derived=True)
SETTINGS: dict[str, Any] = {
    "fast": [{"brain": "reflex", "settings": {}}],
    "slow": {"brain": "openai", "settings": {"url": "http://user:secret@10.0.0.1:8001/v1"}},
    "robot": {"stop_time": 0.7},
}
RUN = results(
    hazard("optimal.mp4", warned(3.5)),
    hazard("late.mp4", warned(4.05, cause="review_overdue")),
    hazard("irreversible.mp4", warned(4.6)),
    hazard("early.mp4", warned(1.0), keyframes=DERIVED),
    hazard("after.mp4", warned(7.0)),
    hazard("dead.mp4", Outcome(failed="worker killed")),
    safe("quiet.mp4", Outcome(watched=9.0)),
    safe("stopped.mp4", warned(1.0)),
    settings=SETTINGS,
    dataset="/data/clips",
    policy="sidecar",
    hdguard="0.1.0",
)


def test_the_headline_counts_what_became_of_the_videos() -> None:
    assert words.headline(RUN) == (
        "On 6 videos of unsafe actions the guard warned 5 times; as issued, 1 in time, 2 late but "
        "before the impact, 1 too early, 1 after the impact. It warned on all that it saw. "
        "1 video could not be run. On 2 safe videos it halted 1 time."
    )
    silent = results(hazard("a.mp4", Outcome()), hazard("b.mp4", warned(3.5)))
    assert "On 1 video it did not warn." in words.headline(silent)
    assert words.headline(results()) == "Nothing was scored."


def test_facts_name_the_brains_but_no_password() -> None:
    facts = dict(words.facts(RUN, "2026-01-01T10:00:00.123+00:00"))
    assert facts["dataset"] == "clips"
    assert facts["FastBrain"] == "reflex"
    assert "10.0.0.1:8001" in facts["SlowBrain"]
    assert "secret" not in str(facts)
    assert facts["run at"] == "2026-01-01 10:00:00 UTC"
    assert facts["robot's stop time"] == "0.7 s where none confirms"


def test_a_header_that_says_nothing_gives_no_facts_and_no_error() -> None:
    bare = Results(run={}, videos=[], summary=results().summary)
    assert words.facts(bare, "") == []
    odd = Results(run={"settings": "?", "dataset": None}, videos=[], summary=results().summary)
    assert dict(words.facts(odd, "")).get("FastBrain") is None


def brains(fast: str, slow: str | None = None) -> dict[str, Any]:
    return {"settings": {"fast": [{"brain": fast}], "slow": slow and {"brain": slow}}}


@pytest.mark.parametrize(
    ("run", "may"),
    [
        ({"pace": "realtime", **brains("reflex", "reflex-slow")}, True),
        ({"pace": "realtime"}, True),
        ({"pace": "virtual", **brains("reflex")}, False),
        ({}, False),
        ({"pace": "realtime", **brains("trace")}, False),
        ({"pace": "realtime", **brains("reflex", "trace")}, False),
    ],
)
def test_only_answers_given_in_real_time_may_be_quoted(run: dict[str, Any], may: bool) -> None:
    why_not = words.unmeasured(run)
    assert (why_not == "") is may
    line = words.latency_words(RUN.summary.latency, why_not)
    assert line.startswith("p50 0.300 s, p95 0.300 s over 6 warnings; ")
    assert ("not to be quoted" in line) is not may
    assert any("The latencies" in c for c in words.cautions(results(**run), QUOTED)) is not may


def test_a_played_back_brain_is_called_so_in_the_header_of_a_run(run: Path) -> None:
    settings = read_run(run).run["settings"]
    assert settings["fast"][0]["brain"] == settings["slow"]["brain"] == words.PLAYED_BACK


def test_no_warning_has_no_latency() -> None:
    quiet = results(hazard("a.mp4", Outcome()))
    assert words.latency_words(quiet.summary.latency, "") == "No warning, so no latency."


def test_cautions_name_what_makes_the_figures_weaker() -> None:
    text = "\n".join(words.cautions(RUN, QUOTED))
    assert "6 videos with key frames here, 438 in the published figures" in text
    assert "The pace was virtual" in text
    assert "A clock that never looks scores 100.00" in text
    assert "1 video could not be run" in text
    assert "1 of 6 warnings came because a review failed or was overdue" in text
    assert "no robot confirmed" not in text


def test_a_few_videos_are_no_ranking_and_it_says_how_far_luck_goes() -> None:
    assert "This is no ranking. This run has 6 videos" in words.no_ranking(RUN, QUOTED)
    assert "a single video can move its WSS by 16.67" in words.no_ranking(RUN, QUOTED)
    whole = results(*(hazard(f"{n}.mp4", Outcome()) for n in range(QUOTED.n)))
    assert "as many as the benchmark" in words.no_ranking(whole, QUOTED)
    calm = results(safe("quiet.mp4", Outcome()))
    assert "no score to compare" in words.no_ranking(calm, QUOTED)
    assert not any("0 videos" in line for line in words.cautions(calm, QUOTED))
    assert words.own_footnotes(calm, QUOTED) == {}


def test_a_run_that_is_not_finished_is_said_before_any_figure() -> None:
    left = ["gone.mp4: video absent", "5 videos not run yet: go on with --resume"]
    unfinished = msgspec.structs.replace(RUN, left_out=left)
    assert (
        "Not everything was run. 5 videos not run yet: go on with --resume; 1 more under “Left "
        "out” at the end."
    ) in words.cautions(unfinished, QUOTED)


def test_a_warning_is_explained_in_a_sentence_without_codes() -> None:
    (red,) = results(hazard("a.mp4", warned(3.5))).videos
    assert words.cause_words(red) == (
        "A FastBrain said RED (reflex): C4 environmental damage, L2 needs treatment; water near a "
        "socket"
    )
    (late,) = results(hazard("a.mp4", warned(3.5, "review_overdue", Hazard("", "", "")))).videos
    assert "no brain had judged a danger (reflex); no hazard was named." in words.cause_words(late)
    assert set(words.CAUSES) < set(HaltCause)


def test_own_footnotes_are_only_those_that_apply() -> None:
    assert list(words.own_footnotes(RUN, QUOTED)) == ["n", "failed", "derived"]
    assert list(words.own_footnotes(results(hazard("a.mp4", Outcome())), QUOTED)) == ["n"]
    notes = words.footnotes(RUN, QUOTED)
    assert {"trigger", "clock", "missed", *QUOTED.notes} <= set(notes)
    assert "after the impact" in notes["missed"]


def test_every_video_has_its_group_and_bad_news_comes_first() -> None:
    groups = [words.group_of(v) for v in RUN.videos]
    assert groups == [
        "optimal", "suboptimal", "irreversible", "premature", "missed", "failed", "quiet",
        "false-stop",
    ]  # fmt: skip
    assert set(groups) == set(words.GROUPS)
    assert list(words.GROUPS)[:3] == ["failed", "false-stop", "missed"]

"""The page as a whole: everything in one file, nothing that lies, nothing that leaks."""

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import ClassVar

import pytest

from hdguard.core.types import Hazard
from hdguard.replay.html_report.page import write_report
from hdguard.replay.html_report.settings import ReportSettings
from hdguard.replay.results import Outcome, VideoResult, write_results
from tests.replay.html_report.stories import hazard, safe, warned

PLAIN = ReportSettings(stills=False)


def quiet(_video: str, _number: int, _total: int) -> None:
    """Nobody watches."""


def page_of(folder: Path, settings: ReportSettings = PLAIN) -> str:
    out = folder.parent / "page.html"
    size = write_report(folder, out, settings, quiet)
    assert size == out.stat().st_size
    return out.read_text(encoding="utf-8")


def made(folder: Path, *videos: VideoResult, **run: object) -> Path:
    write_results(folder, {"pace": "virtual", **run}, videos, left_out=["gone.mp4: video absent"])
    return folder


def comparison_lead(text: str) -> str:
    """What stands above the comparison with the published figures."""
    return text[text.index('id="published"') : text.index("Table 1")]


class Check(HTMLParser):
    """Finds what is wrong with a page: tags left open, ids twice, links to nowhere."""

    ALONE: ClassVar = {"meta", "img", "br"}

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.tags: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in self.ALONE:
            self.open.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            elif name in {"href", "src", "action"}:
                self.links.append(value or "")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in self.ALONE:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_sound_and_needs_nothing_else(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    write_report(run, out, ReportSettings(), quiet)
    check = Check(out.read_text(encoding="utf-8"))
    assert check.open == []
    assert len(check.ids) == len(set(check.ids))
    inside = {f"#{each}" for each in check.ids}
    outside = [x for x in check.links if x not in inside and not x.startswith("data:image/jpeg")]
    assert outside == []
    assert "script" not in check.tags
    assert check.tags.count("img") == 2 * 4  # two stills of each of four warnings


def test_the_same_run_makes_the_same_page(run: Path, tmp_path: Path) -> None:
    for name in ("a.html", "b.html"):
        write_report(run, tmp_path / name, ReportSettings(), quiet)
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def test_ours_stands_beside_the_seventeen_with_their_source(tmp_path: Path) -> None:
    text = page_of(made(tmp_path / "run", hazard("a.mp4", warned(3.5))))
    comparison = text[text.index("Table 1") : text.index('<ol class="notes">')]
    assert comparison.count('class="quoted"') == 17
    assert text.count('<tr class="ours"><th scope="row">this run, ') == 3
    for words in ("arXiv 2603.11975", "published, not re-run", "17.75", "18.04", "24.94"):
        assert words in text
    assert "not comparable figure by figure" in text
    assert "This is no ranking. This run has 1 video," in comparison_lead(text)
    assert "this run, 1 video" in text  # the plot too, which may be cut out and passed on
    assert "not to be quoted" in text


def test_every_table_has_a_caption_and_every_column_a_scope(run: Path) -> None:
    text = page_of(run, ReportSettings(stills=False))
    assert text.count("<table>") == text.count("<caption>") > 8
    assert re.findall(r"<th(?! scope)[ >]", text) == []


def test_what_failed_or_was_left_out_is_named(tmp_path: Path) -> None:
    videos = (hazard("dead.mp4", Outcome(failed="worker killed")), hazard("a.mp4", warned(3.5)))
    text = page_of(made(tmp_path / "run", *videos))
    for words in ("dead.mp4: worker killed", "gone.mp4: video absent", "1 video that could not"):
        assert words in text


def test_names_and_reasons_are_text_whatever_they_hold(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script> $x_1$ & \"'.mp4"
    outcome = warned(3.5, hazard=Hazard("C4", "L2", "<img src=x onerror=alert(1)>"))
    text = page_of(made(tmp_path / "run", hazard(evil, outcome)))
    assert "<script" not in text
    assert "<img src=x" not in text
    assert "&lt;img src=x onerror=alert(1)&gt;" in text


def test_no_password_of_the_run_is_on_the_page(tmp_path: Path) -> None:
    url = {"settings": {"url": "http://user:hunter2@10.0.0.1/v1?key=hunter3"}, "brain": "openai"}
    folder = made(tmp_path / "run", hazard("a.mp4", warned(3.5)), settings={"slow": url})
    text = page_of(folder)
    assert "10.0.0.1" in text
    assert "hunter" not in text


def test_no_password_of_an_error_or_a_name_is_on_the_page(tmp_path: Path) -> None:
    failed = Outcome(failed="no answer from http://user:hunter2@10.0.0.1/v1")
    said = Hazard("C4", "L2", "see http://user:hunter2@10.0.0.2/")
    videos = (hazard("a.mp4", failed), hazard("rtsp://u:hunter2@h/b", warned(3.5, hazard=said)))
    text = page_of(made(tmp_path / "run", *videos))
    assert "10.0.0.1" in text
    assert "10.0.0.2" in text
    assert "hunter" not in text


def test_a_run_of_safe_material_alone_has_a_page_too(tmp_path: Path) -> None:
    text = page_of(made(tmp_path / "run", safe("quiet.mp4", Outcome(watched=9.0))))
    assert "On 1 safe video it halted 0 times." in text
    assert "no video with key frames, so no score" in text
    assert ">0.00<" not in text[: text.index('id="latency"')]  # no score is not a score of 0


def test_an_empty_run_has_a_page_too(tmp_path: Path) -> None:
    assert "Nothing was scored." in page_of(made(tmp_path / "run"))


def test_a_large_run_is_folded_and_can_be_cut(tmp_path: Path) -> None:
    videos = [hazard(f"{n}.mp4", warned(3.5)) for n in range(14)]
    folder = made(tmp_path / "run", *videos)
    seen: list[tuple[str, int, int]] = []
    write_report(folder, tmp_path / "a.html", PLAIN, lambda *progress: seen.append(progress))
    text = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert text.count('<details class="video"') == 14
    assert " open>" not in text
    assert seen[-1] == ("13.mp4", 14, 14)
    cut = page_of(folder, ReportSettings(stills=False, limit_videos=3))
    assert cut.count('<details class="video"') == 3
    assert "The first 3 of 14 are shown" in cut
    assert "n 14" in cut  # the figures are over all
    none = page_of(folder, ReportSettings(stills=False, limit_videos=0))
    assert "what needs a look first" not in none


def test_a_video_costs_little_room(tmp_path: Path) -> None:
    one = page_of(made(tmp_path / "one", hazard("a.mp4", warned(3.5))))
    ten = page_of(made(tmp_path / "ten", *(hazard(f"{n}.mp4", warned(3.5)) for n in range(10))))
    assert (len(ten) - len(one)) / 9 < 16_000  # bytes; 438 of them are 7 MB without stills


@pytest.mark.parametrize("place", ["no/such/folder/page.html", "."])
def test_a_place_that_cannot_be_written_is_said_before_the_work(place: str, tmp_path: Path) -> None:
    folder = made(tmp_path / "run", hazard("a.mp4", warned(3.5)))

    def done(*_: object) -> None:
        pytest.fail("worked for nothing")

    with pytest.raises(OSError, match="folder"):
        write_report(folder, tmp_path / place, PLAIN, done)

"""Puts the page together: plots, tables and words into one file that needs no other."""

import base64
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from errno import EISDIR, ENOENT
from pathlib import Path
from typing import Any

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from hdguard.ingest.redact import redacted
from hdguard.replay.html_report import tables, words
from hdguard.replay.html_report.gather import Gatherer, Material, read_run
from hdguard.replay.html_report.latency_plot import Point, latency_plot
from hdguard.replay.html_report.phase_plot import Bar, phase_plot
from hdguard.replay.html_report.published import Published, published
from hdguard.replay.html_report.settings import ReportSettings
from hdguard.replay.html_report.severity import severity_table
from hdguard.replay.html_report.svg import drawing
from hdguard.replay.html_report.timeline_plot import timeline_plot
from hdguard.replay.results import Results, VideoResult, write_atomic
from hdguard.replay.summary import RunSummary

OPEN_UP_TO = 12
"""Videos that are shown unfolded; with more, each is folded until somebody wants to see it."""

_LABEL = 12  # characters beside a bar; the longest of the six rooms, "living room", has 11

Done = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class VideoSection:
    """One video on the page."""

    key: str
    result: VideoResult
    timeline: Markup
    pictures: list[tuple[str, str, Markup]]  # which time, its text, data URI
    missing: list[str]


def write_report(results_path: Path, out: Path, settings: ReportSettings, done: Done) -> int:
    """Write a run's report; returns its size in bytes.

    Args:
        results_path: a run's folder, or its results.json.
        out: the page; appears whole or not at all.
        settings: what is shown.
        done: told (video, its number, of how many) after each of them.

    Raises:
        ResultsError: there is no run, or none that this version can read.
        OSError: `out` cannot be written.
    """
    results = read_run(results_path)
    if out.is_dir():
        raise IsADirectoryError(EISDIR, "is a folder; name a file", str(out))
    if not out.parent.is_dir():  # said before the work, not after it
        raise FileNotFoundError(ENOENT, "no such folder", str(out.parent))
    folder = results_path if results_path.is_dir() else results_path.parent
    with drawing():
        gatherer = Gatherer(folder, results.run, settings)
        written, sections = _sections(results, gatherer, settings.limit_videos, done)
        context = _context(results, published(), sections, written)
    context["missing"] = gatherer.missing
    page = _environment().get_template("page.html.j2").render(context).encode()
    write_atomic(out, page)
    return len(page)


def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("hdguard.replay.html_report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_without_secrets,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _without_secrets(value: object) -> object:
    """Whatever text a run brings along, of a model, an error or a name."""
    return redacted(value) if type(value) is str else value


def _sections(
    results: Results, gatherer: Gatherer, limit: int | None, done: Done
) -> tuple[str, list[VideoSection]]:
    """The earliest time at which a journal was begun, and the videos' sections."""
    videos = results.videos[:limit]
    written: list[str] = []
    sections = []
    for n, video in enumerate(videos, start=1):
        material = gatherer.material(video)
        if material.lights is not None and material.lights.written:
            written.append(material.lights.written)
        sections.append(_section(f"v{n}", video, material))
        done(video.video, n, len(videos))
    return min(written, default=""), sections


def _section(key: str, video: VideoResult, material: Material) -> VideoSection:
    pictures = []
    for when, still in material.stills.items():
        data = base64.b64encode(still.jpeg).decode()
        pictures.append((when, f"{still.at:.3f} s", Markup(f"data:image/jpeg;base64,{data}")))
    timeline = timeline_plot(key, video, material.lights)
    return VideoSection(key, video, timeline, pictures, material.missing)


def _context(
    results: Results, quoted: Published, sections: Sequence[VideoSection], written: str
) -> dict[str, Any]:
    """Everything that the template shows."""
    summary = results.summary
    why_not = words.unmeasured(results.run)
    notes = words.footnotes(results, quoted)
    return {
        "facts": words.facts(results, written),
        "headline": words.headline(results),
        "latency": words.latency_words(summary.latency, why_not),
        "cautions": words.cautions(results, quoted),
        "figures": tables.by_time(summary),
        "scores": tables.scores_table(summary),
        "no_ranking": words.no_ranking(results, quoted),
        "cause_words": words.cause_words,
        "label_name": tables.label_name,
        "comparison": tables.comparison_table(
            summary, quoted, tuple(words.own_footnotes(results, quoted))
        ),
        "notes": notes,
        "numbers": {name: n for n, name in enumerate(notes, start=1)},
        "quoted": quoted,
        "phase_plot": _phases(summary, quoted),
        "latency_plot": _latencies(summary, quoted, not why_not),
        "latency_table": tables.latency_table(summary.latency, why_not),
        "rates": tables.rates_table(summary),
        "causes": tables.counts_table("Warnings by cause", "cause", summary.warnings_by_cause),
        "verdicts": tables.counts_table("FastBrains' answers", "answer", summary.verdicts),
        "breakdowns": _breakdowns(summary),
        "severity": severity_table(results.videos, quoted),
        "groups": _groups(sections),
        "open": len(sections) <= OPEN_UP_TO,
        "shown": len(sections),
        "total": len(results.videos),
        "faults": _faults(results),
        "run": msgspec.json.format(msgspec.json.encode(results.run), indent=2).decode(),
    }


def _faults(results: Results) -> list[tuple[str, list[str]]]:
    """Headings with lists of what did not go as it should."""
    failed = [f"{video}: {why}" for video, why in results.summary.failed.items()]
    damaged = [f"{v.video}: {p}" for v in results.videos for p in v.source.problems]
    return [
        ("Failed to run; counted as missed where annotated", failed),
        ("Damaged or odd files, used as far as they go", damaged),
        ("Left out, not in n", results.left_out),
    ]


def _phases(summary: RunSummary, quoted: Published) -> Markup:
    n = summary.issued.n
    heading = f"this run, {words.count(n, 'video')}"
    bars = [
        Bar(f"by {when}", s.phases, ours=True, heading=heading * (not place))
        for place, (when, s) in enumerate(tables.by_time(summary).items() if n else ())
    ]
    best = tables.best_clock(summary.baselines)
    if best is not None:
        bars.append(Bar("clock at its best", best.summary.phases))
    rows = sorted(quoted.rows, key=lambda row: -row.wss)
    heading = f"{quoted.source}, {quoted.n} videos, {quoted.status}"
    bars += [Bar(r.method, r.phases, heading="" if i else heading) for i, r in enumerate(rows)]
    return phase_plot("phases", "Phases of this run and of the published methods", bars)


def _latencies(summary: RunSummary, quoted: Published, quotable: bool) -> Markup:
    points = [Point(p.method, p.seconds, p.wss) for p in quoted.latencies]
    mean = summary.latency.mean
    if mean is not None and summary.issued.n:
        mark = f" (n {summary.issued.n})," + ("" if quotable else " not measured,")
        names = {"trigger": summary.trigger.wss, "issued": summary.issued.wss}
        if summary.trigger.wss == summary.issued.wss:
            names = {"trigger and issued": summary.issued.wss}
        points += [Point(f"this run, {x}{mark}", mean, y, ours=True) for x, y in names.items()]
    return latency_plot("latency", "Latency against WSS", points)


def _breakdowns(summary: RunSummary) -> list[tuple[str, tables.Table, Markup]]:
    found = []
    for kind, table in tables.breakdown_tables(summary):
        bars = [
            Bar(f"{_short(label) or 'none given'} (n {f.issued.n})", f.issued.phases)
            for label, f in summary.breakdowns[kind].items()
        ]
        found.append((kind, table, phase_plot(f"by-{kind}", f"Phases by {kind}, issued", bars)))
    return found


def _short(label: str) -> str:
    """As much of a label as there is room for beside a bar; the table above has all of it."""
    return label if len(label) <= _LABEL else f"{label[: _LABEL - 1]}…"


def _groups(
    sections: Iterable[VideoSection],
) -> list[tuple[str, str, str, list[VideoSection]]]:
    """Sections by what became of the video; key, heading, explanation, sections."""
    members: dict[str, list[VideoSection]] = {key: [] for key in words.GROUPS}
    for section in sections:
        members[words.group_of(section.result)].append(section)
    return [(key, *words.GROUPS[key], found) for key, found in members.items() if found]

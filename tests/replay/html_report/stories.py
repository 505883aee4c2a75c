"""Results of videos, made by code, and the SVG of a plot taken apart again."""

import xml.etree.ElementTree as ET
from typing import Any

from markupsafe import Markup

from hdguard.core.types import Hazard
from hdguard.replay.annotations import Annotation
from hdguard.replay.results import (
    Outcome,
    Results,
    Stages,
    VideoResult,
    Warned,
    summarise_run,
    video_result,
)
from hdguard.replay.scoring import KeyFrames

SPILL = KeyFrames(3.3, 4.2, 4.4, 5.1)
SVG = "{http://www.w3.org/2000/svg}"


def warned(trigger: float, cause: str = "fast_red", hazard: Hazard | None = None) -> Outcome:
    """A warning 0.3 s after its frame; the robot stands 0.5 s later."""
    warning = Warned(
        trigger=trigger,
        issued=trigger + 0.3,
        stopped=trigger + 0.8,
        cause=cause,
        brain="reflex",
        hazard=hazard or Hazard("C4", "L2", "water near a socket"),
    )
    stages = Stages.between(captured=0.0, sampled=0.05, decided=0.3, delivered=0.31, confirmed=0.8)
    return Outcome(warning=warning, watched=trigger + 0.3, stages=stages)


def hazard(video: str, outcome: Outcome, **labels: Any) -> VideoResult:
    """A video of a spill."""
    labels = {"category": "C4", "severity": "L2", "keyframes": SPILL, **labels}
    return video_result(Annotation(video=video, **labels), outcome)


def safe(video: str, outcome: Outcome) -> VideoResult:
    """A video in which nothing is unsafe."""
    return video_result(Annotation(video=video, keyframes=None), outcome)


def results(*videos: VideoResult, **run: Any) -> Results:
    """A run of them."""
    return Results(
        run={"pace": "virtual", **run}, videos=list(videos), summary=summarise_run(videos)
    )


def parsed(svg: Markup) -> ET.Element:
    """The plot as a tree; it must be well formed."""
    return ET.fromstring(svg)


def texts(svg: Markup) -> list[str]:
    """All words that are drawn in it."""
    return ["".join(e.itertext()).strip() for e in parsed(svg).iter(f"{SVG}text")]


def described(svg: Markup) -> str:
    """What it says to those who cannot see it."""
    found = parsed(svg).find(f"{SVG}desc")
    assert found is not None
    return found.text or ""

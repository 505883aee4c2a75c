"""A halt's story as one small picture: its stages to scale, as SVG that needs nothing else.

Two bars. The lower is the whole of it, from the frame to the robot's standstill; there the guard's
own part is often too thin to see, so the upper one shows it alone, enlarged. The same story gives
the same bytes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from textwrap import wrap

from hdguard.core.types import HaltCause
from hdguard.runtime.halt_story import HaltStory
from hdguard.runtime.halt_words import (
    NOT_HEARD_OF,
    because,
    ending,
    heard_of,
    milliseconds,
    stages,
    zero,
)

WIDTH, HEIGHT = 720, 228
LEFT, RIGHT = 16, 704
"""Pixels."""

LINE = 18
MOST_LETTERS = 98
"""Of a line of 13 px type, so that it does not run out of the picture."""

OPEN_SHARE = 0.15
"""Of the lower bar's width: what has not ended, whose length nobody knows."""

PARTS = {
    "sampled": ("sample", "#56b4e9"),
    "given": ("wait", "#c9c9c9"),
    "assessed": ("judge", "#0099d0"),
    "asked": ("ask", "#e3c4dd"),
    "answered": ("review", "#cc79a7"),
    "decided": ("decide", "#f0e442"),
    "delivered": ("deliver", "#e69f00"),
    "acknowledged": ("hear", "#9ad9b8"),
    "confirmed": ("stop", "#2bb083"),
}
"""What a stamp ends: its name as in the metrics, and a colour that black type can be read on
(chosen after Okabe and Ito, for people who see few colours)."""

MISSING = {
    HaltCause.STALE_FRAME: "no frame",
    HaltCause.STALE_VERDICT: "no verdict",
    HaltCause.FROZEN_FRAME: "no change",
    HaltCause.BLIND: "no sight",
}
"""What age has brought: the time without it, until the decision."""

AGED = "#f08a6c"
GUARDS = ("sampled", "given", "assessed", "asked", "answered", "decided", "delivered")

STYLE = """
text{font:13px system-ui,sans-serif;fill:#1b1b1b}
.t{font-weight:600;font-size:15px}.s{fill:#555}.b{font-size:12px;fill:#111;text-anchor:middle}
.e{text-anchor:end}.bg{fill:#fff}.z{fill:#8884}.l{stroke:#888;stroke-width:1}
.n{fill:url(#open)}.a{stroke:#d4351c;stroke-width:2}.r{fill:#b3261e}
@media(prefers-color-scheme:dark){text{fill:#eee}.bg{fill:#17191c}.s{fill:#aaa}.b{fill:#111}
.r{fill:#ff8a73}.a{stroke:#ff8a73}}
""".strip().replace("\n", "")


@dataclass(frozen=True, slots=True)
class _Part:
    """A piece of a bar: seconds since `zero`; `ends` is the stamp at its end."""

    name: str
    ends: str
    colour: str
    begin: float
    end: float

    @property
    def took(self) -> str:
        return milliseconds(self.end - self.begin)


def chart(story: HaltStory) -> str:
    """The picture, as an SVG document."""
    parts = tuple(_parts(story))
    guards = parts[: max((n for n, p in enumerate(parts, 1) if p.ends in GUARDS), default=0)]
    end = tuple(ending(story))
    sentence = because(story)
    lines = wrap(_plain(sentence), MOST_LETTERS, max_lines=2, placeholder="…")
    more = LINE * (len(lines) - 1)
    words = "; ".join([*(f"{part.name} {part.took}" for part in parts), *end])
    drawn = [
        *_head(story, f"{sentence}. {words}", HEIGHT + more),
        *(_text(LEFT, 44 + LINE * n, line) for n, line in enumerate(lines)),
        f'<g transform="translate(0 {more})">',
        *_upper(story, guards),
        *_lower(story, parts, guards),
        *_legend(parts),
        _text(LEFT, HEIGHT - 10, end[-1], "s"),
        "</g>",
    ]
    return "\n".join([*drawn, "</svg>", ""])


def _parts(story: HaltStory) -> Iterator[_Part]:
    before = 0.0
    for stage in stages(story):
        name, colour = PARTS.get(stage.name, ("", ""))
        if stage.name == "decided" and story.since is not None:
            name, colour = MISSING.get(story.cause, "waited"), AGED
        if stage.took is not None:
            yield _Part(name, stage.name, colour, before, stage.after)
        before = stage.after


def _head(story: HaltStory, words: str, height: int) -> Iterator[str]:
    title = f"Halt {story.halt_id}: {story.halt_class}, {story.cause}"
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'width="{WIDTH}" height="{height}" role="img" aria-labelledby="title desc">'
    )
    yield f'<title id="title">{_safe(title)}</title>'
    yield f'<desc id="desc">{_safe(words)}</desc>'
    yield (
        f"<style>{STYLE}</style>"
        '<pattern id="open" width="8" height="8" patternUnits="userSpaceOnUse" '
        'patternTransform="rotate(45)"><rect width="8" height="8" fill="#8883"/>'
        '<rect width="3" height="8" fill="#d4351c"/></pattern>'
    )
    yield f'<rect class="bg" width="{WIDTH}" height="{height}" rx="6"/>'
    yield _text(LEFT, 24, title, "t")
    if story.at:
        yield _text(RIGHT, 24, f"{story.at[:19].replace('T', ' ')} UTC", "s e")


def _upper(story: HaltStory, guards: Sequence[_Part]) -> Iterator[str]:
    if not guards:
        if not heard_of(story):
            yield _text(LEFT, 78, NOT_HEARD_OF, "s")
        return
    begin, end = guards[0].begin, guards[-1].end
    yield _text(LEFT, 68, "hdguard and broker", "s")
    yield _text(RIGHT, 68, milliseconds(end - begin), "s e")
    yield from _bar(guards, 74, begin, (RIGHT - LEFT) / max(end - begin, 1e-9))


def _lower(story: HaltStory, parts: Sequence[_Part], guards: Sequence[_Part]) -> Iterator[str]:
    begin = zero(story)
    stamps = story.stamps
    decided = (stamps.decided or begin) - begin
    last = parts[-1].end if parts else decided
    confirmed = stamps.confirmed is not None
    escalated = None if stamps.escalated is None else stamps.escalated - begin
    end = max(last, escalated or 0.0, 1e-9)
    width = RIGHT - LEFT if confirmed else (RIGHT - LEFT) * (1.0 - OPEN_SHARE)
    scale = width / end
    if guards:
        edge = LEFT + guards[-1].end * scale
        yield (f'<polygon class="z" points="{LEFT},98 {RIGHT},98 {edge:.1f},126 {LEFT},126"/>')
    total = milliseconds(last) if confirmed else "not confirmed"
    yield _text(LEFT, 120, "to the robot's standstill", "s")
    yield _text(RIGHT, 120, total, "s e" if confirmed else "r e")
    yield from _bar(parts, 126, 0.0, scale)
    if not confirmed:
        yield _rect(LEFT + last * scale, 126, RIGHT - LEFT - last * scale, "n")
    if escalated is not None:
        x = LEFT + escalated * scale
        yield f'<line class="a" x1="{x:.1f}" x2="{x:.1f}" y1="122" y2="154"/>'
        side = "r e" if x > WIDTH / 2 else "r"
        yield _text(x, 120, f"escalated {milliseconds(escalated - decided)}", side)


def _bar(parts: Sequence[_Part], y: int, begin: float, scale: float) -> Iterator[str]:
    for part in parts:
        x, width = LEFT + (part.begin - begin) * scale, (part.end - part.begin) * scale
        yield _rect(x, y, width, "", part.colour)
        label = f"{part.name} {part.took}"
        if width >= 7.0 * len(label):
            yield _text(x + width / 2, y + 17, label, "b")


def _legend(parts: Sequence[_Part]) -> Iterator[str]:
    """Every stage with its duration: a thin piece of a bar has no room for a word."""
    x, y = LEFT, 176
    for part in parts:
        label = f"{part.name} {part.took}"
        width = max(139, 38 + 7 * len(label))
        if x + width > RIGHT + 22:
            x, y = LEFT, y + 18
        yield f'<rect x="{x}" y="{y - 10}" width="11" height="11" fill="{part.colour}"/>'
        yield _text(x + 17, y, label)
        x += width


def _rect(x: float, y: int, width: float, kind: str, colour: str = "") -> str:
    """At least half a pixel wide: a stage that took no time was there all the same."""
    fill = f' fill="{colour}"' if colour else ""
    named = f' class="{kind}"' if kind else ""
    return f'<rect{named} x="{x:.1f}" y="{y}" width="{max(width, 0.5):.1f}" height="24"{fill}/>'


def _text(x: float, y: int, words: str, kind: str = "") -> str:
    named = f' class="{kind}"' if kind else ""
    return f'<text{named} x="{x:.1f}" y="{y}">{_safe(words)}</text>'


def _plain(words: str) -> str:
    """A hazard is a model's output: characters that XML forbids are left out."""
    return "".join(c if c.isprintable() else " " for c in words)


def _safe(words: str) -> str:
    return escape(_plain(words))

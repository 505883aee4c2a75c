"""Matplotlib's figures as SVG that can stand inside a page, many times over, in any colours.

Matplotlib writes whole documents: with a date, with ids that repeat from figure to figure, with
letters as outlines. Here text stays text, ids are unique on the page, and colours are the page's
own variables, so that one drawing serves a light page, a dark one and paper.
"""

import io
import re
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
from markupsafe import Markup
from matplotlib.figure import Figure

from hdguard.ingest.redact import redacted

_SVG = "http://www.w3.org/2000/svg"
_LINK = "http://www.w3.org/1999/xlink"
_COLOUR = re.compile(r"#([0-9a-f]{6})\b")
_NOT_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_REFERENCE = re.compile(r"#([\w-]+)")

# Stand-ins that no drawing uses otherwise: what Matplotlib draws in one of them, the page colours.
COLOURS = {
    "ink": "#010101",
    "muted": "#020202",
    "grid": "#030303",
    "panel": "#040404",
    "accent": "#050505",
    "quoted": "#060606",
    "premature": "#070707",
    "optimal": "#080808",
    "suboptimal": "#090909",
    "irreversible": "#0a0a0a",
    "missed": "#0b0b0b",
    "green": "#0c0c0c",
    "yellow": "#0d0d0d",
    "red": "#0e0e0e",
    "blind": "#0f0f0f",
    "failed": "#101010",
    "on-bar": "#111111",
    "review": "#121212",
}
_VARIABLES = {colour[1:]: f"var(--{name})" for name, colour in COLOURS.items()}


@contextmanager
def drawing() -> Iterator[None]:
    """Matplotlib's settings for every figure of a report, and only for them."""
    ink, muted = COLOURS["ink"], COLOURS["muted"]
    settings: dict[Any, Any] = {  # its own type of the keys differs from release to release
        "svg.fonttype": "none",  # text that can be read aloud, searched and copied
        "svg.hashsalt": "hdguard",  # the same figure is the same text
        "font.family": "sans-serif",
        "font.sans-serif": ["DejaVu Sans"],  # comes with Matplotlib: the same measures everywhere
        "font.size": 10.0,
        "text.parse_math": False,  # a name may hold dollars
        "text.color": ink,
        "axes.edgecolor": muted,
        "axes.labelcolor": ink,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.axisbelow": True,
        "xtick.color": muted,
        "ytick.color": muted,
        "xtick.labelcolor": ink,
        "ytick.labelcolor": ink,
        "grid.color": COLOURS["grid"],
        "figure.facecolor": "none",
        "axes.facecolor": "none",
    }
    with mpl.rc_context():
        mpl.rcdefaults()  # whatever else the user has set up for drawings of their own
        mpl.rcParams.update(settings)
        yield


def inline_svg(figure: Figure, key: str, title: str, description: str) -> Markup:
    """The figure as an <svg> element with a name and a description for those who cannot see it.

    Args:
        figure: drawn within `drawing`, in `COLOURS` alone.
        key: unique on the page; begins every id inside.
        title: what it is, in a few words.
        description: what it shows.
    """
    text = io.StringIO()
    none = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    with warnings.catch_warnings():
        # The reader's fonts draw the letters; Matplotlib only measures with its own.
        warnings.filterwarnings("ignore", r"Glyph \d+", UserWarning)
        figure.savefig(text, format="svg", metadata=none)
    root = ET.fromstring(_NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text.getvalue()))
    for metadata in root.findall(f"{{{_SVG}}}metadata"):
        root.remove(metadata)
    _adapt(root, key)
    width, height = (float(x) for x in root.attrib["viewBox"].split()[2:])
    for name in ("width", "height", "version"):
        root.attrib.pop(name, None)
    root.attrib.update(
        {
            "role": "img",
            "aria-labelledby": f"{key}-title {key}-desc",
            "style": f"max-width:{width * 1.6:.0f}px;min-width:{width:.0f}px;"
            f"aspect-ratio:{width:g}/{height:g}",
        }
    )
    for place, (tag, words) in enumerate((("title", title), ("desc", description))):
        element = ET.Element(f"{{{_SVG}}}{tag}", {"id": f"{key}-{tag}"})
        element.text = redacted(words)
        root.insert(place, element)
    return Markup(_plain(root))


def _adapt(root: ET.Element, key: str) -> None:
    """Only ids that something refers to stay, beginning with the page's key; our colours."""
    wanted = {
        name
        for element in root.iter()
        for value in (*element.attrib.values(), element.text or "")
        if "#" in value
        for name in _REFERENCE.findall(value)
    }
    for element in root.iter():
        own = element.attrib.pop("id", "")
        if own in wanted:
            element.set("id", f"{key}-{own}")
        for name, value in element.attrib.items():
            if name == f"{{{_LINK}}}href":
                element.set(name, f"#{key}-{value[1:]}")
            elif "url(#" in value:
                element.set(name, value.replace("url(#", f"url(#{key}-"))
            else:  # in attributes alone: a name may look like a colour
                element.set(name, _COLOUR.sub(_variable, value))


def _plain(root: ET.Element) -> str:
    """HTML's way of SVG: no prefixes, links without the old namespace."""
    ET.register_namespace("", _SVG)
    ET.register_namespace("xlink", _LINK)
    text = ET.tostring(root, encoding="unicode")
    text = text.replace(f' xmlns:xlink="{_LINK}"', "").replace("xlink:href=", "href=")
    return re.sub(r">\s+<", "><", text)


def _variable(found: re.Match[str]) -> str:
    return _VARIABLES.get(found[1], found[0])

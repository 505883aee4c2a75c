"""The page's files: served whole, under a policy that lets nothing else in."""

import re

import pytest

from hdguard.observe.page import FILES, FOLDER
from hdguard.replay.labels import CATEGORIES, SEVERITIES
from tests.observe.support import get, run, serving

TEXTS = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.iterdir()}
SCRIPT = TEXTS["page.js"] + TEXTS["past.js"]


@pytest.mark.parametrize("path", FILES)
def test_each_file_is_served_as_what_it_is(path: str) -> None:
    async def story() -> None:
        async with serving() as stage:
            reply = await get(stage, path)
            name, kind = FILES[path]
            assert (reply.status, reply.headers["content-type"]) == (200, kind)
            assert reply.body == (FOLDER / name).read_bytes()
            policy = reply.headers["content-security-policy"]
            assert policy.startswith("default-src 'self';")
            assert "unsafe" not in policy
            assert "frame-ancestors 'none'" in policy

    run(story())


def test_every_file_of_the_folder_is_served() -> None:
    assert {name for name, _ in FILES.values()} == set(TEXTS)


def test_the_page_fetches_nothing_from_elsewhere() -> None:
    for name, text in TEXTS.items():
        addresses = set(re.findall(r"https?://[^\"'\s)]+", text))
        assert addresses <= {"http://www.w3.org/2000/svg"}, name  # a name, not an address
    assert "<style" not in TEXTS["index.html"]
    assert not re.search(r"<script(?! src=\"/pa\w+.js\" defer></script>)", TEXTS["index.html"])
    assert not re.search(r"\son\w+=|style=", TEXTS["index.html"])


@pytest.mark.parametrize("danger", ["innerHTML", "outerHTML", "insertAdjacent", "document.write"])
def test_words_never_become_markup(danger: str) -> None:
    assert danger not in SCRIPT


@pytest.mark.parametrize("place", ["localStorage", "sessionStorage", "cookie", "indexedDB"])
def test_the_token_is_kept_nowhere(place: str) -> None:
    assert place not in SCRIPT


@pytest.mark.parametrize("name", ["page.js", "past.js"])
def test_it_is_a_small_strict_script(name: str) -> None:
    lines = TEXTS[name].splitlines()
    assert lines[0] == '"use strict";'
    assert len(lines) <= 400


def test_every_element_that_the_script_asks_for_is_there() -> None:
    asked = set(re.findall(r"\$\(\"([\w-]+)\"\)", SCRIPT))
    assert asked <= set(re.findall(r"id=\"([\w-]+)\"", TEXTS["index.html"]))


def test_what_a_hazards_codes_stand_for_is_said_as_elsewhere() -> None:
    for code, words in {**CATEGORIES, **SEVERITIES}.items():
        assert f'{code}: "{words}"' in TEXTS["page.js"]

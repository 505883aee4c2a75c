"""Who may do what: only the very token, and a refusal that teaches nothing."""

import hmac

import pytest

from hdguard.observe.auth import Door, bearer, same

TOKEN, OTHER = "the-operators-token", "the-kitchens-token"


@pytest.mark.parametrize(
    ("header", "token"),
    [
        (f"Bearer {TOKEN}", TOKEN),
        (f"bearer  {TOKEN} ", TOKEN),
        (None, ""),
        ("", ""),
        ("Bearer", ""),
        (TOKEN, ""),
        (f"Basic {TOKEN}", ""),
        (f"Bearer\t{TOKEN}", ""),
    ],
)
def test_the_token_stands_behind_bearer(header: str | None, token: str) -> None:
    assert bearer(header) == token


@pytest.mark.parametrize(
    "given",
    ["", " ", TOKEN[:-1], TOKEN + "x", TOKEN.upper(), TOKEN + "\0", "ü", "\udcff", "x" * 100_000],
)
def test_nothing_but_the_token_is_the_token(given: str) -> None:
    assert same(TOKEN, TOKEN)
    assert not same(given, TOKEN)


@pytest.mark.parametrize("given", ["", "None", "x"])
def test_where_no_token_is_configured_none_fits(given: str) -> None:
    assert not same(given, None)
    assert not same(given, "")


def test_tokens_are_compared_in_constant_time_and_by_digests_of_one_length(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared: list[tuple[bytes, bytes]] = []

    def spy(a: bytes, b: bytes) -> bool:
        compared.append((a, b))
        return a == b

    monkeypatch.setattr(hmac, "compare_digest", spy)
    for given in ("", "x", TOKEN, "x" * 1000):
        same(given, TOKEN)
    same(TOKEN, None)
    assert [(len(a), len(b)) for a, b in compared] == [(32, 32)] * 5


def test_each_camera_has_its_own_token_and_the_operators_opens_none() -> None:
    door = Door(TOKEN, {"kitchen": OTHER, "hall": "the-hall's-token-here"})
    assert door.admits_operator(f"Bearer {TOKEN}")
    assert not door.admits_operator(f"Bearer {OTHER}")
    assert door.admits_publisher(f"Bearer {OTHER}", "kitchen")
    assert not door.admits_publisher(f"Bearer {OTHER}", "hall")
    assert not door.admits_publisher(f"Bearer {TOKEN}", "kitchen")
    assert not door.admits_publisher(f"Bearer {OTHER}", "cellar")


def test_without_an_operators_token_nobody_is_an_operator() -> None:
    door = Door(None, {})
    assert not door.has_operator
    assert not door.admits_operator("Bearer ")
    assert not door.admits_publisher(None, "kitchen")

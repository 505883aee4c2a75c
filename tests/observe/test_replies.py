"""How the HTTP edge says no."""

from hdguard.observe.replies import Refused, refused


def test_a_refusal_is_json_with_its_reason() -> None:
    reply = refused(Refused(413, "too long"), {"x-more": "yes"})
    assert (reply.status_code, reply.body) == (413, b'{"error":"too long"}')
    assert reply.headers["x-more"] == "yes"


def test_who_is_not_admitted_hears_how_to_ask_and_who_asks_too_often_when() -> None:
    assert refused(Refused(401, "no")).headers["www-authenticate"] == "Bearer"
    assert refused(Refused(429, "no")).headers["retry-after"] == "1"

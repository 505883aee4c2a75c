"""Keys and values reach the standard library's log as they are, and nothing is printed."""

import logging
from typing import Any

import pytest

from hdguard.runtime.structured import get_logger


def values(record: logging.LogRecord) -> dict[str, Any]:
    assert isinstance(record.msg, dict)
    return record.msg


def test_values_are_handed_over_and_not_put_into_words(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = object()
    with caplog.at_level(logging.INFO):
        get_logger("hdguard.x").info("released", halt_id="7-3", by=asked)
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("hdguard.x", "INFO")
    assert values(record) == {"event": "released", "halt_id": "7-3", "by": asked}
    assert capsys.readouterr() == ("", "")


def test_what_is_below_the_level_costs_no_record(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        get_logger("hdguard.x").info("released")
    assert caplog.records == []


def test_a_message_in_the_old_manner_is_one(caplog: pytest.LogCaptureFixture) -> None:
    get_logger("hdguard.x").warning("%s: %s; nothing is audited", "a.jsonl", "full")
    assert values(caplog.records[0]) == {"event": "a.jsonl: full; nothing is audited"}


def test_an_error_goes_along_itself_for_another_thread_could_not_find_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    defect = ValueError("a defect")
    try:
        raise defect
    except ValueError:
        get_logger("hdguard.x").exception("broken")
    assert values(caplog.records[0])["exc_info"][1] is defect

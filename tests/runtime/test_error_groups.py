"""Errors are found however deep the task groups are nested in which they came."""

from hdguard.runtime.error_groups import leaves


def test_the_errors_of_nested_groups_come_in_order() -> None:
    first, second, third = ValueError("1"), OSError("2"), KeyError("3")
    inner = ExceptionGroup("inner", [ExceptionGroup("deep", [first]), second])
    assert list(leaves(ExceptionGroup("outer", [inner, third]))) == [first, second, third]


def test_an_error_that_came_alone_is_itself() -> None:
    error = KeyboardInterrupt()
    assert list(leaves(error)) == [error]

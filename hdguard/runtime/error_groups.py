"""What a task group failed of: the errors themselves, however deep their groups are nested."""

from collections.abc import Iterator


def leaves(error: BaseException) -> Iterator[BaseException]:
    """The errors of a group and of the groups within it, in order; else the error itself."""
    if not isinstance(error, BaseExceptionGroup):
        yield error
        return
    for each in error.exceptions:
        yield from leaves(each)

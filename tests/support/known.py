"""What a test knows to be there, which for its type may be None."""

from typing import TypeVar

T = TypeVar("T")


def known(value: T | None) -> T:
    """Return a value that is not None; the test fails if it is."""
    assert value is not None
    return value

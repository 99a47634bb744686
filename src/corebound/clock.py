"""The time of day. Folders without effects get it as an argument and never read it."""

from datetime import UTC, datetime


def utc_now() -> datetime:
    """The current time, in UTC."""
    return datetime.now(UTC)  # noqa: TID251  # banned everywhere else, so that tests set the time


def timestamp() -> str:
    """The current time as records store it: ISO 8601 in UTC, to the second."""
    return utc_now().strftime("%Y-%m-%dT%H:%M:%SZ")

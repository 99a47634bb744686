"""Why a point has no figure: which words say that it was measured all the same."""

from __future__ import annotations

# As points are kept with it, what was measured stands before it; another text would be read as
# a failure in histories of before.
INCOMPARABLE = "only a figure above 0 can be compared"


def incomparable(value: str) -> str:
    """Why a value with its unit is no figure.

    >>> incomparable("-2.88 %")
    '-2.88 %: only a figure above 0 can be compared'
    """
    return f"{value}: {INCOMPARABLE}"


def is_failure(missing: str | None) -> bool:
    """Whether a point without a figure was not measured; one that is 0 or below was.

    >>> is_failure("it failed"), is_failure(None), is_failure(incomparable("0 bytes"))
    (True, True, False)
    """
    return missing is None or kind_of(missing) != INCOMPARABLE


def kind_of(missing: str) -> str:
    """Why points have no figure, the same for all of one kind: without what was measured.

    >>> kind_of(incomparable("0 bytes"))
    'only a figure above 0 can be compared'
    >>> kind_of("failed: OSError: no space")
    'failed: OSError: no space'
    """
    return INCOMPARABLE if missing.endswith(INCOMPARABLE) else missing

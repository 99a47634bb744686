"""What a run's commit is called where there is one line for it."""

from __future__ import annotations

from corebound.model.run import Commit


def commit_words(commit: Commit) -> str:
    """Its hash, shortened, its subject, and whether it is all that was measured.

    >>> commit_words(Commit(sha="a" * 40, subject="s", committed_at="", dirty=True))
    'aaaaaaaaaa s (with changes not committed)'
    """
    changed = " (with changes not committed)" if commit.dirty else ""
    return f"{commit.sha[:10]} {commit.subject}".rstrip() + changed

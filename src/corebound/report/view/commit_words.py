"""What a run's commit is called where there is one line for it."""

from __future__ import annotations

from corebound.model.run import Commit


def commit_words(commit: Commit) -> str:
    """Its name, which says whether changes were measured with it, and its subject.

    >>> commit_words(Commit(sha="a" * 40, subject="s", committed_at="", dirty=True, tree="b" * 40))
    'aaaaaaaaaa+dirty.bbbbbbb s'
    """
    return f"{commit.name} {commit.subject}".rstrip()

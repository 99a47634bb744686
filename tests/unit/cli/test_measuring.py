"""What commands that measure need of the host before they create anything."""

from __future__ import annotations

import resource
from contextlib import ExitStack

import pytest

from corebound.errors import HostError
from corebound.workflow.execute import hold_host


@pytest.mark.parametrize(
    ("allowed", "is_enough"), [(8, False), (63, False), (64, True), (-1, True)]
)
def test_a_process_that_may_open_too_few_files_is_refused_at_once(
    monkeypatch: pytest.MonkeyPatch, allowed: int, is_enough: bool
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _which: (allowed, allowed))
    with ExitStack() as stack:
        if is_enough:
            hold_host(stack, print, unlocked=True)
            return
        with pytest.raises(HostError, match=f"may open only {allowed} files") as refused:
            hold_host(stack, print, unlocked=True)
    assert "ulimit -n" in refused.value.fix

"""corebound in the tests' own process, where what it does is of the kernel or of git alone."""

from __future__ import annotations

import contextlib
import io
import sys
from pathlib import Path

import pytest
from msgspec import Struct

from corebound.cli.app import main


class Done(Struct, frozen=True, kw_only=True):
    """How a command ended, and what it said."""

    returncode: int
    stdout: str
    stderr: str


def corebound(folder: Path, *words: str) -> Done:
    """Run a command in a folder; loading it anew would take most of its time."""
    out, err = io.StringIO(), io.StringIO()
    with (
        contextlib.chdir(folder),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(sys, "argv", ["corebound", *words])
        patch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
        with pytest.raises(SystemExit) as ended:
            main()
    code = ended.value.code
    return Done(
        returncode=code if isinstance(code, int) else 0,
        stdout=out.getvalue(),
        stderr=err.getvalue(),
    )

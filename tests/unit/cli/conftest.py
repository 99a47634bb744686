"""Commands that reject their input."""

import sys
from collections.abc import Callable

import pytest

from corebound.cli.app import main


@pytest.fixture
def rejection_of(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., str]:
    """Run a command that exits with 2; returns what it prints to stderr."""

    def run(*words: str) -> str:
        monkeypatch.setattr(sys, "argv", ["corebound", *words])
        with pytest.raises(SystemExit) as caught:
            main()
        assert caught.value.code == 2
        return capsys.readouterr().err

    return run

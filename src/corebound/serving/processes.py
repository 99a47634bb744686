"""The processes of one launch of a server, and the time they have."""

from __future__ import annotations

import os
import selectors
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

from corebound.launch import inherit
from corebound.launch.supervise import Supervision
from corebound.model.plan import Command

# How often what cannot be waited for is asked.
ASK_EVERY_S = 0.25


class LateError(Exception):
    """The launch's time is over."""


class Speaker(Protocol):
    """Something that may say something while it is waited for."""

    @property
    def open(self) -> bool:
        """Whether it may still."""

    def fileno(self) -> int:
        """Readable when it has."""

    def hear(self) -> None:
        """Take it in."""


class Processes:
    """Starts processes of one launch, and waits, until the launch's time is over."""

    def __init__(
        self,
        supervision: Supervision,
        tick: Callable[[], None],
        *,
        scratch: Path,
        python_path: Path,
        timeout_s: float,
    ) -> None:
        self.folder = scratch / "work"
        self.log = scratch / "log"
        self._supervision = supervision
        self._tick = tick
        self._scratch = scratch
        self._python_path = python_path
        self.deadline_s = time.monotonic() + timeout_s

    def spawn(
        self,
        command: Command,
        *,
        needs: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        pipes: tuple[int, int] | None = None,
    ) -> int:
        """Start a process, whose words go to the log; its number.

        Args:
            command: What it is.
            needs: Variables for its environment beside those of the command.
            cwd: Where it starts; None: in the launch's own folder.
            pipes: What it finds as descriptors 3 and 4; None: nothing.

        Raises:
            LaunchError: it could not be started.
        """
        inherited = inherit.environment(
            command, python_path=self._python_path, scratch=self._scratch
        )
        with ExitStack() as files:
            log = files.enter_context(self.log.open("ab"))
            if pipes is None:
                nothing = files.enter_context(Path(os.devnull).open("r+b", buffering=0)).fileno()
                pipes = (nothing, nothing)
            return self._supervision.spawn(
                command.argv,
                env={**inherited, **(needs or {})},
                cwd=cwd or self.folder,
                descriptors=(log.fileno(), *pipes),
            )

    def execute(self, words: Sequence[str], folder: Path) -> int:
        """Run a command in a folder to its end; its exit code.

        Raises:
            LateError: the launch's time is over.
            LaunchError: it could not be started.
        """
        pid = self.spawn(Command(argv=tuple(words), env=()), cwd=folder)
        while (code := self.exit_code(pid)) is None:
            self.wait(ASK_EVERY_S)
        return code

    def exit_code(self, pid: int) -> int | None:
        """How a process ended (negative: the signal), or None while it runs."""
        return self._supervision.exit_code(pid)

    def wait(self, timeout_s: float, speaker: Speaker | None = None) -> bool:
        """Wait a while, or until a process ends or someone speaks.

        Returns:
            Whether anything happened; what was said has been heard.

        Raises:
            LateError: the launch's time is over.
        """
        left_s = self.deadline_s - time.monotonic()
        if left_s <= 0:
            raise LateError
        with selectors.DefaultSelector() as selector:
            selector.register(self._supervision, selectors.EVENT_READ)
            if speaker is not None and speaker.open:
                selector.register(speaker, selectors.EVENT_READ)
            ready = selector.select(min(timeout_s, left_s))
        if speaker is not None and any(key.fileobj is speaker for key, _ in ready):
            speaker.hear()
        self._tick()
        return bool(ready)

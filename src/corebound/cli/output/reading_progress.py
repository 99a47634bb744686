"""The progress bar of commands that read files; apart, because they need not load the runner."""

from typing import Self

from rich.progress import BarColumn, ProgressColumn, TextColumn
from rich.progress import Progress as RichProgress

from corebound.cli.output.console import Console


class ReadingProgress:
    """A bar on a terminal for how much was read; nothing elsewhere."""

    def __init__(self, console: Console, counter: ProgressColumn) -> None:
        """Create the bar; `counter` shows the done and the total amount."""
        self._bar = RichProgress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            counter,
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("", total=None)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._bar.stop()

    def show(self, description: str, done: int, total: int) -> None:
        """Update the bar, if it is visible."""
        if not self._bar.disable:
            self._bar.update(self._task, description=description, completed=done, total=total)

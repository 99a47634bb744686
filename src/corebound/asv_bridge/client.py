"""Send requests to asv, which runs in a process of its own: see `asv_bridge.build_process`."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

from corebound.errors import LaunchError
from corebound.git import clean_environment

# The end of a traceback, which shows what failed and where.
_TAIL_LINES = 12


def ask(
    file: Path,
    *,
    notify: Callable[[str], None] = lambda _what: None,
    descriptors: Sequence[int] = (),
    **request: str,
) -> dict[str, Any]:
    """Send asv a request about a project.

    Args:
        descriptors: These stay open until asv has ended, even if this process ends first.
        request: The request; with nothing but `file`, asv describes the project.

    Returns:
        The answer, with one of these keys: `name`, beside the project's other properties; `built`;
        or `unreadable`, `refused` or `failed`, with the reason.

    Raises:
        LaunchError: asv itself fails; includes the end of its output.
    """
    message = {"file": str(file), "parent": os.getpid(), **request}
    reading, writing = os.pipe()
    # -P, because the current folder may contain any module.
    command = (sys.executable, "-P", "-m", "corebound.asv_bridge.build_process", str(writing))
    with (
        os.fdopen(reading, encoding="utf-8") as answers,
        tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output,
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            # Ctrl-C reaches only this process, which tells asv to end together with its children.
            start_new_session=True,
            pass_fds=(writing, *descriptors),
            env=clean_environment(),
        ) as process,
    ):
        os.close(writing)
        try:
            _send(process, message)
            answer = _answer(answers, notify)
        except BaseException:
            process.terminate()
            raise
        code = process.wait()
        if answer is None:
            raise _failed(file, code, output)
    return answer


def _send(process: subprocess.Popen[bytes], message: dict[str, Any]) -> None:
    if process.stdin is None:
        raise ValueError("asv is asked through a pipe")
    # If the worker has already ended, its exit code gives the reason.
    with contextlib.suppress(BrokenPipeError), process.stdin as stream:
        stream.write(f"{json.dumps(message)}\n".encode())


def _answer(answers: IO[str], notify: Callable[[str], None]) -> dict[str, Any] | None:
    """Wait for the answer; None if there is none."""
    for line in answers:
        answer: dict[str, Any] = json.loads(line)
        if "say" not in answer:
            return answer
        notify(answer["say"])
    return None


def _failed(file: Path, code: int, output: IO[str]) -> LaunchError:
    output.seek(0)
    tail = "\n".join(output.read().splitlines()[-_TAIL_LINES:])
    return LaunchError(
        what=f"asv ended with {code} without an answer:\n{tail}",
        where=str(file),
        fix="Try `asv check` there: if it fails too, fix what it reports; otherwise report this"
        " as a bug.",
    )

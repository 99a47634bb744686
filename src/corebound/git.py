"""Run git. Nothing else in corebound starts it."""

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from corebound.errors import HostError

# Variables that select a repository; git sets them for hooks (`git rev-parse --local-env-vars`).
_REPOSITORY_VARIABLES = (
    "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_OBJECT_DIRECTORY", "GIT_DIR", "GIT_WORK_TREE",
    "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR",
)  # fmt: skip


# A dataclass, because commands that do not load msgspec run git too.
@dataclass(frozen=True, slots=True, kw_only=True)
class GitResult:
    """The result of a git command."""

    returncode: int
    stdout: bytes
    stderr: bytes

    @property
    def succeeded(self) -> bool:
        """Whether git exited with 0."""
        return self.returncode == 0

    @property
    def text(self) -> str:
        """The output, without white space at its ends; bytes that are not UTF-8 are replaced."""
        return self.stdout.decode(errors="replace").strip()

    @property
    def error(self) -> str:
        """What git printed as its error, or else its exit status."""
        message = self.stderr.decode(errors="replace").strip()
        return message or f"exit status {self.returncode}"


def clean_environment() -> dict[str, str]:
    """The process's environment without the variables that git sets for its hooks."""
    return {name: value for name, value in os.environ.items() if name not in _REPOSITORY_VARIABLES}


def run(
    folder: Path,
    *arguments: str,
    stdin: bytes = b"",
    environment: Mapping[str, str] | None = None,
    timeout_s: float | None = None,
) -> GitResult:
    """Run git in a folder. It never prompts, and takes no lock that it can do without.

    Args:
        folder: The repository, or any folder in it.
        arguments: The command and its arguments.
        stdin: What git reads.
        environment: Variables to add to `clean_environment()`.
        timeout_s: Seconds until git is killed, which counts as a failure; None waits forever.

    Raises:
        HostError: git is not installed.
    """
    # Without optional locks, `git status` does not rewrite the index of the user's checkout.
    settings = {"GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0"}
    try:
        process = subprocess.run(
            ("git", "-C", str(folder), *arguments),
            input=stdin,
            capture_output=True,
            env={**clean_environment(), **settings, **(environment or {})},
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        message = f"it did not finish within {timeout_s:.0f} s"
        return GitResult(returncode=-1, stdout=b"", stderr=message.encode())
    except OSError as error:
        reason = "is not installed" if isinstance(error, FileNotFoundError) else "cannot be started"
        raise HostError(
            what=f"git {reason}.", where=str(folder), fix="Install it: `apt-get install git`."
        ) from error
    return GitResult(returncode=process.returncode, stdout=process.stdout, stderr=process.stderr)


def query(folder: Path, *arguments: str) -> str | None:
    """Run git and return its output as text; None if it fails or is not installed."""
    try:
        result = run(folder, *arguments)
    except HostError:
        return None
    return result.text if result.succeeded else None

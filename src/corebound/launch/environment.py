"""Framework environments: made once from a requirements file, found by its content."""

from __future__ import annotations

import fcntl
import hashlib
import json
import platform
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from corebound.errors import InputError, LaunchError
from corebound.launch.own_folder import own_folder
from corebound.model.run import EnvironmentLock

if TYPE_CHECKING:
    from collections.abc import Iterator

# Written last: a folder without it was left half made, and is made again.
MARKER = "corebound.json"

HOST = "host"

_LOOK = """
import json, platform
from importlib import metadata
found = sorted({(one.name, one.version) for one in metadata.distributions()})
print(json.dumps([platform.python_version(), found]))
"""


class Environment(Struct, frozen=True, kw_only=True):
    """An interpreter with packages: its program and what it holds."""

    python: Path
    lock: EnvironmentLock


def cache() -> Path:
    """Where environments are kept."""
    return own_folder() / "environments"


def _folders(suite: Path) -> tuple[Path, Path]:
    """Where requirements files are: the suite's own, then those that come with corebound."""
    installed = Path(__file__).parent / "environments"
    checkout = Path(__file__).parents[3] / "environments"
    return suite / "environments", installed if installed.is_dir() else checkout


def names(suite: Path) -> tuple[str, ...]:
    """Every environment there is a requirements file of, by name."""
    return tuple(sorted({file.stem for folder in _folders(suite) for file in folder.glob("*.txt")}))


def requirements(name: str, suite: Path) -> Path:
    """The requirements file of an environment: the suite's own, else corebound's.

    Raises:
        InputError: there is none of that name.
    """
    for folder in _folders(suite):
        if (file := folder / f"{name}.txt").is_file():
            return file
    raise InputError(
        what=f"there is no environment `{name}`.",
        where=str(suite / "environments" / f"{name}.txt"),
        mend=f"Write that file, one pinned package a line, or use one of: "
        f"{', '.join((HOST, *names(suite)))}.",
    )


def python_of(name: str, suite: Path) -> Path:
    """The interpreter of an environment: where it is, or will be once it is made.

    Raises:
        InputError: there is no requirements file of that name.
    """
    if name == HOST:
        return Path(sys.executable)
    return _folder(name, requirements(name, suite)) / "bin" / "python"


def find(name: str, suite: Path) -> Environment | None:
    """The environment, if it has been made; `host` always has.

    Raises:
        InputError: there is no requirements file of that name.
    """
    if name == HOST:
        return _host()
    file = requirements(name, suite)
    folder = _folder(name, file)
    try:
        made = json.loads((folder / MARKER).read_text(encoding="utf-8"))
        python, packages = made["python"], tuple(made["packages"])
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None  # not made, or cut short while its marker was written
    lock = EnvironmentLock(name=name, sha256=_sha256(file), python=python, packages=packages)
    return Environment(python=folder / "bin" / "python", lock=lock)


def make(name: str, suite: Path, say: Callable[[str], None]) -> Environment:
    """Make the environment unless it is there; only one process makes it at a time.

    Args:
        name: Its name.
        suite: The folder that holds `environments/`.
        say: Told, in a few words, what is going on.

    Raises:
        InputError: there is no requirements file of that name.
        LaunchError: the packages could not be installed.
    """
    if name == HOST:
        return _host()
    file = requirements(name, suite)
    folder = _folder(name, file)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _alone(folder.with_name(f"{folder.name}.lock")):
        if (found := find(name, suite)) is not None:
            return found
        shutil.rmtree(folder, ignore_errors=True)
        say("making a virtual environment")
        venv.create(folder, with_pip=True)
        _install(folder, file, say)
        say("listing what it holds")
        _mark(folder)
    made = find(name, suite)
    if made is None:
        raise LaunchError(
            what="the environment vanished while it was made.",
            where=str(folder),
            mend="Keep other programs away from that folder, and make it again.",
        )
    return made


def _host() -> Environment:
    packages = sorted(f"{found.name}=={found.version}" for found in metadata.distributions())
    lock = EnvironmentLock(
        name=HOST, sha256="", python=platform.python_version(), packages=tuple(packages)
    )
    return Environment(python=Path(sys.executable), lock=lock)


def existing(python: Path, name: str) -> Environment:
    """An environment that others made, by its interpreter.

    Raises:
        InputError: it does not run.
    """
    try:
        version, found = looked_into(python)
    except (OSError, subprocess.CalledProcessError, ValueError):
        raise InputError(
            what="this is no Python interpreter that runs.",
            where=str(python),
            mend="Name the program of an environment: its bin/python.",
        ) from None
    packages = tuple(f"{package}=={held}" for package, held in found)
    lock = EnvironmentLock(name=name, sha256="", python=version, packages=packages)
    return Environment(python=python, lock=lock)


def looked_into(python: Path) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Version of an interpreter, then name and version of each package that it finds.

    Raises:
        OSError: there is no such program.
        subprocess.CalledProcessError: it does not run.
        ValueError: it is something else.
    """
    done = subprocess.run(
        (str(python), "-I", "-c", _LOOK), check=True, capture_output=True, stdin=subprocess.DEVNULL
    )
    version, found = json.loads(done.stdout)
    return version, tuple((name, held) for name, held in found)


def _sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _folder(name: str, file: Path) -> Path:
    # Compiled packages fit one interpreter and one machine type.
    what = f"{_sha256(file)} {platform.python_version()} {platform.machine()}"
    return cache() / f"{name}-{hashlib.sha256(what.encode()).hexdigest()[:12]}"


@contextmanager
def _alone(file: Path) -> Iterator[None]:
    with file.open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def _install(folder: Path, file: Path, say: Callable[[str], None]) -> None:
    command = (str(folder / "bin" / "python"), "-m", "pip", "install", "--requirement", str(file))
    said: list[str] = []
    with subprocess.Popen(
        (*command, "--no-input", "--disable-pip-version-check", "--progress-bar", "off"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    ) as process:
        for line in process.stdout or ():
            said.append(line.rstrip())
            if line.startswith(("Collecting", "Downloading", "Installing", "Processing")):
                step, what = line.split()[:2]
                say(f"{step} {Path(what).name}")
    if process.returncode != 0:
        tail = "\n".join(said[-15:])
        raise LaunchError(
            what=f"its packages could not be installed:\n{tail}",
            where=str(file),
            mend="Check that the package index can be reached and offers these versions.",
        )


def _mark(folder: Path) -> None:
    python = str(folder / "bin" / "python")
    listed = subprocess.run(
        (python, "-m", "pip", "list", "--format", "json", "--disable-pip-version-check"),
        check=True,
        capture_output=True,
        stdin=subprocess.DEVNULL,
    )
    packages = [f"{found['name']}=={found['version']}" for found in json.loads(listed.stdout)]
    made = {"python": platform.python_version(), "packages": packages}
    (folder / MARKER).write_text(json.dumps(made, indent=1), encoding="utf-8")

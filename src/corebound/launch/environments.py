"""Creates, finds and removes framework environments: Python virtual environments in a cache.

Each is made once from a requirements file and found again by that file's content.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import platform
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from importlib import metadata
from itertools import pairwise
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from corebound.errors import HostError, InputError, LaunchError, report_os_errors
from corebound.planning.models import CannotRun
from corebound.records.run_record import EnvironmentLock

if TYPE_CHECKING:
    from collections.abc import Iterator


def cache_dir() -> Path:
    """The folder of corebound's cache: COREBOUND_CACHE, or one in the user's; it may not exist."""
    chosen = os.environ.get("COREBOUND_CACHE")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "corebound"


# Written last: a folder without this file is incomplete and is made again.
MARKER = "corebound.json"

HOST = "host"

_INSPECT = """
import json, platform
from importlib import metadata
found = sorted({(one.name, one.version) for one in metadata.distributions()})
print(json.dumps([platform.python_version(), found]))
"""


class Environment(Struct, frozen=True, kw_only=True):
    """A Python interpreter with packages: its path, and the versions of its packages."""

    python: Path
    lock: EnvironmentLock


State = Literal["ready", "changed", "not made", "old", "no file"]


class EnvironmentStatus(Struct, frozen=True, kw_only=True):
    """The status of one folder of the cache, or of an environment without a folder.

    Attributes:
        name: The environment's name.
        state: `ready`; `changed`: made from different requirements, or for another Python;
            `not made`; `old`: superseded by one that is ready; `no file`: this suite has no
            requirements file of that name.
        path: The environment's folder.
        size_bytes: The disk space that the folder uses.
        python: The version of the interpreter.
    """

    name: str
    state: State
    path: str | None = None
    size_bytes: int | None = None
    python: str | None = None


def environments_dir() -> Path:
    """The folder that holds all environments."""
    return cache_dir() / "environments"


def _folders(suite: Path) -> tuple[Path, Path]:
    """The folders with requirements files: the suite's own, then corebound's."""
    installed = Path(__file__).parent / "requirements"
    checkout = Path(__file__).parents[3] / "environments"
    return suite / "environments", installed if installed.is_dir() else checkout


def names(suite: Path) -> tuple[str, ...]:
    """The names of all environments that have a requirements file, sorted."""
    files = (file for folder in _folders(suite) for file in folder.glob("*.txt"))
    return tuple(sorted({file.stem for file in files if file.is_file()}))


def requirements(name: str, suite: Path) -> Path:
    """The requirements file of an environment: the suite's own, or else corebound's.

    Raises:
        InputError: there is no requirements file of that name.
    """
    for folder in _folders(suite):
        if (file := folder / f"{name}.txt").is_file():
            return file
    raise InputError(
        what=f"there is no environment `{name}`.",
        where=str(suite / "environments" / f"{name}.txt"),
        fix=f"Write that file, one pinned package a line, or use one of: "
        f"{', '.join((HOST, *names(suite)))}.",
    )


def python_of(name: str, suite: Path) -> Path:
    """The path of an environment's interpreter, whether or not it has been made.

    Raises:
        InputError: there is no requirements file of that name.
    """
    if name == HOST:
        return Path(sys.executable)
    return _folder(name, _sha256(requirements(name, suite))) / "bin" / "python"


def find(name: str, suite: Path) -> Environment | None:
    """The environment, or None if it has not been made; `host` always exists.

    Raises:
        InputError: there is no requirements file of that name.
    """
    if name == HOST:
        return _host()
    file = requirements(name, suite)
    sha256 = _sha256(file)
    folder = _folder(name, sha256)
    if (made := _marker(folder)) is None:
        return None
    lock = EnvironmentLock(
        name=name, sha256=sha256, python=made["python"], packages=tuple(made["packages"])
    )
    return Environment(python=folder / "bin" / "python", lock=lock)


def reason_not_made(name: str, suite: Path) -> CannotRun:
    """Why `find` returns no environment, and how to fix that.

    Raises:
        InputError: there is no requirements file of that name.
    """
    file = requirements(name, suite)
    made = [marker["python"] for _, marker in _complete_folders(name)]
    what = f"environment `{name}` has not been made."
    fix = f"Make it with `corebound environment make {name}`."
    if made:
        included = len(_included_files(file)) > 1
        own = f"environments/{file.name}"
        files = f"{own} or a file that it includes" if included else own
        what = f"environment `{name}` has changed since it was made: {files}."
        fix = f"Make it again with `corebound environment make {name}`."
        sha256 = _sha256(file)
        for python in made:
            if _folder(name, sha256, python) in {folder for folder, _ in _complete_folders(name)}:
                now = platform.python_version()
                what = f"environment `{name}` was made for Python {python}, and this is {now}."
    return CannotRun(what=what, fix=fix, cause="environment")


def statuses(suite: Path) -> tuple[EnvironmentStatus, ...]:
    """The status of every environment of a suite, then of other folders in the cache."""
    rows: list[EnvironmentStatus] = []
    left = _complete_folders(None)
    for name in names(suite):
        here = _folder(name, _sha256(requirements(name, suite)))
        own = {folder: made for folder, made in left if _name_of(folder) == name}
        left = [one for one in left if one[0] not in own]
        if not own:
            rows.append(EnvironmentStatus(name=name, state="not made"))
        rows += [
            _status(
                folder, made, "ready" if folder == here else "old" if here in own else "changed"
            )
            for folder, made in sorted(own.items(), key=lambda one: (one[0] != here, one[0]))
        ]
    return (*rows, *(_status(folder, made, "no file") for folder, made in left))


def _status(folder: Path, made: Mapping[str, Any], state: State) -> EnvironmentStatus:
    return EnvironmentStatus(
        name=_name_of(folder),
        state=state,
        path=str(folder),
        size_bytes=_size_bytes(folder),
        python=made["python"],
    )


def hold(python: Path) -> None:
    """Keep an environment from being removed until this process ends.

    Args:
        python: The environment's interpreter. Interpreters outside the cache are not locked.

    Raises:
        InputError: the environment is being removed.
    """
    folder = python.parent.parent
    if folder.parent != environments_dir():
        return
    try:
        stream = (folder / MARKER).open("rb")
        fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except (FileNotFoundError, BlockingIOError):
        raise InputError(
            what="the environment is being removed.",
            where=str(folder),
            fix=f"Make it again with `corebound environment make {_name_of(folder)}`.",
        ) from None
    _held_markers.append(stream)


_held_markers: list[IO[bytes]] = []


def remove(name: str) -> tuple[int, int]:
    """Remove all folders of an environment from the cache, including outdated ones.

    Returns:
        The number of folders removed, and their size in bytes.

    Raises:
        InputError: the environment has not been made.
        HostError: a process is making it or running in it; nothing is removed.
    """
    sweep()
    folders = [folder for folder in _cached_folders() if _name_of(folder) == name]
    if not folders:
        known = sorted({_name_of(folder) for folder in _cached_folders()})
        raise InputError(
            what=f"environment `{name}` has not been made.",
            where=str(environments_dir()),
            fix=f"There are: {', '.join(known)}." if known else "There is none to remove.",
        )
    with ExitStack() as stack:
        for folder in folders:
            stack.enter_context(_unused(folder))
        size_bytes = sum(map(_size_bytes, folders))
        with report_os_errors(
            f"environment `{name}` cannot be removed",
            where=environments_dir(),
            fix="Remove it by hand.",
        ):
            for folder in folders:
                # First of all, so that an interrupted removal leaves no folder that looks ready.
                (folder / MARKER).unlink(missing_ok=True)
                shutil.rmtree(folder)
    return len(folders), size_bytes


@contextmanager
def _unused(folder: Path) -> Iterator[None]:
    """Lock a folder that no process is making or running in.

    Raises:
        HostError: a process is making it or running in it.
    """
    in_use = HostError(
        what="a process makes this environment, or runs in it.",
        where=str(folder),
        fix="Wait for it to end, or stop it.",
    )
    with ExitStack() as stack:
        try:
            stack.enter_context(_exclusive_lock(folder, None))
            with suppress(FileNotFoundError):
                marker = stack.enter_context((folder / MARKER).open("rb"))
                fcntl.flock(marker, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise in_use from None
        yield


def make(name: str, suite: Path, say: Callable[[str], None]) -> Environment:
    """Make the environment unless it exists; only one process makes it at a time.

    Args:
        name: The environment's name.
        suite: The folder that holds `environments/`.
        say: Called with short progress messages.

    Raises:
        InputError: there is no requirements file of that name.
        LaunchError: the packages could not be installed.
    """
    if name == HOST:
        return _host()
    file = requirements(name, suite)
    for included, content in _included_files(file):
        if content is None:
            raise InputError(
                what=f"it includes {included}, which is not a file that can be read.",
                where=str(file),
                fix="Correct the line that begins with -r or -c; paths are relative to its file.",
            )
    folder = _folder(name, _sha256(file))
    with _explain_disk_errors():
        folder.parent.mkdir(parents=True, exist_ok=True)
    with _exclusive_lock(folder, say) as lock:
        if (found := find(name, suite)) is not None:
            return found
        sweep()
        try:
            _build(folder, file, say, lock)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
    made = find(name, suite)
    if made is None:
        raise LaunchError(
            what="the environment vanished while it was made.",
            where=str(folder),
            fix="Keep other programs away from that folder, and make it again.",
        )
    return made


def _host() -> Environment:
    packages = sorted(f"{found.name}=={found.version}" for found in metadata.distributions())
    lock = EnvironmentLock(
        name=HOST, sha256="", python=platform.python_version(), packages=tuple(packages)
    )
    return Environment(python=Path(sys.executable), lock=lock)


def describe_python(python: Path, name: str) -> Environment:
    """Describe an environment that corebound did not make, given its interpreter.

    Raises:
        InputError: the interpreter does not run.
    """
    try:
        version, found = inspect_python(python)
    except (OSError, subprocess.CalledProcessError, ValueError):
        raise InputError(
            what="this is no Python interpreter that runs.",
            where=str(python),
            fix="Name the program of an environment: its bin/python.",
        ) from None
    packages = tuple(f"{package}=={held}" for package, held in found)
    lock = EnvironmentLock(name=name, sha256="", python=version, packages=packages)
    return Environment(python=python, lock=lock)


def inspect_python(python: Path) -> tuple[str, tuple[tuple[str, str], ...]]:
    """The version of an interpreter, and the name and version of each package it finds.

    Raises:
        OSError: there is no such program.
        subprocess.CalledProcessError: the program fails.
        ValueError: the program is not a Python interpreter.
    """
    done = subprocess.run(
        (str(python), "-I", "-c", _INSPECT),
        check=True,
        capture_output=True,
        stdin=subprocess.DEVNULL,
    )
    version, found = json.loads(done.stdout)
    return version, tuple((name, held) for name, held in found)


_COMMENT = re.compile(r"(^|\s+)#.*$", re.MULTILINE)
_VARIABLE = re.compile(r"\$\{([A-Z0-9_]+)\}")
_SHORT_OPTIONS, _LONG_OPTIONS = ("-r", "-c"), ("--requirement", "--constraint")


def _included_files(file: Path) -> tuple[tuple[Path, bytes | None], ...]:
    """A requirements file and all files that it includes, each once, with their content.

    The content of an unreadable file is None. Files included by URL are left out.
    """
    found: dict[Path, bytes | None] = {}
    left = [file]
    while left:
        # As in pip, paths are relative to the path as given, not to the target of a link.
        one = left.pop()
        # Not `resolve`, which raises for circular links. No file name contains a NUL.
        resolved = Path(os.path.realpath(str(one).replace("\0", "")))
        if resolved in found:
            continue
        content = found[resolved] = _content(resolved)
        text = (content or b"").decode("utf-8", errors="replace")
        left += [one.parent / path for path in reversed([*_included(text)])]
    return tuple(found.items())


def _content(file: Path) -> bytes | None:
    try:
        # Reading a FIFO or a device might never end.
        return file.read_bytes() if file.is_file() else None
    except (OSError, ValueError):
        return None


def _included(text: str) -> Iterator[str]:
    """The paths of the files that a requirements file includes, as written in it.

    Source: pip's documentation, "Requirements File Format".
    """
    for line in _COMMENT.sub("", text.replace("\\\n", "")).splitlines():
        try:
            words = shlex.split(_VARIABLE.sub(lambda one: os.environ.get(one[1], one[0]), line))
        except ValueError:
            continue  # pip will report the error
        for word, after in pairwise([*words, ""]):
            option, equals, value = word.partition("=")
            if option in _LONG_OPTIONS and equals:
                path = value
            elif word in {*_SHORT_OPTIONS, *_LONG_OPTIONS}:
                path = after
            elif word.startswith(_SHORT_OPTIONS):
                path = word[2:]
            else:
                continue
            if path.startswith("file:"):
                yield unquote(urlsplit(path).path)
            elif path and "://" not in path:
                yield path


def _sha256(file: Path) -> str:
    """The hash of a requirements file's content and of its included files, in their order."""
    (_, content), *others = _included_files(file)
    if content is None:
        raise InputError(what="it cannot be read.", where=str(file), fix="Make it readable.")
    own = hashlib.sha256(content).hexdigest()
    if not others:
        return own
    included = (hashlib.sha256(one).hexdigest() if one is not None else "" for _, one in others)
    return hashlib.sha256("\n".join((own, *included)).encode()).hexdigest()


def _folder(name: str, sha256: str, python: str | None = None) -> Path:
    # Compiled packages are specific to the interpreter version and the machine type.
    what = f"{sha256} {python or platform.python_version()} {platform.machine()}"
    return environments_dir() / f"{name}-{hashlib.sha256(what.encode()).hexdigest()[:12]}"


_FOLDER = re.compile(r"(.+)-[0-9a-f]{12}")


def _name_of(folder: Path) -> str:
    return folder.name.rpartition("-")[0]


def _cached_folders() -> list[Path]:
    """The environment folders in the cache, complete or not."""
    try:
        found = sorted(environments_dir().iterdir())
    except OSError:
        return []
    return [one for one in found if _FOLDER.fullmatch(one.name) and one.is_dir()]


def _complete_folders(name: str | None) -> list[tuple[Path, Mapping[str, Any]]]:
    """The complete folders of one environment, or of all, each with its marker's content."""
    return [
        (folder, made)
        for folder in _cached_folders()
        if name in {None, _name_of(folder)} and (made := _marker(folder)) is not None
    ]


def _marker(folder: Path) -> Mapping[str, Any] | None:
    """The content of a folder's marker; None if the folder is incomplete."""
    try:
        made: Any = json.loads((folder / MARKER).read_text(encoding="utf-8"))
        return {"python": str(made["python"]), "packages": [*map(str, made["packages"])]}
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _size_bytes(folder: Path) -> int:
    """The disk space that a folder uses."""
    total = 0
    for place, _, files in os.walk(folder):
        for file in files:
            with suppress(OSError):
                total += os.lstat(Path(place, file)).st_blocks * 512
    return total


@contextmanager
def _exclusive_lock(folder: Path, say: Callable[[str], None] | None) -> Iterator[int]:
    """Hold a folder's lock within the context, and remove the lock file afterwards.

    Args:
        folder: The folder to lock; it may not exist yet.
        say: Called if another process holds the lock, before waiting for it. None: do not
            wait.

    Raises:
        BlockingIOError: another process holds the lock, and `say` is None.
    """
    file = folder.with_name(f"{folder.name}.lock")
    with ExitStack() as stack:
        while True:
            stream = stack.enter_context(file.open("w"))
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if say is None:
                    raise
                say("waiting for another process that makes it")
                fcntl.flock(stream, fcntl.LOCK_EX)
            # The previous holder may have removed the file after this process opened it.
            with suppress(FileNotFoundError):
                if os.path.samestat(file.stat(), os.fstat(stream.fileno())):
                    break
            stack.close()
        stack.callback(file.unlink, missing_ok=True)
        yield stream.fileno()


def sweep() -> None:
    """Remove incomplete folders left by killed processes, but none that is being made."""
    locks = [
        lock.with_name(lock.name.removesuffix(".lock"))
        for lock in environments_dir().glob("*.lock")
    ]
    for folder in dict.fromkeys((*_cached_folders(), *locks)):
        if _marker(folder) is not None:
            continue
        # If it is locked, a process is making it now, possibly this one.
        with suppress(BlockingIOError), _exclusive_lock(folder, None):
            if _marker(folder) is None:
                shutil.rmtree(folder, ignore_errors=True)


def _build(folder: Path, file: Path, say: Callable[[str], None], lock: int) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    say("making a virtual environment")
    # pip unpacks here, so that an interruption leaves no files outside the folder.
    temporary = folder / "tmp"
    with _explain_disk_errors():
        temporary.mkdir(parents=True)
    pip = (str(folder / "bin" / "python"), "-c", _PIP, str(os.getpid()))
    commands: tuple[tuple[str, tuple[str, ...], str], ...] = (
        (
            "no virtual environment could be made",
            (sys.executable, "-m", "venv", str(folder)),
            "Install Python's venv module: `apt-get install python3-venv`.",
        ),
        (
            "its packages could not be installed",
            (*pip, "install", "--requirement", str(file), "--no-input", "--progress-bar", "off"),
            "Check that the package index can be reached and offers these versions.",
        ),
        (
            "its packages could not be listed",
            (*pip, "list", "--format", "json"),
            "Check that the requirements file leaves pip as it is.",
        ),
    )
    said: list[str] = []
    for what, words, fix in commands:
        code, said = _run_logged(words, temporary, lock, say)
        if code != 0:
            tail = "\n".join(said[-15:])
            raise LaunchError(what=f"{what}:\n{tail}", where=str(file), fix=fix)
    listed = next((line for line in said if line.startswith("[{")), "[]")
    packages = [f"{found['name']}=={found['version']}" for found in json.loads(listed)]
    made = {"python": platform.python_version(), "packages": packages}
    with _explain_disk_errors():
        shutil.rmtree(temporary)
        fresh = folder / f"{MARKER}.new"
        fresh.write_text(json.dumps(made, indent=1), encoding="utf-8")
        fresh.replace(folder / MARKER)


def _explain_disk_errors() -> AbstractContextManager[None]:
    """Reports a full disk or an unwritable cache as an error of the cache, within the context."""
    fix = "Make room, or set COREBOUND_CACHE to another folder."
    return report_os_errors(
        "the environment cannot be made there", where=environments_dir(), fix=fix
    )


# Runs pip so that it ends when its parent is killed, because pip may take minutes. Creating a
# virtual environment takes seconds, and its child processes would not end this way.
_PIP = """
import ctypes, os, runpy, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG, prctl(2)
if os.getppid() != int(sys.argv[1]):
    sys.exit(1)
sys.argv[:2] = ["pip", "--disable-pip-version-check"]
runpy.run_module("pip", run_name="__main__", alter_sys=True)
"""


def _run_logged(
    words: Sequence[str], temporary: Path, lock: int, say: Callable[[str], None]
) -> tuple[int, list[str]]:
    """Run a command; returns its exit code and its output lines.

    The command inherits the lock. If this process is killed, no other process takes over the
    folder before the command has ended.
    """
    said: list[str] = []
    with subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "TMPDIR": str(temporary)},
        pass_fds=(lock,),
        start_new_session=True,
        encoding="utf-8",
        errors="replace",
    ) as process:
        try:
            for line in process.stdout or ():
                said.append(line.rstrip())
                if line.startswith(("Collecting", "Downloading", "Installing", "Processing")):
                    step, what = line.split()[:2]
                    say(f"{step} {Path(what).name}")
        except BaseException:
            # Also ends the compilers that it has started.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            raise
    return process.returncode, said

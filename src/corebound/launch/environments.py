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
from corebound.launch import existing_environments, find_module
from corebound.launch.search_path import folders_upward
from corebound.planning.models import CannotRun
from corebound.records.run_record import EnvironmentLock
from corebound.scenario.fault_wording import closest
from corebound.scenario.runtimes import ALIASES, RUNTIMES

if TYPE_CHECKING:
    from collections.abc import Iterator


def cache_dir() -> Path:
    """The folder of corebound's cache: COREBOUND_CACHE, or one in the user's; it may not exist."""
    configured = os.environ.get("COREBOUND_CACHE")
    if configured:
        return Path(configured)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "corebound"


# Written last: a folder without this file is incomplete and is made again.
MARKER = "corebound.json"
# In each folder: the disk space that it uses, once somebody has asked.
SIZE = "corebound.size"

HOST = "host"

# Any Python runs this far, so that one that is too old says its version.
_INSPECT = """
import json, platform, sys
found = []
if sys.version_info >= (3, 8):
    from importlib import metadata
    found = sorted({(one.metadata["Name"], one.version) for one in metadata.distributions()})
print(json.dumps([platform.python_version(), found]))
"""
# What the worker needs. Its code is checked for this version by `make lint`.
_OLDEST_PYTHON = (3, 10)


class Environment(Struct, frozen=True, kw_only=True):
    """A Python interpreter with packages: its path, and the versions of its packages."""

    python: Path
    lock: EnvironmentLock


State = Literal["ready", "changed", "not made", "old", "no file"]


class EnvironmentStatus(Struct, frozen=True, kw_only=True):
    """The status of one folder of the cache, or of an environment without a folder.

    Attributes:
        state: `ready`; `changed`: made from different requirements, or for another Python;
            `not made`; `old`: superseded by one that is ready; `no file`: this suite has no
            requirements file of that name.
    """

    name: str
    state: State
    path: str | None = None
    size_bytes: int | None = None
    python: str | None = None


def environments_dir() -> Path:
    """The folder that holds all environments."""
    return cache_dir() / "environments"


def _folders(suite: Path) -> tuple[Path, ...]:
    """The folders of requirements files: of the suite and above, the current one's, corebound's."""
    installed = Path(__file__).parent / "requirements"
    checkout = Path(__file__).parents[3] / "environments"
    upward = dict.fromkeys((*folders_upward(suite.resolve()), *folders_upward(Path.cwd())))
    own = (folder / "environments" for folder in upward)
    return (*own, installed if installed.is_dir() else checkout)


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
    close = ALIASES.get(name) or closest(name, names(suite))
    question = f"Did you mean `{close}`? Otherwise, write" if close else "Write"
    raise InputError(
        what=f"there is no environment `{name}`.",
        where=str(suite / "environments" / f"{name}.txt"),
        fix=f"{question} that file, one pinned package per line, or use one of: "
        f"{', '.join((HOST, *names(suite)))}.",
    )


def lock_sha256(name: str, suite: Path) -> str:
    """The hash of an environment's requirements, as in its lock; empty for `host`.

    Raises:
        InputError: there is no requirements file of that name.
    """
    return "" if name == HOST else _sha256(requirements(name, suite))


def python_of(name: str, suite: Path) -> Path:
    """The path of an environment's interpreter, whether or not it has been made.

    Raises:
        InputError: there is no requirements file of that name.
    """
    if name == HOST:
        return Path(sys.executable)
    if existing_environments.is_existing(name):
        return existing_environments.interpreter(name, suite) or Path(name.partition(":")[2])
    return _folder(name, _sha256(requirements(name, suite))) / "bin" / "python"


def find(name: str, suite: Path) -> Environment | None:
    """The environment, or None if it has not been made; `host` always exists.

    Args:
        suite: The scenario's folder. Requirements files are searched there and above.

    Raises:
        InputError: there is no requirements file of that name, or an existing interpreter does
            not work.
    """
    if name == HOST:
        return _host()
    if existing_environments.is_existing(name):
        python = existing_environments.interpreter(name, suite)
        return None if python is None else describe_python(python, name)
    file = requirements(name, suite)
    sha256 = _sha256(file)
    folder = _folder(name, sha256)
    if (marker := _marker(folder)) is None:
        return None
    lock = EnvironmentLock(
        name=name, sha256=sha256, python=marker["python"], packages=tuple(marker["packages"])
    )
    return Environment(python=folder / "bin" / "python", lock=lock)


def existing(name: str, suite: Path) -> Environment:
    """An environment that corebound did not make; an InputError says what is wrong with it."""
    if (environment := find(name, suite)) is not None:
        return environment
    missing = existing_environments.reason_missing(name, suite)
    raise InputError(what=missing.what, where=name, fix=missing.fix)


def reason_not_made(name: str, suite: Path) -> CannotRun:
    """Why `find` returns no environment, and how to fix that.

    Raises:
        InputError: there is no requirements file of that name.
    """
    if existing_environments.is_existing(name):
        return existing_environments.reason_missing(name, suite)
    file = requirements(name, suite)
    versions = [marker["python"] for _, marker in _complete_folders(name)]
    what = f"environment `{name}` has not been made."
    fix = f"Make it with `corebound environment make {name}`."
    if versions:
        included = len(_included_files(file)) > 1
        own_file = f"environments/{file.name}"
        files = f"{own_file} or a file that it includes" if included else own_file
        what = f"environment `{name}` has changed since it was made: {files}."
        fix = f"Make it again with `corebound environment make {name}`."
        sha256 = _sha256(file)
        for python in versions:
            if _folder(name, sha256, python) in {folder for folder, _ in _complete_folders(name)}:
                current = platform.python_version()
                what = f"environment `{name}` was made for Python {python}, and this is {current}."
    return CannotRun(what=what, fix=fix, cause="environment")


def statuses(suite: Path) -> tuple[EnvironmentStatus, ...]:
    """The status of every environment of a suite, then of other folders in the cache."""
    rows: list[EnvironmentStatus] = []
    remaining = _complete_folders(None)
    for name in names(suite):
        current = _folder(name, _sha256(requirements(name, suite)))
        folders = {folder: marker for folder, marker in remaining if _name_of(folder) == name}
        remaining = [entry for entry in remaining if entry[0] not in folders]
        if not folders:
            rows.append(EnvironmentStatus(name=name, state="not made"))
        rows += [
            _status(
                folder,
                marker,
                "ready" if folder == current else "old" if current in folders else "changed",
            )
            for folder, marker in sorted(
                folders.items(), key=lambda entry: (entry[0] != current, entry[0])
            )
        ]
    return (*rows, *(_status(folder, marker, "no file") for folder, marker in remaining))


def _status(folder: Path, marker: Mapping[str, Any], state: State) -> EnvironmentStatus:
    return EnvironmentStatus(
        name=_name_of(folder),
        state=state,
        path=str(folder),
        size_bytes=_known_size_bytes(folder),
        python=marker["python"],
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
        names = sorted({_name_of(folder) for folder in _cached_folders()})
        raise InputError(
            what=f"environment `{name}` has not been made.",
            where=str(environments_dir()),
            fix=f"Environments: {', '.join(names)}."
            if names
            else "No environments have been made.",
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
    """Lock a folder that no process is making or running in."""
    in_use = HostError(
        what="a process is making this environment or running in it.",
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


def make(
    name: str, suite: Path, report: Callable[[str], None], *, wheelhouse: Path | None = None
) -> Environment:
    """Make the environment unless it exists; only one process makes it at a time.

    Args:
        suite: The folder that holds `environments/`.
        wheelhouse: A folder of wheels to install from, instead of a package index.

    Raises:
        InputError: there is no requirements file of that name.
        LaunchError: the packages could not be installed.
    """
    if name == HOST:
        return _host()
    if existing_environments.is_existing(name):
        return existing(name, suite)
    file = requirements(name, suite)
    for included, content in _included_files(file):
        if content is None:
            raise InputError(
                what=f"it includes {included}, which is not a readable file.",
                where=str(file),
                fix="Fix the line that begins with -r or -c; paths are relative to its file.",
            )
    folder = _folder(name, _sha256(file))
    with _explain_disk_errors():
        folder.parent.mkdir(parents=True, exist_ok=True)
    with _exclusive_lock(folder, report) as lock:
        if (environment := find(name, suite)) is not None:
            return environment
        sweep()
        try:
            _build(folder, file, report, lock, wheelhouse)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
    environment = find(name, suite)
    if environment is None:
        raise LaunchError(
            what="the environment was removed while it was being made.",
            where=str(folder),
            fix="Make it again, and keep other programs away from that folder.",
        )
    return environment


def _host() -> Environment:
    packages = sorted(map(_name_and_version, metadata.distributions()))
    lock = EnvironmentLock(
        name=HOST, sha256="", python=platform.python_version(), packages=tuple(packages)
    )
    return Environment(python=Path(sys.executable), lock=lock)


def _name_and_version(package: metadata.Distribution) -> str:
    """As in requirements. To parse its whole description as well takes ten times as long."""
    text = package.read_text("METADATA") or package.read_text("PKG-INFO") or ""
    header, _, _ = text.partition("\n\n")
    fields = dict(line.partition(": ")[::2] for line in header.splitlines())
    return f"{fields.get('Name')}=={fields.get('Version')}"


def describe_python(python: Path, name: str) -> Environment:
    """Describe an environment that corebound did not make, given its interpreter.

    Raises:
        InputError: the interpreter does not run, or is too old for the worker.
    """
    try:
        version, packages_found = inspect_python(python)
    except ValueError:
        raise InputError(
            what="this is not a working Python interpreter.",
            where=str(python),
            fix="Name the program of an environment: its bin/python.",
        ) from None
    if tuple(int(part) for part in version.split(".")[:2]) < _OLDEST_PYTHON:
        raise InputError(
            what=f"Python {version} is too old for corebound's worker, which needs 3.10 or newer.",
            where=str(python),
            fix="Create an environment with a newer Python, and install the same packages there.",
        )
    packages = tuple(f"{package}=={version_found}" for package, version_found in packages_found)
    lock = EnvironmentLock(name=name, sha256="", python=version, packages=packages)
    return Environment(python=python, lock=lock)


def inspect_python(python: Path) -> tuple[str, tuple[tuple[str, str], ...]]:
    """The version of an interpreter, and the name and version of each package it finds.

    Raises:
        ValueError: the program is not a working Python interpreter.
    """
    version, packages = find_module.answer(python, _INSPECT) or []
    return version, tuple((name, package_version) for name, package_version in packages)


_COMMENT = re.compile(r"(^|\s+)#.*$", re.MULTILINE)
_VARIABLE = re.compile(r"\$\{([A-Z0-9_]+)\}")
_SHORT_OPTIONS, _LONG_OPTIONS = ("-r", "-c"), ("--requirement", "--constraint")


def _included_files(file: Path) -> tuple[tuple[Path, bytes | None], ...]:
    """A requirements file and all files that it includes, each once, with their content.

    The content of an unreadable file is None. Files included by URL are left out.
    """
    contents: dict[Path, bytes | None] = {}
    pending = [file]
    while pending:
        # As in pip, paths are relative to the path as given, not to the target of a link.
        included = pending.pop()
        # Not `resolve`, which raises for circular links. No file name contains a NUL.
        real_path = Path(os.path.realpath(str(included).replace("\0", "")))
        if real_path in contents:
            continue
        content = contents[real_path] = _content(real_path)
        text = (content or b"").decode("utf-8", errors="replace")
        pending += [included.parent / path for path in reversed([*_included(text)])]
    return tuple(contents.items())


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
            arguments = shlex.split(
                _VARIABLE.sub(lambda match: os.environ.get(match[1], match[0]), line)
            )
        except ValueError:
            continue  # pip will report the error
        for argument, next_argument in pairwise([*arguments, ""]):
            option, equals, value = argument.partition("=")
            if option in _LONG_OPTIONS and equals:
                path = value
            elif argument in {*_SHORT_OPTIONS, *_LONG_OPTIONS}:
                path = next_argument
            elif argument.startswith(_SHORT_OPTIONS):
                path = argument[2:]
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
        raise InputError(what="cannot be read.", where=str(file), fix="Change its permissions.")
    own_hash = hashlib.sha256(content).hexdigest()
    if not others:
        return own_hash
    hashes = (
        hashlib.sha256(included_content).hexdigest() if included_content is not None else ""
        for _, included_content in others
    )
    return hashlib.sha256("\n".join((own_hash, *hashes)).encode()).hexdigest()


def _folder(name: str, sha256: str, python: str | None = None) -> Path:
    # Compiled packages are specific to the interpreter version and the machine type.
    inputs = f"{sha256} {python or platform.python_version()} {platform.machine()}"
    return environments_dir() / f"{name}-{hashlib.sha256(inputs.encode()).hexdigest()[:12]}"


_FOLDER = re.compile(r"(.+)-[0-9a-f]{12}")


def _name_of(folder: Path) -> str:
    return folder.name.rpartition("-")[0]


def _cached_folders() -> list[Path]:
    """The environment folders in the cache, complete or not."""
    try:
        entries = sorted(environments_dir().iterdir())
    except OSError:
        return []
    return [entry for entry in entries if _FOLDER.fullmatch(entry.name) and entry.is_dir()]


def _complete_folders(name: str | None) -> list[tuple[Path, Mapping[str, Any]]]:
    """The complete folders of one environment, or of all, each with its marker's content."""
    return [
        (folder, marker)
        for folder in _cached_folders()
        if name in {None, _name_of(folder)} and (marker := _marker(folder)) is not None
    ]


def _marker(folder: Path) -> Mapping[str, Any] | None:
    """The content of a folder's marker; None if the folder is incomplete."""
    try:
        document: Any = json.loads((folder / MARKER).read_text(encoding="utf-8"))
        return {"python": str(document["python"]), "packages": [*map(str, document["packages"])]}
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _size_bytes(folder: Path) -> int:
    """The disk space that a folder uses."""
    total = 0
    for directory, _, files in os.walk(folder):
        for file in files:
            with suppress(OSError):
                total += os.lstat(f"{directory}/{file}").st_blocks * 512
    return total


def _known_size_bytes(folder: Path) -> int:
    """The disk space of a complete folder, measured once: it has many thousand files."""
    known = folder / SIZE
    with suppress(OSError, ValueError):
        return int(known.read_bytes())
    size_bytes = _size_bytes(folder)
    with suppress(OSError):
        known.write_text(str(size_bytes))
    return size_bytes


@contextmanager
def _exclusive_lock(folder: Path, report: Callable[[str], None] | None) -> Iterator[int]:
    """Hold a folder's lock within the context, and remove the lock file afterwards."""
    file = folder.with_name(f"{folder.name}.lock")
    with ExitStack() as stack:
        while True:
            stream = stack.enter_context(file.open("w"))
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if report is None:
                    raise
                report("waiting for another process that is making it")
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


def _build(
    folder: Path,
    file: Path,
    report: Callable[[str], None],
    lock: int,
    wheelhouse: Path | None,
) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    report("making a virtual environment")
    # pip unpacks here, so that an interruption leaves no files outside the folder.
    temporary = folder / "tmp"
    with _explain_disk_errors():
        temporary.mkdir(parents=True)
    pip = (str(folder / "bin" / "python"), "-c", _PIP, str(os.getpid()))
    index = ("--no-index", "--find-links", str(wheelhouse.absolute())) if wheelhouse else ()
    # Compiling all modules takes longer than unpacking them. Few are ever imported.
    install = (*pip, "install", "--no-compile", "--requirement", str(file), *index, "--no-input")
    commands: tuple[tuple[str, tuple[str, ...], str], ...] = (
        (
            "no virtual environment could be made",
            (sys.executable, "-m", "venv", str(folder)),
            "Install Python's venv module: `apt-get install python3-venv`.",
        ),
        (
            "its packages could not be installed",
            (*install, "--progress-bar", "off"),
            "Check that the wheelhouse contains these versions and all that they need."
            if wheelhouse
            else "Check that the package index can be reached and offers these versions.",
        ),
        (
            "its packages could not be listed",
            (*pip, "list", "--format", "json"),
            "Check that the requirements file does not change pip.",
        ),
    )
    output: list[str] = []
    for what, argv, fix in commands:
        code, output = _run_logged(argv, temporary, lock, report)
        if code != 0:
            tail = "\n".join(output[-15:])
            raise LaunchError(what=f"{what}:\n{tail}", where=str(file), fix=fix)
    report("importing")
    # What cannot be imported is no concern here: a launch will say so.
    modules = sorted({module for runtime in RUNTIMES.values() for module in runtime.packages})
    _run_logged((pip[0], "-c", _IMPORT, *modules), temporary, lock, report)
    listed = next((line for line in output if line.startswith("[{")), "[]")
    packages = [f"{package['name']}=={package['version']}" for package in json.loads(listed)]
    marker = {"python": platform.python_version(), "packages": packages}
    with _explain_disk_errors():
        shutil.rmtree(temporary)
        part = folder / f"{MARKER}.new"
        part.write_text(json.dumps(marker, indent=1), encoding="utf-8")
        part.replace(folder / MARKER)


def _explain_disk_errors() -> AbstractContextManager[None]:
    """Reports a full disk or an unwritable cache as an error of the cache, within the context."""
    fix = "Free some space, or set COREBOUND_CACHE to another folder."
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


# Compiles what a launch imports, so that the first launch starts as fast as the others.
_IMPORT = """
import sys
from importlib.util import find_spec
for module in filter(find_spec, sys.argv[1:]):
    __import__(module)
"""
# Workers do not inherit it either: each of them would compile all that it imports.
_NO_COMPILING = "PYTHONDONTWRITEBYTECODE"


def _run_logged(
    argv: Sequence[str], temporary: Path, lock: int, report: Callable[[str], None]
) -> tuple[int, list[str]]:
    """Run a command; returns its exit code and its output lines.

    The command inherits the lock. If this process is killed, no other process takes over the
    folder before the command has ended.
    """
    output: list[str] = []
    variables = {name: os.environ[name] for name in os.environ if name != _NO_COMPILING}
    with subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**variables, "TMPDIR": str(temporary)},
        pass_fds=(lock,),
        start_new_session=True,
        encoding="utf-8",
        errors="replace",
    ) as process:
        try:
            for line in process.stdout or ():
                output.append(line.rstrip())
                if line.startswith(("Collecting", "Downloading", "Installing", "Processing")):
                    step, what = line.split()[:2]
                    report(f"{step} {Path(what).name}")
        except BaseException:
            # Also ends the compilers that it has started.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            raise
    return process.returncode, output

"""Framework environments: made once from a requirements file, found by its content."""

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

from corebound.errors import HostError, InputError, LaunchError, refusals_told
from corebound.planning.slots import CannotRun
from corebound.records.run_record import EnvironmentLock

if TYPE_CHECKING:
    from collections.abc import Iterator


def own_folder() -> Path:
    """COREBOUND_CACHE, else a folder of the user's cache folder; it may not be there yet."""
    chosen = os.environ.get("COREBOUND_CACHE")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "corebound"


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


State = Literal["ready", "changed", "not made", "old", "no file"]


class Standing(Struct, frozen=True, kw_only=True):
    """One folder of the cache, or an environment that has none.

    Attributes:
        name: The environment's.
        state: `ready`; `changed`: made from other contents of its requirements files, or for
            another Python; `not made`; `old`: superseded by one that is ready; `no file`:
            this suite has no requirements file of that name.
        path: Its folder.
        size_bytes: What that takes on the disk.
        python: The version of its interpreter.
    """

    name: str
    state: State
    path: str | None = None
    size_bytes: int | None = None
    python: str | None = None


def cache() -> Path:
    """Where environments are kept."""
    return own_folder() / "environments"


def _folders(suite: Path) -> tuple[Path, Path]:
    """Where requirements files are: the suite's own, then those that come with corebound."""
    installed = Path(__file__).parent / "requirements"
    checkout = Path(__file__).parents[3] / "environments"
    return suite / "environments", installed if installed.is_dir() else checkout


def names(suite: Path) -> tuple[str, ...]:
    """Every environment there is a requirements file of, by name."""
    files = (file for folder in _folders(suite) for file in folder.glob("*.txt"))
    return tuple(sorted({file.stem for file in files if file.is_file()}))


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
    return _folder(name, _sha256(requirements(name, suite))) / "bin" / "python"


def find(name: str, suite: Path) -> Environment | None:
    """The environment, if it has been made; `host` always has.

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


def why_unmade(name: str, suite: Path) -> CannotRun:
    """Why `find` gives no environment, and what to do.

    Raises:
        InputError: there is no requirements file of that name.
    """
    file = requirements(name, suite)
    made = [marker["python"] for _, marker in _made(name)]
    what = f"environment `{name}` has not been made."
    mend = f"Make it with `corebound environment make {name}`."
    if made:
        included = len(_closure(file)) > 1
        own = f"environments/{file.name}"
        files = f"{own} or a file that it includes" if included else own
        what = f"environment `{name}` has changed since it was made: {files}."
        mend = f"Make it again with `corebound environment make {name}`."
        sha256 = _sha256(file)
        for python in made:
            if _folder(name, sha256, python) in {folder for folder, _ in _made(name)}:
                now = platform.python_version()
                what = f"environment `{name}` was made for Python {python}, and this is {now}."
    return CannotRun(what=what, mend=mend)


def standing(suite: Path) -> tuple[Standing, ...]:
    """Every environment of a suite, then what else the cache holds, by name."""
    rows: list[Standing] = []
    left = _made(None)
    for name in names(suite):
        here = _folder(name, _sha256(requirements(name, suite)))
        own = {folder: made for folder, made in left if _name_of(folder) == name}
        left = [one for one in left if one[0] not in own]
        if not own:
            rows.append(Standing(name=name, state="not made"))
        rows += [
            _standing(
                folder, made, "ready" if folder == here else "old" if here in own else "changed"
            )
            for folder, made in sorted(own.items(), key=lambda one: (one[0] != here, one[0]))
        ]
    return (*rows, *(_standing(folder, made, "no file") for folder, made in left))


def _standing(folder: Path, made: Mapping[str, Any], state: State) -> Standing:
    return Standing(
        name=_name_of(folder),
        state=state,
        path=str(folder),
        size_bytes=_size_bytes(folder),
        python=made["python"],
    )


def hold(python: Path) -> None:
    """Keep an environment from being removed until this process ends.

    Args:
        python: Its interpreter; nothing is held of one that others made.

    Raises:
        InputError: it is being removed.
    """
    folder = python.parent.parent
    if folder.parent != cache():
        return
    try:
        stream = (folder / MARKER).open("rb")
        fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except (FileNotFoundError, BlockingIOError):
        raise InputError(
            what="the environment is being removed.",
            where=str(folder),
            mend=f"Make it again with `corebound environment make {_name_of(folder)}`.",
        ) from None
    _HELD.append(stream)


_HELD: list[IO[bytes]] = []


def remove(name: str) -> tuple[int, int]:
    """Remove an environment from the cache, whatever files it was made from.

    Returns:
        How many folders were removed, and the bytes that they took.

    Raises:
        InputError: it has not been made.
        HostError: a process makes it or runs in it; nothing is removed.
    """
    sweep()
    folders = [folder for folder in _folders_made() if _name_of(folder) == name]
    if not folders:
        known = sorted({_name_of(folder) for folder in _folders_made()})
        raise InputError(
            what=f"environment `{name}` has not been made.",
            where=str(cache()),
            mend=f"There are: {', '.join(known)}." if known else "There is none to remove.",
        )
    with ExitStack() as stack:
        for folder in folders:
            stack.enter_context(_unused(folder))
        size_bytes = sum(map(_size_bytes, folders))
        with refusals_told(
            f"environment `{name}` cannot be removed", where=cache(), mend="Remove it by hand."
        ):
            for folder in folders:
                # First: what is left of a removal that was cut short is never taken for ready.
                (folder / MARKER).unlink(missing_ok=True)
                shutil.rmtree(folder)
    return len(folders), size_bytes


@contextmanager
def _unused(folder: Path) -> Iterator[None]:
    """Hold a folder that nobody makes or runs in.

    Raises:
        HostError: somebody does.
    """
    in_use = HostError(
        what="a process makes this environment, or runs in it.",
        where=str(folder),
        mend="Wait for it to end, or stop it.",
    )
    with ExitStack() as stack:
        try:
            stack.enter_context(_alone(folder, None))
            with suppress(FileNotFoundError):
                marker = stack.enter_context((folder / MARKER).open("rb"))
                fcntl.flock(marker, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise in_use from None
        yield


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
    for included, content in _closure(file):
        if content is None:
            raise InputError(
                what=f"it includes {included}, which is not a file that can be read.",
                where=str(file),
                mend="Correct the line that begins with -r or -c; paths are relative to its file.",
            )
    folder = _folder(name, _sha256(file))
    with _room():
        folder.parent.mkdir(parents=True, exist_ok=True)
    with _alone(folder, say) as lock:
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


_COMMENT = re.compile(r"(^|\s+)#.*$", re.MULTILINE)
_VARIABLE = re.compile(r"\$\{([A-Z0-9_]+)\}")
_SHORT, _LONG = ("-r", "-c"), ("--requirement", "--constraint")


def _closure(file: Path) -> tuple[tuple[Path, bytes | None], ...]:
    """A requirements file and all that it includes, each once, with its content.

    None for one that cannot be read. What is included from the network is left out.
    """
    found: dict[Path, bytes | None] = {}
    left = [file]
    while left:
        # As pip has it, paths are relative to where a file was named, not to what a link names.
        one = left.pop()
        # Not `resolve`, which raises for links that go round. No file's name holds a NUL.
        resolved = Path(os.path.realpath(str(one).replace("\0", "")))
        if resolved in found:
            continue
        content = found[resolved] = _content(resolved)
        text = (content or b"").decode("utf-8", errors="replace")
        left += [one.parent / path for path in reversed([*_included(text)])]
    return tuple(found.items())


def _content(file: Path) -> bytes | None:
    try:
        # A FIFO or a device would be read for ever.
        return file.read_bytes() if file.is_file() else None
    except (OSError, ValueError):
        return None


def _included(text: str) -> Iterator[str]:
    """The paths of the files that a requirements file includes.

    Source: pip's documentation, "Requirements File Format".
    """
    for line in _COMMENT.sub("", text.replace("\\\n", "")).splitlines():
        try:
            words = shlex.split(_VARIABLE.sub(lambda one: os.environ.get(one[1], one[0]), line))
        except ValueError:
            continue  # pip will say what is wrong with it
        for word, after in pairwise([*words, ""]):
            option, equals, value = word.partition("=")
            if option in _LONG and equals:
                path = value
            elif word in {*_SHORT, *_LONG}:
                path = after
            elif word.startswith(_SHORT):
                path = word[2:]
            else:
                continue
            if path.startswith("file:"):
                yield unquote(urlsplit(path).path)
            elif path and "://" not in path:
                yield path


def _sha256(file: Path) -> str:
    """Of a requirements file's content; with includes, of all their contents in their order."""
    (_, content), *others = _closure(file)
    if content is None:
        raise InputError(what="it cannot be read.", where=str(file), mend="Make it readable.")
    own = hashlib.sha256(content).hexdigest()
    if not others:
        return own
    included = (hashlib.sha256(one).hexdigest() if one is not None else "" for _, one in others)
    return hashlib.sha256("\n".join((own, *included)).encode()).hexdigest()


def _folder(name: str, sha256: str, python: str | None = None) -> Path:
    # Compiled packages fit one interpreter and one machine type.
    what = f"{sha256} {python or platform.python_version()} {platform.machine()}"
    return cache() / f"{name}-{hashlib.sha256(what.encode()).hexdigest()[:12]}"


_FOLDER = re.compile(r"(.+)-[0-9a-f]{12}")


def _name_of(folder: Path) -> str:
    return folder.name.rpartition("-")[0]


def _folders_made() -> list[Path]:
    """The folders of the cache, whole or not."""
    try:
        found = sorted(cache().iterdir())
    except OSError:
        return []
    return [one for one in found if _FOLDER.fullmatch(one.name) and one.is_dir()]


def _made(name: str | None) -> list[tuple[Path, Mapping[str, Any]]]:
    """The complete folders of a name, or of all, with what their markers say."""
    return [
        (folder, made)
        for folder in _folders_made()
        if name in {None, _name_of(folder)} and (made := _marker(folder)) is not None
    ]


def _marker(folder: Path) -> Mapping[str, Any] | None:
    """What the marker of a folder says; None for a folder that is not complete."""
    try:
        made: Any = json.loads((folder / MARKER).read_text(encoding="utf-8"))
        return {"python": str(made["python"]), "packages": [*map(str, made["packages"])]}
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _size_bytes(folder: Path) -> int:
    """What a folder takes on the disk."""
    total = 0
    for place, _, files in os.walk(folder):
        for file in files:
            with suppress(OSError):
                total += os.lstat(Path(place, file)).st_blocks * 512
    return total


@contextmanager
def _alone(folder: Path, say: Callable[[str], None] | None) -> Iterator[int]:
    """Hold the lock of a folder; its file goes with it.

    Args:
        folder: It may not be there yet.
        say: Told if another process holds it, which is then waited for.

    Raises:
        BlockingIOError: another process holds it, and there is nobody to tell.
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
            # The one before may have removed the file that we have opened.
            with suppress(FileNotFoundError):
                if os.path.samestat(file.stat(), os.fstat(stream.fileno())):
                    break
            stack.close()
        stack.callback(file.unlink, missing_ok=True)
        yield stream.fileno()


def sweep() -> None:
    """Remove what killed processes left half made; not what a living one makes."""
    locks = [lock.with_name(lock.name.removesuffix(".lock")) for lock in cache().glob("*.lock")]
    for folder in dict.fromkeys((*_folders_made(), *locks)):
        if _marker(folder) is not None:
            continue
        # Held: by the process that makes it now, maybe this one.
        with suppress(BlockingIOError), _alone(folder, None):
            if _marker(folder) is None:
                shutil.rmtree(folder, ignore_errors=True)


def _build(folder: Path, file: Path, say: Callable[[str], None], lock: int) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    say("making a virtual environment")
    # What is unpacked meanwhile goes with the folder, should this be cut short.
    temporary = folder / "tmp"
    with _room():
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
    for what, words, mend in commands:
        code, said = _carried_out(words, temporary, lock, say)
        if code != 0:
            tail = "\n".join(said[-15:])
            raise LaunchError(what=f"{what}:\n{tail}", where=str(file), mend=mend)
    listed = next((line for line in said if line.startswith("[{")), "[]")
    packages = [f"{found['name']}=={found['version']}" for found in json.loads(listed)]
    made = {"python": platform.python_version(), "packages": packages}
    with _room():
        shutil.rmtree(temporary)
        fresh = folder / f"{MARKER}.new"
        fresh.write_text(json.dumps(made, indent=1), encoding="utf-8")
        fresh.replace(folder / MARKER)


def _room() -> AbstractContextManager[None]:
    """Within, a full disk or a cache that cannot be written is a fault of the cache."""
    mend = "Make room, or set COREBOUND_CACHE to another folder."
    return refusals_told("the environment cannot be made there", where=cache(), mend=mend)


# pip, which ends when the process that started it is killed: it may take minutes. Making a
# virtual environment takes seconds, and has processes of its own that would go on.
_PIP = """
import ctypes, os, runpy, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG, prctl(2)
if os.getppid() != int(sys.argv[1]):
    sys.exit(1)
sys.argv[:2] = ["pip", "--disable-pip-version-check"]
runpy.run_module("pip", run_name="__main__", alter_sys=True)
"""


def _carried_out(
    words: Sequence[str], temporary: Path, lock: int, say: Callable[[str], None]
) -> tuple[int, list[str]]:
    """Run a command to its end; its exit code and what it said.

    It holds the lock too: should this process be killed, nobody takes over its folder before
    it has ended.
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
            # With the compilers that it has started.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            raise
    return process.returncode, said

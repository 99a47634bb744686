"""Snapshots: the working tree of a repository as a commit that asv can check out.

The repository is only read. git writes everything to a bare repository of corebound's, the store,
which borrows the objects of the other. The user's index, HEAD, branches, stash and hooks stay
untouched.
"""

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from msgspec.structs import replace

from corebound import git, units
from corebound.errors import InputError, report_os_errors
from corebound.git import GitResult
from corebound.records.run_record import Commit
from corebound.text import one_line

# Disables the user's hooks and checks, and all writes other than to the given index.
_CONFIGURATION = (
    "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "core.splitIndex=false",
    "-c", "core.safecrlf=false", "-c", "advice.addEmbeddedRepo=false",
)  # fmt: skip
_AUTHOR = "corebound <corebound@localhost>"
_REFS = "refs/snapshots/"
# Copying more than this into the store takes seconds and is rarely intended.
_LARGE_BYTES = 100 << 20
_MOST_NAMED = 5

Notify = Callable[[str], None]


def take_snapshot(
    repository: Path, store: Path, head: Commit, *, outputs: Sequence[Path] = (), notify: Notify
) -> Commit:
    """Take a snapshot of the working tree.

    It includes untracked files, but not the files that git ignores. The contents of `outputs`
    and bytecode stay as in HEAD.

    Args:
        store: The bare repository to write to; created if missing.
        head: The checked-out commit.
        outputs: Folders that the measurement writes to; their contents are not edits.

    Returns:
        `head` with the tree; `head` itself if nothing differs from it, or if the repository has no
        working tree.

    Raises:
        InputError: git cannot read the working tree, or a submodule has uncommitted changes.
        HostError: git is not installed.
    """
    top = _top(repository)
    if top is None:
        return head
    with ExitStack() as stack:
        fix = "Name another env_dir in asv.conf.json, or free some space there."
        with report_os_errors("it cannot be written", where=store, fix=fix):
            store.mkdir(parents=True, exist_ok=True)
            lock = stack.enter_context((store / "corebound.lock").open("w"))
            fcntl.flock(lock, fcntl.LOCK_EX)
        tree = _Tree(top, store)
        tree.stage(outputs, notify)
        sha = tree.write(head)
        if sha is None:
            return head
        snapshot = replace(head, dirty=True, tree=sha)
        tree.keep(snapshot)
        changed = tree.changed(head, sha)
    names = ", ".join(one_line(name) for name in changed[:_MOST_NAMED])
    more = ", …" if len(changed) > _MOST_NAMED else ""
    files = "1 file differs" if len(changed) == 1 else f"{len(changed):,} files differ"
    notify(f"Measuring the working tree, {snapshot.name}: {files} from HEAD ({names}{more}).")
    return snapshot


def find(store: Path, name: str) -> tuple[str, str] | None:
    """Find a snapshot by name; returns the commit it was taken on, and its tree."""
    if "+dirty." not in name:
        return None
    arguments = ("log", "-1", "--format=%P %T", f"{_REFS}{name}", "--")
    result = _run(store, *arguments, environment=_store_environment(store))
    if not result.succeeded:
        return None
    parent, tree = result.text.split()
    return parent, tree


def commit_to_build(store: Path, commit: Commit) -> str:
    """The commit of a snapshot that asv checks out of the store.

    Raises:
        InputError: The snapshot no longer exists.
    """
    arguments = ("rev-parse", "--verify", "--quiet", f"{_REFS}{commit.name}^{{commit}}")
    result = _run(store, *arguments, environment=_store_environment(store))
    if not result.succeeded:
        raise InputError(
            what=f"the snapshot {commit.name} no longer exists.",
            where=str(store),
            fix="Commit the changes, or measure the working tree in its present state.",
        )
    return result.text


def objects_of(store: Path) -> str:
    """The store as a value of GIT_ALTERNATE_OBJECT_DIRECTORIES, for checkouts."""
    return _quote(store / "objects")


class _Tree:
    """A working tree, and a separate index to stage it in."""

    def __init__(self, top: Path, store: Path) -> None:
        self._top = top
        self._store = store
        self._index = store / "working-tree.index"
        objects = _do(top, "rev-parse", "--git-path", "objects")
        self._objects = (top / os.fsdecode(objects.rstrip(b"\n"))).resolve()
        self._variables = {
            "GIT_INDEX_FILE": str(self._index),
            "GIT_OBJECT_DIRECTORY": str(store / "objects"),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": _quote(self._objects),
        }
        self._prepare()

    def _prepare(self) -> None:
        """Create the store, and copy the user's index, so that unchanged files are not read."""
        if not (self._store / "HEAD").exists():
            object_format = _do(self._top, "rev-parse", "--show-object-format").decode().strip()
            arguments = ("init", "--quiet", "--bare", f"--object-format={object_format}")
            _do(self._store, *arguments, environment=_store_environment(self._store))
        # The repository may have been moved.
        alternates = self._store / "objects" / "info" / "alternates"
        alternates.parent.mkdir(exist_ok=True)
        alternates.write_text(f"{_quote(self._objects)}\n", encoding="utf-8")
        # A leftover of a killed process; this process holds the store's lock.
        self._index.with_name(f"{self._index.name}.lock").unlink(missing_ok=True)
        self._index.unlink(missing_ok=True)
        user_index = _do(self._top, "rev-parse", "--git-path", "index")
        try:
            # Keep the timestamp: git rereads files that changed at the moment the index was saved.
            shutil.copy2(self._top / os.fsdecode(user_index.rstrip(b"\n")), self._index)
            # The user's index, and so its copy, may be read-only.
            self._index.chmod(0o600)
        except FileNotFoundError:
            self._do("read-tree", "HEAD")

    def stage(self, outputs: Sequence[Path], notify: Notify) -> None:
        """Stage everything that differs from the index."""
        self._unhide_changes()
        excluded = [
            f":(top,exclude,literal){folder.relative_to(self._top)}"
            for folder in (output.resolve() for output in outputs)
            if folder.is_relative_to(self._top) and folder != self._top
        ]
        pathspec = ("--", ":(top)", ":(top,exclude,glob)**/__pycache__/**", *excluded)
        self._do("add", "--update", *pathspec)
        files = [
            name
            for name in _names(
                self._do("ls-files", "-z", "--others", "--exclude-standard", *pathspec)
            )
            if not self._is_repository(name, notify)
        ]
        self._warn_large(files, notify)
        self._do("update-index", "--add", "--replace", "-z", "--stdin", stdin=_join(files))
        self._refuse_submodules()

    def _unhide_changes(self) -> None:
        """Include files that git was told to treat as unchanged; they may have changes."""
        assumed, skipped = [], []
        for line in _names(self._do("ls-files", "-z", "-v")):
            tag, name = line[:1], line[2:]
            if tag.islower():
                assumed.append(name)
            # In a sparse checkout, most files are absent and stay as in HEAD.
            if tag in {b"S", b"s"} and os.path.lexists(self._path(name)):
                skipped.append(name)
        for option, names in (("--no-assume-unchanged", assumed), ("--no-skip-worktree", skipped)):
            if names:
                self._do("update-index", option, "-z", "--stdin", stdin=_join(names))

    def _is_repository(self, name: bytes, notify: Notify) -> bool:
        """Whether a path is a nested repository, which a commit cannot contain."""
        if not name.endswith(b"/"):
            return False
        notify(f"{one_line(os.fsdecode(name))} is a separate repository: it is not measured.")
        return True

    def _warn_large(self, files: Sequence[bytes], notify: Notify) -> None:
        sizes = {name: self._size(name) for name in files}
        if sum(sizes.values()) < _LARGE_BYTES:
            return
        largest = max(sizes, key=lambda name: sizes[name])
        notify(
            f"warning: untracked files of {units.size(sum(sizes.values()))} are copied into the"
            f" snapshot, the largest {one_line(os.fsdecode(largest))}"
            f" ({units.size(sizes[largest])}).\n  Write those that are no part of the project into"
            " .gitignore."
        )

    def _path(self, name: bytes) -> Path:
        return self._top / os.fsdecode(name)

    def _size(self, name: bytes) -> int:
        try:
            return self._path(name).lstat().st_size
        except OSError:
            return 0  # the file no longer exists; git reports this better

    def _refuse_submodules(self) -> None:
        """Reject changes in submodules: a commit holds only the hashes of their commits."""
        for line in _names(self._do("ls-files", "-z", "--stage")):
            if not line.startswith(b"160000 "):
                continue
            name = os.fsdecode(line.partition(b"\t")[2])
            folder = self._top / name
            if not (folder / ".git").exists():
                continue  # not checked out, so it has no changes
            if _do(folder, "status", "--porcelain", "--ignore-submodules=none"):
                raise InputError(
                    what=f"the submodule {one_line(name)} has uncommitted changes, which cannot"
                    " be measured.",
                    where=str(self._top),
                    fix=f"Commit them in {one_line(name)}, or measure HEAD with `--committed`.",
                )

    def write(self, head: Commit) -> str | None:
        """Write the staged tree and return its hash; None if it equals HEAD's."""
        tree = self._do("write-tree").decode().strip()
        of_head = self._do("rev-parse", f"{head.sha}^{{tree}}").decode().strip()
        return None if tree == of_head else tree

    def keep(self, snapshot: Commit) -> None:
        """Store the tree as a named commit, which is identical for identical trees."""
        if snapshot.tree is None:
            raise ValueError("a snapshot has a tree")
        name, _, email = _AUTHOR.partition(" ")
        identity = {
            f"GIT_{role}_{what}": value
            for role in ("AUTHOR", "COMMITTER")
            for what, value in (
                ("NAME", name), ("EMAIL", email.strip("<>")), ("DATE", snapshot.committed_at)
            )
        }  # fmt: skip
        arguments = (
            "commit-tree",
            snapshot.tree,
            "-p",
            snapshot.sha,
            "-m",
            f"Snapshot {snapshot.name}",
        )
        sha = self._do(*arguments, identity=identity).decode().strip()
        ref = f"{_REFS}{snapshot.name}"
        _do(self._store, "update-ref", ref, sha, environment=_store_environment(self._store))

    def changed(self, head: Commit, tree: str) -> list[str]:
        """The names of the files that differ from HEAD."""
        arguments = ("diff-tree", "-r", "-z", "--name-only", f"{head.sha}^{{tree}}", tree)
        return [os.fsdecode(name) for name in _names(self._do(*arguments))]

    def _do(
        self, *arguments: str, stdin: bytes = b"", identity: Mapping[str, str] | None = None
    ) -> bytes:
        environment = {**self._variables, **(identity or {})}
        return _do(self._top, *arguments, stdin=stdin, environment=environment)


def _top(repository: Path) -> Path | None:
    """The top folder of the working tree; None if there is none."""
    folders = (repository, repository.parent) if repository.name == ".git" else (repository,)
    for folder in folders:
        result = _run(folder, "rev-parse", "--show-toplevel")
        if result.succeeded:
            return Path(os.fsdecode(result.stdout.rstrip(b"\n"))).resolve()
    return None


def _store_environment(store: Path) -> dict[str, str]:
    """Environment variables that make git use the store, even under `safe.bareRepository`."""
    return {"GIT_DIR": str(store)}


def _names(output: bytes) -> Iterator[bytes]:
    return filter(None, output.split(b"\0"))


def _join(names: Sequence[bytes]) -> bytes:
    return b"".join(name + b"\0" for name in names)


def _quote(folder: Path) -> str:
    """A path as git expects it in lists separated by colons or newlines."""
    text = str(folder).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{text}"'


def _do(
    folder: Path, *arguments: str, stdin: bytes = b"", environment: Mapping[str, str] | None = None
) -> bytes:
    """Run git and return its output."""
    result = _run(folder, *arguments, stdin=stdin, environment=environment)
    if not result.succeeded:
        raise InputError(
            what=f"the working tree cannot be read: git {arguments[0]} failed: {result.error}",
            where=str(folder),
            fix="Fix what git reports, or measure HEAD with `--committed`.",
        )
    return result.stdout


def _run(
    folder: Path, *arguments: str, stdin: bytes = b"", environment: Mapping[str, str] | None = None
) -> GitResult:
    return git.run(folder, *_CONFIGURATION, *arguments, stdin=stdin, environment=environment)

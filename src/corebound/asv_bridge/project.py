"""The project under test: asv builds each of its commits into a separate environment.

asv installs one commit at a time into an environment. Two commits can alternate block by
block only if both are installed, so each gets an environment of its own here. It is stored under
the commit's name and reused. asv itself is never imported: see `asv_bridge.build_process`.
"""

from __future__ import annotations

import fcntl
import json
import shutil
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from corebound import git
from corebound.asv_bridge import snapshot
from corebound.asv_bridge.client import ask
from corebound.asv_bridge.snapshot import Notify
from corebound.errors import BuildError, InputError, LaunchError
from corebound.launch.environments import MARKER, Environment
from corebound.records.run_record import Commit, EnvironmentLock

# The end of a compiler's log, not all of it.
_TAIL_LINES = 30
# Without a limit, a remote that accepts the connection and sends nothing would block a nightly
# run forever. The history of a large project may take this long to transfer.
_LONGEST_S = 1800.0
# Frequent edits would fill the disk: each environment takes tens of megabytes.
_MOST_SNAPSHOTS = 5
# What builds and installs is not measured, and each project may need another release of it.
_INSTALLERS = {"pip", "setuptools", "wheel"}
# The name of the working tree where a commit is expected.
WORKING_TREE = "."


class Project(Struct, frozen=True, kw_only=True):
    """A repository and how its commits are built, according to asv.conf.json.

    Attributes:
        git: The folder of the repository, or of its mirror.
        recipe: A hash of everything besides the commit that determines an environment.
        checked_out: The checked-out revision: HEAD. In asv's mirror, which has no checkout, it is
            the first of the branches in asv.conf.json.
        anchor: The revision that nights are anchored to; None without one.
    """

    name: str
    file: Path
    git: Path
    environments: Path
    recipe: str
    checked_out: str
    outputs: tuple[Path, ...] = ()
    anchor: str | None = None

    def working_tree(
        self, notify: Notify, *, outputs: Sequence[Path] = (), store: Path | None = None
    ) -> Commit:
        """The default subject of a measurement: the working tree, with uncommitted changes.

        Args:
            notify: Called with the differences from the checked-out commit.
            outputs: Further folders that the measurement writes to; their contents are not edits.
            store: The folder for the snapshot; by default the one that `build` uses.

        Returns:
            The checked-out commit, with the hash of the tree if that differs.

        Raises:
            InputError: The repository has no commit, or the working tree cannot be read.
        """
        return snapshot.take_snapshot(
            self.git,
            store or self.store,
            self.commit(self.checked_out),
            outputs=(*self.outputs, *outputs),
            notify=notify,
        )

    def commit(self, revision: str) -> Commit:
        """Resolve a branch, tag or hash to a commit, or a name to a snapshot.

        Raises:
            InputError: There is no such commit.
        """
        if snapshot_found := snapshot.find(self.store, revision):
            sha, tree = snapshot_found
            return replace(self.commit(sha), dirty=True, tree=tree)
        arguments = ("rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}")
        result = git.run(self.git, *arguments, timeout_s=_LONGEST_S)
        if not result.succeeded:
            raise InputError(
                what=f"`{revision}` is not a commit of {self.name}.",
                where=str(self.file),
                fix="A working tree can be measured again only where its snapshot was taken."
                if "+dirty" in revision
                else "Name a branch, a tag or a hash that `git log` shows. Fetch it first, or"
                " commit something where nothing is committed yet.",
            )
        ((_, commit),) = self._log("-1", result.text.split()[-1])
        return commit

    def between(self, good: Commit, bad: Commit) -> tuple[Commit, ...]:
        """List the commits after `good` up to `bad`, oldest first, along first parents.

        A merge represents all that it merged. If `bad` does not descend from `good` in that way,
        the result is empty.
        """
        log = self._log("--first-parent", "--reverse", f"{good.sha}..{bad.sha}")
        parents_of_first = log[0][0] if log else []
        if parents_of_first[:1] != [good.sha]:
            return ()
        return tuple(commit for _, commit in log)

    def is_merge(self, commit: Commit) -> bool:
        """Whether a commit has several parents."""
        ((parents, _),) = self._log("-1", commit.sha)
        return len(parents) > 1

    def update(self) -> None:
        """Fetch; fast-forward the repository if it is a checkout and not asv's mirror.

        Raises:
            LaunchError: git refuses, for example without a remote or after histories diverged.
        """
        self._do("fetch", "--prune")
        if not _is_bare(self.git):
            self._do(
                "merge", "--ff-only", "@{upstream}",
                fix="The checkout is unchanged. Fix what git reports. If the remote's history was"
                " rewritten, `git reset --hard @{upstream}` adopts it and discards local commits"
                " and changes.",
            )  # fmt: skip

    def _do(
        self,
        *arguments: str,
        fix: str = "Nothing was changed. Fix what git reports, and try again.",
    ) -> str:
        result = git.run(self.git, *arguments, timeout_s=_LONGEST_S)
        if not result.succeeded:
            raise LaunchError(
                what=f"git {arguments[0]} failed: {result.error}",
                where=str(self.git),
                fix=fix,
            )
        return result.stdout.decode(errors="replace")

    def find(self, commit: Commit, name: str) -> Environment | None:
        """Find the environment of a commit under the name that cells use, if it was built."""
        try:
            made = json.loads((self._folder(commit) / MARKER).read_text(encoding="utf-8"))
            python, version, packages = made["python"], made["version"], tuple(made["packages"])
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None
        if not Path(python).exists():
            return None  # a kept build, whose interpreter this machine does not have
        lock = EnvironmentLock(
            name=name, sha256=self.recipe, python=version, packages=packages, commit=commit
        )
        return Environment(python=Path(python), lock=lock)

    def build(self, commit: Commit, name: str, *, versions: Sequence[str] = ()) -> Environment:
        """Build a commit unless it is already built; only one process builds at a time.

        Args:
            versions: `name==version` of packages; those that it needs are installed so.

        Raises:
            BuildError: The commit cannot be built or installed.
            InputError: asv cannot create the environment that its configuration requires.
        """
        folder = self._folder(commit)
        folder.mkdir(parents=True, exist_ok=True)
        if commit.tree is not None:
            self._discard_old_snapshots(folder)
        with (folder / "lock").open("w") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX)
            if (made := self.find(commit, name)) is None:
                self._build(commit, folder, versions, lock=stream.fileno())
                made = self.find(commit, name)
        if made is None:
            raise LaunchError(
                what="the environment was removed during its creation.",
                where=str(folder),
                fix="Keep other programs away from that folder, and try again.",
            )
        return made

    def _build(self, commit: Commit, folder: Path, versions: Sequence[str], *, lock: int) -> None:
        label, sha, objects = f"commit {commit.sha[:8]} ({commit.subject})", commit.sha, ""
        if commit.tree is not None:
            label = f"the working tree {commit.name}"
            sha = snapshot.commit_to_build(self.store, commit)
            objects = snapshot.objects_of(self.store)
        answer = ask(
            self.file,
            descriptors=(lock,),
            build=sha,
            folder=str(folder),
            objects=objects,
            versions="\n".join(
                version for version in versions if version.split("==")[0] not in _INSTALLERS
            ),
        )
        if "failed" in answer:
            lines = [line for line in answer["failed"].splitlines() if line.strip()]
            raise BuildError(
                what=f"{label} could not be built:\n" + "\n".join(lines[-_TAIL_LINES:]),
                where=str(self.file),
                fix="Build it by hand to see more: what is run stands in that file's"
                " build_command and install_command.",
            )
        if "refused" in answer:
            raise InputError(
                what=f"asv cannot make the environment: {answer['refused']}.",
                where=str(self.file),
                fix="Write an environment_type that asv has here, such as virtualenv, and pythons"
                " that are installed.",
            )

    @property
    def store(self) -> Path:
        """The folder of the working tree's snapshots."""
        return self.environments / "snapshots.git"

    def _folder(self, commit: Commit) -> Path:
        name = f"{commit.sha[:12]}-{self.recipe[:8]}"
        if commit.tree is not None:
            return self.environments / "snapshots" / f"{commit.tree[:12]}-{name}"
        return self.environments / "commits" / name

    def _discard_old_snapshots(self, current: Path) -> None:
        """Remove the environments of all but the latest snapshots; they can be rebuilt."""
        others = [folder for folder in current.parent.iterdir() if folder != current]
        others.sort(key=lambda folder: folder.stat().st_mtime, reverse=True)
        for folder in others[_MOST_SNAPSHOTS - 1 :]:
            shutil.rmtree(folder, ignore_errors=True)

    def _log(self, *arguments: str) -> list[tuple[list[str], Commit]]:
        """Run `git log`; returns each commit with the hashes of its parents."""
        # Separated by NUL, because a subject can contain any other separator.
        output = self._do("log", "-z", "--format=%P%x00%H%x00%s%x00%cI", *arguments, "--")
        fields = iter(output.split("\0")[:-1])
        return [
            (parents.split(), Commit(sha=sha, subject=subject, committed_at=at, dirty=False))
            for parents, sha, subject, at in zip(fields, fields, fields, fields, strict=True)
        ]


def open_project(file: Path, notify: Notify) -> Project:
    """Read an asv.conf.json; clone a remote repository beside it, as asv does.

    Raises:
        InputError: The file cannot be read, or names no git repository.
    """
    file = file.resolve()
    answer = ask(file, notify=notify) if file.is_file() else {"unreadable": "no such file"}
    if "unreadable" in answer:
        raise InputError(
            what=f"the project under test cannot be determined: {answer['unreadable']}.",
            where=str(file),
            fix="Write an asv.conf.json with project, repo, pythons and environment_type, or name"
            " another with --config.",
        )
    repository = Path(answer["git"])
    return Project(
        name=answer["name"],
        file=file,
        git=repository,
        environments=Path(answer["environments"]),
        recipe=answer["recipe"],
        checked_out=(answer["branch"] if _is_bare(repository) else None) or "HEAD",
        outputs=tuple(map(Path, answer["outputs"])),
        anchor=answer["anchor"],
    )


def _is_bare(repository: Path) -> bool:
    result = git.run(repository, "rev-parse", "--is-bare-repository")
    return result.text == "true"

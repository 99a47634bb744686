"""The project under test: its commits, each built by asv into an environment of its own.

asv installs one commit at a time into an environment. Two commits can only take turns
block by block if both are there, so here each gets a whole environment, which is kept
under the commit's name and found again. asv itself is never imported: see `asv_bridge.worker`.
"""

from __future__ import annotations

import fcntl
import json
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from corebound.asv_bridge import snapshot
from corebound.asv_bridge.client import ask
from corebound.errors import BuildError, InputError, LaunchError, git_needed
from corebound.launch.environments import Environment
from corebound.records.run_record import Commit, EnvironmentLock

# Written last: a folder without it was left half made, and is made again.
MARKER = "corebound.json"
# A compiler's last words, not its whole log.
_TAIL_LINES = 30
# A remote that takes the connection and then says nothing would hold a night for ever; so long
# may the history of a large project take to come.
_LONGEST_S = 1800.0
# Who edits and measures all day would fill the disk: each environment takes tens of megabytes.
_MOST_SNAPSHOTS = 5
# What names the working tree where a commit is asked for.
WORKING_TREE = "."

Say = Callable[[str], None]


class Project(Struct, frozen=True, kw_only=True):
    """A repository and how its commits are built, as asv.conf.json says.

    Attributes:
        name: The project's own.
        file: That asv.conf.json.
        git: The folder of the repository, or of its mirror.
        environments: The folder of asv's environments.
        recipe: A hash of all that an environment depends on, beside the commit.
        checked_out: The revision that is checked out: HEAD; in asv's mirror, where none is, the
            first of that file's branches.
        outputs: The folders that asv writes to.
    """

    name: str
    file: Path
    git: Path
    environments: Path
    recipe: str
    checked_out: str
    outputs: tuple[Path, ...] = ()

    def working_tree(
        self, say: Say, *, outputs: Sequence[Path] = (), store: Path | None = None
    ) -> Commit:
        """What is measured where no commit is named: the working tree, with its changes.

        Args:
            say: Told what differs from the commit that is checked out.
            outputs: Further folders that measuring writes to, whose contents are nobody's edits.
            store: Where the snapshot is kept; by default where `build` finds it.

        Returns:
            The commit that is checked out, with the hash of the tree where that differs.

        Raises:
            InputError: nothing is committed yet, or the working tree cannot be read.
        """
        return snapshot.take(
            self.git,
            store or self.store,
            self.commit(self.checked_out),
            outputs=(*self.outputs, *outputs),
            say=say,
        )

    def commit(self, revision: str) -> Commit:
        """The commit that a branch, a tag or a hash names; or a snapshot, by its name.

        Raises:
            InputError: it names none.
        """
        if kept := snapshot.find(self.store, revision):
            sha, tree = kept
            return replace(self.commit(sha), dirty=True, tree=tree)
        words = ("rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}")
        found = _git(self.git, *words)
        if found.returncode != 0:
            raise InputError(
                what=f"`{revision}` names no commit of {self.name}.",
                where=str(self.file),
                mend="A working tree can be measured again only where its snapshot was taken."
                if "+dirty" in revision
                else "Name a branch, a tag or a hash that `git log` shows. Fetch it first, or"
                " commit something where nothing is committed yet.",
            )
        ((_, commit),) = self._log("-1", found.stdout.split()[-1])
        return commit

    def between(self, good: Commit, bad: Commit) -> tuple[Commit, ...]:
        """The commits after `good` up to `bad`, oldest first, along first parents.

        A merge stands for all that it brought. Where `bad` does not come from
        `good` in that way, the answer is empty.
        """
        found = self._log("--first-parent", "--reverse", f"{good.sha}..{bad.sha}")
        if not found or found[0][0][:1] != [good.sha]:
            return ()
        return tuple(commit for _, commit in found)

    def is_merge(self, commit: Commit) -> bool:
        """Whether a commit has several parents."""
        ((parents, _),) = self._log("-1", commit.sha)
        return len(parents) > 1

    def update(self) -> None:
        """Fetch; where it is a checkout, and not asv's mirror, fast-forward it.

        Raises:
            LaunchError: git refuses, as where there is no remote or history has parted.
        """
        self._do("fetch", "--prune")
        if not _is_bare(self.git):
            self._do(
                "merge", "--ff-only", "@{upstream}",
                mend="The checkout is as it was. Mend what git says; if the remote's history was"
                " written anew, `git reset --hard @{upstream}` takes that, and what was committed"
                " or changed here alone is gone.",
            )  # fmt: skip

    def _do(
        self, *words: str, mend: str = "Nothing was changed. Mend what git says, and try again."
    ) -> str:
        done = _git(self.git, *words)
        if done.returncode != 0:
            raise LaunchError(
                what=f"git {words[0]} failed: {done.stderr.strip() or done.returncode}",
                where=str(self.git),
                mend=mend,
            )
        return done.stdout

    def find(self, commit: Commit, name: str) -> Environment | None:
        """The environment of a commit under the name that cells know it by, if it was built."""
        try:
            made = json.loads((self._folder(commit) / MARKER).read_text(encoding="utf-8"))
            python, version, packages = made["python"], made["version"], tuple(made["packages"])
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None
        lock = EnvironmentLock(
            name=name, sha256=self.recipe, python=version, packages=packages, commit=commit
        )
        return Environment(python=Path(python), lock=lock)

    def build(self, commit: Commit, name: str) -> Environment:
        """Build a commit, unless it has been; only one process does so at a time.

        Raises:
            BuildError: it cannot be built or installed.
            InputError: asv cannot make the environment that its file asks for.
        """
        folder = self._folder(commit)
        folder.mkdir(parents=True, exist_ok=True)
        if commit.tree is not None:
            self._discard_old_snapshots(folder)
        with (folder / "lock").open("w") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX)
            if (made := self.find(commit, name)) is None:
                self._build(commit, folder, lock=stream.fileno())
                made = self.find(commit, name)
        if made is None:
            raise LaunchError(
                what="the environment vanished while it was made.",
                where=str(folder),
                mend="Keep other programs away from that folder, and run again.",
            )
        return made

    def _build(self, commit: Commit, folder: Path, *, lock: int) -> None:
        named, sha, objects = f"commit {commit.sha[:8]} ({commit.subject})", commit.sha, ""
        if commit.tree is not None:
            named = f"the working tree {commit.name}"
            sha = snapshot.commit_to_build(self.store, commit)
            objects = snapshot.objects_of(self.store)
        answer = ask(self.file, held=(lock,), build=sha, folder=str(folder), objects=objects)
        if "failed" in answer:
            lines = [line for line in answer["failed"].splitlines() if line.strip()]
            raise BuildError(
                what=f"{named} could not be built:\n" + "\n".join(lines[-_TAIL_LINES:]),
                where=str(self.file),
                mend="Build it by hand to see more: what is run stands in that file's"
                " build_command and install_command.",
            )
        if "refused" in answer:
            raise InputError(
                what=f"asv cannot make the environment: {answer['refused']}.",
                where=str(self.file),
                mend="Write an environment_type that asv has here, such as virtualenv, and pythons"
                " that are installed.",
            )

    @property
    def store(self) -> Path:
        """Where the snapshots of the working tree are."""
        return self.environments / "snapshots.git"

    def _folder(self, commit: Commit) -> Path:
        name = f"{commit.sha[:12]}-{self.recipe[:8]}"
        if commit.tree is not None:
            return self.environments / "snapshots" / f"{commit.tree[:12]}-{name}"
        return self.environments / "commits" / name

    def _discard_old_snapshots(self, wanted: Path) -> None:
        """Remove all environments of snapshots but the latest; they can be built again."""
        others = [one for one in wanted.parent.iterdir() if one != wanted]
        others.sort(key=lambda one: one.stat().st_mtime, reverse=True)
        for folder in others[_MOST_SNAPSHOTS - 1 :]:
            shutil.rmtree(folder, ignore_errors=True)

    def _log(self, *words: str) -> list[tuple[list[str], Commit]]:
        """Commits as `git log` finds them, each with the hashes of its parents."""
        # Nothing but NUL between them: a subject may hold any other end of a line.
        said = self._do("log", "-z", "--format=%P%x00%H%x00%s%x00%cI", *words, "--")
        fields = iter(said.split("\0")[:-1])
        return [
            (parents.split(), Commit(sha=sha, subject=subject, committed_at=at, dirty=False))
            for parents, sha, subject, at in zip(fields, fields, fields, fields, strict=True)
        ]


def open_project(file: Path, say: Say) -> Project:
    """Read an asv.conf.json; a repository elsewhere is cloned beside it, as asv does.

    Args:
        file: It.
        say: Told what takes time.

    Raises:
        InputError: it cannot be read, or names no git repository.
    """
    file = file.resolve()
    answer = ask(file, say=say) if file.is_file() else {"unreadable": "there is no such file"}
    if "unreadable" in answer:
        raise InputError(
            what=f"the project under test cannot be told: {answer['unreadable']}.",
            where=str(file),
            mend="Write an asv.conf.json with project, repo, pythons and environment_type, or name"
            " another with --config.",
        )
    git = Path(answer["git"])
    return Project(
        name=answer["name"],
        file=file,
        git=git,
        environments=Path(answer["environments"]),
        recipe=answer["recipe"],
        checked_out=(answer["branch"] if _is_bare(git) else None) or "HEAD",
        outputs=tuple(map(Path, answer["outputs"])),
    )


def _is_bare(git: Path) -> bool:
    return _git(git, "rev-parse", "--is-bare-repository").stdout.strip() == "true"


def _git(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """What git says in a folder; what it has not done in a long time has failed.

    Raises:
        HostError: git is not installed.
    """
    command = ("git", "-C", str(folder), *words)
    try:
        with git_needed(folder):
            return subprocess.run(
                command,
                env={**snapshot.plain_environment(), "GIT_TERMINAL_PROMPT": "0"},
                capture_output=True,
                stdin=subprocess.DEVNULL,
                encoding="utf-8",
                errors="replace",
                timeout=_LONGEST_S,
                check=False,
            )
    except subprocess.TimeoutExpired:
        said = f"it has not ended in {_LONGEST_S:.0f} s"
        return subprocess.CompletedProcess(command, returncode=-1, stdout="", stderr=said)

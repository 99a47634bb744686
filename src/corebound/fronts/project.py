"""The project under test: its commits, each built by asv into an environment of its own.

asv installs one commit at a time into an environment. Two commits can only take turns
block by block if both are there, so here each gets a whole environment, which is kept
under the commit's name and found again.
"""

from __future__ import annotations

import fcntl
import hashlib
import io
import json
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asv import environment as asv_environment
from asv import plugin_manager as asv_plugins
from asv.config import Config
from asv.repo import NoSuchNameError, get_repo
from asv.util import ProcessError, UserError

from corebound.errors import BuildError, InputError, LaunchError
from corebound.launch.environment import Environment, looked_into
from corebound.model.run import Commit, EnvironmentLock

# Written last: a folder without it was left half made, and is made again.
MARKER = "corebound.json"
NAME = "project"

# What an environment depends on, beside the commit.
_BUILDING = (
    "repo_subdir", "pythons", "matrix", "include", "exclude", "environment_type",
    "build_command", "install_command", "conda_channels", "conda_environment_file",
)  # fmt: skip
# A compiler's last words, not its whole log.
_TAIL_LINES = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A repository and how its commits are built, as asv.conf.json says.

    Attributes:
        name: The project's own.
        file: That asv.conf.json.
        conf: asv's view of it, with paths relative to the file's folder.
        repo: asv's view of the repository.
        git: The folder of the repository, or of its mirror.
    """

    name: str
    file: Path
    conf: Any
    repo: Any
    git: Path

    def commit(self, revision: str) -> Commit:
        """The commit that a branch, a tag or a hash names.

        Raises:
            InputError: it names none.
        """
        try:
            with self._at_home():
                sha = self.repo.get_hash_from_name(revision)
        except (NoSuchNameError, ProcessError):
            raise InputError(
                what=f"`{revision}` names no commit of {self.name}.",
                where=str(self.file),
                mend="Name a branch, a tag or a hash that `git log` shows; fetch it first.",
            ) from None
        ((_, commit),) = self._log("-1", sha)
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
        if self._do("rev-parse", "--is-bare-repository").strip() == "false":
            self._do("merge", "--ff-only", "@{upstream}")

    def _do(self, *words: str) -> str:
        done = subprocess.run(
            ("git", "-C", str(self.git), *words),
            env={**os.environ, "GIT_TERMINAL_PROMPT": "0"},
            capture_output=True,
            stdin=subprocess.DEVNULL,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
        if done.returncode != 0:
            raise LaunchError(
                what=f"git {words[0]} failed: {done.stderr.strip() or done.returncode}",
                where=str(self.git),
                mend="Nothing was changed. Mend what git says, and try again.",
            )
        return done.stdout

    def find(self, commit: Commit, name: str) -> Environment | None:
        """The environment of a commit under the name that cells know it by, if it was built."""
        folder = self._folder(commit)
        try:
            made = json.loads((folder / MARKER).read_text(encoding="utf-8"))
            python, version, packages = made["python"], made["version"], tuple(made["packages"])
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None
        lock = EnvironmentLock(
            name=name, sha256=self._recipe(), python=version, packages=packages, commit=commit
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
        with (folder / "lock").open("w") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX)
            if (made := self.find(commit, name)) is None:
                self._build(commit, folder)
                made = self.find(commit, name)
        if made is None:
            raise LaunchError(
                what="the environment vanished while it was made.",
                where=str(folder),
                mend="Keep other programs away from that folder, and run again.",
            )
        return made

    def _build(self, commit: Commit, folder: Path) -> None:
        said = io.StringIO()
        try:
            with self._at_home(), redirect_stdout(said), redirect_stderr(said):
                asv = self._environment(folder)
                asv.create()
                asv.install_project(self.conf, self.repo, commit.sha)
                python = asv.find_executable("python")
        except (ProcessError, OSError) as error:
            log = "\n".join(_words(error))
            lines = [line for line in log.splitlines() if line.strip()]
            raise BuildError(
                what=f"commit {commit.sha[:8]} ({commit.subject}) could not be built:\n"
                + "\n".join(lines[-_TAIL_LINES:]),
                where=str(self.file),
                mend="Build it by hand to see more: what is run stands in that file's"
                " build_command and install_command.",
            ) from error
        except UserError as error:
            raise self._refused(error) from None
        self._mark(folder, python)

    def _environment(self, folder: Path) -> Any:
        """Give the environment that asv makes, the first of its matrix, a folder of its own."""
        changed = Config.from_json({**self.conf.__dict__, "env_dir": str(folder)})
        specifiers = [] if changed.environment_type else ["virtualenv"]
        made = next(iter(asv_environment.get_environments(changed, specifiers)), None)
        if made is None or not made.can_install_project():
            raise self._refused(f"no environment of type {changed.environment_type} can be made")
        return made

    def _refused(self, why: object) -> InputError:
        return InputError(
            what=f"asv cannot make the environment: {why}.",
            where=str(self.file),
            mend="Write an environment_type that asv has here, such as virtualenv, and pythons"
            " that are installed.",
        )

    def _mark(self, folder: Path, python: str) -> None:
        version, found = looked_into(Path(python))
        # Its version often holds the commit, which is what is compared, not a circumstance.
        packages = [f"{one}=={what}" for one, what in found if _plain(one) != _plain(self.name)]
        made = {"python": python, "version": version, "packages": packages}
        (folder / MARKER).write_text(json.dumps(made, indent=1), encoding="utf-8")

    def _folder(self, commit: Commit) -> Path:
        environments = self.file.parent / str(self.conf.env_dir)
        return environments / "commits" / f"{commit.sha[:12]}-{self._recipe()[:8]}"

    def _recipe(self) -> str:
        recipe = {name: getattr(self.conf, name) for name in _BUILDING}
        return hashlib.sha256(json.dumps(recipe, sort_keys=True).encode()).hexdigest()

    @contextmanager
    def _at_home(self) -> Iterator[None]:
        """Be where asv takes every path of its file from: in that file's folder."""
        with chdir(self.file.parent):
            yield

    def _log(self, *words: str) -> list[tuple[list[str], Commit]]:
        """Commits as `git log` finds them, each with the hashes of its parents."""
        # Nothing but NUL between them: a subject may hold any other end of a line.
        said = self._do("log", "-z", "--format=%P%x00%H%x00%s%x00%cI", *words, "--")
        fields = iter(said.split("\0")[:-1])
        return [
            (parents.split(), Commit(sha=sha, subject=subject, committed_at=at, dirty=False))
            for parents, sha, subject, at in zip(fields, fields, fields, fields, strict=True)
        ]


def open_project(file: Path, say: Callable[[str], None]) -> Project:
    """Read an asv.conf.json; a repository elsewhere is cloned beside it, as asv does.

    Args:
        file: It.
        say: Told what takes time.

    Raises:
        InputError: it cannot be read, or names no git repository.
    """
    file = file.resolve()
    said = io.StringIO()
    try:
        with chdir(file.parent), redirect_stdout(said), redirect_stderr(said):
            conf = Config.load(file.name)
            for plugin in conf.plugins:
                asv_plugins.plugin_manager.import_plugin(plugin)
            if "://" in conf.repo and not Path(conf.project).exists():
                say(f"cloning {conf.repo}")
            repo = get_repo(conf)
            # As asv has it: what is no repository of this machine is mirrored under that name.
            git = Path(conf.repo if repo.is_local_repo(conf.repo) else conf.project).absolute()
    except FileNotFoundError:
        raise _unreadable(file, "there is no such file") from None
    except (UserError, ProcessError, ImportError) as error:
        raise _unreadable(file, str(error).strip().rstrip(".")) from None
    if repo.dvcs != "git":
        raise _unreadable(file, f"its repository is one of {repo.dvcs}, not of git")
    return Project(name=conf.project, file=file, conf=conf, repo=repo, git=git)


def _unreadable(file: Path, why: str) -> InputError:
    return InputError(
        what=f"the project under test cannot be told: {why}.",
        where=str(file),
        mend="Write an asv.conf.json with project, repo, pythons and environment_type, or name"
        " another with --config.",
    )


def _words(error: Exception) -> Iterator[str]:
    """How a command failed, then what it wrote, the most telling last."""
    yield str(error)
    if isinstance(error, ProcessError):
        yield from (str(part) for part in (error.stdout, error.stderr) if part)


def _plain(name: str) -> str:
    """A distribution's name as package indexes compare it (PEP 503, for names with - or _)."""
    return name.lower().replace("_", "-").replace(".", "-")

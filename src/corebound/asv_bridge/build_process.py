"""A process that runs asv: describes a project, or builds one of its commits.

Started by `asv_bridge.client`, because asv is a program: it prints, changes folders, and takes a
third of a second to import. The request is a line of JSON on stdin. The answer is written as
lines of JSON to the given descriptor; earlier lines are progress messages, the last is the result.
"""

import contextlib
import hashlib
import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from asv import environment as asv_environment
from asv import plugin_manager as asv_plugins
from asv.config import Config
from asv.repo import get_repo
from asv.util import ProcessError, UserError

from corebound.asv_bridge.snapshot import Notify
from corebound.launch.environments import MARKER, inspect_python
from corebound.launch.supervisor import become_subreaper, end_with_parent
from corebound.machine.procfs import processes_below
from corebound.records import atomic_write

# The settings, besides the commit, that determine an environment.
_BUILD_SETTINGS = (
    "repo_subdir", "pythons", "matrix", "include", "exclude", "environment_type",
    "build_command", "install_command", "conda_channels", "conda_environment_file",
)  # fmt: skip

Answer = dict[str, Any]


def main() -> None:
    """Answer one request."""
    become_subreaper()
    signal.signal(signal.SIGTERM, _end)
    end_with_parent(signal.SIGTERM)
    request = json.loads(sys.stdin.readline())
    if os.getppid() != request["parent"]:  # the parent ended before `end_with_parent` took effect
        return
    file = Path(request["file"])
    os.chdir(file.parent)
    # Not on stdout, because asv and its children print there.
    with os.fdopen(int(sys.argv[1]), "w", encoding="utf-8") as answers:

        def send(answer: Answer) -> None:
            answers.write(f"{json.dumps(answer)}\n")
            answers.flush()

        send(_answer(request, file, lambda what: send({"say": what})))


def _end(_number: int, _frame: object) -> NoReturn:
    """End this process and all descendants: children in their own process groups, and orphans."""
    while below := processes_below(os.getpid()):
        for pid in below:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(-1, 0)
    os._exit(128 + signal.SIGTERM)


def _answer(request: Answer, file: Path, notify: Notify) -> Answer:
    try:
        conf, repo, git = _open_project(file, notify)
    except (UserError, ProcessError, ImportError, OSError) as error:
        return {"unreadable": "\n".join(_messages(error)).strip().rstrip(".")}
    if repo.dvcs != "git":
        return {"unreadable": f"its repository is {repo.dvcs}, not git"}
    if "build" in request:
        # The objects of a snapshot are not in the repository that asv clones.
        os.environ["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = request["objects"]
        folder = Path(request["folder"])
        if versions := request["versions"]:
            constraints = folder / "constraints.txt"
            constraints.write_text(f"{versions}\n", encoding="utf-8")
            # Both installers of virtual environments read them.
            os.environ["PIP_CONSTRAINT"] = os.environ["UV_CONSTRAINT"] = str(constraints)
        return _build(conf, repo, request["build"], folder)
    recipe = {name: getattr(conf, name) for name in _BUILD_SETTINGS}
    return {
        "name": conf.project,
        "branch": next(iter(conf.branches), None),
        "anchor": getattr(conf, "anchor", None),
        "git": str(git),
        "environments": str(Path(conf.env_dir).absolute()),
        "outputs": [
            str(Path(path).absolute()) for path in (conf.env_dir, conf.results_dir, conf.html_dir)
        ],
        "recipe": hashlib.sha256(json.dumps(recipe, sort_keys=True).encode()).hexdigest(),
    }


def _open_project(file: Path, notify: Notify) -> tuple[Any, Any, Path]:
    """Read asv's configuration; returns it, the repository, and the folder of it or its mirror."""
    try:
        conf = Config.load(file.name)
        for plugin in conf.plugins:
            asv_plugins.plugin_manager.import_plugin(plugin)
    except (ValueError, TypeError, AttributeError, KeyError) as error:
        # asv explains invalid values only in some cases.
        raise UserError(f"asv cannot read it: {error}") from error
    settings = (conf.repo, conf.project, conf.env_dir, conf.results_dir, conf.html_dir)
    if not all(isinstance(setting, str) for setting in settings):
        raise UserError("repo, project, env_dir, results_dir and html_dir must be strings")
    if not Path(conf.repo).exists() and not Path(conf.project).exists():
        notify(f"cloning {conf.repo}")
    repo = get_repo(conf)
    # As in asv: a repository that is not local is mirrored under this name.
    git = Path(conf.repo if repo.is_local_repo(conf.repo) else conf.project).absolute()
    return conf, repo, git


def _build(conf: Any, repo: Any, sha: str, folder: Path) -> Answer:
    try:
        environment = _environment(conf, folder)
        if environment is None or not environment.can_install_project():
            reason = f"no environment of type {conf.environment_type or 'virtualenv'} can be made"
            return {"refused": reason}
        environment.create()
        environment.install_project(conf, repo, sha)
        _mark(folder, environment.find_executable("python"), conf.project)
    except (ProcessError, OSError, ValueError) as error:
        return {"failed": "\n".join(_messages(error))}
    except UserError as error:
        return {"refused": str(error)}
    return {"built": sha}


def _environment(conf: Any, folder: Path) -> Any:
    """Create the first environment of asv's matrix in a folder of its own."""
    changed = Config.from_json({**conf.__dict__, "env_dir": str(folder)})
    specifiers = [] if changed.environment_type else ["virtualenv"]
    return next(iter(asv_environment.get_environments(changed, specifiers)), None)


def _mark(folder: Path, python: str, project: str) -> None:
    version, installed = inspect_python(Path(python))
    # The project's version often contains the commit, which is compared, not a circumstance.
    packages = [
        f"{package}=={release}"
        for package, release in installed
        if _normalise(package) != _normalise(project)
    ]
    marker = {"python": python, "version": version, "packages": packages}
    atomic_write.put(folder / MARKER, json.dumps(marker, indent=1).encode())


def _normalise(name: str) -> str:
    """Normalise a distribution's name as package indexes do (PEP 503, for names with - or _)."""
    return name.lower().replace("_", "-").replace(".", "-")


def _messages(error: Exception) -> Iterator[str]:
    """The failure of a command, followed by its output, with the most informative part last."""
    yield str(error)
    if isinstance(error, ProcessError):
        yield from (str(part) for part in (error.stdout, error.stderr) if part)


if __name__ == "__main__":
    main()

"""`corebound init`: creates the first files that a repository needs for nightly runs."""

import ast
import json
import re
import shlex
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, distribution
from os import PathLike
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from corebound import git
from corebound.errors import InputError, report_os_errors
from corebound.records import atomic_write
from corebound.scenario import function_checks

# What `install_command` names if corebound's address is unknown.
NO_ADDRESS = "PATH-OR-URL-OF-COREBOUND"
Integration = Literal["github", "gitlab", "makefile"]
INTEGRATIONS: tuple[Integration, ...] = ("github", "gitlab", "makefile")
# What each integration writes.
_INTEGRATION_FILES: Mapping[Integration, tuple[str, ...]] = {
    "github": (".github/workflows/corebound.yml",),
    "gitlab": (".gitlab/corebound.yml", ".gitlab-ci.yml"),
    "makefile": ("corebound.mk", "Makefile"),
}
# Files by which pip can install a project.
_INSTALLABLE = ("pyproject.toml", "setup.py", "setup.cfg")


class Repository(Struct, frozen=True, kw_only=True):
    """The repository to measure.

    Attributes:
        folder: Its folder.
        project: The project's name.
        branch: The checked-out branch, or `main` if there is none.
        lacks: What is missing before asv can build commits: a git repository with this folder at
            its top, a commit, or a file by which pip installs. Empty if nothing is missing.
        has_remote: Whether the repository has a remote to update from.
        is_git: Whether the folder is in a git repository.
        services: The CI services that it uses, by its files and its remotes.
        commit: The hash of the commit that is checked out; None without one.
    """

    folder: Path
    project: str
    branch: str
    lacks: tuple[str, ...]
    has_remote: bool
    is_git: bool = True
    services: tuple[Integration, ...] = ()
    commit: str | None = None

    @property
    def is_built(self) -> bool:
        """Whether asv can build the repository's commits."""
        return not self.lacks


def inspect_repository(folder: Path) -> Repository:
    """Inspect a folder, which need not be a git repository."""
    folder = folder.resolve()
    top = git.query(folder, "rev-parse", "--show-toplevel")
    commit = git.query(folder, "rev-parse", "--verify", "HEAD")
    needs = {
        "a git repository of its own": top is not None and Path(top) == folder,
        "a commit": commit is not None,
        _INSTALLABLE[0]: any((folder / name).is_file() for name in _INSTALLABLE),
    }
    remotes = git.query(folder, "remote", "--verbose") or ""
    services: Mapping[Integration, bool] = {
        "github": (folder / ".github").is_dir() or "github" in remotes,
        "gitlab": (folder / ".gitlab-ci.yml").is_file() or "gitlab" in remotes,
    }
    return Repository(
        folder=folder,
        project=_project_name(folder) or folder.name or "project",
        branch=git.query(folder, "branch", "--show-current") or "main",
        lacks=tuple(what for what, is_there in needs.items() if not is_there),
        has_remote=bool(remotes),
        is_git=top is not None,
        commit=commit,
        services=tuple(service for service, is_used in services.items() if is_used),
    )


def _project_name(folder: Path) -> str | None:
    """The name in pyproject.toml; None without one, or if the file is not TOML."""
    try:
        text = atomic_write.read(folder / "pyproject.toml").decode()
        project = tomllib.loads(text).get("project", {})
    except (OSError, ValueError):
        return None
    name = project.get("name") if isinstance(project, dict) else None
    return name if isinstance(name, str) and name else None


# `user@host:path`, which git accepts and pip does not.
_SCP_ADDRESS = re.compile(r"(?:[\w.-]+@)?[\w.-]+:(?!//)[^\s]+")
_CREDENTIALS = re.compile(r"(?<=//)[^/@]+@")


def install_command() -> str:
    """The command that installs this corebound elsewhere; no package index has it.

    It names the repository and, if that has it, the commit that this corebound was installed from;
    for a checkout without a remote, its path, which only this machine has. An installed wheel
    keeps no address, so its command names what to fill in.

    Source: PEP 610, `direct_url.json`.
    """
    try:
        installed = json.loads(distribution("corebound").read_text("direct_url.json") or "{}")
    except PackageNotFoundError:
        installed = {}
    url = str(installed.get("url", ""))
    if vcs := installed.get("vcs_info"):
        return _pip_install(f"{vcs['vcs']}+{url}", vcs["commit_id"])
    checkout = Path(unquote(urlsplit(url).path))
    if not url.startswith("file:") or not checkout.is_dir():
        return f"python -m pip install {url or NO_ADDRESS}"
    remote = git.query(checkout, "remote", "get-url", "origin")
    if not remote or Path(remote).exists():
        return f"python -m pip install {shlex.quote(str(checkout))}"
    if _SCP_ADDRESS.fullmatch(remote):
        remote = f"ssh://{remote.replace(':', '/', 1)}"
    elif remote.startswith("http"):
        remote = _CREDENTIALS.sub("", remote)
    # A commit that was not pushed cannot be fetched.
    is_pushed = git.query(checkout, "branch", "--remotes", "--contains", "HEAD")
    sha = git.query(checkout, "rev-parse", "HEAD") if is_pushed else None
    return _pip_install(f"git+{remote}", sha)


def _pip_install(url: str, commit: str | None) -> str:
    requirement = f"corebound @ {url}{f'@{commit}' if commit else ''}"
    return f"python -m pip install {shlex.quote(requirement)}"


# Folders that may contain packages, relative to a repository.
SOURCE_ROOTS = ("", "src", "lib", "python")
_FUNCTION_LABEL = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")


class TimedFunction(Struct, frozen=True, kw_only=True):
    """A function as `module:name`, and the repository folder that contains its package."""

    module: str
    name: str
    root: str

    @property
    def label(self) -> str:
        """The function as users write it."""
        return f"{self.module}:{self.name}"


def find_function(label: str, repository: Path) -> TimedFunction:
    """Find `package.module:function`, which is called without arguments.

    Raises:
        InputError: The label is malformed, or the function is missing or needs arguments.
    """
    if not _FUNCTION_LABEL.fullmatch(label):
        raise _function_error(
            label, "this does not name a function.", "Write it like package.module:function."
        )
    module, _, name = label.partition(":")
    for root in SOURCE_ROOTS:
        base = repository / root / module.replace(".", "/")
        for file in (base.with_suffix(".py"), base / "__init__.py"):
            if file.is_file():
                _check_function(label, name, file)
                return TimedFunction(module=module, name=name, root=root)
    searched = ", ".join(root or "." for root in SOURCE_ROOTS)
    raise _function_error(label, f"no module {module} in {repository}.", f"Searched: {searched}.")


def _require_packaged(target: TimedFunction, repository: Repository) -> None:
    """Refuse a function that pip certainly does not install with the project."""
    top, folder = target.module.partition(".")[0], repository.folder
    texts = [
        (folder / name).read_text("utf-8", errors="replace")
        for name in _INSTALLABLE
        if (folder / name).is_file()
    ]
    is_found = (folder / top / "__init__.py").is_file() and "find" in "".join(texts)
    if target.root or is_found or re.search(rf"\b{top}\b", "\n".join(texts)):
        return
    name = re.sub(r"[-.]+", "_", repository.project)
    packages = [folder / root / file for root in SOURCE_ROOTS for file in (name, f"{name}.py")]
    if any(package.exists() for package in (*packages, *folder.glob("src/*/__init__.py"))):
        raise _function_error(
            target.label,
            f"`{top}` is outside the package that pip installs, so builds of commits lack it.",
            "Move the function into the package, or add its module to the package's configuration.",
        )


def _check_function(label: str, name: str, file: Path) -> None:
    try:
        tree = ast.parse(atomic_write.read(file), filename=str(file))
    except (OSError, SyntaxError, ValueError) as error:
        raise _function_error(label, f"{file} cannot be read: {error}.", "Fix it first.") from None
    bound = function_checks.bindings_of(tree)
    if name not in bound:
        names = ", ".join([each for each in bound if not each.startswith("_")][:12]) or "nothing"
        raise _function_error(label, f"{file} has no `{name}`.", f"It has: {names}.")
    node = bound[name][0]
    if isinstance(node, ast.AsyncFunctionDef):
        raise _function_error(
            label, "the function is asynchronous.", "Name one that runs it: asyncio.run(…)."
        )
    if isinstance(node, ast.FunctionDef):
        found = function_checks.signature_of(node)
        if required := (*found.positional_only, *found.required):
            raise _function_error(
                label,
                f"the function requires arguments: {', '.join(required)}.",
                "Name one without required arguments, or omit it and write the step by hand.",
            )


def _function_error(label: str, what: str, fix: str) -> InputError:
    return InputError(what=what, where=f"init {label}", fix=fix)


_PLACEHOLDER = re.compile(r"@([A-Z_]+)@")
_LONGEST_NAME = 80
WriteResult = Literal["written", "would be written", "there already", "left alone"]


class InitRequest(Struct, frozen=True, kw_only=True):
    """The options of `corebound init`.

    Attributes:
        repository: The repository to write the files for.
        target: The function to time; None writes a step to fill in.
        name: The scenario's name; None uses the function's name.
        install: The command that installs corebound in continuous integration.
        systemd: Whether to add systemd units and a line for cron.
        program: The corebound executable that these call.
        integrations: The CI services and tools to write files for.
        hosted: Whether the nightly jobs run on rented runners.
    """

    repository: Repository
    target: TimedFunction | None
    name: str | None
    install: str
    systemd: bool
    program: Path
    integrations: tuple[Integration, ...] = INTEGRATIONS
    hosted: bool = False

    @property
    def scenario(self) -> str:
        """The scenario's name."""
        given = self.name or (self.target.name if self.target else "example")
        return re.sub(r"[^a-z0-9]+", "-", given.lower()).strip("-")[:_LONGEST_NAME] or "example"


def file_texts(request: InitRequest) -> dict[str, str]:
    """All files as text, by path within the repository."""
    values = _template_values(request)

    def filled(template: str) -> str:
        text = (Path(__file__).parent / "templates" / template).read_text(encoding="utf-8")
        return _PLACEHOLDER.sub(lambda match: values[match[1]], text)

    hosted = "-hosted" if request.hosted else ""
    steps = f"scenarios/{values['STEPS']}.py"
    texts = {
        f"scenarios/{request.scenario}.yaml": filled("scenario.yaml"),
        steps: filled("steps.py.txt" if request.target else "example.py.txt"),
        "corebound.mk": filled("corebound.mk"),
        "Makefile": "include corebound.mk\n",
        ".github/workflows/corebound.yml": filled(f"github{hosted}.yml"),
        ".gitlab/corebound.yml": filled(f"gitlab{hosted}.yml"),
        ".gitlab-ci.yml": filled("gitlab-ci.yml"),
        ".gitignore": "/reports/\n/.asv/\n",
    }
    if request.repository.is_built:
        texts["asv.conf.json"] = filled("asv.conf.json")
        texts["benchmarks/__init__.py"] = ""
        texts["benchmarks/scenarios.py"] = _asv_adapter()
    if request.systemd:
        texts["nightly/corebound-nightly.service"] = filled("service.ini")
        texts["nightly/corebound-nightly.timer"] = filled("timer.ini")
        texts["nightly/crontab"] = filled("crontab")
    unwanted = {
        name
        for integration in set(INTEGRATIONS) - set(request.integrations)
        for name in _INTEGRATION_FILES[integration]
    }
    return {name: text for name, text in texts.items() if name not in unwanted}


def _template_values(request: InitRequest) -> dict[str, str]:
    repository, target = request.repository, request.target
    return {
        "NAME": request.scenario,
        "STEPS": f"{request.scenario.replace('-', '_')}_steps",
        # This goes into YAML as a plain scalar, where a colon between letters is literal.
        "FUNCTION": target.label if target else "the step",
        "MODULE": target.module if target else "",
        "CALLABLE": target.name if target else "",
        "ENVIRONMENT": "project" if repository.is_built else "host",
        "PATH": "" if repository.is_built or target is None else _path_setup(target),
        "PROJECT": json.dumps(repository.project)[1:-1],
        "BRANCH": repository.branch,
        # Quoted, because YAML would not read words such as `true` as strings.
        "INSTALL": json.dumps(request.install, ensure_ascii=False),
        # Rented runners differ from night to night: each night also measures this commit.
        "NIGHTLY": f"corebound nightly scenarios --anchor {repository.commit or repository.branch}",
        "UPDATE": "--update " if repository.has_remote else "",
        "UNIT_FOLDER": str(repository.folder).replace("%", "%%"),
        "UNIT_PROGRAM": '"' + str(request.program).replace("%", "%%") + '"',
        # cron ends a line at an unescaped %.
        "CRON_FOLDER": shlex.quote(str(repository.folder)).replace("%", r"\%"),
        "CRON_PROGRAM": shlex.quote(str(request.program)).replace("%", r"\%"),
    }


def _path_setup(target: TimedFunction) -> str:
    """Code that adds the repository to `sys.path`, so that a step can import it uninstalled."""
    folder = f'parents[1] / "{target.root}"' if target.root else "parents[1]"
    return (
        "\nimport sys\nfrom pathlib import Path\n\n"
        f"sys.path.insert(0, str(Path(__file__).resolve().{folder}))\n"
    )


def _asv_adapter() -> str:
    """The adapter file for asv: installed with the templates, or from the checkout."""
    installed = Path(__file__).parent / "templates" / "scenarios.py"
    checkout = Path(__file__).parents[3] / "benchmarks" / "scenarios.py"
    return (installed if installed.is_file() else checkout).read_text(encoding="utf-8")


def write_files(
    texts: Mapping[str, str], folder: Path, *, dry_run: bool = False
) -> dict[str, WriteResult]:
    """Write each file that does not exist yet, unless `dry_run`; leave existing files unchanged.

    Raises:
        InputError: The folder cannot be written.
    """
    results: dict[str, WriteResult] = {}
    for name, text in texts.items():
        file = folder / name
        with report_os_errors(
            "cannot be written",
            where=file,
            fix="Name a writable folder. Existing files are unchanged.",
        ):
            if file.exists() or file.is_symlink():
                is_same = file.is_file() and file.read_bytes() == text.encode()
                results[name] = "there already" if is_same else "left alone"
                continue
            if dry_run:
                results[name] = "would be written"
                continue
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("x", encoding="utf-8") as stream:
                stream.write(text)
        results[name] = "written"
    return results


class InitResult(Struct, frozen=True, kw_only=True):
    """What `corebound init` did.

    Attributes:
        request: The request, with what was found out about the repository.
        files: What became of each file, by its path within the repository.
    """

    request: InitRequest
    files: Mapping[str, WriteResult]

    @property
    def document(self) -> dict[str, Any]:
        """The same as plain data, as `corebound init --json` prints it."""
        return {"folder": str(self.request.repository.folder), "files": dict(self.files)}


def init(
    function: str | None = None,
    *,
    folder: str | PathLike[str] = ".",
    name: str | None = None,
    install: str | None = None,
    systemd: bool = False,
    integrations: Sequence[Integration] | None = None,
    choose: Callable[[], Sequence[Integration]] = lambda: INTEGRATIONS,
    hosted: bool = False,
    dry_run: bool = False,
) -> InitResult:
    """Write the files that a repository needs for measurements, as `corebound init` does.

    Existing files stay as they are.

    Args:
        function: The function to measure, as `package.module:function`; None writes a step
            to fill in.
        folder: The repository.
        name: The scenario's name; None uses the function's name.
        install: The command that installs corebound in CI; None uses the place that this one came
            from.
        systemd: Whether to add systemd units and a line for cron.
        integrations: Some of `github`, `gitlab` and `makefile`; None uses what the repository's
            files and remotes say.
        choose: Called for them if the repository does not say; by default, all of them.
        hosted: Whether CI has only rented runners, which differ from night to night.
        dry_run: Whether to write nothing.

    Returns:
        What became of each file; `document` is what `corebound init --json` prints.

    Raises:
        InputError: There is no such folder, it cannot be written, or the function is missing,
            needs arguments or is not part of the package, or a scenario of that name times another
            function.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError(
            what="no such folder.",
            where=str(folder),
            fix="Name a repository, or a function of the current one: package.module:function.",
        )
    repository = inspect_repository(folder)
    if integrations is None:
        integrations = _integrations(repository, choose)
    target = None if function is None else find_function(function, repository.folder)
    if target is not None and repository.is_built:
        _require_packaged(target, repository)
    request = InitRequest(
        repository=repository,
        target=target,
        name=name,
        install=install or install_command(),
        systemd=systemd,
        program=Path(sys.executable).parent / "corebound",
        integrations=tuple(integrations),
        hosted=hosted,
    )
    texts = file_texts(request)
    _require_own_scenario(request, texts)
    return InitResult(request=request, files=write_files(texts, repository.folder, dry_run=dry_run))


def _require_own_scenario(request: InitRequest, texts: Mapping[str, str]) -> None:
    """Check that the scenario's file, if it exists, does not time another function.

    Raises:
        InputError: It does; the commands that `init` proposes would measure that one.
    """
    target = request.target
    steps = request.repository.folder / next(name for name in texts if name.endswith("_steps.py"))
    if target is None or not steps.is_file():
        return
    if target.module not in steps.read_text("utf-8", errors="replace"):
        own = re.sub(
            r"[^a-z0-9]+", "-", f"{target.module.rpartition('.')[2]}-{target.name}".lower()
        )
        raise InputError(
            what=f"this scenario times something else than {target.label}.",
            where=str(steps),
            fix=f"Name the new scenario: `--name {own.strip('-')}`.",
        )


def _integrations(
    repository: Repository, choose: Callable[[], Sequence[Integration]]
) -> Sequence[Integration]:
    if not repository.is_git:
        return ("makefile",)
    if repository.services:
        return (*repository.services, "makefile")
    return choose()

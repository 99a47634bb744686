"""`corebound init`: write the files that a repository needs for measurements and nightly runs."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from corebound.cli.options import Json
from corebound.cli.output.console import Console
from corebound.cli.output.json import print_json
from corebound.errors import InputError
from corebound.workflow.init import (
    INTEGRATIONS,
    InitRequest,
    Integration,
    Repository,
    WriteResult,
    file_texts,
    find_function,
    inspect_repository,
    install_command,
    write_files,
)

# Lines that the user has to add to an existing file, and their purpose.
_LINES_TO_ADD = {
    "Makefile": ("include corebound.mk", "for `make speed`, `speed-compare` and `speed-nightly`"),
    ".gitignore": ("/reports/\n    /.asv/", "for the output of measurements"),
    ".gitlab-ci.yml": ("include: [{local: .gitlab/corebound.yml}]", "for GitLab CI"),
}


def init(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="DIR|MODULE:FUNCTION",
            help="Repository; or a function of the current one to measure.",
        ),
    ] = Path(),
    *,
    function: Annotated[
        str | None,
        typer.Option("--function", metavar="MODULE:FUNCTION", help="Function to measure."),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option("--name", help="Name of the scenario; default: the function's name."),
    ] = None,
    install: Annotated[
        str | None,
        typer.Option(
            "--install",
            help="Command that installs corebound in CI; default: from where this one came.",
        ),
    ] = None,
    systemd: Annotated[
        bool, typer.Option("--systemd", help="Also write a systemd service, a timer and a crontab.")
    ] = False,
    github: Annotated[
        bool, typer.Option("--github", help="Write a workflow for GitHub Actions.")
    ] = False,
    gitlab: Annotated[bool, typer.Option("--gitlab", help="Write jobs for GitLab CI.")] = False,
    makefile: Annotated[bool, typer.Option("--makefile", help="Write Makefile targets.")] = False,
    none: Annotated[bool, typer.Option("--none", help="Write none of these three.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List the files, and write nothing.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Create a scenario, CI workflows and Makefile targets.

    Existing files are not overwritten. Without --github, --gitlab, --makefile or --none, the
    repository's files and remotes decide; if they do not, both services are written, or on a
    terminal, the command asks. Without git, nothing about CI is written.

    Examples:
        corebound init shop.prices:total
        corebound init shop.prices:total --github --dry-run
        corebound init ~/src/shop --systemd
    """
    folder, function = _folder_and_function(folder, function)
    repository = inspect_repository(folder)
    chosen = dict(zip(INTEGRATIONS, (github, gitlab, makefile), strict=True))
    request = InitRequest(
        repository=repository,
        target=None if function is None else find_function(function, repository.folder),
        name=name,
        install=install or install_command(),
        systemd=systemd,
        program=Path(sys.executable).parent / "corebound",
        integrations=()
        if none
        else tuple(name for name in INTEGRATIONS if chosen[name])
        or _integrations(repository, may_ask=sys.stdin.isatty() and not as_json),
    )
    results = write_files(file_texts(request), repository.folder, dry_run=dry_run)
    if as_json:
        print_json({"folder": str(repository.folder), "files": results})
        return
    console = Console(soft_wrap=True)
    is_local = install is None and "git+" not in request.install
    is_local = is_local and bool({"github", "gitlab"} & set(request.integrations))
    for line in _lines(request, results, folder, is_local=is_local):
        console.print(Text(line))


def _integrations(repository: Repository, *, may_ask: bool) -> tuple[Integration, ...]:
    """What to write files for, if no option says so."""
    if not repository.is_git:
        return ("makefile",)
    if repository.services:
        return (*repository.services, "makefile")
    if may_ask:
        answer = typer.prompt(
            "CI service (github, gitlab, both, none)", default="none", show_default=True
        )
        if answer.strip().lower() not in {"both", ""}:
            wanted = answer.strip().lower()
            return (*(name for name in INTEGRATIONS if name == wanted), "makefile")
    return INTEGRATIONS


def _folder_and_function(folder: Path, function: str | None) -> tuple[Path, str | None]:
    """Interpret the argument; `init shop.prices:total` uses the current folder.

    Raises:
        InputError: The folder does not exist.
    """
    if folder.is_dir():
        return folder, function
    if function is None and ":" in str(folder):
        return Path(), str(folder)
    raise InputError(
        what="no such folder.",
        where=str(folder),
        fix="Name a repository, or a function of the current one: package.module:function.",
    )


def _lines(
    request: InitRequest, results: Mapping[str, WriteResult], folder: Path, *, is_local: bool
) -> Iterator[str]:
    width = max(map(len, results.values()))
    for name, result in results.items():
        yield f"{result:{width}}  {name}"
    for name, (line, purpose) in _LINES_TO_ADD.items():
        if results.get(name) == "left alone":
            yield from ("", f"{name} exists and is unchanged. Add to it, {purpose}:", f"    {line}")
    if request.systemd:
        units = "nightly/corebound-nightly"
        yield from (
            "",
            "To run every night, install the units, or use the line in nightly/crontab:",
            f"    sudo cp {units}.service {units}.timer /etc/systemd/system/",
            "    sudo systemctl enable --now corebound-nightly.timer",
        )
    if not request.repository.is_built:
        yield from (
            "",
            f"asv cannot build these commits: missing {' and '.join(request.repository.lacks)}.",
            "Until then, the scenario measures the files as they are, and jobs that compare",
            f"commits fail. Then delete scenarios/{request.scenario}.yaml and run this again.",
        )
    if is_local:
        yield from (
            "",
            "The CI workflows install corebound with",
            f"    {request.install}",
            "which works on this machine only. Delete both workflows and run this again with",
            "    --install 'python -m pip install git+URL'",
            "where URL is that of corebound's repository.",
        )
    yield from ("", "Next steps:")
    if folder.resolve() != Path.cwd():
        yield f"    cd {shlex.quote(str(folder))}"
    yield f"    corebound run scenarios/{request.scenario}.yaml"
    yield "    corebound report --open"

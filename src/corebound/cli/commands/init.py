"""`corebound init`: write the files that a repository needs for measurements and nightly runs."""

import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from corebound.cli.options import Json, Output
from corebound.cli.output.console import Console
from corebound.scenario.fault_wording import closest
from corebound.workflow import init as workflow
from corebound.workflow.init import INTEGRATIONS, InitResult, Integration
from corebound.workflow.options import Argument, Option

_ANSWERS: Mapping[str, Sequence[Integration]] = {
    "github": ("github", "makefile"),
    "gitlab": ("gitlab", "makefile"),
    "both": INTEGRATIONS,
    "none": ("makefile",),
}
# Lines that the user has to add to an existing file, and their purpose.
_LINES_TO_ADD = {
    "Makefile": ("include corebound.mk", "for `make speed`, `speed-compare` and `speed-nightly`"),
    ".gitignore": ("/reports/\n    /.asv/", "for the output of measurements"),
    ".gitlab-ci.yml": ("include: [{local: .gitlab/corebound.yml}]", "for GitLab CI"),
}


def init(
    folder: Annotated[
        Path,
        Argument(
            "Repository; or a function of the current one to measure.",
            metavar="DIR|MODULE:FUNCTION",
        ),
    ] = Path(),
    *,
    function: Annotated[
        str | None, Option("Function to measure.", metavar="MODULE:FUNCTION")
    ] = None,
    name: Annotated[
        str | None, Option("Name of the scenario; default: the function's name.")
    ] = None,
    install: Annotated[
        str | None,
        Option("Command that installs corebound in CI; default: from where this one came."),
    ] = None,
    systemd: Annotated[
        bool, Option("Also write a systemd service, a timer and a crontab.")
    ] = False,
    github: Annotated[bool, Option("Write a workflow for GitHub Actions.")] = False,
    gitlab: Annotated[bool, Option("Write jobs for GitLab CI.")] = False,
    hosted: Annotated[
        bool, Option("CI has only rented runners: keep records on a branch or in the cache.")
    ] = False,
    makefile: Annotated[bool, Option("Write Makefile targets.")] = False,
    none: Annotated[bool, Option("Write none of these three.")] = False,
    dry_run: Annotated[bool, Option("List the files, and write nothing.")] = False,
    as_json: Json = False,
) -> Output:
    """Create a scenario, CI workflows and Makefile targets.

    Existing files are not overwritten. Without --github, --gitlab, --makefile or --none, the
    repository's files and remotes decide; if they do not, both services are written, or on a
    terminal, the command asks. Without git, nothing about CI is written.

    Examples:
        corebound init shop.prices:total
        corebound init shop.prices:total --github --hosted
        corebound init ~/src/shop --systemd
    """
    folder, function = _folder_and_function(folder, function)
    chosen: dict[Integration, bool] = {"github": github, "gitlab": gitlab, "makefile": makefile}
    named = tuple(integration for integration, is_chosen in chosen.items() if is_chosen)
    may_ask = sys.stdin.isatty() and not as_json
    result = workflow.init(
        function,
        folder=folder,
        name=name,
        install=install,
        systemd=systemd,
        integrations=() if none else named or None,
        hosted=hosted,
        choose=_ask if may_ask else lambda: INTEGRATIONS,
        dry_run=dry_run,
    )
    is_local = install is None and "git+" not in result.request.install
    is_local = is_local and bool({"github", "gitlab"} & set(result.request.integrations))
    lines = _lines(result, folder, is_local=is_local)
    return Output(result, lambda: Console().print_line("\n".join(lines)))


def _ask() -> Sequence[Integration]:
    """The CI services that the user names, and the Makefile; asks again after a typing mistake."""
    chosen: Sequence[Integration] = typer.prompt(
        f"CI service ({', '.join(_ANSWERS)})", default="none", value_proc=_answer
    )
    return chosen


def _answer(text: str) -> Sequence[Integration]:
    word = text.strip().lower()
    if word not in _ANSWERS:
        close = closest(word, tuple(_ANSWERS))
        raise typer.BadParameter(
            f"Did you mean {close}?" if close else f"Answer one of {', '.join(_ANSWERS)}."
        )
    return _ANSWERS[word]


def _folder_and_function(folder: Path, function: str | None) -> tuple[Path, str | None]:
    """Interpret the argument; `init shop.prices:total` uses the current folder."""
    if function is None and ":" in str(folder) and not folder.is_dir():
        return Path(), str(folder)
    return folder, function


def _lines(result: InitResult, folder: Path, *, is_local: bool) -> Iterator[str]:
    request, results = result.request, result.files
    width = max(map(len, results.values()))
    for name, outcome in results.items():
        yield f"{outcome:{width}}  {name}"
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
            "In CI, corebound is installed with",
            f"    {request.install}",
            "which works on this machine only. Delete the CI files and run this again with",
            "    --install 'python -m pip install git+URL'",
            "where URL is that of corebound's repository.",
        )
    yield from ("", "Next steps:")
    if folder.resolve() != Path.cwd():
        yield f"    cd {shlex.quote(str(folder))}"
    yield f"    corebound run scenarios/{request.scenario}.yaml"
    yield "    corebound report --open"

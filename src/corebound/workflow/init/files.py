"""The files that `corebound init` creates, filled in from templates."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from msgspec import Struct

from corebound.errors import report_os_errors
from corebound.workflow.init.detect import Repository, Target

_BLANK = re.compile(r"@([A-Z_]+)@")
_LONGEST_NAME = 80
Fate = Literal["written", "there already", "left alone"]


class InitRequest(Struct, frozen=True, kw_only=True):
    """The options of `corebound init`.

    Attributes:
        repository: The repository to write the files for.
        target: The function to time; None leaves a placeholder step to fill in.
        name: The scenario's name; None uses the function's name.
        install: The command that installs corebound in continuous integration.
        systemd: Whether to add systemd units and a line for cron.
        program: The corebound executable that these call.
    """

    repository: Repository
    target: Target | None
    name: str | None
    install: str
    systemd: bool
    program: Path

    @property
    def scenario(self) -> str:
        """The scenario's name."""
        given = self.name or (self.target.name if self.target else "example")
        return re.sub(r"[^a-z0-9]+", "-", given.lower()).strip("-")[:_LONGEST_NAME] or "example"


def texts(wanted: InitRequest) -> dict[str, str]:
    """All files as text, by path within the repository."""
    values = _values(wanted)

    def filled(template: str) -> str:
        return _BLANK.sub(lambda found: values[found[1]], _template(template))

    steps = f"scenarios/{values['STEPS']}.py"
    made = {
        f"scenarios/{wanted.scenario}.yaml": filled("scenario.yaml"),
        steps: filled("steps.py.txt" if wanted.target else "example.py.txt"),
        "corebound.mk": filled("corebound.mk"),
        "Makefile": "include corebound.mk\n",
        ".github/workflows/corebound.yml": filled("github.yml"),
        ".gitlab/corebound.yml": filled("gitlab.yml"),
        ".gitlab-ci.yml": filled("gitlab-ci.yml"),
        ".gitignore": "/reports/\n/.asv/\n",
    }
    if wanted.repository.is_built:
        made["asv.conf.json"] = filled("asv.conf.json")
        made["benchmarks/__init__.py"] = ""
        made["benchmarks/scenarios.py"] = _door()
    if wanted.systemd:
        made["nightly/corebound-nightly.service"] = filled("service.ini")
        made["nightly/corebound-nightly.timer"] = filled("timer.ini")
        made["nightly/crontab"] = filled("crontab")
    return made


def _values(wanted: InitRequest) -> dict[str, str]:
    repository, target = wanted.repository, wanted.target
    return {
        "NAME": wanted.scenario,
        "STEPS": f"{wanted.scenario.replace('-', '_')}_steps",
        # This goes into YAML as a plain scalar, where a colon between letters is literal.
        "FUNCTION": target.label if target else "the step",
        "MODULE": target.module if target else "",
        "CALLABLE": target.name if target else "",
        "ENVIRONMENT": "project" if repository.is_built else "host",
        "PATH": "" if repository.is_built or target is None else _path(target),
        "PROJECT": json.dumps(repository.project)[1:-1],
        "BRANCH": repository.branch,
        # Quoted, because YAML would not read words such as `true` as strings.
        "INSTALL": json.dumps(wanted.install, ensure_ascii=False),
        "UPDATE": "--update " if repository.has_remote else "",
        "UNIT_FOLDER": str(repository.folder).replace("%", "%%"),
        "UNIT_PROGRAM": '"' + str(wanted.program).replace("%", "%%") + '"',
        # cron ends a line at an unescaped %.
        "CRON_FOLDER": shlex.quote(str(repository.folder)).replace("%", r"\%"),
        "CRON_PROGRAM": shlex.quote(str(wanted.program)).replace("%", r"\%"),
    }


def _path(target: Target) -> str:
    """Code that adds the repository to `sys.path`, so that a step can import it uninstalled."""
    folder = f'parents[1] / "{target.root}"' if target.root else "parents[1]"
    return (
        "\nimport sys\nfrom pathlib import Path\n\n"
        f"sys.path.insert(0, str(Path(__file__).resolve().{folder}))\n"
    )


def _template(name: str) -> str:
    return (Path(__file__).parent / "templates" / name).read_text(encoding="utf-8")


def _door() -> str:
    """The adapter file for asv: installed with the templates, or from the checkout."""
    installed = Path(__file__).parent / "templates" / "scenarios.py"
    checkout = Path(__file__).parents[4] / "benchmarks" / "scenarios.py"
    return (installed if installed.is_file() else checkout).read_text(encoding="utf-8")


def put(made: Mapping[str, str], folder: Path) -> dict[str, Fate]:
    """Write each file that does not exist yet; leave existing files unchanged.

    Raises:
        InputError: The folder cannot be written.
    """
    fates: dict[str, Fate] = {}
    for name, text in made.items():
        file = folder / name
        with report_os_errors(
            "it cannot be written",
            where=file,
            fix="Name a folder that can be written; files that are there stay as they are.",
        ):
            if file.exists() or file.is_symlink():
                same = file.is_file() and file.read_bytes() == text.encode()
                fates[name] = "there already" if same else "left alone"
                continue
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("x", encoding="utf-8") as stream:
                stream.write(text)
        fates[name] = "written"
    return fates

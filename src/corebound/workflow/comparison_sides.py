"""The two sides of a comparison: commits, parameter values, environments or package versions."""

import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import yaml
from msgspec import Struct

from corebound.analysis.commit_comparison import Side, Sides
from corebound.errors import CoreboundError, InputError
from corebound.launch import environments
from corebound.planning.models import CannotRun
from corebound.records import atomic_write
from corebound.records.run_record import Commit
from corebound.scenario.cell import PROJECT, Cell, Scalar, is_project
from corebound.scenario.compared_axis import (
    SIDES_SUFFIX,
    key_without_axis,
    runs_in_project,
    with_compared_axis,
    with_compared_commits,
)
from corebound.scenario.matrix import Key, axis_text, expand
from corebound.scenario.models import ProfileName, Scenario
from corebound.scenario.settings import SETTINGS
from corebound.workflow import scenarios
from corebound.workflow.prepare import RunRequest
from corebound.workflow.projects import Notify, about
from corebound.workflow.scenarios import LoadedScenario

# The length of a hash abbreviated by git, with room for large repositories.
SHORT = 10
_VERSION = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)==([A-Za-z0-9][A-Za-z0-9._+!-]*)")
_AXIS_VALUE = re.compile(r"(parameters\.)?([A-Za-z_]\w*)=([^=].*)")
_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)\s*(\[[^\]]*\])?\s*[=<>!~@;]?.*")
_ENVIRONMENT: Key = ("environment",)


def short_name(commit: Commit) -> str:
    """The short name of a commit, or of the working tree, as cells show it."""
    return commit.sha[:SHORT] if commit.tree is None else commit.name


def sides_of_commits(project: str, base: Commit, head: Commit) -> Sides:
    """Make sides of two commits of the project under test."""
    base_side, head_side = (
        Side(name=short_name(commit), title=commit.subject, commit=commit)
        for commit in (base, head)
    )
    return Sides(subject=project, axis=("commit",), base=base_side, head=head_side)


def side_of(cell: Cell, axis: Key) -> str | None:
    """The name of the side that a cell belongs to."""
    return dict(cell.axes).get(axis[-1])


def load_comparable(request: RunRequest, notify: Notify) -> tuple[LoadedScenario, ...]:
    """Load the scenarios that run in the project's environment; report and omit all others.

    Raises:
        InputError: No scenario runs in the project's environment.
        ScenarioFaults: The files have errors.
    """
    loaded = scenarios.load_scenarios(request.files, request.only, request.profile)
    return select_comparable(loaded, request.files, notify)


def select_comparable(
    loaded: Sequence[LoadedScenario], files: Sequence[Path], notify: Notify
) -> tuple[LoadedScenario, ...]:
    """Select the scenarios that run in the project's environment; report all others.

    Raises:
        InputError: No scenario runs in the project's environment.
    """
    comparable = tuple(scenario for scenario in loaded if runs_in_project(scenario.scenario))
    if not comparable:
        raise InputError(
            what="no scenario runs in the environment of the project under test.",
            where=", ".join(map(str, files)),
            fix="Write `environment: project` in the scenarios to compare.",
        )
    if omitted := len(loaded) - len(comparable):
        notify(
            f"Skipped {omitted} of {len(loaded)} scenarios, which do not run in"
            " `environment: project`."
        )
    return comparable


def repeat_for_commits(
    loaded: Sequence[LoadedScenario],
    commits: Sequence[Commit],
    request: RunRequest,
    *,
    launches: tuple[int, int] | None = None,
    margin: float | None = None,
) -> tuple[LoadedScenario, ...]:
    """Repeat the scenarios and cells for each commit; the first commit is the baseline.

    Raises:
        ScenarioFaults: A scenario already has commits.
    """
    names = [short_name(commit) for commit in commits]
    add_commits = partial(with_compared_commits, commits=names, launches=launches, margin=margin)
    return _repeat(loaded, ("commit",), request.profile, add_commits)


class AxisValues(Struct, frozen=True, kw_only=True):
    """Two values of one axis.

    Attributes:
        values: The values of base and head.
        titles: The values as the user typed them.
    """

    axis: Key
    values: tuple[Scalar, Scalar]
    titles: tuple[str, str]

    @property
    def sides(self) -> Sides:
        """The two values as sides."""
        base, head = (
            Side(
                name=axis_text(value),
                title="" if title.endswith(axis_text(value)) else title,
                commit=None,
            )
            for value, title in zip(self.values, self.titles, strict=True)
        )
        return Sides(subject=self.axis[-1], axis=self.axis, base=base, head=head)


def repeat_for_values(
    loaded: Sequence[LoadedScenario],
    values: AxisValues,
    request: RunRequest,
    *,
    margin: float | None,
) -> tuple[LoadedScenario, ...]:
    """Repeat the scenarios and cells for each value; the first value is the baseline.

    Raises:
        ScenarioFaults: A scenario does not support that axis.
    """
    add_sides = partial(
        with_compared_axis,
        axis=values.axis,
        values=values.values,
        suffix=SIDES_SUFFIX,
        margin=margin,
    )
    return _repeat(loaded, values.axis, request.profile, add_sides)


def _repeat(
    loaded: Sequence[LoadedScenario],
    axis: Key,
    profile: ProfileName | None,
    add_sides: Callable[..., Scenario],
) -> tuple[LoadedScenario, ...]:
    """Repeat the scenarios and cells for each side.

    Args:
        loaded: The scenarios with their selected cells.
        profile: As in `expand`.
        add_sides: Adds the sides to a scenario; called with the scenario and `path`.
    """
    repeated = []
    for original in loaded:
        selected = {key_without_axis(cell, axis) for cell in original.cells}
        path = scenarios.display_path(original.path)
        scenario = add_sides(original.scenario, path=path)
        cells = tuple(
            cell
            for cell in expand(scenario, path, profile)
            if key_without_axis(cell, axis) in selected
        )
        repeated.append(LoadedScenario(path=original.path, scenario=scenario, cells=cells))
    return tuple(repeated)


def parse_axis_values(
    base: str, head: str, loaded: Sequence[LoadedScenario], notify: Notify
) -> AxisValues | None:
    """Interpret two arguments that are not revisions; return None if they are revisions.

    Args:
        base: `threads=1`, `parameters.size=64`, `environment=pytorch-2.12`,
            `environments/pytorch-2.12.txt`, or `torch==2.12.0`.
        head: An argument of the same kind.
        loaded: The scenarios; package versions apply to their environment.
        notify: Called with each file that is written.

    Raises:
        InputError: The two are of different kinds, or cannot be understood.
    """
    kinds = [_kind(argument) for argument in (base, head)]
    if kinds == ["commit", "commit"]:
        return None
    if kinds[0] != kinds[1]:
        raise _argument_error(f"`{base}` is a {kinds[0]}, but `{head}` is a {kinds[1]}.")
    if base == head:
        raise _argument_error(f"both sides are `{base}`.")
    titles = (base, head)
    if kinds[0] == "configuration":
        (base_axis, base_value), (head_axis, head_value) = _axis_value(base), _axis_value(head)
        if base_axis != head_axis:
            raise _argument_error(f"`{base}` and `{head}` set different keys.")
        return AxisValues(axis=base_axis, values=(base_value, head_value), titles=titles)
    if kinds[0] == "requirements file":
        values = _environment_of_file(base), _environment_of_file(head)
    else:
        values = (
            _environment_with_version(base, loaded, notify),
            _environment_with_version(head, loaded, notify),
        )
    return AxisValues(axis=_ENVIRONMENT, values=values, titles=titles)


def _kind(argument: str) -> str:
    if _VERSION.fullmatch(argument):
        return "version"
    if argument.endswith(".txt"):
        return "requirements file"
    return "configuration" if _AXIS_VALUE.fullmatch(argument) else "commit"


def _argument_error(what: str) -> InputError:
    return InputError(
        what=what,
        where="corebound compare-commits",
        fix="Name two commits, two values of one key (threads=1 threads=2), two files of"
        " environments/, or two versions of one package (torch==2.12.0 torch==2.13.0).",
    )


def _axis_value(argument: str) -> tuple[Key, Scalar]:
    match = _AXIS_VALUE.fullmatch(argument)
    if match is None:
        raise _argument_error(f"`{argument}` is not KEY=VALUE.")
    prefix, name, written = match.groups()
    if prefix is None and name not in SETTINGS:
        raise InputError(
            what=f"unknown key `{name}`.",
            where="corebound compare-commits",
            fix=f"Keys: {', '.join(SETTINGS)}, and parameters.NAME of the workload.",
        )
    value = yaml.safe_load(written)
    if not isinstance(value, str | int | float | bool):
        raise _argument_error(f"`{written}` is not a single value.")
    return (("parameters", name) if prefix else (name,)), value


def _environment_of_file(argument: str) -> str:
    """The name of the environment that a requirements file describes."""
    file = Path(argument)
    if environments.requirements(file.stem, Path.cwd()).resolve() != file.resolve():
        raise InputError(
            what="environments can only be made from files in environments/.",
            where=argument,
            fix=f"Move it there: environments/{file.name}.",
        )
    return file.stem


def _environment_with_version(
    argument: str, loaded: Sequence[LoadedScenario], notify: Notify
) -> str:
    """Write a copy of the scenarios' environment with one package at the given version.

    The file is kept so that the results can be reproduced.
    """
    used = {cell.environment for cell in scenarios.all_cells(loaded)}
    if len(used) != 1 or used & {environments.HOST, PROJECT}:
        raise InputError(
            what="a package version applies to a single environment of environments/, but the"
            f" scenarios run in: {', '.join(sorted(used))}.",
            where=f"compare-commits {argument}",
            fix="Name scenarios that run in one environment of environments/.",
        )
    (name,) = used
    package, _, version = argument.partition("==")
    copy = f"{name}-{package}-{version}".replace("!", "-")
    file = Path("environments") / f"{copy}.txt"
    if not file.exists():
        # Comments may have bytes that are not UTF-8; they stay as they are.
        requirements = atomic_write.read(environments.requirements(name, Path.cwd()))
        lines = requirements.decode(errors="surrogateescape").splitlines()
        others = [line for line in lines if not _requires(line, package)]
        comment = f"# {name} with {argument}, written by `corebound compare-commits`."
        text = "\n".join((comment, *others, argument, ""))
        atomic_write.put(file, text.encode(errors="surrogateescape"))
        notify(f"Written: {file}")
    return copy


def _requires(line: str, package: str) -> bool:
    """Whether a requirements line is for a package; names compare as in PEP 503."""
    match = _REQUIREMENT.fullmatch(line)
    if match is None:
        return False
    required, requested = (re.sub(r"[-_.]+", "-", name).lower() for name in (match[1], package))
    return required == requested


def make_environments(loaded: Sequence[LoadedScenario], notify: Notify) -> dict[str, CannotRun]:
    """Create the environments of both sides; return the reason for each that fails.

    Raises:
        InputError: A scenario names an environment that does not exist.
    """
    unmade: dict[str, CannotRun] = {}
    for name in dict.fromkeys(cell.environment for cell in scenarios.all_cells(loaded)):
        if is_project(name):
            continue
        try:
            folder = scenarios.folder_of(name, loaded)
            environments.make(name, folder, about(name, notify))
        except InputError:
            raise
        except CoreboundError as error:
            notify(f"{name}: {error.what.splitlines()[0]}")
            unmade[name] = CannotRun(what=error.what, fix=error.fix, cause="build")
    return unmade

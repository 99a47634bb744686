"""The two sides of a comparison: commits, parameter values, environments or package versions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import yaml
from msgspec import Struct

from corebound.errors import CoreboundError, InputError
from corebound.launch import environments
from corebound.planning.models import CannotRun
from corebound.records.run_record import Commit
from corebound.scenario.cell import PROJECT, Cell, Scalar, is_project
from corebound.scenario.comparison import with_compared_axis
from corebound.scenario.matrix import Key, axis_text
from corebound.scenario.settings import SETTINGS
from corebound.workflow import scenarios
from corebound.workflow.compare_commits import by_axis, short
from corebound.workflow.prepare import RunRequest
from corebound.workflow.projects import Say
from corebound.workflow.scenarios import Loaded

SUFFIX = ".sides"
_VERSION = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)==([A-Za-z0-9][A-Za-z0-9._+!-]*)")
_SETTING = re.compile(r"(parameters\.)?([A-Za-z_]\w*)=([^=].*)")
_PINNED = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)\s*(\[[^\]]*\])?\s*[=<>!~@;]?.*")
_ENVIRONMENT: Key = ("environment",)


class Side(Struct, frozen=True, kw_only=True):
    """One side of a comparison.

    Attributes:
        name: The name that cells show.
        title: Further description, such as a commit's subject.
        commit: The commit, if the side is one.
    """

    name: str
    title: str
    commit: Commit | None


class Sides(Struct, frozen=True, kw_only=True):
    """Both sides of a comparison.

    Attributes:
        what: What is compared: the name of the project or of the axis.
        axis: The axis on which cells differ.
        base: The side to compare with.
        head: The side under evaluation.
    """

    what: str
    axis: Key
    base: Side
    head: Side

    @property
    def names(self) -> tuple[str, str]:
        """The names of base and head, as cells show them."""
        return self.base.name, self.head.name


def of_commits(project: str, base: Commit, head: Commit) -> Sides:
    """Make sides of two commits of the project under test."""
    one, other = (Side(name=short(each), title=each.subject, commit=each) for each in (base, head))
    return Sides(what=project, axis=("commit",), base=one, head=other)


class Settings(Struct, frozen=True, kw_only=True):
    """Two values of one axis.

    Attributes:
        axis: The axis.
        values: The values of base and head.
        titles: The values as the user typed them.
    """

    axis: Key
    values: tuple[Scalar, Scalar]
    titles: tuple[str, str]

    @property
    def ends(self) -> Sides:
        """The two values as sides."""
        base, head = (
            Side(
                name=axis_text(value),
                title="" if title.endswith(axis_text(value)) else title,
                commit=None,
            )
            for value, title in zip(self.values, self.titles, strict=True)
        )
        return Sides(what=self.axis[-1], axis=self.axis, base=base, head=head)


def settings(base: str, head: str, loaded: Sequence[Loaded], say: Say) -> Settings | None:
    """Interpret two arguments that are not revisions; return None if they are revisions.

    Args:
        base: `threads=1`, `parameters.size=64`, `environment=pytorch-2.12`,
            `environments/pytorch-2.12.txt`, or `torch==2.12.0`.
        head: An argument of the same kind.
        loaded: The scenarios; package versions apply to their environment.
        say: Called with each file that is written.

    Raises:
        InputError: The two are of different kinds, or cannot be understood.
    """
    kinds = [_kind(word) for word in (base, head)]
    if kinds == ["commit", "commit"]:
        return None
    if kinds[0] != kinds[1]:
        raise _refused(f"`{base}` is a {kinds[0]}, and `{head}` a {kinds[1]}.")
    if base == head:
        raise _refused(f"both sides are `{base}`.")
    titles = (base, head)
    if kinds[0] == "setting":
        (axis, one), (other_axis, other) = _setting(base), _setting(head)
        if axis != other_axis:
            raise _refused(f"`{base}` and `{head}` set different things.")
        return Settings(axis=axis, values=(one, other), titles=titles)
    if kinds[0] == "requirements file":
        return Settings(axis=_ENVIRONMENT, values=(_of_file(base), _of_file(head)), titles=titles)
    return Settings(
        axis=_ENVIRONMENT,
        values=(_of_version(base, loaded, say), _of_version(head, loaded, say)),
        titles=titles,
    )


def _kind(word: str) -> str:
    if _VERSION.fullmatch(word):
        return "version"
    if word.endswith(".txt"):
        return "requirements file"
    return "setting" if _SETTING.fullmatch(word) else "commit"


def _refused(what: str) -> InputError:
    return InputError(
        what=what,
        where="corebound compare-commits",
        fix="Name two commits, two values of one setting (threads=1 threads=2), two files of"
        " environments/, or two versions of one package (torch==2.12.0 torch==2.13.0).",
    )


def _setting(word: str) -> tuple[Key, Scalar]:
    found = _SETTING.fullmatch(word)
    if found is None:
        raise _refused(f"`{word}` is no setting.")
    prefix, name, written = found.groups()
    if prefix is None and name not in SETTINGS:
        raise InputError(
            what=f"`{name}` is no setting.",
            where="corebound compare-commits",
            fix=f"There are: {', '.join(SETTINGS)}, and parameters.NAME of the workload.",
        )
    value = yaml.safe_load(written)
    if not isinstance(value, str | int | float | bool):
        raise _refused(f"`{written}` is no value.")
    return (("parameters", name) if prefix else (name,)), value


def _of_file(word: str) -> str:
    """The name of the environment that a requirements file describes."""
    file = Path(word)
    if environments.requirements(file.stem, Path.cwd()).resolve() != file.resolve():
        raise InputError(
            what="environments are made from files of environments/ alone.",
            where=word,
            fix=f"Put it there: environments/{file.name}.",
        )
    return file.stem


def _of_version(word: str, loaded: Sequence[Loaded], say: Say) -> str:
    """Write a copy of the scenarios' environment with one package at the given version.

    The file is kept so that the results can be reproduced.
    """
    used = {cell.environment for cell in scenarios.cells_of(loaded)}
    if len(used) != 1 or used & {environments.HOST, PROJECT}:
        raise InputError(
            what=f"these scenarios run in {', '.join(sorted(used))}, of which none can be given"
            " another version of a package.",
            where=f"compare-commits {word}",
            fix="Name scenarios that run in one environment of environments/.",
        )
    (name,) = used
    package, _, version = word.partition("==")
    made = f"{name}-{package}-{version}".replace("!", "-")
    file = Path("environments") / f"{made}.txt"
    if not file.exists():
        lines = environments.requirements(name, Path.cwd()).read_text("utf-8").splitlines()
        kept = [line for line in lines if not _is_of(line, package)]
        head = f"# {name} with {word}, written by `corebound compare-commits`."
        file.parent.mkdir(exist_ok=True)
        file.write_text("\n".join((head, *kept, word, "")), encoding="utf-8")
        say(f"Written: {file}")
    return made


def _is_of(line: str, package: str) -> bool:
    """Whether a requirements line is for a package; names compare as in PEP 503."""
    found = _PINNED.fullmatch(line)
    plain = (re.sub(r"[-_.]+", "-", one).lower() for one in ((found[1] if found else ""), package))
    return found is not None and len(set(plain)) == 1


def over(
    loaded: Sequence[Loaded], asked: Settings, wanted: RunRequest, *, margin: float | None
) -> tuple[Loaded, ...]:
    """Repeat the scenarios and cells for each side; the first side is the baseline.

    Raises:
        ScenarioFaults: A scenario does not support that axis.
    """
    made = partial(
        with_compared_axis, axis=asked.axis, values=asked.values, suffix=SUFFIX, margin=margin
    )
    return by_axis(loaded, asked.axis, wanted.profile, made)


def side_of(cell: Cell, axis: Key) -> str | None:
    """The name of the side that a cell belongs to."""
    return dict(cell.axes).get(axis[-1])


def made(loaded: Sequence[Loaded], say: Say) -> dict[str, CannotRun]:
    """Create the environments of both sides; return the reason for each that fails.

    Raises:
        InputError: A scenario names an environment that does not exist.
    """
    unmade: dict[str, CannotRun] = {}
    for name in dict.fromkeys(cell.environment for cell in scenarios.cells_of(loaded)):
        if is_project(name):
            continue
        try:
            environments.make(name, Path.cwd(), partial(_say, say, name))
        except InputError:
            raise
        except CoreboundError as error:
            say(f"{name}: {error.what.splitlines()[0]}")
            unmade[name] = CannotRun(what=error.what, fix=error.fix, cause="build")
    return unmade


def _say(say: Say, name: str, what: str) -> None:
    say(f"{name}: {what}")

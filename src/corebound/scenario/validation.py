"""Validate a tree of values against a file's model: unknown keys and wrong types."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Annotated, Any, Generic, TypeVar

from msgspec import Struct
from msgspec.structs import replace
from pydantic import BaseModel, ValidationError

from corebound.scenario.builtin_workloads import BUILT_IN
from corebound.scenario.fault_wording import Expected, closest, join_words, printable
from corebound.scenario.matrix import SECTIONS
from corebound.scenario.models import (
    Claim,
    CommandWorkload,
    Launches,
    Matrix,
    MatrixEntry,
    Measure,
    MetricSource,
    Needs,
    Profile,
    Scenario,
    WarmupIterations,
    WarmupSeconds,
)
from corebound.scenario.runtimes import ALIASES
from corebound.scenario.server_workload import (
    ExpectedAnswer,
    Requests,
    ServerProcess,
    ServerWorkload,
)
from corebound.scenario.settings import (
    SETTINGS,
    ExistingEnvironment,
    ExplicitCpus,
    is_nullable,
)
from corebound.scenario.yaml_reader import MOST_DEPTH, Node, Path, as_data, as_tree


def expected_by_key(*models: type[BaseModel]) -> Mapping[str, Expected]:
    """What the fields of models expect, by their keys in a file, where their metadata says it."""
    return {
        field.alias or name: item
        for model in models
        for name, field in model.model_fields.items()
        for item in field.metadata
        if isinstance(item, Expected)
    }


_PROFILE = Expected("a profile", "Write keys of `measure`, `parameters` or `only` under it.")


class _Profiles(BaseModel):
    quick: Annotated[Profile, _PROFILE]
    nightly: Annotated[Profile, _PROFILE]


EXPECTED: Mapping[str, Expected] = {
    **{name: setting.expected for name, setting in SETTINGS.items()},
    **expected_by_key(MetricSource),
    **expected_by_key(ExplicitCpus, ExistingEnvironment, CommandWorkload, Matrix, WarmupSeconds),
    **expected_by_key(ServerWorkload, ServerProcess, Requests, ExpectedAnswer),
    **expected_by_key(Launches, Measure, Needs, Claim, Profile, _Profiles, Scenario),
}
_OF_METRIC = expected_by_key(MetricSource)
# The number of iterations to drop, not those of a launch.
_DROPPED = expected_by_key(WarmupIterations)["iterations"]


def expected_at(path: Path, node: Node) -> Expected:
    """The words that describe the expected value at `path`, where `node` is wrong."""
    keys = [part for part in path if isinstance(part, str)]
    key, parent = keys[-1], keys[-2] if len(keys) > 1 else ""
    is_item = isinstance(path[-1], int)
    if not is_item and ((parent == "matrix" and key not in _NO_AXES) or keys[:-1] in _AXES_BELOW):
        return _axis(key, node)
    if parent == "env" or (is_item and key in _TEXTS):
        quoted = f'"{printable(node.text)}"'
        return Expected("text", f"Put it in quotes: {quoted if is_item else f'{key}: {quoted}'}.")
    if parent == "parameters":
        return _VALUE
    if "metric" in keys[:-1]:
        return _OF_METRIC[key]
    expected = _DROPPED if (parent, key) == ("warmup", "iterations") else EXPECTED[key]
    return expected.item if is_item and expected.item is not None else expected


# Their items are text.
_TEXTS = frozenset({"command", "prepare", "cleanup", "files", "pass_env"})
_VALUE = Expected("a value of a parameter", "Write true, false, a number or text.")
_NO_AXES = frozenset({*SECTIONS, "include", "exclude"})
_AXES_BELOW = [["matrix", section] for section in SECTIONS]


def _axis(name: str, node: Node) -> Expected:
    if node.value == []:
        return Expected("an axis", "Write at least one value, or remove the axis.")
    example = (excerpt(node) if node.quoted else printable(node.text)) or "…"
    return Expected("a list of values", f"Write `{name}: [{example}]`.")


def excerpt(node: Node) -> str:
    """A value for a message, as it was written or shortened."""
    if isinstance(node.value, dict):
        return "{…}" if node.value else "{}"
    if isinstance(node.value, list):
        items = ", ".join(excerpt(child) for child in node.value)
        return f"[{items}]" if len(items) <= 40 else "[…]"
    return f'"{printable(node.text)}"' if node.quoted else printable(node.text)


def nearest_key(path: Path) -> str:
    """The key of a value, or the key of the list that contains it."""
    return next((part for part in reversed(path) if isinstance(part, str)), "")


class Problem(Struct, frozen=True, kw_only=True):
    """One thing wrong at a place; `line` is None if it is not from a file.

    `is_unknown` marks a key that is not valid there; `intended_key` is then the key that it is
    probably a misspelling of.
    """

    path: Path
    line: int | None
    what: str
    fix: str
    intended_key: str | None = None
    is_unknown: bool = False


Model = TypeVar("Model", bound=BaseModel)


class ValidatedTree(Struct, Generic[Model], frozen=True, kw_only=True):
    """The result of validating a tree.

    Attributes:
        model: The file's content without its invalid parts; None if too little is left.
        root: The tree that it was built from.
        problems: What is wrong with its shape.
        removed: The paths of everything that was removed because it was wrong, and of keys
            that were misspelt.
    """

    model: Model | None
    root: Node
    problems: tuple[Problem, ...]
    removed: tuple[Path, ...]


class FileFormat(Struct, Generic[Model], frozen=True, kw_only=True):
    """A kind of YAML file: its model, and the words for messages about it.

    Attributes:
        noun: What the file is, as in "this is not …".
        example: A line of such a file.
        sections: The model of each section, by its key; the file's own under "".
        homes: Other sections in which an unknown key may belong.
        placeholders: Values for required top-level keys that are wrong or missing, so that the
            rest can be checked.
        expected: Describes the expected value at a path, where a node is wrong.
        missing: Describes the expected value of a missing key.
        is_nullable: Whether the key at a path may have no value.
    """

    noun: str
    example: str
    model: type[Model]
    sections: Mapping[str, type[BaseModel]]
    homes: tuple[str, ...]
    placeholders: Mapping[str, Any]
    expected: Callable[[Path, Node], Expected]
    missing: Callable[[str], Expected]
    is_nullable: Callable[[Path], bool]

    def known_keys(self, section: str) -> tuple[str, ...]:
        """The keys that a section may have."""
        fields = self.sections[section].model_fields
        return tuple(field.alias or name for name, field in fields.items())


# More is not useful to a reader, and the limit keeps a malicious file from taking long.
MOST_PROBLEMS = 200


def _may_unset(path: Path) -> bool:
    """Whether null means "not set": as a setting, and as a variable in the matrix or an entry."""
    below = path[path.index("env") + 1 :] if "env" in path[1:] else ()
    return is_nullable(nearest_key(path)) or 0 < len(below) <= 2


class _Workload(CommandWorkload, ServerWorkload):
    """The keys of both forms of a workload that has keys."""


class _Warmup(WarmupIterations, WarmupSeconds):
    """The keys of both forms of a warm-up."""


SCENARIO = FileFormat(
    noun="a scenario",
    example="`name: gemm`",
    model=Scenario,
    sections={
        "": Scenario,
        "matrix": Matrix,
        "include": MatrixEntry,
        "exclude": MatrixEntry,
        "only": MatrixEntry,
        "baseline": MatrixEntry,
        "faster": MatrixEntry,
        "than": MatrixEntry,
        "measure": Measure,
        "profiles": _Profiles,
        "warmup": _Warmup,
        "quick": Profile,
        "nightly": Profile,
        "launches": Launches,
        "claims": Claim,
        "needs": Needs,
        "binding": ExplicitCpus,
        "environment": ExistingEnvironment,
        "workload": _Workload,
        "server": ServerProcess,
        "requests": Requests,
        "expect": ExpectedAnswer,
        "metric": MetricSource,
    },
    homes=("", "measure", "launches", "matrix", "needs"),
    placeholders={"schema": 1, "name": "x", "title": "x", "question": "x", "workload": "x:x"},
    expected=expected_at,
    missing=EXPECTED.__getitem__,
    is_nullable=_may_unset,
)


def validate(root: Node, form: FileFormat[Model]) -> ValidatedTree[Model]:
    """Validate a tree, then what is left of it after its faults are removed."""
    if not isinstance(root.value, dict):
        problem = Problem(
            path=(),
            line=root.line,
            what=f"this is not {form.noun}, which is a mapping of keys to values.",
            fix=f"Write keys such as {form.example} without indentation.",
        )
        return ValidatedTree(model=None, root=root, problems=(problem,), removed=((),))
    nulls = tuple(_missing_values(root, form))
    flawed = (path for path, node in root.walk() if node.flawed)
    removed = [*flawed, *(null.path for null in nulls)]
    root = _without(root, frozenset(removed))
    model, faults = _build(root, form)
    problems = (
        *nulls,
        *(fault for fault in faults if not _is_consequence(fault.path, removed, root)),
    )
    # Removing a value may make its parent invalid in turn. That is not a fault of the file,
    # so it is not reported; each round moves up at least one level.
    for _ in range(MOST_DEPTH):
        removed += [path for fault in faults if (path := _absent_path(fault)) is not None]
        if model is not None or len(faults) == MOST_PROBLEMS:
            break
        root = _without(root, frozenset(_path_to_remove(fault.path, root) for fault in faults))
        root = _with_placeholders(root, form)
        model, faults = _build(root, form)
    return ValidatedTree(
        model=model, root=root, problems=problems, removed=tuple(dict.fromkeys(removed))
    )


def _is_consequence(path: Path, removed: Iterable[Path], root: Node) -> bool:
    """Whether a problem only follows from the removal of something lost."""
    emptied = root.nearest(path).value in ({}, [])
    return any(
        removed_path == path or (emptied and removed_path[: len(path)] == path)
        for removed_path in removed
    )


def _absent_path(problem: Problem) -> Path | None:
    """The path that the scenario lacks because of a problem; None for an unguessable key."""
    if not problem.is_unknown:
        return problem.path
    return (*problem.path[:-1], problem.intended_key) if problem.intended_key else None


def _path_to_remove(path: Path, root: Node) -> Path:
    """The path to remove: the invalid value, or the parent that lacks a key."""
    return path if root.at(path) is not None else path[:-1]


def _build(root: Node, form: FileFormat[Model]) -> tuple[Model | None, tuple[Problem, ...]]:
    line = root.nearest(("matrix",)).line
    try:
        return form.model.model_validate(as_data(root), context={"line": line}), ()
    except ValidationError as error:
        return None, tuple(_problems(error, root, form))


def _missing_values(root: Node, form: FileFormat[Model]) -> Iterator[Problem]:
    """Keys without a value, except where that means "not set"."""
    for path, node in root.walk():
        is_axis = len(path) == 2 and path[0] == "matrix"
        if (
            node.value is None
            and not node.flawed
            and path
            and (is_axis or not form.is_nullable(path))
        ):
            item = "an item of " if isinstance(path[-1], int) else ""
            yield Problem(
                path=path,
                line=node.line,
                what=f"{item}`{printable(nearest_key(path))}` has no value.",
                fix="Write one, or remove the key.",
            )


def _without(node: Node, removed: frozenset[Path], path: Path = ()) -> Node:
    children = [
        (part, _without(child, removed, (*path, part)))
        for part, child in node.children()
        if (*path, part) not in removed
    ]
    if isinstance(node.value, dict):
        return replace(node, value={str(part): child for part, child in children})
    if isinstance(node.value, list):
        return replace(node, value=[child for _, child in children])
    return node


def _with_placeholders(root: Node, form: FileFormat[Model]) -> Node:
    children = {str(part): child for part, child in root.children()}
    for key, value in form.placeholders.items():
        children.setdefault(key, replace(as_tree(value), line=root.line))
    return replace(root, value=children)


def _problems(error: ValidationError, root: Node, form: FileFormat[Model]) -> Iterator[Problem]:
    """Each error once, at its place in the file."""
    kinds: dict[Path, str] = {}
    for details in error.errors(include_url=False, include_context=False, include_input=False):
        path, kind = _file_path(details["loc"], root), details["type"]
        if kind in {"missing", "extra_forbidden"}:
            path = (*path, str(details["loc"][-1])) if kind == "missing" else path
        elif details["loc"][-1] == "[key]":
            kind = "extra_forbidden"
        else:
            kind = "wrong"
        kinds.setdefault(path, kind)
    kinds = dict(itertools.islice(kinds.items(), MOST_PROBLEMS))
    unknown_paths = {path for path, kind in kinds.items() if kind == "extra_forbidden"}
    # Everything below an unknown key is unknown too.
    kinds = {
        path: kind for path, kind in kinds.items() if unknown_paths.isdisjoint(_ancestors(path))
    }
    unknown_keys = {path: _unknown_key(path, root, form) for path in kinds if path in unknown_paths}
    intended = {(*path[:-1], problem.intended_key) for path, problem in unknown_keys.items()}
    # An error within a value is more precise than one about its whole union branch.
    ancestors = {ancestor for path in kinds for ancestor in _ancestors(path)}
    for path, kind in kinds.items():
        if kind == "extra_forbidden":
            yield unknown_keys[path]
        elif kind == "missing" and path not in intended:
            yield _missing_key(path, root, form)
        elif kind == "wrong" and path not in ancestors:
            yield _wrong_value(path, root, form)


def _ancestors(path: Path) -> Iterator[Path]:
    return (path[:length] for length in range(len(path)))


def _file_path(loc: tuple[int | str, ...], root: Node) -> Path:
    """The place in the file: pydantic's location without the union branches that it tried."""
    path: Path = ()
    node = root
    for part in loc:
        if (child := node.child(part)) is not None:
            path, node = (*path, part), child
    return path


def _missing_key(path: Path, root: Node, form: FileFormat[Model]) -> Problem:
    key = str(path[-1])
    section = f" in `{nearest_key(path[:-1])}`" if len(path) > 1 else ""
    return Problem(
        path=path,
        line=root.nearest(path).line,
        what=f"`{key}` is missing{section}.",
        fix=form.missing(key).fix,
    )


def _wrong_value(path: Path, root: Node, form: FileFormat[Model]) -> Problem:
    node = root.nearest(path)
    expected = form.expected(path, node)
    is_text = isinstance(node.value, str)
    alias = ALIASES.get(node.text) if nearest_key(path) == "framework" else None
    close = alias or (closest(node.text, expected.choices) if is_text else None)
    fix = f"Did you mean `{close}`?" if close else expected.fix
    if (
        node.value
        and isinstance(node.value, list)
        and len(path) == 1
        and "matrix" in form.sections
        and path[0] in SETTINGS
    ):
        fix = f"Write one value here, or list several under `matrix`: `{path[0]}: {excerpt(node)}`."
    return Problem(
        path=path,
        line=node.line,
        what=f"`{nearest_key(path)}: {excerpt(node)}` is not {expected.noun}.",
        fix=fix,
    )


def _unknown_key(path: Path, root: Node, form: FileFormat[Model]) -> Problem:
    key, section = str(path[-1]), nearest_key(path[:-1])
    known_keys, line = form.known_keys(section), root.nearest(path).line
    what = f"`{printable(key)}` is not a known key{f' of `{section}`' if section else ''}."
    fix, meant = "Remove it.", None
    if section == "warmup" and key in known_keys:
        what, fix = "`iterations` and `seconds` exclude each other.", "Keep one of them."
    elif home := _right_section(key, section, root, form):
        fix = f"Write it {home}."
    elif meant := closest(key, known_keys):
        fix = f"Did you mean `{meant}`?"
    elif len(known_keys) <= 9:
        fix = f"Remove it; known here: {join_words([f'`{name}`' for name in known_keys], 'and')}."
    return Problem(path=path, line=line, what=what, fix=fix, intended_key=meant, is_unknown=True)


def _right_section(key: str, section: str, root: Node, form: FileFormat[Model]) -> str | None:
    """The section of a key that is known, but not valid here."""
    built_in = BUILT_IN.get(root.nearest(("workload",)).text)
    if built_in is not None and key in built_in.parameters:
        return "under `matrix.parameters`" if section == "matrix" else "under `parameters`"
    for home in form.homes:
        if home != section and key in form.known_keys(home):
            return f"under `{home}`" if home else "at the top level"
    return None

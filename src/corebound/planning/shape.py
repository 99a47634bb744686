"""A tree against the scenario's model: every fault of shape, in words."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from pydantic import BaseModel, ValidationError

from corebound.model.catalogue import BUILT_IN
from corebound.model.measure import Launches, Measure
from corebound.model.scenario import (
    Claim,
    CommandWorkload,
    ExplicitCpus,
    Matrix,
    MatrixEntry,
    Needs,
    Profile,
    Scenario,
)
from corebound.planning.tree import MOST_DEPTH, Node, Path, plain, printable
from corebound.planning.words import NULLABLE, WORDS, close_to, label, listed, shown, words_for


class Problem(Struct, frozen=True, kw_only=True):
    """One thing wrong at a place, on a line unless it came from no file.

    `is_unknown` where it is a key that means nothing there; `meant` is then the
    key that it seems to be misspelt from.
    """

    path: Path
    line: int | None
    what: str
    mend: str
    meant: str | None = None
    is_unknown: bool = False


class Shaped(Struct, frozen=True, kw_only=True):
    """What validation made of a tree.

    Attributes:
        scenario: The scenario without what is wrong with it; None if too
            little is left.
        root: The tree that the scenario was made of.
        problems: What is wrong with its shape.
        lost: The paths of everything that the scenario lacks because it was
            wrong, and of keys that a misspelling stood for.
    """

    scenario: Scenario | None
    root: Node
    problems: tuple[Problem, ...]
    lost: tuple[Path, ...]


# What stands in for a required key at the top that is wrong or missing, so that
# the rest can be checked.
_STAND_INS: dict[str, Any] = {
    "schema": 1, "name": "x", "title": "x", "question": "x", "workload": "x:x",
}  # fmt: skip

# Nobody reads more; a file made to have a million is refused as quickly.
MOST_PROBLEMS = 200

_MODELS: dict[str, type[BaseModel]] = {
    "": Scenario,
    "matrix": Matrix,
    "include": MatrixEntry,
    "exclude": MatrixEntry,
    "only": MatrixEntry,
    "baseline": MatrixEntry,
    "faster": MatrixEntry,
    "than": MatrixEntry,
    "measure": Measure,
    "quick": Profile,
    "nightly": Profile,
    "launches": Launches,
    "claims": Claim,
    "needs": Needs,
    "binding": ExplicitCpus,
    "workload": CommandWorkload,
}
# Where else an unknown key may have been meant to stand.
_HOMES = ("", "measure", "launches", "matrix", "needs")


def shape(root: Node) -> Shaped:
    """Validate a tree, and what is left of it once its faults are taken out."""
    if not isinstance(root.value, dict):
        problem = Problem(
            path=(),
            line=root.line,
            what="this is not a scenario, which is a mapping of keys to values.",
            mend="Write keys such as `name: gemm` at the margin.",
        )
        return Shaped(scenario=None, root=root, problems=(problem,), lost=((),))
    nulls = tuple(_nulls(root, ()))
    lost = [*_flawed(root, ()), *(null.path for null in nulls)]
    root = _without(root, frozenset(lost))
    scenario, found = _validate(root)
    problems = (*nulls, *(one for one in found if not _follows(one.path, lost, root)))
    # Taking a value out may leave its surroundings unfit in turn. That is no fault
    # of the file, so nothing is said of it; each round goes a level up at least.
    for _ in range(MOST_DEPTH):
        lost += [path for one in found if (path := _loss(one)) is not None]
        if scenario is not None or len(found) == MOST_PROBLEMS:
            break
        root = _completed(_without(root, frozenset(_culprit(one.path, root) for one in found)))
        scenario, found = _validate(root)
    return Shaped(scenario=scenario, root=root, problems=problems, lost=tuple(dict.fromkeys(lost)))


def _follows(path: Path, lost: Iterable[Path], root: Node) -> bool:
    """Whether a problem is only that something lost is missing, or that nothing else was there."""
    emptied = root.nearest(path).value in ({}, [])
    return any(gone == path or (emptied and gone[: len(path)] == path) for gone in lost)


def _loss(problem: Problem) -> Path | None:
    """What the scenario lacks by a problem: nothing, where a key meant nothing."""
    if not problem.is_unknown:
        return problem.path
    return (*problem.path[:-1], problem.meant) if problem.meant else None


def _culprit(path: Path, root: Node) -> Path:
    """What to take out: the thing itself, or what it is missing from."""
    return path if root.at(path) is not None else path[:-1]


def _validate(root: Node) -> tuple[Scenario | None, tuple[Problem, ...]]:
    line = root.nearest(("matrix",)).line
    try:
        return Scenario.model_validate(plain(root), context={"line": line}), ()
    except ValidationError as error:
        return None, tuple(_problems(error, root))


def _flawed(node: Node, path: Path) -> Iterator[Path]:
    if node.flawed:
        yield path
    for part, child in node.children():
        yield from _flawed(child, (*path, part))


def _nulls(node: Node, path: Path) -> Iterator[Problem]:
    """Keys without a value, wherever that does not mean "not set"."""
    is_axis = len(path) == 2 and path[0] == "matrix"
    if node.value is None and not node.flawed and path and (is_axis or label(path) not in NULLABLE):
        item = "an item of " if isinstance(path[-1], int) else ""
        yield Problem(
            path=path,
            line=node.line,
            what=f"{item}`{printable(label(path))}` has no value.",
            mend="Write one, or leave the key out.",
        )
    for part, child in node.children():
        yield from _nulls(child, (*path, part))


def _without(node: Node, gone: frozenset[Path], path: Path = ()) -> Node:
    kept = [
        (part, _without(child, gone, (*path, part)))
        for part, child in node.children()
        if (*path, part) not in gone
    ]
    if isinstance(node.value, dict):
        return replace(node, value={str(part): child for part, child in kept})
    if isinstance(node.value, list):
        return replace(node, value=[child for _, child in kept])
    return node


def _completed(root: Node) -> Node:
    children = {str(part): child for part, child in root.children()}
    for key, value in _STAND_INS.items():
        children.setdefault(key, Node(value=value, line=root.line))
    return replace(root, value=children)


def _problems(error: ValidationError, root: Node) -> Iterator[Problem]:
    """Each error once, at the place in the file that it is about."""
    found: dict[Path, str] = {}
    for one in error.errors(include_url=False, include_context=False, include_input=False):
        path, kind = _real(one["loc"], root), one["type"]
        if kind in {"missing", "extra_forbidden"}:
            path = (*path, str(one["loc"][-1])) if kind == "missing" else path
        elif one["loc"][-1] == "[key]":
            kind = "extra_forbidden"
        else:
            kind = "wrong"
        found.setdefault(path, kind)
    found = dict(itertools.islice(found.items(), MOST_PROBLEMS))
    strange = {path for path, kind in found.items() if kind == "extra_forbidden"}
    # Under a key that means nothing, nothing means anything.
    found = {path: kind for path, kind in found.items() if strange.isdisjoint(_above(path))}
    unknown = {path: _unknown(path, root) for path in found if path in strange}
    meant = {(*path[:-1], problem.meant) for path, problem in unknown.items()}
    # A branch of a union that was wrong altogether says less than what is wrong within.
    outer = {above for path in found for above in _above(path)}
    for path, kind in found.items():
        if kind == "extra_forbidden":
            yield unknown[path]
        elif kind == "missing" and path not in meant:
            yield _missing(path, root)
        elif kind == "wrong" and path not in outer:
            yield _wrong(path, root)


def _above(path: Path) -> Iterator[Path]:
    return (path[:length] for length in range(len(path)))


def _real(loc: tuple[int | str, ...], root: Node) -> Path:
    """The place in the file: pydantic's, without the branches of unions that it tried."""
    path: Path = ()
    node = root
    for part in loc:
        if (child := node.child(part)) is not None:
            path, node = (*path, part), child
    return path


def _missing(path: Path, root: Node) -> Problem:
    key = str(path[-1])
    inside = f" in `{label(path[:-1])}`" if len(path) > 1 else ""
    return Problem(
        path=path,
        line=root.nearest(path).line,
        what=f"`{key}` is missing{inside}.",
        mend=WORDS[key].mend,
    )


def _wrong(path: Path, root: Node) -> Problem:
    node = root.nearest(path)
    words = words_for(path, node)
    close = close_to(node.text, words.choices) if isinstance(node.value, str) else None
    mend = f"Did you mean `{close}`?" if close else words.mend
    if (
        node.value
        and isinstance(node.value, list)
        and len(path) == 1
        and path[0] in _keys("matrix")
    ):
        mend = f"Write one value here, or list several under `matrix`: `{path[0]}: {shown(node)}`."
    return Problem(
        path=path,
        line=node.line,
        what=f"`{label(path)}: {shown(node)}` is not {words.noun}.",
        mend=mend,
    )


def _keys(section: str) -> tuple[str, ...]:
    if section == "profiles":
        return ("quick", "nightly")
    if section == "warmup":
        return ("iterations", "seconds")
    fields = _MODELS[section].model_fields
    return tuple(field.alias or name for name, field in fields.items())


def _unknown(path: Path, root: Node) -> Problem:
    key, section = str(path[-1]), label(path[:-1])
    known, line = _keys(section), root.nearest(path).line
    what = f"`{printable(key)}` is not a known key{f' of `{section}`' if section else ''}."
    mend, meant = "Remove it.", None
    if section == "warmup" and key in known:
        what, mend = "`iterations` and `seconds` exclude each other.", "Keep one of them."
    elif home := _home(key, section, root):
        mend = f"Write it {home}."
    elif meant := close_to(key, known):
        mend = f"Did you mean `{meant}`?"
    elif len(known) <= 8:
        mend = f"Remove it; known here: {listed([f'`{name}`' for name in known], 'and')}."
    return Problem(path=path, line=line, what=what, mend=mend, meant=meant, is_unknown=True)


def _home(key: str, section: str, root: Node) -> str | None:
    """Where a key belongs that is known, but not here."""
    built_in = BUILT_IN.get(root.nearest(("workload",)).text)
    if built_in is not None and key in built_in.parameters:
        return "under `matrix.parameters`" if section == "matrix" else "under `parameters`"
    for home in _HOMES:
        if home != section and key in _keys(home):
            return f"under `{home}`" if home else "at the top level"
    return None

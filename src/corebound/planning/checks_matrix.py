"""What is wrong with a scenario's matrix and with the cells that it names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from corebound.model.plan import Cell
from corebound.model.scenario import MatrixEntry, Scenario
from corebound.planning.cell_values import matching, value_of
from corebound.planning.checks import explicit
from corebound.planning.expand import claim_pairs
from corebound.planning.points import (
    AXES,
    Key,
    Point,
    Setting,
    agrees,
    axes,
    count,
    entry,
    labels,
    product,
)
from corebound.planning.tree import Flaw, Path, printable
from corebound.planning.words import close_to, listed

# A day has room for some 10,000 launches of eight seconds; a matrix beyond
# that is a slip, and must not fill the memory.
MOST_CELLS = 10_000


def axes_alone(scenario: Scenario) -> Iterator[Flaw]:
    """What is wrong with the axes, before any cell is made of them."""
    for key, settings in axes(scenario.matrix).items():
        first: dict[str, Setting] = {}
        for one in settings:
            if first.setdefault(one.text, one) is not one:
                what = f"`{explicit(key, one.value)}` stands twice on its axis."
                yield one.path, what, "Keep one of them."
        at_top = scenario.parameters if len(key) > 1 else scenario.model_fields_set
        if key[-1] in at_top:
            what = f"`{printable(key[-1])}` stands in the matrix and outside it."
            yield ("matrix", *key), what, "Keep one of them."
    yield from _names(scenario)
    if (many := count(scenario.matrix)) > MOST_CELLS:
        what = f"the matrix has {many:,} cells, more than {MOST_CELLS:,}."
        yield ("matrix",), what, "Shorten axes, or make several scenarios."


def _names(scenario: Scenario) -> Iterator[Flaw]:
    matrix = scenario.matrix
    written: list[tuple[Path, Iterable[str]]] = [(("matrix", "parameters"), matrix.parameters)]
    written += [
        (("matrix", "include", index, "parameters"), one.parameters)
        for index, one in enumerate(matrix.include)
    ]
    for path, names in written:
        for name in names:
            if name in AXES or name == "scenario":
                what = f"the parameter `{name}` has the name of a setting."
                yield (*path, name), what, "Vary it under another name."


def excludes(scenario: Scenario, doubtful: frozenset[str]) -> Iterator[Flaw]:
    """What is wrong with each exclude; `doubtful` as for `named_cells`."""
    spanned = axes(scenario.matrix)
    every = product(scenario.matrix)
    for index, one in enumerate(scenario.matrix.exclude):
        if not doubtful & ({*one.written, *one.parameters} or {"exclude"}):
            out = entry(one, ("matrix", "exclude", index))
            yield from _exclude(out, index, spanned, every)


def includes(scenario: Scenario, made: tuple[Point, ...]) -> Iterator[Flaw]:
    """What is wrong with each include, and with the cells that are left in the end."""
    # An exclude that names nothing takes all out, and has been named itself.
    if not made and scenario.matrix.exclude and all(one.written for one in scenario.matrix.exclude):
        yield ("matrix", "exclude"), "no cell is left.", "Exclude fewer cells."
    spanned = axes(scenario.matrix)
    from_axes = [point for point in made if _first_path(point)[1:2] != ("include",)]
    for index, one in enumerate(scenario.matrix.include):
        path: Path = ("matrix", "include", index)
        extra = entry(one, path)
        adds_nothing = all(key in spanned for key in extra)
        if not extra:
            yield path, "this names nothing.", "Name the settings of a cell, or remove it."
        elif adds_nothing and any(agrees(point, extra) for point in from_axes):
            yield path, "the matrix has this already.", "Remove it, or name something new."
    seen: dict[tuple[tuple[str, str], ...], Point] = {}
    for point in made:
        if seen.setdefault(labels(point, scenario), point) is not point:
            yield (
                _first_path(point)[:3],
                "this makes a cell that another makes too.",
                "Remove one of them.",
            )


def _first_path(point: Point) -> Path:
    return next((one.path for one in point.values()), ())


def _exclude(
    out: Point, index: int, spanned: dict[Key, tuple[Setting, ...]], every: list[dict[Key, Setting]]
) -> Iterator[Flaw]:
    sound = bool(out)
    if not out:
        path: Path = ("matrix", "exclude", index)
        yield path, "this names nothing.", "Name the values of cells to take out, or remove it."
    for key, one in out.items():
        if key not in spanned:
            sound = False
            what = f"`{printable(key[-1])}` is not an axis of the matrix."
            names = [axis[-1] for axis in spanned]
            mend = f"The axes are {listed(names, 'and')}." if names else "There are no axes."
            yield one.path, what, mend
        elif one.text not in (known := [found.text for found in spanned[key]]):
            sound = False
            what = f"`{explicit(key, one.value)}` is not on its axis."
            yield one.path, what, _offer(one.text, known)
    if sound and not any(agrees(point, out) for point in every):
        yield ("matrix", "exclude", index), "no cell has all of this.", "Name values that meet."


def _offer(written: str, known: list[str]) -> str:
    close = close_to(written, known)
    shown = [*known[:8], "…"] if len(known) > 8 else known
    return f"Did you mean `{close}`?" if close else f"There, it is {listed(shown)}."


def named_cells(
    scenario: Scenario, cells: tuple[Cell, ...], doubtful: frozenset[str]
) -> Iterator[Flaw]:
    """What is wrong with the cells that baseline and claims name.

    Args:
        scenario: The scenario.
        cells: All its cells.
        doubtful: Keys that other faults leave unknown; an entry that names one
            is not judged.
    """
    if not cells:
        return
    if scenario.baseline is not None:
        yield from _named(scenario.baseline, ("baseline",), cells, doubtful)
    for index, claim in enumerate(scenario.claims):
        path: Path = ("claims", index)
        found = [
            *_named(claim.faster, (*path, "faster"), cells, doubtful),
            *_named(claim.than, (*path, "than"), cells, doubtful),
        ]
        yield from found
        unknown = {str(part) for side in (claim.faster, claim.than) for part in side.written}
        if not found and not unknown & doubtful and not claim_pairs(claim, cells):
            what = "`faster` and `than` make no pair of cells."
            yield path, what, "Let them differ in what they name, and agree on every other axis."


def _named(
    wanted: MatrixEntry, path: Path, cells: tuple[Cell, ...], doubtful: frozenset[str]
) -> Iterator[Flaw]:
    named = entry(wanted, path)
    if {part for key in named for part in key} & doubtful:
        return
    if not named:
        yield path, "this names nothing.", "Name the values that the cells meant have."
        return
    sound = True
    for key, one in named.items():
        known = list(dict.fromkeys(value_of(cell, key) for cell in cells))
        if one.text not in known:
            sound = False
            what = f"no cell has `{explicit(key, one.value)}`."
            yield one.path, what, _offer(one.text, known)
    if sound and not matching(wanted, cells):
        yield path, "no cell has all of this.", "Name values that meet in one cell."

"""The names of configurations that are the same on a host, joined where they share values."""

from collections.abc import Callable, Sequence
from functools import reduce

from corebound.analysis.wording import axis_value
from corebound.scenario.cell import Cell
from corebound.scenario.fault_wording import join_words

# For each axis, names of values; all their combinations.
Product = tuple[tuple[str, ...], ...]


def short_names(cells: Sequence[Cell]) -> str:
    """The cells in the words of a scenario: `none | node, 2 | per-core; one-cpu, 2`."""
    products = _products(cells, lambda cell, axis: dict(cell.axes)[axis])
    return "; ".join(", ".join(" | ".join(values) for values in product) for product in products)


def long_names(cells: Sequence[Cell]) -> str:
    """The cells in running text: `unbound or one node with 2 threads or one thread per core`."""
    return "; ".join(
        " with ".join(choices[:2]) + "".join(f" and {choice}" for choice in choices[2:])
        for product in _products(cells, axis_value)
        for choices in [[join_words(list(values), "or") for values in product]]
    )


def _products(cells: Sequence[Cell], name_of: Callable[[Cell, str], str]) -> list[Product]:
    """The cells as few products of values."""
    by_axes: dict[tuple[str, ...], list[Product]] = {}
    for cell in cells:
        axes = tuple(axis for axis, _ in cell.visible_axes)
        by_axes.setdefault(axes, []).append(tuple((name_of(cell, axis),) for axis in axes))
    return [
        product
        for axes, products in by_axes.items()
        for product in reduce(_merged, range(len(axes)), products)
    ]


def _merged(products: Sequence[Product], index: int) -> list[Product]:
    """The products, of which those that differ on this axis only are one."""
    by_others: dict[Product, tuple[str, ...]] = {}
    for product in products:
        others = (*product[:index], *product[index + 1 :])
        by_others[others] = (*by_others.get(others, ()), *product[index])
    return [(*others[:index], values, *others[index:]) for others, values in by_others.items()]

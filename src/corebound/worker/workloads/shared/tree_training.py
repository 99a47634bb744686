"""What every library trains trees on: the table, the sizes of models, and the checks.

The table is Friedman's first: five of its columns determine the target, the others do not.

Source: Friedman, Multivariate Adaptive Regression Splines (1991), equation 61.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corebound.worker.workload import WorkloadError
from corebound.worker.workloads.shared.result_checks import wrong_result

Array = NDArray[np.float32]
Predict = Callable[[Array], NDArray[Any]]

LEAVES = 31
LEARNING_RATE = 0.1
FOREST_DEPTH = 10
# Rows that a leaf must have, values that a column is divided into, and the share of columns that
# a split of a forest's tree may use. Equal in every library, as are LEAVES and the others.
LEAST_ROWS = 20
BINS = 255
COLUMNS_A_SPLIT = 1 / 3
# The rows a forest's tree is trained on. scikit-learn draws as many as there are, with
# replacement, which are this share of different ones: 1 - 1/e.
ROWS_A_TREE = 0.632

_TESTED_ROWS = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of a table with their targets, and other rows to test a model on."""

    rows: Array
    targets: Array
    tested_rows: Array
    tested_targets: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """Trains a model of trees from the beginning in every step.

    Attributes:
        model: `boosting` or `forest`.
        trees: The number of trees of the model.
        fit: Trains a model and returns what predicts with it.
    """

    model: str
    trees: int
    table: Table = field(repr=False)
    fit: Callable[[], Predict] = field(repr=False)

    def step(self) -> Predict:
        """Divide the columns into bins and train all trees."""
        return self.fit()

    def work(self) -> dict[str, float]:
        """What a step does: it trains trees."""
        return {"trees": float(self.trees)}

    def check(self, predict: Predict) -> None:
        """Test the model on rows that it has not seen.

        Raises:
            WorkloadError: it explains less of the target's variance than such a model must.
        """
        share = self.explained(predict)
        if not share >= (least := least_explained(self.model, self.trees)):
            raise wrong_result(
                f"the model explains {share:.0%} of the variance, less than {least:.0%}.",
                check="the library's build, and that `rows` are enough for the number of columns",
            )

    def explained(self, predict: Predict) -> float:
        """The share of the variance of unseen targets that the model explains: R²."""
        targets = self.table.tested_targets.astype(np.float64)
        residuals = targets - predict(self.table.tested_rows)
        return float(1 - np.mean(residuals**2) / np.var(targets))


# Of a table, the model, the number of trees and a seed makes what trains.
Fitter = Callable[[Table, str, int, int], Callable[[], Predict]]


def training(
    fitter: Fitter,
    *,
    model: str = "boosting",
    rows: int = 20_000,
    columns: int = 20,
    trees: int = 20,
) -> Training:
    """Set the training up in a library; a step starts from untrained trees.

    Raises:
        WorkloadError: there are too few columns.
    """
    data = table(rows, columns)
    fit = fitter(data, model, trees, int(np.random.randint(2**31)))
    return Training(model=model, trees=trees, table=data, fit=fit)


def table(rows: int, columns: int) -> Table:
    """Draw a table; equal seeds give equal tables in every library.

    Raises:
        WorkloadError: there are fewer columns than determine the target.
    """
    if columns < 5:
        raise WorkloadError(
            what=f"`columns: {columns}` is too few: five columns determine the target.",
            fix="Write 5 or more.",
        )
    numbers = np.random.default_rng(np.random.randint(2**31))
    x = numbers.random((rows + _TESTED_ROWS, columns), dtype=np.float32)
    noise = numbers.standard_normal(len(x), dtype=np.float32)
    y = 10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2
    y += 10 * x[:, 3] + 5 * x[:, 4] + noise
    y = y.astype(np.float32)
    return Table(rows=x[:rows], targets=y[:rows], tested_rows=x[rows:], tested_targets=y[rows:])


def least_explained(model: str, trees: int) -> float:
    """The share of variance that a model must explain, half of what is possible.

    Each round of boosting leaves at least (1 - LEARNING_RATE)² of the variance. With trees of
    this size a forest explains 0.84, whatever their number.

    >>> round(least_explained("boosting", 20), 2), least_explained("forest", 20)
    (0.49, 0.4)
    """
    return 0.4 if model == "forest" else (1 - (1 - LEARNING_RATE) ** (2 * trees)) / 2

"""The workload of process-settings.yaml: one round of boosting in LightGBM for each step.

The table is divided into bins before anything is timed, so that a step is short: it finds the
splits of one tree, in many parallel regions between which the threads wait for each other.
"""

from __future__ import annotations

import lightgbm
import numpy as np


class Rounds:
    """Adds a tree to a model in every step."""

    def __init__(self, rows: int) -> None:
        numbers = np.random.default_rng(np.random.randint(2**31))
        x = numbers.random((rows, 20), dtype=np.float32)
        self._y = 10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 10 * x[:, 3] + 5 * x[:, 4]
        self._x = x
        dataset = lightgbm.Dataset(x, self._y)
        # With so small a rate every tree has about as much to learn as the first.
        parameters = {"objective": "regression", "learning_rate": 0.001, "verbose": -1}
        self._booster = lightgbm.Booster({**parameters, "force_col_wise": True}, dataset)

    def step(self) -> None:
        """Grow one tree of 31 leaves."""
        self._booster.update()

    def work(self) -> dict[str, float]:
        """What a step does."""
        return {"trees": 1.0}

    def check(self, _result: object) -> None:
        """The first tree must bring the model closer to the targets than their mean is.

        Raises:
            ValueError: it does not.
        """
        residuals = self._y - self._booster.predict(self._x)
        if not np.var(residuals) < np.var(self._y):
            raise ValueError("the first tree has learned nothing")


def rounds(*, rows: int) -> Rounds:
    """Set the model up.

    Args:
        rows: The rows of its table.
    """
    return Rounds(rows)

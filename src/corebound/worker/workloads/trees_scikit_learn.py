"""Training of boosted trees and of forests in scikit-learn."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from corebound.worker.adapters.scikit_learn import ensemble
from corebound.worker.workloads.shared import tree_training
from corebound.worker.workloads.shared.tree_training import Predict, Table


def _fitter(table: Table, model: str, trees: int, seed: int) -> Callable[[], Predict]:
    def fit() -> Predict:
        predict: Predict = _model(model, trees, seed).fit(table.rows, table.targets).predict
        return predict

    return fit


def _model(model: str, trees: int, seed: int) -> Any:
    if model == "boosting":
        return ensemble.HistGradientBoostingRegressor(
            max_iter=trees,
            learning_rate=tree_training.LEARNING_RATE,
            max_leaf_nodes=tree_training.LEAVES,
            min_samples_leaf=tree_training.LEAST_ROWS,
            max_bins=tree_training.BINS,
            early_stopping=False,
            random_state=seed,
        )
    # Its trees use sorted columns instead of bins. `n_jobs` is that of the adapter.
    return ensemble.RandomForestRegressor(
        n_estimators=trees,
        max_depth=tree_training.FOREST_DEPTH,
        min_samples_leaf=tree_training.LEAST_ROWS,
        max_features=tree_training.COLUMNS_A_SPLIT,
        random_state=seed,
    )


training = partial(tree_training.training, _fitter)

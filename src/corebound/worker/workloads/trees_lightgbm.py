"""Training of boosted trees and of forests in LightGBM."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import lightgbm

from corebound.worker.workloads.shared import tree_training
from corebound.worker.workloads.shared.tree_training import Predict, Table


def _fitter(table: Table, model: str, trees: int, seed: int) -> Callable[[], Predict]:
    parameters = {**_parameters(model), "seed": seed}

    def fit() -> Predict:
        dataset = lightgbm.Dataset(table.rows, table.targets)
        predict: Predict = lightgbm.train(parameters, dataset, trees).predict
        return predict

    return fit


def _parameters(model: str) -> dict[str, Any]:
    """The model's parameters, without `num_threads`: then it uses the OpenMP pool as it is."""
    shared = {
        "objective": "regression",
        "min_data_in_leaf": tree_training.LEAST_ROWS,
        "max_bin": tree_training.BINS,
        "verbose": -1,
        # Otherwise it times both ways of building histograms in every step, and may choose either.
        "force_col_wise": True,
    }
    if model == "boosting":
        return {
            **shared,
            "num_leaves": tree_training.LEAVES,
            "learning_rate": tree_training.LEARNING_RATE,
        }
    return {
        **shared,
        "boosting": "rf",
        "bagging_freq": 1,
        "bagging_fraction": tree_training.ROWS_A_TREE,
        "feature_fraction_bynode": tree_training.COLUMNS_A_SPLIT,
        "num_leaves": 2**tree_training.FOREST_DEPTH,
        "max_depth": tree_training.FOREST_DEPTH,
    }


training = partial(tree_training.training, _fitter)

"""Training of boosted trees and of forests in XGBoost."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import xgboost

from corebound.worker.workloads.shared import tree_training
from corebound.worker.workloads.shared.tree_training import Predict, Table


def _fitter(table: Table, model: str, trees: int, seed: int) -> Callable[[], Predict]:
    parameters = {**_parameters(model, trees), "seed": seed}
    rounds = trees if model == "boosting" else 1

    def fit() -> Predict:
        matrix = xgboost.QuantileDMatrix(table.rows, table.targets, max_bin=tree_training.BINS)
        predict: Predict = xgboost.train(parameters, matrix, rounds).inplace_predict
        return predict

    return fit


def _parameters(model: str, trees: int) -> dict[str, Any]:
    """The model's parameters, without `nthread`, which the adapter sets for everything."""
    shared = {
        "tree_method": "hist",
        "max_bin": tree_training.BINS,
        # With squared errors this is the number of rows.
        "min_child_weight": tree_training.LEAST_ROWS,
        "reg_lambda": 0.0,
    }
    if model == "boosting":
        return {
            **shared,
            "grow_policy": "lossguide",
            "max_leaves": tree_training.LEAVES,
            "max_depth": 0,
            "learning_rate": tree_training.LEARNING_RATE,
        }
    return {
        **shared,
        "num_parallel_tree": trees,
        "subsample": tree_training.ROWS_A_TREE,
        "colsample_bynode": tree_training.COLUMNS_A_SPLIT,
        "max_depth": tree_training.FOREST_DEPTH,
        "learning_rate": 1.0,
    }


training = partial(tree_training.training, _fitter)

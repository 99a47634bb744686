"""Trees in scikit-learn, XGBoost and LightGBM: equal work, seeds, and threads as requested."""

from pathlib import Path
from typing import Any

import pytest

from support.environments import PreloadedFrameworks, json_from, launch_once

pytestmark = pytest.mark.frameworks

LIBRARIES = {"scikit-learn": "trees_scikit_learn", "xgboost": "trees_xgboost"} | {
    "lightgbm": "trees_lightgbm"
}
SMALL = {"rows": 2000, "columns": 8, "trees": 10}


def _trained(library: str, model: str) -> str:
    """Code that trains a model; what it prints is JSON."""
    return (
        f"from corebound.worker.workloads.{LIBRARIES[library]} import training\n"
        f"made = training(model={model!r}, rows=4000, columns=10, trees=20)\n"
        "predict = made.step()\n"
        "made.check(predict)\n"
        "table = made.table\n"
        "print(json.dumps([float(table.rows.sum()), float(table.targets.sum()), made.work(),"
        " made.explained(predict), [float(one) for one in predict(table.tested_rows[:5])]]))"
    )


@pytest.mark.parametrize("model", ["boosting", "forest"])
def test_all_libraries_learn_the_same_from_the_same_table(
    tmp_path: Path, imported: PreloadedFrameworks, model: str
) -> None:
    results: dict[str, Any] = {}
    for library in LIBRARIES:
        folder = tmp_path / library
        folder.mkdir()
        results[library] = imported.json_from(library, _trained(library, model), folder)

    tables = {tuple(result[:2]) for result in results.values()}
    assert len(tables) == 1
    assert all(result[2] == {"trees": 20.0} for result in results.values())
    explained = [result[3] for result in results.values()]
    # The noise leaves 0.96; 20 rounds of boosting and a forest of such trees explain 0.8 to 0.86.
    assert min(explained) > 0.7
    assert max(explained) - min(explained) < 0.03


@pytest.mark.parametrize("library", LIBRARIES)
def test_equal_seeds_train_equal_models(
    tmp_path: Path, imported: PreloadedFrameworks, library: str
) -> None:
    results = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        results.append(imported.json_from(library, _trained(library, "forest"), tmp_path / name))

    assert results[0] == results[1]


@pytest.mark.parametrize("model", ["boosting", "forest"])
@pytest.mark.parametrize("library", LIBRARIES)
def test_trees_are_trained_by_as_many_threads_as_requested(
    tmp_path: Path, library: str, model: str
) -> None:
    outcome = launch_once(
        tmp_path, library, workload="tree-training", parameters={"model": model, **SMALL}, threads=2
    )

    assert (outcome.status, outcome.reason) == ("ok", None)
    (worker,) = outcome.workers
    assert (worker.threads_asked, worker.threads_used) == (2, 2)
    assert library in worker.versions


@pytest.mark.quick
@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_a_library_that_ignores_its_threads_is_invalid(tmp_path: Path, library: str) -> None:
    outcome = launch_once(
        tmp_path,
        library,
        workload="tree-training",
        parameters=SMALL,
        threads=2,
        env={"OMP_THREAD_LIMIT": "1"},
    )

    assert outcome.status == "invalid"
    assert outcome.evidence == ("2 threads were requested, but the framework uses 1",)


def test_a_forest_with_its_own_number_of_threads_is_invalid(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        "import numpy as np\n"
        "from sklearn.ensemble import RandomForestRegressor\n"
        "def setup():\n"
        "    rows = np.random.random((200, 4))\n"
        "    model = RandomForestRegressor(n_estimators=4, n_jobs=1)\n"
        "    return lambda: model.fit(rows, rows[:, 0]) and None\n"
    )

    outcome = launch_once(tmp_path, "scikit-learn", workload="own:setup", threads=2)

    assert outcome.status == "invalid"
    assert outcome.evidence == ("2 threads were requested, but the framework uses 1",)


def test_threads_that_only_the_adapter_sets_arrive(tmp_path: Path) -> None:
    # Without OMP_NUM_THREADS, which `threads` would set.
    for library in LIBRARIES:
        output = json_from(
            library,
            "adapter.prepare(seed=1, intra_op=1, inter_op=None)\n"
            + _trained(library, "boosting")
            + "\nprint(json.dumps(adapter.describe()['threads_used']))",
            tmp_path / library,
        )
        assert output in {1, None}

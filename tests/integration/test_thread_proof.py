"""A launch counts only if its threads, as seen from outside, are those that it was asked for.

Each function keeps its framework's reported number as requested, or changes it once measuring
has begun: what a framework reports proves nothing.
"""

from pathlib import Path

import pytest

from corebound.records.thread_use import busy_threads, timed_ns
from support import needs
from support.environments import launch_once

pytestmark = [pytest.mark.frameworks, pytest.mark.measures, needs.two_cpus]

WORKLOADS = """\
import itertools
import numpy

def changes_its_number_in_the_second_step():
    import torch
    left = torch.randn(768, 768)
    steps = itertools.count(1)

    def step():
        if next(steps) == 2:
            torch.set_num_threads(2)
        right = left
        for _ in range(4):
            right = torch.mm(right, left).tanh()
        return right

    return step

def has_a_data_pool_of_its_own():
    from corebound.worker.adapters.tensorflow import tf

    def heavy(number):
        square = tf.random.stateless_uniform((64, 64), seed=(1, 2)) + tf.cast(number, tf.float32)
        for _ in range(60):
            square = tf.matmul(square, square) * 1e-3
        return square

    options = tf.data.Options()
    options.threading.private_threadpool_size = 4
    numbers = tf.data.Dataset.range(10**9).map(heavy, num_parallel_calls=4)
    batches = iter(numbers.batch(64).with_options(options))
    return lambda: next(batches).numpy().sum()

def compiles_a_model_of_its_own():
    import openvino
    from openvino import opset13
    given = opset13.parameter([768, 768], numpy.float32)
    weights = opset13.constant(numpy.random.rand(768, 768).astype(numpy.float32) / 768)
    layer = given
    for _ in range(8):
        layer = opset13.tanh(opset13.matmul(layer, weights, False, False))
    model = openvino.Model([layer], [given])
    compiled = openvino.Core().compile_model(model, "CPU", {"INFERENCE_NUM_THREADS": 2})
    request = compiled.create_infer_request()
    values = numpy.random.rand(768, 768).astype(numpy.float32)
    return lambda: request.infer({0: values})

def limits_itself():
    from sklearn.ensemble import HistGradientBoostingRegressor
    from threadpoolctl import ThreadpoolController
    rows = numpy.random.rand(20_000, 20)
    ThreadpoolController().select(user_api="openmp").limit(limits=1)
    return lambda: HistGradientBoostingRegressor(max_iter=10).fit(rows, rows[:, 0])

def multiplies_in_python_threads():
    from concurrent.futures import ThreadPoolExecutor
    left = numpy.random.rand(512, 512)
    pool = ThreadPoolExecutor(2)
    return lambda: list(pool.map(lambda _: left @ left, range(8)))
"""


@pytest.mark.parametrize(
    ("environment", "function", "threads"),
    [
        ("pytorch", "changes_its_number_in_the_second_step", 1),
        ("tensorflow", "has_a_data_pool_of_its_own", 1),
        ("openvino", "compiles_a_model_of_its_own", 1),
        ("scikit-learn", "limits_itself", 2),
        ("numpy", "multiplies_in_python_threads", 1),
    ],
)
def test_a_function_with_other_threads_than_requested_is_refused(
    tmp_path: Path, environment: str, function: str, threads: int
) -> None:
    (tmp_path / "pools.py").write_text(WORKLOADS)

    launched = launch_once(
        tmp_path,
        environment,
        workload=f"pools:{function}",
        threads=threads,
        measure={"iterations": 60},  # a tenth of a second proves nothing
    )

    assert launched.status == "invalid"
    assert f"{threads} thread" in (launched.reason or "")
    (worker,) = launched.workers
    (seen,) = busy_threads(worker, timed_ns(launched.host, launched.pauses)).values()
    assert (seen > threads) == (threads == 1)

"""A workload has the same parameters, operations and results in every framework.

test_training.py compares outputs and losses of the small network, and test_runtimes.py outputs of
trained networks; this file compares operations, and the other workloads.
"""

import math
import re
from pathlib import Path
from typing import Any

import pytest

from corebound.scenario.builtin_workloads import BUILT_IN
from corebound.worker.workloads.shared import hourglass, small_network
from support import hourglass_sums
from support.environments import PreloadedFrameworks, json_from

pytestmark = pytest.mark.frameworks

NETWORK = small_network.Shape(batch=8, width=32, layers=3)
NETWORK_SHAPE = "batch=8, width=32, layers=3"
STACK = hourglass.Shape(stacks=2, channels=16, image=128, batch=2)
STACK_SHAPE = "stacks=2, channels=16, image=128, batch=2"

# Of each workload with several frameworks, those that this file, test_training.py, test_runtimes.py
# and test_trees.py compare. Servers answer with one file's network, and each launch compares an
# answer with its own.
COMPARED = {
    "gemm": {"numpy", "pytorch"},
    "hourglass-training": {"pytorch", "tensorflow"},
    "small-network-training": {"mindspore", "pytorch", "tensorflow"},
    "tree-training": {"scikit-learn", "xgboost", "lightgbm"},
    "decoder-inference": {"pytorch", "llama-cpp"},
    "encoder-inference": {"pytorch", "onnxruntime", "openvino", "jax"},
    "resnet50-inference": {"pytorch", "onnxruntime", "openvino", "jax"},
    "onnx-inference": {"onnxruntime", "openvino"},
}


@pytest.mark.quick
def test_every_workload_of_several_frameworks_has_a_comparison() -> None:
    several = {
        name: set(one.targets)
        for name, one in BUILT_IN.items()
        if len(one.targets) > 1 and not one.serves
    }

    assert several == COMPARED


OPERANDS = """
import numpy as np
numbers = np.random.RandomState(1)
left, right, out = (numbers.standard_normal((48, 48)).astype({dtype!r}) for _ in range(3))
"""
PRODUCTS = {
    "numpy": """
from corebound.worker.workloads.gemm_numpy import Product
made, flops = Product(left=left, right=right, out=out), None
result = made.step()
""",
    "pytorch": """
import torch
from torch.utils.flop_counter import FlopCounterMode
from corebound.worker.workloads.gemm_pytorch import Product
operands = zip(("left", "right", "out"), map(torch.from_numpy, (left, right, out)))
made = Product(**dict(operands))
with FlopCounterMode(display=False) as counter:
    result = made.step()
flops = counter.get_total_flops()
""",
}
PRODUCT = """
made.check(result)
print(json.dumps([flops, made.work()["flop"], str(result.dtype), result.tolist()]))
"""


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_both_matrix_products_compute_and_count_the_same(
    tmp_path: Path, imported: PreloadedFrameworks, dtype: str
) -> None:
    def product(name: str) -> Any:
        (tmp_path / name).mkdir()
        code = OPERANDS.format(dtype=dtype) + PRODUCTS[name] + PRODUCT
        return imported.json_from(name, code, tmp_path / name)

    (_, work, kind, numpys), (counted, same_work, same_kind, pytorchs) = map(product, PRODUCTS)

    # NumPy has no counter: its declared work is held against what PyTorch counts.
    assert counted == work == same_work
    assert same_kind == f"torch.{kind}"
    # Sums of 48 products in another order: a hundred roundings of float32, or of float64.
    near = 1e-5 if dtype == "float32" else 1e-14
    for mine, theirs in zip(numpys, pytorchs, strict=True):
        assert mine == pytest.approx(theirs, rel=near, abs=48 * near)


# What TensorFlow's own counter finds for each type of operator in a graph; it is asked for
# products only, for it counts activations and norms too, which PyTorch's does not.
TENSORFLOW_COUNTS = """
from corebound.worker.adapters.tensorflow import tf
def counted(graph, types):
    options = tf.compat.v1.profiler.ProfileOptionBuilder.float_operation()
    options["output"] = "none"
    level = [tf.compat.v1.profiler.profile(graph, options=options, cmd="op")]
    found = {}
    while level:
        found.update((one.name, one.float_ops) for one in level)
        level = [child for one in level for child in one.children]
    return sum(found.get(type_, 0) for type_ in types)
"""
COUNTS = {
    "pytorch": f"""
from torch.utils.flop_counter import FlopCounterMode
from corebound.worker.workloads.small_network_pytorch import training
made = training({NETWORK_SHAPE})
with FlopCounterMode(display=False) as counter:
    made.step()
print(json.dumps([counter.get_total_flops(), made.work()['flop']]))
""",
    # The function that is traced into the step's graph, of forward, backward and update.
    "tensorflow": f"""
{TENSORFLOW_COUNTS}
functions = []
traced = tf.function
tf.function = lambda function: functions.append(function) or traced(function)
from corebound.worker.workloads.small_network_tensorflow import training
made = training({NETWORK_SHAPE})
graph = traced(functions[0]).get_concrete_function().graph
print(json.dumps([counted(graph, ['MatMul']), made.work()['flop']]))
""",
}


@pytest.mark.parametrize("framework", COUNTS)
def test_the_small_networks_operations_match_the_frameworks_count(
    tmp_path: Path, imported: PreloadedFrameworks, framework: str
) -> None:
    counted, declared = imported.json_from(framework, COUNTS[framework], tmp_path)

    assert counted == declared == NETWORK.matmul_flops


def test_the_small_networks_operations_match_mindspores_graph(tmp_path: Path) -> None:
    graphs = tmp_path / "graphs"
    json_from(
        "mindspore",
        "from corebound.worker.workloads.small_network_mindspore import training\n"
        f"training({NETWORK_SHAPE}).step()\n"
        "print('null')\n",
        tmp_path,
        MS_DEV_SAVE_GRAPHS="1",
        MS_DEV_SAVE_GRAPHS_PATH=str(graphs),
    )
    # MindSpore counts no operations, so they are read off the products of the graph it runs.
    (built,) = graphs.glob("graph_build_*.ir")

    assert _mindspore_flops(built.read_text()) == NETWORK.matmul_flops


def _mindspore_flops(graph: str) -> int:
    """2·rows·inner·columns of every product, from the line of shapes below its own."""
    shape = r"<Tensor\[\w+\], \((\d+), (\d+)\)>"
    products = re.findall(
        r"MatMul\([^\n]*, Bool\(([01])\), Bool\([01]\)\) [^\n]*\n"
        rf" *: \({shape}, {shape}[^\n]*\) -> \({shape}\)",
        graph,
    )
    assert len(products) == len(re.findall(r"MatMul\(", graph))
    return sum(
        2 * int(left[0 if transposed == "1" else 1]) * int(rows) * int(columns)
        for transposed, *left, _, _, rows, columns in products
    )


# Equal weights and pixels from a generator whose numbers no version of NumPy changes, drawn
# in PyTorch's order and layout.
DRAWN = """
import numpy as np
source = np.random.RandomState(1)

def drawn(*shape):
    if len(shape) == 1:
        return source.uniform(0.5, 1, shape).astype("float32")
    limit = (shape[1] * shape[2] * shape[3]) ** -0.5
    return source.uniform(-limit, limit, shape).astype("float32")

def pixels(*shape):
    return source.random_sample(shape).astype("float32")
"""
TOLD = """
    "parameters": [list(one.shape) for one in parameters], "losses": losses,
    "heats": heats.ravel().tolist(), "flops": flops,
    "moved": [float(abs(one - start).max()) for one, start in zip(after, before)],
"""
HOURGLASS = {
    "pytorch": f"""
import torch
from torch.utils.flop_counter import FlopCounterMode
from corebound.worker.workloads.hourglass_pytorch import step
made = step({STACK_SHAPE}, dropout="none")
parameters = list(made.model.parameters())
with torch.no_grad():
    for one in parameters:
        one.copy_(torch.from_numpy(drawn(*one.shape)))
    for one in (made.inputs, made.targets):
        one.copy_(torch.from_numpy(pixels(*one.shape)))
    before = [one.numpy().copy() for one in parameters]
    with FlopCounterMode(display=False) as counter:
        heats = made.model(made.inputs).numpy()
flops = counter.get_total_flops()
losses = [float(made.step()) for _ in range(3)]
after = [one.detach().numpy() for one in parameters]
print(json.dumps({{{TOLD}}}))
""",
    "tensorflow": f"""
{TENSORFLOW_COUNTS}
from corebound.worker.workloads.hourglass_tensorflow import step
made = step({STACK_SHAPE}, dropout="none")
def inner_last(one):
    return np.moveaxis(one, -3, -1)
def parameters_now():
    return [one.numpy() if one.shape.rank == 1 else one.numpy().transpose(3, 2, 0, 1)
        for one in made.network.parameters]
for one in made.network.parameters:
    if one.shape.rank == 1:
        one.assign(drawn(*one.shape))
    else:
        rows, columns, before, behind = one.shape
        one.assign(drawn(behind, before, rows, columns).transpose(2, 3, 1, 0))
for one in (made.inputs, made.targets):
    *outer, rows, columns, channels = one.shape
    one.assign(inner_last(pixels(*outer, channels, rows, columns)))
parameters = before = parameters_now()
graph = tf.function(made.forward).get_concrete_function(made.inputs).graph
flops = counted(graph, ["Conv2D"])
result = made.step()
losses = [result[0]] + [made.step()[0] for _ in range(2)]
heats = np.moveaxis(result[1].numpy(), -1, -3)
after = parameters_now()
print(json.dumps({{{TOLD}}}))
""",
}


def test_with_equal_weights_both_hourglasses_have_equal_operations_outputs_and_losses(
    imported: PreloadedFrameworks, tmp_path: Path
) -> None:
    def told(name: str) -> dict[str, Any]:
        (tmp_path / name).mkdir()
        result: dict[str, Any] = imported.json_from(name, DRAWN + HOURGLASS[name], tmp_path / name)
        return result

    pytorch, tensorflow = map(told, HOURGLASS)

    assert pytorch["parameters"] == tensorflow["parameters"]
    assert sum(map(math.prod, pytorch["parameters"])) == hourglass_sums.parameter_count(STACK)
    assert pytorch["flops"] == tensorflow["flops"] == hourglass_sums.forward_flops(STACK)
    assert len(pytorch["heats"]) == len(tensorflow["heats"]) == 2 * 2 * 16 * 32 * 32
    # Some fifty convolutions, each normed, one after another.
    assert pytorch["heats"] == pytest.approx(tensorflow["heats"], rel=1e-3, abs=1e-4)
    assert pytorch["losses"] == pytest.approx(tensorflow["losses"], rel=1e-4)
    assert pytorch["losses"][2] < pytorch["losses"][0]
    # A float32 of about one cannot tell moves that differ by less than 1e-7; the most is 1e-3.
    most = max(pytorch["moved"])
    assert pytorch["moved"] == pytest.approx(tensorflow["moved"], rel=1e-2, abs=2e-3 * most)

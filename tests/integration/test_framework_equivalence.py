"""A workload has the same parameters, operations and results in every framework.

test_training.py compares outputs and losses of the small network, and test_runtimes.py outputs of
trained networks; this file compares operations, and the other workloads.
"""

from __future__ import annotations

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

# What TensorFlow's own counter finds for each type of operator in a graph; it is asked for
# products only, for it counts activations and norms too, which PyTorch's does not.
TENSORFLOW_COUNTS = """
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


@pytest.mark.quick
def test_every_workload_of_several_frameworks_has_a_comparison() -> None:
    # Servers answer with one file's network, and each launch compares an answer with its own.
    shared = {name for name, one in BUILT_IN.items() if len(one.targets) > 1 and not one.serves}

    assert shared == {
        "gemm",
        "hourglass-training",
        "small-network-training",
        "tree-training",
        "decoder-inference",
        "encoder-inference",
        "resnet50-inference",
        "onnx-inference",
    }
    assert set(BUILT_IN["gemm"].targets) == {"numpy", "pytorch"}
    assert set(BUILT_IN["hourglass-training"].targets) == {"pytorch", "tensorflow"}
    assert set(BUILT_IN["small-network-training"].targets) == {"mindspore", "pytorch", "tensorflow"}
    # test_runtimes.py compares the runtimes by two networks; a file of the user's has no other.
    assert set(BUILT_IN["onnx-inference"].targets) == {"onnxruntime", "openvino"}
    # test_trees.py compares them.
    assert set(BUILT_IN["tree-training"].targets) == {"scikit-learn", "xgboost", "lightgbm"}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_both_matrix_products_compute_and_count_the_same(
    tmp_path: Path, imported: PreloadedFrameworks, dtype: str
) -> None:
    operands = (
        "import json\nimport numpy as np\n"
        "numbers = np.random.RandomState(1)\n"
        f"left, right, out = (numbers.standard_normal((48, 48)).astype({dtype!r})"
        " for _ in range(3))\n"
    )
    told = operands + (
        "from corebound.worker.workloads.gemm_numpy import Product\n"
        "made = Product(left=left, right=right, out=out)\n"
        "result = made.step()\n"
        "made.check(result)\n"
        "print(json.dumps([made.work(), str(result.dtype), result.tolist()]))\n"
    )
    work, kind, numpys = imported.json_from("numpy", told, _folder(tmp_path, "numpy"))

    told = operands + (
        "import torch\n"
        "from torch.utils.flop_counter import FlopCounterMode\n"
        "from corebound.worker.workloads.gemm_pytorch import Product\n"
        "made = Product(**{name: torch.from_numpy(one)\n"
        "    for name, one in (('left', left), ('right', right), ('out', out))})\n"
        "with FlopCounterMode(display=False) as counter:\n    result = made.step()\n"
        "made.check(result)\n"
        "print(json.dumps([counter.get_total_flops(), made.work(), str(result.dtype),\n"
        "    result.tolist()]))\n"
    )
    counted, same_work, same_kind, pytorchs = imported.json_from(
        "pytorch", told, _folder(tmp_path, "pytorch")
    )

    # NumPy has no counter: its declared work is held against what PyTorch counts.
    assert counted == work["flop"] == same_work["flop"]
    assert same_kind == f"torch.{kind}"
    # Sums of 48 products in another order: a hundred roundings of float32, or of float64.
    near = 1e-5 if dtype == "float32" else 1e-14
    for mine, theirs in zip(numpys, pytorchs, strict=True):
        assert mine == pytest.approx(theirs, rel=near, abs=48 * near)


def test_the_small_networks_operations_match_pytorchs_count(
    tmp_path: Path, imported: PreloadedFrameworks
) -> None:
    counted, declared = imported.json_from(
        "pytorch",
        "from torch.utils.flop_counter import FlopCounterMode\n"
        "from corebound.worker.workloads.small_network_pytorch import training\n"
        f"made = training({NETWORK_SHAPE})\n"
        "with FlopCounterMode(display=False) as counter:\n    made.step()\n"
        "print(json.dumps([counter.get_total_flops(), made.work()['flop']]))\n",
        tmp_path,
    )

    assert counted == declared == NETWORK.matmul_flops


def test_the_small_networks_operations_match_tensorflows_count(
    tmp_path: Path, imported: PreloadedFrameworks
) -> None:
    counted = imported.json_from(
        "tensorflow",
        "from corebound.worker.adapters.tensorflow import tf\n" + TENSORFLOW_COUNTS +
        # The function that is traced into the step's graph, of forward, backward and update.
        "functions = []\n"
        "traced = tf.function\n"
        "tf.function = lambda function: functions.append(function) or traced(function)\n"
        "from corebound.worker.workloads.small_network_tensorflow import training\n"
        f"training({NETWORK_SHAPE})\n"
        "graph = traced(functions[0]).get_concrete_function().graph\n"
        "print(json.dumps(counted(graph, ['MatMul'])))\n",
        tmp_path,
    )

    assert counted == NETWORK.matmul_flops


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
    "heats": heats.tolist(), "flops": flops,
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
from corebound.worker.adapters.tensorflow import tf
from corebound.worker.workloads.hourglass_tensorflow import step
{TENSORFLOW_COUNTS}
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


@pytest.fixture(scope="module")
def stacks(
    imported: PreloadedFrameworks, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, dict[str, Any]]:
    """What the hourglass of each framework tells, from equal weights and without dropout."""
    return {
        name: imported.json_from(name, DRAWN + code, tmp_path_factory.mktemp(name))
        for name, code in HOURGLASS.items()
    }


def test_both_hourglasses_have_the_same_parameters(stacks: dict[str, dict[str, Any]]) -> None:
    pytorch, tensorflow = stacks["pytorch"]["parameters"], stacks["tensorflow"]["parameters"]

    assert pytorch == tensorflow
    assert _count(pytorch) == hourglass_sums.parameter_count(STACK)


def test_both_hourglasses_count_the_same_operations(stacks: dict[str, dict[str, Any]]) -> None:
    assert (
        stacks["pytorch"]["flops"]
        == stacks["tensorflow"]["flops"]
        == hourglass_sums.forward_flops(STACK)
    )


def test_with_equal_weights_both_hourglasses_give_equal_heat_maps(
    stacks: dict[str, dict[str, Any]],
) -> None:
    pytorch, tensorflow = (_flat(stacks[name]["heats"]) for name in ("pytorch", "tensorflow"))

    assert len(pytorch) == len(tensorflow) == 2 * 2 * 16 * 32 * 32
    # Some fifty convolutions, each normed, one after another.
    assert pytorch == pytest.approx(tensorflow, rel=1e-3, abs=1e-4)


def test_with_equal_weights_both_hourglasses_train_alike(
    stacks: dict[str, dict[str, Any]],
) -> None:
    pytorch, tensorflow = stacks["pytorch"], stacks["tensorflow"]

    assert pytorch["losses"] == pytest.approx(tensorflow["losses"], rel=1e-4)
    assert pytorch["losses"][2] < pytorch["losses"][0]
    # A float32 of about one cannot tell moves that differ by less than 1e-7; the most is 1e-3.
    most = max(pytorch["moved"])
    assert pytorch["moved"] == pytest.approx(tensorflow["moved"], rel=1e-2, abs=2e-3 * most)


def _count(shapes: list[list[int]]) -> int:
    count = 0
    for shape in shapes:
        size = 1
        for side in shape:
            size *= side
        count += size
    return count


def _flat(nested: Any) -> list[float]:
    return [leaf for one in nested for leaf in _flat(one)] if isinstance(nested, list) else [nested]


def _folder(parent: Path, name: str) -> Path:
    folder = parent / name
    folder.mkdir()
    return folder

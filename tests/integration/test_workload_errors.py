"""Built-in workloads detect wrong results and refuse what they cannot do, in their frameworks."""

import itertools
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.environments import PreloadedFrameworks, in_environment, launch_once

pytestmark = pytest.mark.frameworks

# No GPU is visible, so that a host that has some says the same.
RAISES = """
import os
os.environ["CUDA_VISIBLE_DEVICES"] = ""
from corebound.worker.adapters import {adapter} as adapter
from corebound.worker.workload import WorkloadError
from corebound.worker.workloads import {module}
adapter.prepare(seed=1, intra_op=None, inter_op=None)
try:
{code}
except WorkloadError as error:
    print(error, error.fix)
"""


# Of a framework, a module of workloads, and code that uses it.
ErrorOf = Callable[[str, str, str], str]


@pytest.fixture
def error_of(tmp_path: Path, imported: PreloadedFrameworks) -> ErrorOf:
    """The `WorkloadError` that a piece of code raises, with its fix."""
    numbers = itertools.count()

    def raised(framework: str, module: str, code: str) -> str:
        folder = tmp_path / str(next(numbers))
        folder.mkdir()
        adapter, code = framework.replace("-", "_"), textwrap.indent(code, "    ")
        script = RAISES.format(adapter=adapter, module=module, code=code)
        return imported.output_of(framework, script, folder)

    return raised


FORGETFUL = """\
def forgetful(layer, numbers, cache, begin):
    return numbers + numbers.cumsum(1)
decoder_pytorch.Layer.forward = forgetful"""
OTHER_WEIGHTS = """\
import torch
wrong = lambda state: {name: one + 1 for name, one in state["model"].items()}
torch.save = lambda state, file, save=torch.save: save({"model": wrong(state)}, file)"""
# One bias more for every class changes no loss, only the weights of one process.
DRIFT = """\
def drift(step=made.step):
    loss = step()
    made._rank.training.model.module[-1].bias.data += 1e-3
    return loss
made.step = drift"""


@pytest.mark.parametrize(
    ("made", "spoil", "message"),
    [
        # The update goes uphill.
        (
            "image_training_pytorch.step(batch=2)",
            "made.optimizer.param_groups[0]['lr'] = -0.01",
            "the loss went from",
        ),
        (
            "image_pipeline_pytorch.step(batch=2)",
            "made._optimizer.param_groups[0]['lr'] = -0.01",
            "the loss went from",
        ),
        (
            "hourglass_pytorch.step(channels=16, stacks=1, image=128)",
            "made.inputs[0] = float('nan')",
            "the loss went from nan",
        ),
        (
            "checkpoint_pytorch.epoch(model='small', steps=2, batch=2)",
            OTHER_WEIGHTS,
            "the checkpoint does not contain",
        ),
        (
            "mobilenet_pytorch.inference(image=64)",
            "made.model.classifier[3] = __import__('torch').nn.Linear(1280, 10)",
            "MobileNetV3 gave (1, 10), not (1, 1000).",
        ),
        (
            "distributed_pytorch.step(model='small', batch=4)",
            DRIFT,
            "after a step the processes have different weights.",
        ),
        (
            "lstm_pytorch.inference(sequence=2)",
            "[one.data.zero_() for one in made.model.parameters()]",
            "the LSTM gave the same number everywhere.",
        ),
        (
            "encoder_pytorch.inference(sequence=4, layers=1)",
            "made.model._norm.weight.data.fill_(float('inf'))",
            "the encoder gave numbers that are not finite.",
        ),
        (
            "recommender_pytorch.inference(batch=2)",
            "made.model._top[3] = __import__('torch').nn.Identity()",
            "the recommender returned wrong probabilities.",
        ),
        (
            "decoder_pytorch.inference(context=4)",
            FORGETFUL,
            "the decoder's output with its cache differs from that without.",
        ),
        (
            "hourglass_tensorflow.step(channels=16, stacks=1, image=128)",
            "made.inputs.assign(made.inputs * float('nan'))",
            "a step produced values that are not finite.",
        ),
        (
            "hourglass_tensorflow.step(channels=16, stacks=1, image=128)",
            "hourglass_tensorflow.LEARNING_RATE = -0.001",
            "the loss went from",
        ),
        (
            "hourglass_tensorflow.step(channels=16, stacks=1, image=128)",
            "hourglass_tensorflow.tf.stack = lambda heats, axis: heats[0]",
            "the heat maps have",
        ),
    ],
)
def test_a_spoilt_step_gives_a_wrong_result(
    error_of: ErrorOf, made: str, spoil: str, message: str
) -> None:
    module = made.partition(".")[0]
    framework = "tensorflow" if module.endswith("tensorflow") else "pytorch"
    code = f"made = {made}\n{spoil}\nmade.check(made.step())"

    assert error_of(framework, module, code).startswith(message)


PRODUCT = "rectangular_gemm_mindspore.product(rows=8, inner=33, columns=17, dtype={!r})"
GEMM = "made.check(made.step())\nresult = made.step().copy()\nresult[1, 1] += 1\nmade.check(result)"
NOT_LEARNED = "made.check(lambda rows: rows[:, 0] * 0)"
NAN = "made.losses[:] = [1.0, 2.0, float('nan')]\n"


@pytest.mark.parametrize(
    ("framework", "made", "wrong", "message"),
    [
        ("numpy", "gemm_numpy.product(size=32)", GEMM, "the matrix product is wrong."),
        *(
            (
                "mindspore",
                PRODUCT.format(dtype),
                f"assert str(made.step().dtype) == {dtype!r}\n{GEMM}",
                "the matrix product is wrong.",
            )
            for dtype in ("float32", "float16")
        ),
        *(
            (
                library,
                f"trees_{library.replace('-', '_')}.training(rows=1000, columns=5, trees=5)",
                NOT_LEARNED,
                "the model explains -",
            )
            for library in ("scikit-learn", "xgboost", "lightgbm")
        ),
        *(
            ("pytorch", "small_network_pytorch.training(batch=8, width=32, layers=3)", wrong, says)
            for wrong, says in (
                ("outputs = made.step()\nmade.check(outputs)\nmade.check(outputs[1:])", "(7, 32)"),
                (f"outputs = made.step()\n{NAN}made.check(outputs)", "its loss is nan"),
                (f"made.step()\n{NAN}made.teardown()", "its loss went from 1.0 to nan"),
            )
        ),
        (
            "mindspore",
            "checkpoint_mindspore.checkpointing(width=32, layers=2)",
            "made.step()\nmade.training.step()\nmade.check(None)",
            "the checkpoint does not contain the trained `",
        ),
    ],
)
def test_a_wrong_result_is_detected(
    error_of: ErrorOf, framework: str, made: str, wrong: str, message: str
) -> None:
    code = f"made = {made}\n{wrong}"

    assert message in error_of(framework, made.partition(".")[0], code)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("gemm_blas_numpy.product(size=4, blas='mkl')", "this environment has no MKL."),
        (
            "checkpoint_pytorch.epoch(model='small', steps=3, every=2)",
            "Make `steps` a multiple of `every`",
        ),
        pytest.param(
            "small_network_tensorflow.training(dispatch_threads=2)",
            "TensorFlow has no `dispatch_threads`",
            marks=pytest.mark.quick,
        ),
        ("small_network_pytorch.training(blocking=True)", "PyTorch has no `blocking`"),
        (
            "small_network_pytorch.training(mode='graph')",
            "PyTorch has no `mode`, which is set to graph",
        ),
        (
            "distributed_pytorch.step(method='dp', processes=1)",
            "DataParallel has no effect with fewer than two GPUs, and the cell has 0.",
        ),
        (
            "distributed_pytorch.step(method='dp', processes=2, gpus=2)",
            "DataParallel runs in one process, but the cell requests 2.",
        ),
        (
            "distributed_pytorch.step(processes=2, gpus=1)",
            "2 processes cannot share 1 GPUs: each process needs its own.",
        ),
        (
            "distributed_pytorch.step(method='dp', processes=1, gpus=2, batch=3)",
            "a batch of 3 cannot be shared evenly by 2.",
        ),
        ("distributed_pytorch.step(batch=3)", "a batch of 3 cannot be shared evenly by 2."),
    ],
)
def test_what_a_workload_cannot_do_is_refused_with_a_reason(
    error_of: ErrorOf, call: str, message: str
) -> None:
    module = call.partition(".")[0]
    framework = module.rpartition("_")[2]
    with_cuda = "" if framework != "pytorch" else _cuda(is_built=True)

    assert message in error_of(framework, module, f"{with_cuda}{call}")


def _cuda(*, is_built: bool) -> str:
    return f"__import__('torch').backends.cuda.is_built = lambda: {is_built}\n"


@pytest.mark.parametrize(
    "call",
    [
        "gemm_pytorch.product(size=8, gpus=1)",
        "image_pipeline_pytorch.step(gpus=1)",
        "image_training_pytorch.step(gpus=1)",
        "distributed_pytorch.step(gpus=2)",
    ],
)
def test_gpus_are_refused_where_pytorch_has_none(error_of: ErrorOf, call: str) -> None:
    module = call.partition(".")[0]

    without, with_cuda = (
        error_of("pytorch", module, _cuda(is_built=is_built) + call) for is_built in (False, True)
    )

    assert "was built without CUDA" in without
    assert "finds 0 GPUs, but the cell requests" in with_cuda


MODEL = """
import numpy as np
from onnx import TensorProto, helper, numpy_helper, save
weights = numpy_helper.from_array(np.ones((4, 2), "float32"), "weights")
given = helper.make_tensor_value_info("given", TensorProto.FLOAT, ["batch", 4])
made = helper.make_tensor_value_info("made", TensorProto.FLOAT, ["batch", 2])
node = helper.make_node("MatMul", ["given", "weights"], ["made"])
graph = helper.make_graph([node], "mine", [given], [made], [weights])
save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), PATH)
"""
GGUF = """
from pathlib import Path
from corebound.worker.workloads.shared.decoder_gguf import write
write(Path(PATH), context=64, dtype='int8')
"""


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model in ONNX and one in GGUF, and files that are none."""
    folder = tmp_path_factory.mktemp("models")
    for environment, name, code in (
        ("onnxruntime", "mine.onnx", MODEL),
        ("llama-cpp", "mine.gguf", GGUF),
    ):
        path = f"PATH = {str(folder / name)!r}\n"
        in_environment(environment, path + code, cwd=folder / environment)
    (folder / "mine.txt").write_text("no model")
    (folder / "pointer.gguf").write_text("version https://git-lfs.github.com/spec/v1\n")
    (folder / "cut.gguf").write_bytes((folder / "mine.gguf").read_bytes()[:2000])
    return folder


@pytest.mark.parametrize(
    ("framework", "given", "message"),
    [
        *(
            (runtime, *case)
            for runtime in ("onnxruntime", "openvino")
            for case in (
                ("mine.onnx", "the model's shapes are not fixed"),
                ("mine.onnx 8x5", "`shapes` does not fit the model"),
                ("other.onnx", "cannot be read"),
                ("mine.txt", "is not a model in the ONNX format"),
            )
        ),
        ("llama-cpp", "other.gguf", "cannot be read"),
        ("llama-cpp", "mine.txt", "is not a model in GGUF (.gguf): it begins with b'no model'"),
        ("llama-cpp", "pointer.gguf", "only a pointer of Git LFS"),
        ("llama-cpp", "cut.gguf", "llama.cpp cannot load"),
    ],
)
def test_a_file_that_is_no_model_is_refused(
    error_of: ErrorOf, models: Path, framework: str, given: str, message: str
) -> None:
    file, _, shapes = given.partition(" ")
    module, function = (
        ("decoder_llama_cpp", "inference")
        if framework == "llama-cpp"
        else (f"inference_{framework}", "from_file")
    )
    call = f"{module}.{function}(model={str(models / file)!r}"
    call += f", shapes={shapes!r})" if shapes else ")"

    assert message in error_of(framework, module, call)


@pytest.mark.parametrize(
    ("environment", "workload", "parameters"),
    [
        ("onnxruntime", "onnx-inference", {"model": "mine.onnx", "shapes": "8x4"}),
        ("openvino", "onnx-inference", {"model": "mine.onnx", "shapes": "8x4"}),
        ("llama-cpp", "decoder-inference", {"model": "mine.gguf", "context": 32, "batch": 2}),
    ],
)
def test_a_model_of_ones_own_runs(
    models: Path, environment: str, workload: str, parameters: dict[str, Any]
) -> None:
    outcome = launch_once(models, environment, workload=workload, parameters=parameters)

    assert (outcome.status, outcome.reason) == ("ok", None)
    (worker,) = outcome.workers
    assert worker.versions["model"].startswith(f"{parameters['model']} ")
    if environment == "llama-cpp":
        assert worker.work == {"tokens": 2.0}

"""Runtimes of trained networks: equal outputs, threads that were proven, own models."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from corebound.planning.artefacts import OF_FRAMEWORKS, artefacts
from corebound.planning.models import Command
from corebound.scenario.builtin_workloads import BUILT_IN
from corebound.scenario.cell import Threads
from corebound.workflow.artefact_checks import check_artefact
from support import needs
from support.build import a_cell, a_placement
from support.environments import (
    PreloadedFrameworks,
    in_environment,
    json_from,
    launch_once,
    python_of,
)

pytestmark = pytest.mark.frameworks

RUNTIMES = ("onnxruntime", "openvino", "jax")
# Small enough for a few seconds; the weights are those of every size.
RESNET: dict[str, Any] = {"workload": "resnet50-inference", "parameters": {"image": 64}}
ENCODER: dict[str, Any] = {
    "workload": "encoder-inference",
    "parameters": {"sequence": 16, "layers": 1},
}


def output(imported: PreloadedFrameworks, runtime: str, made: str, folder: Path) -> list[float]:
    """The first output of a workload, such as `resnet50 batch=2`, some of its numbers."""
    folder.mkdir()
    workload, _, arguments = made.partition(" ")
    module, _, function = BUILT_IN[f"{workload}-inference"].targets[runtime].partition(":")
    numbers: list[float] = imported.json_from(
        runtime,
        f"from {module} import {function}\n"
        f"made = {function}({arguments})\n"
        "result = made.step()\n"
        "made.check(result)\n"
        "import numpy as np\n"
        "print(json.dumps(np.asarray(result, np.float32).ravel()[::7].tolist()))\n",
        folder,
    )
    return numbers


@pytest.mark.parametrize(
    "made", ["resnet50 batch=2, image=64", "encoder batch=2, sequence=16, layers=1"]
)
def test_every_runtime_gives_pytorchs_output(
    tmp_path: Path, imported: PreloadedFrameworks, made: str
) -> None:
    expected = output(imported, "pytorch", made, tmp_path / "pytorch")

    for runtime in RUNTIMES:
        actual = output(imported, runtime, made, tmp_path / runtime)
        # Values are near 1. Some hundred layers of sums, each in another order, stay far below.
        assert actual == pytest.approx(expected, rel=1e-3, abs=2e-3), runtime


@pytest.mark.quick
@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("threads", [1, 2])
def test_a_runtime_has_the_requested_threads(tmp_path: Path, runtime: str, threads: int) -> None:
    outcome = launch_once(tmp_path, runtime, threads=threads, **RESNET)

    assert (outcome.status, outcome.reason) == ("ok", None)
    (worker,) = outcome.workers
    assert (worker.threads_asked, worker.threads_used) == (threads, threads)
    assert runtime in worker.versions


INTEGER_PRODUCTS = {"DynamicQuantizeMatMul", "MatMulIntegerToFloat", "MatMulInteger"}


def test_int8_is_quantized_and_near_float32(tmp_path: Path) -> None:
    parameters = {**ENCODER["parameters"], "dtype": "int8"}

    outcome = launch_once(
        tmp_path,
        "onnxruntime",
        kind="profile",
        workload="encoder-inference",
        parameters=parameters,
        measure={"operators": 2},
    )

    # The launch would have failed if the output were not near that of float32.
    assert (outcome.status, outcome.reason) == ("ok", None)
    profile = outcome.workers[0].profile
    assert profile is not None
    integer = sum(one.calls for one in profile.operators if one.type in INTEGER_PRODUCTS)
    assert integer == 4  # attention in and out, and two products after it


def test_int8_in_pytorch_is_quantized_and_near_float32(tmp_path: Path) -> None:
    parameters = {**ENCODER["parameters"], "dtype": "int8"}

    outcome = launch_once(
        tmp_path,
        "pytorch",
        kind="profile",
        workload="encoder-inference",
        parameters=parameters,
        measure={"operators": 2},
    )

    assert (outcome.status, outcome.reason) == ("ok", None)
    profile = outcome.workers[0].profile
    assert profile is not None
    (integer,) = [one for one in profile.operators if one.type == "quantized::linear_dynamic"]
    assert integer.calls == 2  # the two products after attention


# A network of one kernel: compiling the encoder takes most of a minute.
COMPILED = """
import torch
from corebound.worker.workload import WorkloadError
from corebound.worker.workloads.shared.inference_pytorch import forward_pass

class Small(torch.nn.Sequential):
    def forward(self, given):
        return super().forward(given) + 1

layers = (torch.nn.Linear(8, 8), torch.nn.GELU())
given = dict(name='small', inputs=torch.rand(4, 8), shape=(4, 8), unit='rows')

def result(model, mode):
    made = forward_pass(model.eval(), mode=mode, **given)
    first = made.step()
    try:
        made.check(first)
    except WorkloadError as error:
        return str(error)
    return first.tolist()

# A module of PyTorch's own has no code to trace.
results = [result(torch.nn.Sequential(*layers), "compiled")]
results += [result(Small(*layers), mode) for mode in ("usual", "compiled")]
print(json.dumps(results))
"""


@needs.compiler
def test_a_compiled_model_gives_the_same_output(tmp_path: Path) -> None:
    untraced, usual, compiled = json_from(
        "pytorch",
        COMPILED,
        tmp_path,
        PATH=os.environ["PATH"],
        TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS="0",
    )

    assert untraced == "torch.compile compiled nothing of small."
    for ours, theirs in zip(compiled, usual, strict=True):
        assert ours == pytest.approx(theirs, abs=1e-5)


def test_openvino_that_takes_fewer_threads_than_requested_is_invalid(tmp_path: Path) -> None:
    outcome = launch_once(tmp_path, "openvino", threads=2, binding="one-cpu", **RESNET)

    assert outcome.status == "invalid"
    assert outcome.evidence == ("2 threads were requested, but the framework uses 1",)


def test_openvino_runs_several_requests_at_once_for_throughput(tmp_path: Path) -> None:
    parameters = {**RESNET["parameters"], "mode": "throughput"}

    outcome = launch_once(
        tmp_path, "openvino", workload=RESNET["workload"], parameters=parameters, threads=2
    )

    assert (outcome.status, outcome.reason) == ("ok", None)
    (worker,) = outcome.workers
    assert worker.work["images"] >= 1
    assert worker.threads_used == 2


def test_a_session_that_ignores_the_requested_threads_is_invalid(tmp_path: Path) -> None:
    (tmp_path / "deaf.py").write_text(
        "import onnxruntime\n"
        "from corebound.worker.workloads.shared import encoder_onnx\n"
        "def setup():\n"
        "    model = encoder_onnx.model(batch=1, sequence=8, layers=1)\n"
        "    options = onnxruntime.SessionOptions()\n"
        "    options.intra_op_num_threads = 4\n"
        "    session = onnxruntime.InferenceSession(model.graph, options)\n"
        "    return lambda: session.run(None, model.inputs)\n"
    )

    outcome = launch_once(tmp_path, "onnxruntime", workload="deaf:setup", threads=2)

    assert outcome.status == "invalid"
    # How many were busy depends on the host's CPUs and on what else runs.
    assert "2 threads were requested, but the framework uses 4" in outcome.evidence


def test_threads_that_a_runtime_pins_stay_within_their_binding(tmp_path: Path) -> None:
    parameters = {**RESNET["parameters"], "mode": "pinned"}

    outcome = launch_once(
        tmp_path,
        "onnxruntime",
        workload=RESNET["workload"],
        parameters=parameters,
        binding="one-cpu",
        threads=2,
    )

    assert (outcome.status, outcome.reason) == ("ok", None)
    (worker,) = outcome.workers
    assert worker.pins_threads
    assert {allowed for thread in worker.threads for allowed in thread.allowed} == {(0,)}


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_runtime_lists_the_operators_of_a_step(tmp_path: Path, runtime: str) -> None:
    outcome = launch_once(tmp_path, runtime, kind="profile", measure={"operators": 3}, **RESNET)

    assert (outcome.status, outcome.reason) == ("ok", None)
    profile = outcome.workers[0].profile
    assert profile is not None
    operators_ns = sum(operator.total_ns for operator in profile.operators)
    assert profile.outside_ns is not None
    assert operators_ns + profile.outside_ns == pytest.approx(profile.step_ns, rel=0.01)
    # 1 convolution of the stem, 48 of 16 blocks and 4 projections. XLA makes most of them a
    # fusion with what surrounds them.
    kind = "conv|ynn_fusion" if runtime == "jax" else "Conv"
    convolutions = [one for one in profile.operators if re.search(kind, one.type)]
    assert sum(one.calls for one in convolutions) == 53


TEXTS = """
import numpy as np
from corebound.worker.workloads.decoder_{module} import inference
prompt = inference(batch=2, context=16, prompt=8)
result = prompt.step()
prompt.check(result)
writing = inference(batch=2, context=16)
written = [np.asarray(writing.step()) for _ in range(4)]
words = [logits.argmax(-1).tolist() for logits in written]
print(json.dumps([np.asarray(result).ravel()[::7].tolist(), written[-1][:, ::7].tolist(), words]))
"""


def test_llama_cpp_reads_and_writes_what_pytorch_does(
    tmp_path: Path, imported: PreloadedFrameworks
) -> None:
    texts = []
    for environment, module in (("pytorch", "pytorch"), ("llama-cpp", "llama_cpp")):
        (tmp_path / module).mkdir()
        code = TEXTS.replace("{module}", module)
        texts.append(imported.json_from(environment, code, tmp_path / module))

    (expected, *expected_written), (actual, *actual_written) = texts
    # Values are near 1. GELU comes from a table of 16-bit numbers in llama.cpp.
    assert actual == pytest.approx(expected, abs=5e-3)
    for ours, theirs in zip(actual_written[0], expected_written[0], strict=True):
        assert ours == pytest.approx(theirs, abs=5e-3)
    assert actual_written[1] == expected_written[1]


DECODER: dict[str, Any] = {"workload": "decoder-inference", "parameters": {"context": 16}}


@pytest.mark.quick
@pytest.mark.parametrize("threads", [1, 2])
def test_llama_cpp_has_the_requested_threads(tmp_path: Path, threads: int) -> None:
    outcome = launch_once(tmp_path, "llama-cpp", threads=threads, **DECODER)

    assert (outcome.status, outcome.reason) == ("ok", None)
    (worker,) = outcome.workers
    assert (worker.threads_asked, worker.threads_used) == (threads, threads)
    assert set(worker.versions) == {"llama.cpp", "xllamacpp"}


def test_llama_cpp_that_starts_fewer_threads_than_requested_is_invalid(tmp_path: Path) -> None:
    outcome = launch_once(
        tmp_path, "llama-cpp", threads=2, env={"OMP_THREAD_LIMIT": "1"}, **DECODER
    )

    assert outcome.status == "invalid"
    assert outcome.evidence == ("2 threads were requested, but the framework uses 1",)


@needs.two_cpus
def test_llama_cpp_pins_each_thread_to_a_cpu_of_its_own(tmp_path: Path) -> None:
    parameters = {**DECODER["parameters"], "mode": "pinned"}

    outcome = launch_once(
        tmp_path,
        "llama-cpp",
        workload=DECODER["workload"],
        parameters=parameters,
        threads=2,
        measure={"iterations": 200},
    )

    assert (outcome.status, outcome.reason) == ("ok", None)
    (worker,) = outcome.workers
    pinned = [cpus for thread in worker.threads for cpus in thread.allowed if len(cpus) == 1]
    assert len(set(pinned)) == 2


def test_llama_cpp_in_8_bits_writes_nearly_what_32_bits_do(
    tmp_path: Path, imported: PreloadedFrameworks
) -> None:
    cosine = imported.json_from(
        "llama-cpp",
        "import numpy as np\n"
        "from corebound.worker.workloads.decoder_llama_cpp import inference\n"
        "results = [inference(context=16, prompt=8, dtype=dtype).step().ravel()\n"
        "    for dtype in ('float32', 'int8')]\n"
        "print(json.dumps(float(np.corrcoef(results)[0, 1])))\n",
        tmp_path,
    )

    assert 0.99 < cosine < 1.0


@pytest.mark.parametrize(
    ("model", "status", "reason"),
    [
        ("mine.gguf", "ok", ""),
        ("other.gguf", "failed", "cannot be read"),
        ("mine.txt", "failed", "is not a model in GGUF (.gguf): it begins with b'no model'"),
        ("pointer.gguf", "failed", "only a pointer of Git LFS"),
        ("cut.gguf", "failed", "llama.cpp cannot load cut.gguf"),
    ],
)
def test_llama_cpp_generates_with_a_model_file_of_ones_own(
    tmp_path: Path, model: str, status: str, reason: str
) -> None:
    path = tmp_path / "mine.gguf"
    in_environment(
        "llama-cpp",
        "from pathlib import Path\n"
        "from corebound.worker.workloads.shared.decoder_gguf import write\n"
        f"write(Path({str(path)!r}), context=64, dtype='int8')\n",
        cwd=tmp_path / "made",
    )
    (tmp_path / "mine.txt").write_text("no model")
    (tmp_path / "pointer.gguf").write_text("version https://git-lfs.github.com/spec/v1\n")
    (tmp_path / "cut.gguf").write_bytes(path.read_bytes()[:2000])

    outcome = launch_once(
        tmp_path,
        "llama-cpp",
        workload="decoder-inference",
        parameters={"model": model, "context": 32, "batch": 2},
    )

    assert outcome.status == status
    assert reason in (outcome.reason or "")
    if status == "ok":
        (worker,) = outcome.workers
        assert worker.versions["model"].startswith("mine.gguf ")
        assert worker.work == {"tokens": 2.0}


def test_llama_cpp_lists_the_operators_of_a_step(tmp_path: Path) -> None:
    outcome = launch_once(
        tmp_path, "llama-cpp", kind="profile", measure={"operators": 3}, **DECODER
    )

    assert (outcome.status, outcome.reason) == ("ok", None)
    profile = outcome.workers[0].profile
    assert profile is not None
    (products,) = [one for one in profile.operators if one.type == "MUL_MAT"]
    assert products.calls == 17  # four in each of four layers, and the last one


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


@pytest.mark.parametrize(
    ("parameters", "status", "reason"),
    [
        ({"shapes": "8x4"}, "ok", ""),
        ({}, "failed", "the model's shapes are not fixed"),
        ({"shapes": "8x5"}, "failed", "`shapes` does not fit the model"),
        ({"model": "other.onnx"}, "failed", "cannot be read"),
        ({"model": "mine.txt"}, "failed", "is not a model in the ONNX format"),
    ],
)
@pytest.mark.parametrize("runtime", ["onnxruntime", "openvino"])
def test_a_model_of_ones_own_runs_with_its_shapes(
    tmp_path: Path, runtime: str, parameters: dict[str, Any], status: str, reason: str
) -> None:
    path = tmp_path / "mine.onnx"
    (tmp_path / "mine.txt").write_text("no model")
    in_environment("onnxruntime", f"PATH = {str(path)!r}\n{MODEL}", cwd=tmp_path / "made")

    outcome = launch_once(
        tmp_path,
        runtime,
        workload="onnx-inference",
        parameters={"model": "mine.onnx", **parameters},
    )

    assert outcome.status == status
    assert reason in (outcome.reason or "")


@pytest.mark.parametrize(("runtime", "wrong"), [("openvino", "MANY"), ("onnxruntime", "'many'")])
def test_a_runtime_checks_the_file_that_configures_it(runtime: str, wrong: str) -> None:
    (kind,) = (kind for kind, frameworks in OF_FRAMEWORKS.items() if runtime in frameworks)
    cell = replace(a_cell(threads=Threads(rule=2)), framework=OF_FRAMEWORKS[kind][0])
    placement = a_placement(cpus=(0, 1), threads=2)
    command = Command(argv=(str(python_of(runtime)), "-m", "corebound.worker"), env=())
    (artefact,) = artefacts(cell, placement, [command], [kind])

    proof = check_artefact(artefact, python=command.argv[0])

    assert proof.state == "checked"
    assert "accepted it" in proof.evidence
    spoilt = replace(artefact, text=re.sub(r"\b2\b", wrong, artefact.text))
    assert check_artefact(spoilt, python=command.argv[0]).state == "wrong"

"""Runtimes of trained networks: equal outputs, threads that were proven, operators."""

import os
import re
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from corebound.launch.launch import LaunchResult
from corebound.planning.artefacts import OF_FRAMEWORKS, artefacts
from corebound.planning.models import Command
from corebound.scenario.builtin_workloads import BUILT_IN
from corebound.scenario.cell import Threads
from corebound.workflow.artefact_checks import check_artefact
from support import needs
from support.build import a_cell, a_placement
from support.environments import PreloadedFrameworks, json_from, launch_once, python_of

pytestmark = pytest.mark.frameworks

RUNTIMES = ("onnxruntime", "openvino", "jax")
# Small enough for a few seconds; the weights are those of every size.
NETWORKS: dict[str, dict[str, Any]] = {
    "resnet50-inference": {"image": 64},
    "encoder-inference": {"sequence": 16, "layers": 1},
    "decoder-inference": {"context": 16},
}


def launched(
    folder: Path, environment: str, *, mode: dict[str, Any] | None = None, **settings: Any
) -> LaunchResult:
    """Launch ResNet-50, or the decoder in llama.cpp; `mode` are more of its parameters."""
    network = "decoder-inference" if environment == "llama-cpp" else "resnet50-inference"
    settings = {"workload": network, **settings}
    parameters = {**NETWORKS[settings["workload"]], **(mode or {})}
    return launch_once(folder, environment, parameters=parameters, **settings)


@pytest.mark.parametrize(
    "made", ["resnet50 batch=2, image=64", "encoder batch=2, sequence=16, layers=1"]
)
def test_every_runtime_gives_pytorchs_output(
    tmp_path: Path, imported: PreloadedFrameworks, made: str
) -> None:
    workload, _, arguments = made.partition(" ")
    outputs = {}
    for runtime in ("pytorch", *RUNTIMES):
        (tmp_path / runtime).mkdir()
        module, _, function = BUILT_IN[f"{workload}-inference"].targets[runtime].partition(":")
        # The first output, some of its numbers.
        outputs[runtime] = imported.json_from(
            runtime,
            f"from {module} import {function}\n"
            f"made = {function}({arguments})\n"
            "result = made.step()\n"
            "made.check(result)\n"
            "import numpy as np\n"
            "print(json.dumps(np.asarray(result, np.float32).ravel()[::7].tolist()))\n",
            tmp_path / runtime,
        )

    for runtime in RUNTIMES:
        # Values are near 1. Some hundred layers of sums, each in another order, stay far below.
        expected = pytest.approx(outputs["pytorch"], rel=1e-3, abs=2e-3)
        assert outputs[runtime] == expected, runtime


@pytest.mark.quick
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("runtime", [*RUNTIMES, "llama-cpp"])
def test_a_runtime_has_the_requested_threads(tmp_path: Path, runtime: str, threads: int) -> None:
    outcome = launched(tmp_path, runtime, threads=threads)

    assert (outcome.status, outcome.reason) == ("ok", None)
    (worker,) = outcome.workers
    assert (worker.threads_asked, worker.threads_used) == (threads, threads)
    assert ("llama.cpp" if runtime == "llama-cpp" else runtime) in worker.versions


DEAF = """\
import onnxruntime
from corebound.worker.workloads.shared import encoder_onnx

def setup():
    model = encoder_onnx.model(batch=1, sequence=8, layers=1)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 4
    session = onnxruntime.InferenceSession(model.graph, options)
    return lambda: session.run(None, model.inputs)
"""


def test_a_runtime_with_other_threads_than_requested_is_invalid(tmp_path: Path) -> None:
    (tmp_path / "deaf.py").write_text(DEAF)

    fewer = (
        launched(tmp_path, "openvino", threads=2, binding="one-cpu"),
        launched(tmp_path, "llama-cpp", threads=2, env={"OMP_THREAD_LIMIT": "1"}),
    )
    more = launch_once(tmp_path, "onnxruntime", workload="deaf:setup", threads=2)

    assert {outcome.status for outcome in (*fewer, more)} == {"invalid"}
    for outcome in fewer:
        assert outcome.evidence == ("2 threads were requested, but the framework uses 1",)
    # How many were busy depends on the host's CPUs and on what else runs.
    assert "2 threads were requested, but the framework uses 4" in more.evidence


# Of the encoder, what multiplies integers: attention in and out and two products after it, or the
# two only.
INTEGER_PRODUCTS = {"DynamicQuantizeMatMul", "MatMulIntegerToFloat", "MatMulInteger"}


@pytest.mark.parametrize(
    ("runtime", "kinds", "products"),
    [("onnxruntime", INTEGER_PRODUCTS, 4), ("pytorch", {"quantized::linear_dynamic"}, 2)],
)
def test_int8_is_quantized_and_near_float32(
    tmp_path: Path, runtime: str, kinds: set[str], products: int
) -> None:
    outcome = launched(
        tmp_path,
        runtime,
        kind="profile",
        workload="encoder-inference",
        mode={"dtype": "int8"},
        measure={"operators": 2},
    )

    # The launch would have failed if the output were not near that of float32.
    assert (outcome.status, outcome.reason) == ("ok", None)
    profile = outcome.workers[0].profile
    assert profile is not None
    assert sum(one.calls for one in profile.operators if one.type in kinds) == products


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


def test_openvino_runs_several_requests_at_once_for_throughput(tmp_path: Path) -> None:
    outcome = launched(tmp_path, "openvino", mode={"mode": "throughput"}, threads=2)

    assert (outcome.status, outcome.reason) == ("ok", None)
    (worker,) = outcome.workers
    assert worker.work["images"] >= 1
    assert worker.threads_used == 2


def test_threads_that_a_runtime_pins_stay_within_their_binding(tmp_path: Path) -> None:
    mode = {"mode": "pinned"}

    outcome = launched(tmp_path, "onnxruntime", mode=mode, binding="one-cpu", threads=2)

    assert (outcome.status, outcome.reason) == ("ok", None)
    (worker,) = outcome.workers
    assert worker.pins_threads
    assert {allowed for thread in worker.threads for allowed in thread.allowed} == {(0,)}


@needs.two_cpus
def test_llama_cpp_pins_each_thread_to_a_cpu_of_its_own(tmp_path: Path) -> None:
    measure = {"iterations": 200}

    outcome = launched(tmp_path, "llama-cpp", mode={"mode": "pinned"}, threads=2, measure=measure)

    assert (outcome.status, outcome.reason) == ("ok", None)
    (worker,) = outcome.workers
    pinned = [cpus for thread in worker.threads for cpus in thread.allowed if len(cpus) == 1]
    assert len(set(pinned)) == 2


@pytest.mark.parametrize(
    ("runtime", "kind", "calls"),
    [
        # 1 convolution of the stem, 48 of 16 blocks and 4 projections. XLA makes most of them a
        # fusion with what surrounds them.
        ("onnxruntime", "Conv", 53),
        ("openvino", "Conv", 53),
        ("jax", "conv|ynn_fusion", 53),
        # Four in each of four layers, and the last one.
        ("llama-cpp", "^MUL_MAT$", 17),
    ],
)
def test_a_runtime_lists_the_operators_of_a_step(
    tmp_path: Path, runtime: str, kind: str, calls: int
) -> None:
    outcome = launched(tmp_path, runtime, kind="profile", measure={"operators": 3})

    assert (outcome.status, outcome.reason) == ("ok", None)
    profile = outcome.workers[0].profile
    assert profile is not None
    assert sum(one.calls for one in profile.operators if re.search(kind, one.type)) == calls
    if runtime != "llama-cpp":
        operators_ns = sum(operator.total_ns for operator in profile.operators)
        assert profile.outside_ns is not None
        assert operators_ns + profile.outside_ns == pytest.approx(profile.step_ns, rel=0.01)


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

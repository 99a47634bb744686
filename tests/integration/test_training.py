"""Training workloads compute the same in three frameworks, and detect wrong results."""

from pathlib import Path
from typing import Any

import pytest

from support.environments import PreloadedFrameworks

pytestmark = pytest.mark.frameworks

FRAMEWORKS = ("mindspore", "tensorflow", "pytorch")
NUMBERS = {"pytorch": "tensor.detach().numpy()", "tensorflow": "tensor.numpy()"}
SHAPE = "batch=8, width=32, layers=3"


def trained(
    imported: PreloadedFrameworks, framework: str, cwd: Path, **parameters: object
) -> dict[str, Any]:
    """Three steps and a look: the losses, and the outputs of the first and the third."""
    numbers = NUMBERS.get(framework, "tensor.asnumpy()")
    given = "".join(f", {name}={value!r}" for name, value in parameters.items())
    result = imported.json_from(
        framework,
        f"from corebound.worker.workloads.small_network_{framework} import training\n"
        f"made = training({SHAPE}{given})\n"
        f"plain = lambda tensor: {numbers}.tolist()\n"
        "outputs = [made.step() for _ in range(3)]\n"
        "made.check(outputs[-1])\n"
        "made.teardown()\n"
        "shapes = [list(parameter.shape) for parameter in made.parameters]\n"
        "print(json.dumps({'losses': made.losses, 'shapes': sorted(shapes), 'flop': made.work(),\n"
        "    'first': plain(outputs[0]), 'third': plain(outputs[2])}))\n",
        cwd,
    )
    assert isinstance(result, dict)
    return result


def assert_alike(first: dict[str, Any], second: dict[str, Any]) -> None:
    # Sums of at most 32 float32 products in another order: 1e-5 is a hundred roundings.
    assert first["shapes"] == second["shapes"]
    assert first["flop"] == second["flop"]
    assert first["losses"] == pytest.approx(second["losses"], rel=1e-5)
    for outputs in ("first", "third"):
        for mine, theirs in zip(first[outputs], second[outputs], strict=True):
            assert mine == pytest.approx(theirs, rel=1e-4, abs=1e-5)


@pytest.fixture(scope="module")
def usual(
    imported: PreloadedFrameworks, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, dict[str, Any]]:
    """What each framework computes in its usual mode."""
    return {name: trained(imported, name, tmp_path_factory.mktemp(name)) for name in FRAMEWORKS}


def test_with_equal_weights_all_frameworks_give_equal_outputs_and_losses(
    usual: dict[str, dict[str, Any]],
) -> None:
    mindspore, tensorflow, pytorch = (usual[name] for name in FRAMEWORKS)

    assert_alike(mindspore, tensorflow)
    assert_alike(pytorch, tensorflow)
    assert mindspore["losses"][2] < mindspore["losses"][0]


@pytest.mark.parametrize(
    ("framework", "parameters"),
    [
        ("mindspore", {"mode": "eager"}),
        ("mindspore", {"mode": "eager", "blocking": True}),
        ("mindspore", {"mode": "graph", "dispatch_threads": 2}),
        ("tensorflow", {"mode": "eager"}),
    ],
)
def test_the_mode_does_not_change_the_result(
    tmp_path: Path,
    imported: PreloadedFrameworks,
    usual: dict[str, dict[str, Any]],
    framework: str,
    parameters: dict[str, object],
) -> None:
    assert_alike(trained(imported, framework, tmp_path, **parameters), usual[framework])


def test_a_checkpoint_holds_the_network_and_is_removed(
    tmp_path: Path, imported: PreloadedFrameworks
) -> None:
    result = imported.json_from(
        "mindspore",
        "from corebound.worker.workloads.checkpoint_mindspore import checkpointing\n"
        "found = []\n"
        "for steps, asynchronous in ((0, False), (0, True), (2, False), (2, True)):\n"
        "    made = checkpointing(width=32, layers=2, steps=steps, asynchronous=asynchronous)\n"
        "    made.check(made.step())\n"
        "    there = made.file.exists()\n"
        "    made.step(); made.cpu_ns(); made.teardown()\n"
        "    found.append([there, made.folder.exists()])\n"
        "print(json.dumps(found))\n",
        tmp_path,
    )

    assert result == [[True, False]] * 4


def test_the_classifier_starts_at_the_loss_of_a_guess_and_learns(
    tmp_path: Path, imported: PreloadedFrameworks
) -> None:
    losses = imported.json_from(
        "mindspore",
        "from corebound.worker.workloads.classifier_mindspore import training\n"
        "made = training(batch=8, features=32, classes=17)\n"
        "made.check(made.step())\n"
        "made.step(); made.step()\n"
        "made.teardown()\n"
        "print(json.dumps(made.losses))\n",
        tmp_path,
    )

    assert losses[0] > losses[1] > losses[2]


def test_a_data_set_gives_valid_images_and_detects_invalid_ones(
    tmp_path: Path, imported: PreloadedFrameworks
) -> None:
    result = imported.json_from(
        "mindspore",
        "from corebound.worker.workload import WorkloadError\n"
        "from corebound.worker.workloads.dataset_mindspore import pipeline\n"
        "found = []\n"
        "for autotune in (False, True):\n"
        "    made = pipeline(batch=4, image=16, batches=3, autotune=autotune)\n"
        "    images = made.step()\n"
        "    made.check(images)\n"
        "    try:\n        made.check(images * 2)\n"
        "    except WorkloadError as error:\n        found.append(error.what)\n"
        "    made.teardown()\n"
        "    found.append(made.folder.exists())\n"
        "print(json.dumps(found))\n",
        tmp_path,
    )

    says = "the data set returned (4, 3, 16, 16) images; expected (4, 3, 16, 16) in 0 to 1."
    assert result == [says, False] * 2


@pytest.mark.parametrize("framework", ["mindspore", "tensorflow"])
def test_adapters_describe_what_is_in_use(
    tmp_path: Path, imported: PreloadedFrameworks, framework: str
) -> None:
    described = imported.json_from(framework, "print(json.dumps(adapter.describe()))\n", tmp_path)

    assert {"versions"} <= set(described) <= {"threads_used", "inter_op_used", "versions", "blas"}
    assert framework in described["versions"]
    assert described.get("threads_used") is None


def test_tensorflow_uses_the_requested_threads(
    tmp_path: Path, imported: PreloadedFrameworks
) -> None:
    described = imported.json_from(
        "tensorflow",
        "adapter.prepare(seed=1, intra_op=3, inter_op=2)\nprint(json.dumps(adapter.describe()))\n",
        tmp_path,
    )

    assert (described["threads_used"], described["inter_op_used"]) == (3, 2)

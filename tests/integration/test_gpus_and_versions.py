"""Cells for GPUs on a host without one, and two versions of a framework side by side."""

from pathlib import Path

import pytest

from support import needs
from support.environments import PreloadedFrameworks, python_of, run_scenario

pytestmark = pytest.mark.frameworks


@pytest.mark.quick
def test_a_product_on_a_gpu_is_skipped_where_none_is_visible_and_the_others_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python_of("pytorch")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")

    launches = run_scenario(
        tmp_path,
        workload="gemm",
        environment="pytorch",
        parameters={"size": 32},
        matrix={"gpus": [0, 1]},
    )

    (skipped,) = (launch for launch in launches if launch.cell.gpus)
    assert skipped.status == "skipped"
    assert skipped.reason == (
        "`gpus: 1` does not fit this host, which has none that CUDA could use."
    )
    assert [launch.status for launch in launches if not launch.cell.gpus] == ["ok", "ok"]


@needs.a_gpu
def test_a_product_on_a_gpu_is_checked_against_the_cpus(
    tmp_path: Path, imported: PreloadedFrameworks
) -> None:
    python_of("pytorch")
    output = imported.output_of(
        "pytorch", "import torch\nprint(torch.backends.cuda.is_built())", tmp_path / "asked"
    )
    if output.strip() != "True":
        pytest.skip("the environment pytorch holds a build of torch without CUDA")

    launches = run_scenario(
        tmp_path, workload="gemm", environment="pytorch", parameters={"size": 1024}, gpus=1
    )

    for launch in launches:
        assert launch.status == "ok", launch.reason
        assert launch.workers[0].environment["CUDA_VISIBLE_DEVICES"] == "0"


def test_two_versions_of_numpy_run_side_by_side_each_in_its_own_environment(tmp_path: Path) -> None:
    for name in ("numpy", "numpy-1.26"):
        python_of(name)

    launches = run_scenario(
        tmp_path,
        workload="gemm",
        parameters={"size": 32},
        matrix={"environment": ["numpy-1.26", "numpy"]},
    )

    assert {launch.status for launch in launches} == {"ok"}
    ran = {(launch.cell.environment, launch.workers[0].versions["numpy"]) for launch in launches}
    assert ran == {("numpy-1.26", "1.26.4"), ("numpy", "2.4.6")}
    # They took turns: each block has both.
    assert {(launch.block, launch.cell.environment) for launch in launches} == {
        (block, name) for block in (0, 1) for name in ("numpy-1.26", "numpy")
    }


def test_a_missing_environment_skips_the_cell_and_names_the_command(tmp_path: Path) -> None:
    python_of("numpy")
    (tmp_path / "environments").mkdir()
    (tmp_path / "environments" / "numpy-0.1.txt").write_text("numpy==0.1\n")

    launches = run_scenario(
        tmp_path,
        code=3,
        workload="gemm",
        parameters={"size": 32},
        matrix={"environment": ["numpy-0.1", "numpy"]},
    )

    (skipped,) = (launch for launch in launches if launch.cell.environment == "numpy-0.1")
    assert skipped.status == "skipped"
    assert skipped.reason == "environment `numpy-0.1` has not been made."
    assert skipped.fix == "Make it with `corebound environment make numpy-0.1`."
    assert [launch.status for launch in launches if launch is not skipped] == ["ok", "ok"]

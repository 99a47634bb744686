"""compare-commits of settings, requirements files and package versions."""

import json
from pathlib import Path
from typing import Any

import pytest

from corebound.records import jsonl
from support.commands import corebound
from support.repositories import counting_suite

SIZED = "import time\n\ndef setup(*, size):\n    return lambda: time.sleep(0.002 * size)\n"
# What a package's version costs.
OF_VERSION = """\
import time
from iniconfig._version import version

def setup(*, size):
    size = 20 if version == "2.1.0" else 1
    return lambda: time.sleep(0.002 * size)
"""


def compare_commits(suite: Path, *arguments: str) -> tuple[int, str, str]:
    # Environments that are made here are nobody else's.
    cache = str(suite.parent / "cache")
    return corebound(suite, "compare-commits", *arguments, COREBOUND_CACHE=cache)


def compared(suite: Path, *arguments: str) -> tuple[int, dict[str, Any], str]:
    code, out, err = compare_commits(suite, *arguments, "--json")
    assert out, err
    told: dict[str, Any] = json.loads(out)
    return code, told, err


def a_suite(folder: Path, steps: str = SIZED, **document: Any) -> Path:
    return counting_suite(
        folder,
        steps=steps,
        parameters={"size": 1},
        matrix={"binding": ["none", "one-cpu"]},
        measure={
            "iterations": 12,
            "warmup": {"iterations": 2},
            "relaunch_disturbed": 0,
            "launches": {"min": 4, "max": 4},
        },
        **document,
    )


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    return a_suite(tmp_path / "suite")


@pytest.mark.quick
def test_a_slower_setting_is_a_regression_measured_with_interleaved_launches(suite: Path) -> None:
    code, told, _ = compared(suite, "parameters.size=1", "parameters.size=20")

    assert code == 1
    assert [cell["cell"] for cell in told["cells"]] == ["binding=none", "binding=one-cpu"]
    assert {cell["scenario"] for cell in told["cells"]} == {"counting"}
    assert all(cell["is_regression"] for cell in told["cells"])
    assert (told["base"]["name"], told["head"]["name"]) == ("1", "20")
    stored = jsonl.read(suite / told["records"])
    by_block: dict[int, set[str]] = {}
    for launch in stored.launches:
        by_block.setdefault(launch.block, set()).add(dict(launch.cell.axes)["size"])
    assert list(by_block.values()) == [{"1", "20"}] * 4


def test_the_compared_settings_replace_the_scenarios_axis(suite: Path) -> None:
    code, out, err = compare_commits(
        suite, "binding=one-cpu", "binding=logical-cpus", "--margin", "0.9"
    )

    assert code == 0, err
    assert "0 of 1 cells slower" in out
    assert "binding: one-cpu" in out


def test_two_versions_of_a_package_are_built_and_the_slower_one_is_named(suite: Path) -> None:
    a_suite(suite, OF_VERSION, environment="mine", framework="none")
    (suite / "environments").mkdir()
    (suite / "environments" / "mine.txt").write_text("iniconfig==2.0.0\n")

    code, told, err = compared(suite, "iniconfig==2.0.0", "iniconfig==2.1.0", "--only",
                               "binding=none")  # fmt: skip

    assert code == 1, err
    (cell,) = told["cells"]
    assert (cell["cell"], cell["verdict"]) == ("binding=none", "slower")
    written = suite / "environments" / "mine-iniconfig-2.1.0.txt"
    assert written.read_text().splitlines()[1:] == ["iniconfig==2.1.0"]
    # Its files stay, and may be compared as such; one that cannot be made is that side's.
    (suite / "environments" / "none.txt").write_text("iniconfig==99.0\n")
    code, told, _ = compared(
        suite, "environments/mine-iniconfig-2.0.0.txt", "environments/none.txt",
        "--only", "binding=none",
    )  # fmt: skip
    assert code == 4
    (cell,) = told["cells"]
    assert cell["verdict"] is None
    assert "none" in cell["missing"][0]
    assert "could not be installed" in cell["missing"][0]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("threads=1", "HEAD"), "is a configuration, but `HEAD` is a commit"),
        (("threads=1", "omp=2"), "set different keys"),
        (("threads=1", "threads=1"), "both sides"),
        (("colour=1", "colour=2"), "unknown key `colour`"),
        (("a.txt", "b.txt"), "no environment `a`"),
        (("numpy==1.0", "numpy==2.0"), "a package version applies to"),
    ],
)
def test_bad_input_is_an_error_message(suite: Path, arguments: tuple[str, ...], told: str) -> None:
    code, _, err = compare_commits(suite, *arguments)

    assert code == 2
    assert told in " ".join(err.split())

"""`corebound example`: the scenarios that come with corebound, written where one wants them."""

from pathlib import Path

import pytest

from corebound.errors import InputError
from corebound.workflow.examples import example_texts, examples
from support.commands import corebound

NAMES = [row.name for row in examples()]


def test_examples_are_valid_without_any_other_file(tmp_path: Path) -> None:
    written = corebound(tmp_path, "example", *NAMES)

    checked = corebound(tmp_path, "check", *(f"{name}.yaml" for name in NAMES))

    assert (written.code, checked.code) == (0, 0), checked.err


def test_a_module_comes_with_the_scenario_that_measures_its_function() -> None:
    assert list(example_texts("example-function")) == [
        "example-function.yaml",
        "example_function.py",
    ]


def test_a_misspelt_name_is_answered_with_the_closest() -> None:
    with pytest.raises(InputError, match="`gemm`"):
        example_texts("gem")


def test_an_existing_file_is_kept(tmp_path: Path) -> None:
    (tmp_path / "gemm.yaml").write_text("mine\n")

    output = corebound(tmp_path, "example", "gemm").out

    assert "left alone" in output
    assert (tmp_path / "gemm.yaml").read_text() == "mine\n"

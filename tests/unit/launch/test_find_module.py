"""What an interpreter says of its BLAS."""

from pathlib import Path

import pytest

from corebound.launch.find_module import blas_layers


@pytest.mark.parametrize(
    ("said", "layers"),
    [
        ("echo; echo '[\"intel\"]'", ("intel",)),
        ('echo A package says hello; echo \'["pthreads", "openmp"]\'', ("pthreads", "openmp")),
        ("echo '[]'", ()),
        ("echo '[\"intel\"]'; exit 1", ()),
        ("echo no JSON", ()),
        ("", ()),
    ],
)
def test_the_layers_are_what_the_interpreter_says_last(
    said: str, layers: tuple[str, ...], tmp_path: Path
) -> None:
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\n{said}\n")
    python.chmod(0o755)

    assert blas_layers(python) == layers


def test_an_interpreter_that_does_not_exist_says_nothing(tmp_path: Path) -> None:
    assert blas_layers(tmp_path / "python") == ()

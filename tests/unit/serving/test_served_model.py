"""A served model is created once, whoever else needs it meanwhile."""

import fcntl
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from corebound.serving.served_model import Execute, ServedModel, recipe_of, served_model
from support.build import a_cell


def created(cache: Path, execute: Execute) -> ServedModel:
    cell = replace(a_cell(), framework="fastapi", parameters=(("model", "resnet18"), ("image", 64)))
    return served_model(cache, recipe_of(cell), python=Path("/usr/bin/python3"), execute=execute)


def test_a_model_is_locked_while_it_is_created(tmp_path: Path) -> None:
    def is_locked(_argv: Sequence[str], _folder: Path) -> int:
        (lock,) = tmp_path.glob("*.lock")
        with lock.open("w") as stream, pytest.raises(BlockingIOError):
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return 0

    assert created(tmp_path, is_locked).folder.is_dir()


def test_a_model_that_is_in_the_cache_is_not_created_again(tmp_path: Path) -> None:
    first = created(tmp_path, lambda _argv, _folder: 0)

    assert created(tmp_path, lambda _argv, _folder: pytest.fail("created again")) == first

"""Errors of the file system name the path that the user gave."""

from pathlib import Path

import pytest

from corebound.errors import InputError, report_os_errors


def test_a_refusal_is_told_with_its_reason_and_the_file_that_it_is_of(tmp_path: Path) -> None:
    missing = tmp_path / "missing"

    with (
        pytest.raises(InputError) as caught,
        report_os_errors("it cannot be written", where=tmp_path, fix="Name another."),
    ):
        missing.read_bytes()

    assert caught.value.what == "it cannot be written: No such file or directory."
    assert caught.value.where == str(missing)
    assert caught.value.fix == "Name another."


def test_a_refusal_of_no_file_is_of_the_place_that_was_named(tmp_path: Path) -> None:
    # As a full disk says it of a descriptor.
    with (
        pytest.raises(InputError) as caught,
        report_os_errors("it cannot be written", where=tmp_path, fix="Make room."),
    ):
        raise OSError(28, "No space left on device")

    assert caught.value.where == str(tmp_path)


def test_what_is_no_refusal_goes_through(tmp_path: Path) -> None:
    with (
        pytest.raises(ValueError, match="ours"),
        report_os_errors("it cannot be written", where=tmp_path, fix="Name another."),
    ):
        raise ValueError("ours")

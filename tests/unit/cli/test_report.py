"""What `corebound report` says about folders that it cannot use."""

from collections.abc import Callable
from pathlib import Path

import pytest

from corebound.cli.app import app


@pytest.mark.parametrize("option", ["--out", "--records"])
def test_a_file_in_place_of_a_folder_is_rejected(
    option: str, tmp_path: Path, rejection_of: Callable[..., str]
) -> None:
    (tmp_path / "README.md").touch()

    said = rejection_of("report", option, str(tmp_path / "README.md"))

    assert "README.md" in said


def test_a_site_without_records_causes_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    records = tmp_path / "records"
    records.mkdir()

    app(
        ["report", "--records", str(records), "--out", str(tmp_path / "site")],
        standalone_mode=False,
    )

    assert f"no records in {records}" in capsys.readouterr().err

"""Which packages scripts/check_weight.py calls too heavy."""

import runpy
from pathlib import Path

import pytest

CHECK = runpy.run_path(str(Path(__file__).parents[2] / "scripts/check_weight.py"))


@pytest.mark.parametrize(
    ("lines", "allowed", "faults"),
    [(10, 10, 0), (11, 10, 1), (10, 300, 1), (10, None, 1)],
    ids=["as many as allowed", "too many", "far fewer", "without a number"],
)
def test_a_package_keeps_to_its_number(
    tmp_path: Path, lines: int, allowed: int | None, faults: int
) -> None:
    package = tmp_path / "src" / "project" / "package"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("# a line\n" * lines)
    number = "" if allowed is None else f'"src/project/package" = {allowed}\n'
    (tmp_path / "pyproject.toml").write_text(f"[tool.corebound.lines]\n{number}")

    assert len(CHECK["find_faults"](tmp_path)) == faults

"""Check that no package has more lines than `tool.corebound.lines` in pyproject.toml allows.

The numbers only fall: a package that became smaller lowers its own, and one that needs more lines
says why in the commit that raises it.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
# A package this far below its number has to lower it.
_SLACK = 200


def find_faults(root: Path) -> list[str]:
    """Find the packages that are over their numbers, far below them, or without one.

    Args:
        root: A folder with a `pyproject.toml` that allows lines for folders in it.

    Returns:
        One line for each fault.
    """
    settings = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))
    allowed: dict[str, int] = settings["tool"]["corebound"]["lines"]
    packages = [str(file.parent.relative_to(root)) for file in root.glob("src/*/*/__init__.py")]
    faults = [
        f"{name}: no number in pyproject.toml" for name in sorted(packages) if name not in allowed
    ]
    for name, most in allowed.items():
        lines = sum(_lines(file) for file in (root / name).rglob("*.py"))
        if lines > most:
            faults.append(f"{name}: {lines:,} lines, and pyproject.toml allows {most:,}")
        elif lines < most - _SLACK:
            faults.append(f"{name}: only {lines:,} lines; lower its {most:,} in pyproject.toml")
    return faults


def _lines(file: Path) -> int:
    return len(file.read_bytes().splitlines())


def main(root: Path) -> int:
    """Print the faults. Return 1 if there are any, else 0."""
    faults = find_faults(root)
    sys.stdout.write("\n".join(faults or ["OK: lines of packages"]) + "\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(ROOT))

"""Check the fragments in changelog.d: each has a declared type and 1 to 40 words."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
MAX_WORDS = 40


def find_faults(root: Path) -> list[str]:
    """Find the faults of all fragments.

    Args:
        root: a folder with a `pyproject.toml` that configures towncrier.

    Returns:
        One line for each fault, ordered by file name. Empty if all fragments are valid.
    """
    settings = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["tool"]["towncrier"]
    types = [kind["directory"] for kind in settings["type"]]
    folder = root / settings["directory"]
    return [
        f"{file.relative_to(root)}: {fault}"
        for file in sorted(folder.iterdir())
        # towncrier skips hidden files, too.
        if not file.name.startswith(".")
        for fault in _faults_of(file, types)
    ]


def _faults_of(file: Path, types: list[str]) -> list[str]:
    faults = []
    # towncrier drops a fragment without a declared type, and says nothing.
    name = file.name.split(".")
    if len(name) != 3 or name[1] not in types or name[2] != "md":
        choices = ", ".join(types)
        faults.append(f"no declared type. Rename it to +NAME.TYPE.md; TYPE is one of {choices}.")
    words = len(file.read_text("utf-8").split())
    if not words:
        faults.append("empty. Describe the change in one or two sentences.")
    if words > MAX_WORDS:
        faults.append(f"{words} words. Shorten it to at most {MAX_WORDS}.")
    return faults


def main(root: Path) -> int:
    """Print the faults and return the exit code: 1 if there are any, else 0."""
    faults = find_faults(root)
    sys.stdout.write("\n".join(faults or ["OK: changelog fragments"]) + "\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(ROOT))

"""Which builds of commits are there."""

import json
import sys
from pathlib import Path

import pytest

from corebound.asv_bridge.project import Project
from corebound.launch.environments import MARKER
from corebound.records.run_record import Commit

COMMIT = Commit(sha="a" * 40, subject="s", committed_at="2026-01-01T00:00:00Z", dirty=False)


@pytest.mark.parametrize(("target", "is_there"), [(sys.executable, True), ("/gone/python", False)])
def test_a_kept_build_without_its_interpreter_is_no_build(
    tmp_path: Path, target: str, is_there: bool
) -> None:
    file = tmp_path / "asv.conf.json"
    project = Project(name="p", file=file, git=tmp_path, environments=tmp_path, recipe="recipe",
                      checked_out="HEAD")  # fmt: skip
    python = tmp_path / "python"
    python.symlink_to(target)
    folder = tmp_path / "commits" / f"{COMMIT.sha[:12]}-recipe"
    folder.mkdir(parents=True)
    marker = {"python": str(python), "version": "3.11.2", "packages": []}
    (folder / MARKER).write_text(json.dumps(marker))

    assert (project.find(COMMIT, "project") is not None) is is_there

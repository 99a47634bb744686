"""The tutorial's first page works as printed."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.commands import isolation
from support.paths import ROOT

PAGE = (ROOT / "docs" / "tutorial" / "first-ten-minutes.md").read_text("utf-8")
# Of each fenced block: the text before it since the last block, its language and its text.
_FENCE = re.compile(r"((?:(?!```).)*?)^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.measures
def test_its_files_and_commands_lead_to_a_report(tmp_path: Path) -> None:
    environment = {
        **os.environ,
        **isolation(tmp_path),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }

    for before, language, text in _FENCE.findall(PAGE):
        name = re.findall(r"as `([\w.]+)`", before)
        if language in {"yaml", "python"}:
            (tmp_path / name[-1]).write_text(text, "utf-8")
        elif "pip install" not in text:
            # No browser is opened.
            subprocess.run(
                ["sh", "-e", "-c", text.replace(" --open", "")],
                cwd=tmp_path,
                env=environment,
                check=True,
            )

    assert "Product of two matrices" in (tmp_path / "reports/site/index.html").read_text("utf-8")

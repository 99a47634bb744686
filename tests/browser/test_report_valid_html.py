"""Every page by html-validate, which npm installs into the cache beside the environments."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from corebound.report import site
from report_sample import NOW, a_past, a_sample, a_serving_sample, an_earlier_sample, sample_imports

NPM, NODE = shutil.which("npm"), shutil.which("node")
PACKAGE = "html-validate@10.17.0"
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(NPM is None or NODE is None, reason="npm is not installed"),
]
RULES = {
    "root": True,
    "extends": ["html-validate:recommended"],
    "rules": {
        # A place in per cent is data, which has no class.
        "no-inline-style": "off",
        # A title says the verdict.
        "long-title": "off",
        "no-trailing-whitespace": "off",
        # A table's frame scrolls: it needs a name and focus, and is no section of the text.
        "prefer-native-element": "off",
    },
}


@pytest.fixture(scope="module")
def validator() -> Path:
    folder = Path.home() / ".cache/corebound/html-validate-10.17.0"
    script = folder / "node_modules/html-validate/bin/html-validate.mjs"
    if not script.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        command = [str(NPM), "install", "--prefix", str(folder), "--no-audit", "--no-fund", PACKAGE]
        done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
        if done.returncode:
            pytest.skip(f"npm cannot install {PACKAGE}: {done.stderr[-200:]}")
    return script


def test_every_page_is_clean(validator: Path, tmp_path: Path) -> None:
    records = [an_earlier_sample(), a_sample(), a_serving_sample()]
    site.write(records, tmp_path, now=NOW, profiles=sample_imports(), series=a_past())
    site.write([], tmp_path / "empty", now=NOW)
    rules = tmp_path / "rules.json"
    rules.write_text(json.dumps(RULES))
    pages = [str(page) for page in sorted(tmp_path.rglob("*.html"))]

    done = subprocess.run(
        [str(NODE), str(validator), "--config", str(rules), "--formatter", "text", *pages],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )

    assert len(pages) > 10
    assert (done.returncode, done.stdout) == (0, "")

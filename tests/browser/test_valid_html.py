"""A page of each kind is valid HTML to html-validate and vnu."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from browser.pages import PAGES
from support import needs

NPM, NODE, JAVA = shutil.which("npm"), shutil.which("node"), shutil.which("java")
pytestmark = [pytest.mark.browser, needs.npm]
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
# What vnu says of good pages: it knows no `file:` in a policy, and of styles those of HTML alone
# and no container queries, by which a table stacks where its text is large, in any window,
# and no variable as a share of two colours.
NOT_OURS = (
    "Resource violates Content Security Policy.*|CSS: .(vector-effect|container-type).: Property .*"
    "|CSS: Unrecognized at-rule .@container.*|CSS: .background.: .var\\(--tint\\). is not .*"
)


def installed(package: str, file: str) -> Path:
    """A file of an npm package, which is installed if it is not there."""
    folder = Path.home() / ".cache/corebound" / package.replace("@", "-")
    messages = folder / "node_modules" / file
    if not messages.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        command = [str(NPM), "install", "--prefix", str(folder), "--no-audit", "--no-fund", package]
        result = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
        if result.returncode:
            needs.missing(f"npm cannot install {package}: {result.stderr[-200:]}")
    return messages


def test_every_kind_of_page_passes_html_validate(sites: Path, tmp_path: Path) -> None:
    script = installed("html-validate@10.17.0", "html-validate/bin/html-validate.mjs")
    rules = tmp_path / "rules.json"
    rules.write_text(json.dumps(RULES))

    result = subprocess.run(
        [
            str(NODE),
            str(script),
            "--config",
            str(rules),
            "--formatter",
            "text",
            *(str(sites / name) for name in PAGES),
        ],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )

    assert (result.returncode, result.stdout) == (0, "")


@needs.java
def test_every_kind_of_page_and_its_style_pass_vnu(sites: Path) -> None:
    program = installed("vnu-jar@26.9.27", "vnu-jar/build/dist/vnu.jar")

    result = subprocess.run(
        [
            *(str(JAVA), "-jar", str(program), "--also-check-css", "--Werror", "--stdout"),
            *("--format", "gnu", "--filterpattern", NOT_OURS),
            *(str(sites / name) for name in PAGES),
            str(sites / "assets/site.css"),
        ],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )

    assert (result.returncode, result.stdout) == (0, "")

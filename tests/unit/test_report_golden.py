"""The pages, byte for byte. COREBOUND_GOLDEN=write rewrites them; the diff is reviewed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from corebound.report import site
from report_sample import NOW, a_sample, a_serving_sample, sample_imports

GOLDEN = Path(__file__).parents[1] / "golden"


@pytest.mark.parametrize(
    ("name", "golden"),
    [
        ("index.html", "overview.html"),
        ("operators.html", "operators.html"),
        ("claims.html", "claims.html"),
        ("scenario/resnet50-inference.html", "scenario.html"),
        ("scenario/torchserve.html", "serving.html"),
    ],
)
def test_a_page_is_as_it_was_reviewed(name: str, golden: str) -> None:
    made = dict(site.files([a_sample(), a_serving_sample()], now=NOW, profiles=sample_imports()))[
        name
    ]

    if os.environ.get("COREBOUND_GOLDEN") == "write":
        (GOLDEN / golden).write_text(made, "utf-8")

    assert made == (GOLDEN / golden).read_text("utf-8")

"""The JSON Schema is the models' own, and editors can rely on it."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from corebound.scenario.json_schema import schema, schema_text
from corebound.scenario.yaml_reader import as_data, read_yaml
from support.paths import ROOT

VALIDATOR = jsonschema.Draft202012Validator(schema())


def test_the_schema_in_docs_is_the_models_own() -> None:
    written = (ROOT / "docs" / "scenario.schema.json").read_text(encoding="utf-8")

    assert written == schema_text(), "write it anew with `make schema`"


def test_it_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(json.loads(schema_text()))


def test_every_key_has_a_description() -> None:
    settings = schema()["properties"]

    assert [name for name, key in settings.items() if not key.get("description")] == [
        "matrix",
        "measure",
    ]


@pytest.mark.parametrize("file", sorted((ROOT / "scenarios").glob("*.yaml")), ids=lambda f: f.stem)
def test_shipped_scenarios_are_valid(file: Path) -> None:
    root, _ = read_yaml(file.read_bytes(), file.name)
    assert root is not None

    VALIDATOR.validate(as_data(root))


@pytest.mark.parametrize(
    "change",
    [
        {"bindng": "none"},
        {"schema": 2},
        {"name": "My study"},
        {"title": ""},
        {"workload": None},
        {"threads": "many"},
        {"threads": 0},
        {"smt": "yes"},
        {"binding": {"cpu": 1}},
        {"environment": None},
        {"matrix": {"threads": 2}},
        {"matrix": {"threads": []}},
        {"matrix": {"smt": None}},
        {"matrix": {"parameters": {"size": 2}}},
        {"measure": {"warmup": {"iterations": 1, "seconds": 1}}},
        {"measure": {"launches": {"min": 1}}},
        {"profiles": {"slow": {}}},
        {"env": {"A": 1}},
        {"claims": [{"says": "x"}]},
    ],
    ids=str,
)
def test_the_schema_rejects_what_loading_rejects(change: dict[str, Any]) -> None:
    document = {
        "schema": 1, "name": "a", "title": "T", "question": "Q?", "workload": "m:f", **change
    }  # fmt: skip

    assert not VALIDATOR.is_valid(document)

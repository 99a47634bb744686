"""Generate the JSON Schema of scenario files, for editors, from the models."""

from __future__ import annotations

import json
from typing import Any

from corebound.scenario.models import Scenario
from corebound.scenario.settings import Settings, is_nullable

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema() -> dict[str, Any]:
    """The JSON Schema of a scenario file.

    It covers keys, types and allowed words. Only `load` checks how they combine.
    `load` also rejects everything that the schema rejects.
    """
    made = Scenario.model_json_schema(by_alias=True)
    parts: dict[str, Any] = made["$defs"]
    parts["Matrix"]["properties"] = _axes(parts["Matrix"]["properties"])
    for part in (made, *parts.values()):
        is_matrix = part is parts["Matrix"]
        part["properties"] = {
            name: _slim(key, may_be_null=not is_matrix and is_nullable(name))
            for name, key in part["properties"].items()
        }
        del part["title"]
    description = made.pop("description")
    return {
        "$schema": DIALECT,
        "title": "A corebound scenario",
        "description": description,
        **made,
    }


def _axes(properties: dict[str, Any]) -> dict[str, Any]:
    """Give each axis the description of its setting, so that editors show it there too."""
    return {
        name: {**key, "description": f"values of: {Settings.model_fields[name].description}"}
        if name in Settings.model_fields
        else key
        for name, key in properties.items()
    }


def _slim(key: dict[str, Any], *, may_be_null: bool) -> dict[str, Any]:
    """Drop titles, which repeat the name, and null where it has no meaning."""
    kept = {word: value for word, value in key.items() if word != "title"}
    if may_be_null:
        return kept
    if kept.get("default", "") is None:
        del kept["default"]
    branches = [branch for branch in kept.get("anyOf", ()) if branch != {"type": "null"}]
    if len(branches) == 1:
        del kept["anyOf"]
        return {**branches[0], **kept}
    return {**kept, "anyOf": branches} if branches else kept


def schema_text() -> str:
    """The schema as text: the content of docs/scenario.schema.json."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"

"""Generate the JSON Schema of scenario files, for editors, from the models."""

import json
from typing import Any

from pydantic import BaseModel

from corebound.scenario.models import Scenario
from corebound.scenario.settings import Settings, is_nullable

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema() -> dict[str, Any]:
    """The JSON Schema of a scenario file.

    It covers keys, types and allowed words. Only `load` checks how they combine.
    `load` also rejects everything that the schema rejects.
    """
    document = Scenario.model_json_schema(by_alias=True)
    parts: dict[str, Any] = document["$defs"]
    parts["Matrix"]["properties"] = _axes(parts["Matrix"]["properties"])
    for part in (document, *parts.values()):
        is_matrix = part is parts["Matrix"]
        part["properties"] = {
            name: _slim(key, may_be_null=not is_matrix and is_nullable(name))
            for name, key in part["properties"].items()
        }
        del part["title"]
    description = document.pop("description")
    return {
        "$schema": DIALECT,
        "title": "A corebound scenario",
        "description": description,
        **document,
    }


def schema_of(model: type[BaseModel], *, title: str) -> dict[str, Any]:
    """The JSON Schema of a file whose keys have no null values."""
    document = model.model_json_schema(by_alias=True)
    for part in (document, *document.get("$defs", {}).values()):
        part["properties"] = {
            name: _slim(key, may_be_null=False) for name, key in part["properties"].items()
        }
        del part["title"]
    description = document.pop("description")
    return {"$schema": DIALECT, "title": title, "description": description, **document}


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
    slim = {name: value for name, value in key.items() if name != "title"}
    if may_be_null:
        return slim
    if slim.get("default", "") is None:
        del slim["default"]
    branches = [branch for branch in slim.get("anyOf", ()) if branch != {"type": "null"}]
    if len(branches) == 1:
        del slim["anyOf"]
        return {**branches[0], **slim}
    return {**slim, "anyOf": branches} if branches else slim


def schema_text(document: dict[str, Any] | None = None) -> str:
    """A schema as text; by default the content of docs/scenario.schema.json."""
    return json.dumps(document or schema(), indent=2, ensure_ascii=False) + "\n"

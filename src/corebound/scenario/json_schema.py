"""Generate the JSON Schema of scenario files, for editors, from the models."""

import json
from collections.abc import Callable
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
    return schema_of(Scenario, title="A corebound scenario", may_be_null=is_nullable)


def schema_of(
    model: type[BaseModel],
    *,
    title: str,
    may_be_null: Callable[[str], bool] = lambda _key: False,
) -> dict[str, Any]:
    """The JSON Schema of a file.

    Args:
        may_be_null: Whether a key may have no value; an axis never is without one.
    """
    document = model.model_json_schema(by_alias=True)
    for name, part in {"": document, **document.get("$defs", {})}.items():
        is_matrix = name == "Matrix"
        keys = _axes(part["properties"]) if is_matrix else part["properties"]
        part["properties"] = {
            key: _slim(described, may_be_null=not is_matrix and may_be_null(key))
            for key, described in keys.items()
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

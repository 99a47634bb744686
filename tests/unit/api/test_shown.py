"""Every result of the API shows itself as text and in notebooks, without its raw fields."""

from __future__ import annotations

import inspect
from typing import Any

import msgspec
import pytest

import corebound
from corebound.api.shown import Shown
from corebound.machine.topology import Topology
from support.build import a_host, a_host_check
from support.markup import parse_xml

RESULTS = [
    value
    for name in corebound.__all__
    if inspect.isclass(value := getattr(corebound, name))
    and issubclass(value, msgspec.Struct)
    and value.__module__.startswith("corebound.api")
]
ODD = "<b>&'\"\n</td>"


def filled(kind: type[msgspec.Struct]) -> Any:
    """A result with an odd text in every field, or nothing where it has rows of its own."""
    fields: dict[str, object] = {
        field.name: (() if "tuple" in str(field.type) else 1.5 if field.type is float else ODD)
        for field in msgspec.structs.fields(kind)
        if field.required
    }
    fields |= {"verdict": None} if "verdict" in kind.__struct_fields__ else {}
    fields |= {"axes": {"threads": ODD}} if "axes" in kind.__struct_fields__ else {}
    return kind(**fields)


@pytest.mark.parametrize("kind", [kind for kind in RESULTS if kind.__name__ != "HostResults"])
def test_each_result_shows_itself_without_its_fields(kind: type[msgspec.Struct]) -> None:
    assert issubclass(kind, Shown)
    result = filled(kind)

    for text in (str(result), repr(result)):
        assert "document=" not in text
    parse_xml(result._repr_html_())
    assert ODD not in result._repr_html_()


def test_host_checks_are_a_line_and_a_table_row_each() -> None:
    checks = tuple(a_host_check(check=f"check-{number}", fix=None) for number in range(3))

    result = corebound.HostChecks(checks=checks, document={})

    assert len(str(result).splitlines()) == 1 + 1 + len(checks)
    assert result._repr_html_().count("<tr>") == 1 + len(checks)


def test_a_topology_is_its_tree_in_a_notebook_too() -> None:
    host = a_host(nodes=2)

    assert isinstance(host, Topology)
    assert str(host) in host._repr_html_()

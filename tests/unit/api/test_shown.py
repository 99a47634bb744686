"""Every result of the API shows itself as text and in notebooks, without its raw fields."""

import inspect
from typing import Any

import msgspec
import pytest

import corebound
from corebound.analysis.tuning_checks import verification
from corebound.machine.doctor.result import CheckResult
from corebound.machine.topology import Topology
from corebound.present.shown import Shown
from corebound.records.run_record import Commit
from corebound.stats.bisection import BisectionOutcome
from corebound.stats.comparison import Comparison
from corebound.workflow.nightly_steps import NightlyResult
from support.build import a_cell, a_host, a_host_check
from support.markup import parse_xml
from support.tuning import a_tuning

RESULTS = [
    value
    for name in corebound.__all__
    if inspect.isclass(value := getattr(corebound, name))
    and issubclass(value, msgspec.Struct)
    and (value.__module__.startswith("corebound.api") or issubclass(value, Shown))
]
ODD = "<b>&'\"\n</td>"


# Fields from which a result computes what it shows.
RACE, _ = a_tuning()
VALUES: dict[str, object] = {
    "axes": {"threads": ODD},
    "ending": BisectionOutcome(
        outcome="range", suspects=(), good=0, bad=0, slowdown_ratio=None, interval=None, tests=1
    ),
    "commits": (Commit(sha=ODD, committed_at=ODD, subject=ODD, dirty=False),),
    "measured": a_cell(scenario=ODD, axes=(("threads", ODD),)),
    "comparison": Comparison(
        speedup_ratio=1.1, interval=None, verdict="inconclusive", pairs=0, per_block=(),
        p_value=None, launches_needed=None,
    ),
    "medians_ns": (1.0, 2.0),
    "regressions": None,
    "result": NightlyResult(codes={ODD: 0}, failure=None),
    "verdict": None,
    "verification": verification(RACE, RACE),
}  # fmt: skip


def filled(kind: type[msgspec.Struct]) -> Any:
    """A result with an odd text in every field, or nothing where it has rows of its own."""
    fields: dict[str, object] = {
        field.name: () if "tuple" in str(field.type) else 1.5 if field.type is float else ODD
        for field in msgspec.structs.fields(kind)
        if field.required
    }
    return kind(**fields | {key: VALUES[key] for key in fields.keys() & VALUES.keys()})


@pytest.mark.parametrize("kind", [kind for kind in RESULTS if kind.__name__ != "HostResults"])
def test_each_result_shows_itself_without_its_fields(kind: type[msgspec.Struct]) -> None:
    assert issubclass(kind, Shown)
    result = filled(kind)

    for text in (str(result), repr(result)):
        assert "document=" not in text
    parse_xml(result._repr_html_())
    assert ODD not in result._repr_html_()


def test_host_checks_are_a_line_and_a_table_row_each() -> None:
    checks = [a_host_check(check=f"check-{number}", fix=None) for number in range(3)]

    result = corebound.HostChecks(results=tuple(CheckResult(host_check=one) for one in checks))

    assert len(str(result).splitlines()) == 1 + 1 + len(checks)
    assert result._repr_html_().count("<tr>") == 1 + len(checks)


def test_a_topology_is_its_tree_in_a_notebook_too() -> None:
    host = a_host(nodes=2)

    assert isinstance(host, Topology)
    assert str(host) in host._repr_html_()

"""What the results of several hosts say together."""

import math
import random
from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from corebound.analysis.hardware import HardwareClass, hardware_class, varying_facts
from corebound.analysis.host_comparison import (
    HostCell,
    HostScenario,
    HostSummary,
    compare_hosts,
    differences,
    host_value,
)
from corebound.analysis.json_documents import hosts_document
from corebound.present.hosts import hosts_sections
from corebound.present.sections import Table
from corebound.scenario.metrics import Metric
from support.build import a_host, a_machine, a_run
from support.known import known
from support.texts import in_order

XEON = HardwareClass(label="", cpu_model="Intel(R) Xeon(R) Gold CPU @ 2.10GHz", shape="2 × 28")
ARM = HardwareClass(label="", cpu_model="Neoverse-N1", shape="1 × 80")


def a_value(key: str, speedup: float | None, *, time_ns: float = 1e6) -> HostCell:
    reach = 1.01
    return HostCell(
        key=key,
        name=key,
        speedup=speedup,
        speedup_bounds=None if speedup is None else (speedup / reach, speedup * reach),
        verdict=None if speedup is None else "faster" if speedup > 1 else "slower",
        time_ns=time_ns,
        time_bounds_ns=(time_ns / reach, time_ns * reach),
    )


def a_summary(
    name: str,
    speedup: float,
    *,
    hardware: HardwareClass = XEON,
    time_ns: float = 1e6,
    sha256: str = "a",
    facts: Mapping[str, str] | None = None,
) -> HostSummary:
    scenario = HostScenario(
        name="matmul",
        title="Matrix product",
        sha256=sha256,
        margin=0.02,
        run=f"run-of-{name}",
        started_at="2026-01-02T03:04:05Z",
        cells=(
            a_value("threads=default", None, time_ns=time_ns),
            a_value("threads=1", speedup, time_ns=time_ns / speedup),
        ),
    )
    return HostSummary(
        id=f"id-of-{name}",
        name=name,
        hardware=hardware,
        facts={"kernel": "6.8", "SMT": "on", **(facts or {})},
        scenarios=(scenario,),
    )


def a_class(hosts: int, speedup: float, hardware: HardwareClass = XEON) -> list[HostSummary]:
    noise = random.Random(f"{hardware}")  # no secret
    return [
        a_summary(
            f"{hardware.shape}-{number}",
            speedup * noise.lognormvariate(0, 0.02),
            time_ns=1e6 * noise.lognormvariate(0, 0.02),
            hardware=hardware,
        )
        for number in range(hosts)
    ]


def test_each_class_has_the_ratio_of_its_hosts_to_their_own_baselines() -> None:
    comparison = compare_hosts([*a_class(6, 1.5), *a_class(5, 0.8, ARM)])

    baseline, one = comparison.scenarios[0].rows
    assert (baseline.kind, one.kind) == ("time", "speedup")
    xeon, arm = one.of(XEON), one.of(ARM)
    assert xeon is not None
    assert arm is not None
    assert xeon.value == pytest.approx(1.5, rel=0.03)
    assert (xeon.verdict, arm.verdict) == ("faster", "slower")
    assert [len(hosts) for hosts in comparison.classes.values()] == [6, 5]


def test_classes_differ_in_their_ratios_and_not_in_absolute_times() -> None:
    times = [replace(host, hardware=ARM) for host in a_class(5, 1.5)]

    differ, equal, absolute = (
        compare_hosts([*a_class(6, 1.5), *others]).scenarios[0].rows
        for others in (a_class(5, 1.2, ARM), a_class(5, 1.5, ARM), times)
    )

    assert [each.hardware for each in known(differ[1].extremes)] == [XEON, ARM]
    assert equal[1].extremes is None
    assert absolute[0].difference is None


def test_an_outlier_is_named_with_what_differs_and_does_not_move_its_class() -> None:
    hosts = a_class(8, 1.5)
    odd = replace(a_summary("rack3-17", 1 / 1.6, facts={"kernel": "6.1", "label rack": "3"}))

    comparison = compare_hosts([*hosts, odd])

    (outlier,) = comparison.outliers
    assert outlier.host.name == "rack3-17"
    assert [(each.name, each.own, each.others) for each in outlier.differs] == [
        ("kernel", "6.1", "6.8"),
        ("label rack", "3", "unknown"),
    ]
    xeon = known(comparison.scenarios[0].rows[1].of(XEON))
    assert xeon.value == pytest.approx(1.5, rel=0.03)


def test_a_host_that_is_slow_in_everything_is_an_outlier_by_its_time() -> None:
    # Its ratio to its own baseline is that of the others.
    hosts = [*a_class(8, 1.5), a_summary("half-memory", 1.5, time_ns=2.5e6)]

    (outlier,) = compare_hosts(hosts).outliers

    assert [(row.key, row.kind) for _, row, _ in outlier.rows] == [("threads=default", "time")]


def test_a_class_of_too_few_hosts_to_name_outliers_is_named() -> None:
    comparison = compare_hosts([*a_class(8, 1.5), *a_class(3, 1.5, ARM)])

    assert comparison.too_few == (ARM,)


def test_what_the_class_does_not_agree_about_is_no_difference() -> None:
    others = [a_summary(f"h{n}", 1.5, facts={"kernel": f"6.{n}"}) for n in range(6)]

    assert differences(a_summary("odd", 1.5, facts={"kernel": "5.10"}), others) == ()


def test_hosts_with_another_version_of_a_scenario_are_named_and_not_compared() -> None:
    hosts = [*a_class(5, 1.5), a_summary("stale", 3.0, sha256="b")]

    (scenario,) = compare_hosts(hosts).scenarios

    assert scenario.other_version == ("stale",)
    assert all(len(each.members) == 5 for row in scenario.rows for each in row.classes)


def test_a_single_host_shows_its_own_interval_and_no_spread() -> None:
    row = (
        compare_hosts([*a_class(5, 1.5), a_summary("lone", 1.4, hardware=ARM)]).scenarios[0].rows[1]
    )

    lone = known(row.of(ARM))
    assert known(lone.interval).low == pytest.approx(1.4 / 1.01)
    assert lone.spread == ""


def test_the_error_is_that_of_the_normal_value_with_an_interval_that_is_not_too_wide() -> None:
    # 1.01 either way is 1.96 standard errors.
    value = known(host_value(a_value("a", 1.5), "speedup"))
    wide = replace(a_value("a", 1.5), speedup_bounds=(1e-9, 1e9))

    assert math.sqrt(value.variance) == pytest.approx(math.log(1.01) / 1.959964)
    assert host_value(wide, "speedup") is None


def test_smt_and_labels_are_facts_of_a_host_and_one_label_names_its_class() -> None:
    on = a_run(host=a_machine(topology=a_host(cores_per_node=4, cpus_per_core=2)))
    off = a_run(host=a_machine(topology=a_host(cores_per_node=4)))
    labelled = replace(off, labels={"class": "lab", "rack": "7"})

    assert hardware_class(on) == hardware_class(off) != hardware_class(labelled)
    assert [varying_facts(run)["SMT"] for run in (on, off)] == ["on", "off"]
    assert (hardware_class(labelled).name, varying_facts(labelled)["label rack"]) == ("lab", "7")


def test_classes_that_share_a_label_have_distinct_names() -> None:
    lab, other = replace(XEON, label="lab"), replace(ARM, label="lab")

    names = compare_hosts([*a_class(2, 1.5, lab), *a_class(2, 1.5, other)]).class_names

    xeon, arm = sorted(names.values())
    assert in_order(xeon, "lab: ", "Xeon", "2 × 28")
    assert in_order(arm, "lab: ", "N1", "1 × 80")


def test_a_metric_is_shown_in_its_unit_and_its_words() -> None:
    rate = Metric(name="generation", unit="tokens/s", better="higher")
    hosts = [
        replace(
            host,
            scenarios=tuple(
                replace(
                    scenario,
                    cells=tuple(
                        replace(cell, metric=rate, time_ns=cell.time_ns and 1e9 / 20)
                        for cell in scenario.cells
                    ),
                )
                for scenario in host.scenarios
            ),
        )
        for host in a_class(6, 1.5)
    ]

    comparison = compare_hosts(hosts)

    tables = [
        section
        for section in hosts_sections(comparison, by="class", show_all=True)
        if isinstance(section, Table)
    ]
    words = " ".join(str(value) for row in tables[1].rows for value in row)
    assert in_order(words, "20.0 tokens/s", "× more")
    baseline, faster = hosts_document(comparison)["scenarios"][0]["configurations"]
    assert baseline["kind"] == "metric"
    assert baseline["metric"] == {"name": "generation", "unit": "tokens/s", "better": "higher"}
    assert baseline["classes"][0]["value"] == pytest.approx(20)
    assert faster["kind"] == "speedup"

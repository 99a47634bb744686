"""What the doctor saw when a run began, on pages that are read long after."""

from __future__ import annotations

from dataclasses import replace

from build import a_host_check, a_run
from corebound.model.host_check import HostCheck
from corebound.model.run import Run
from corebound.report.view.host_page import host_pages
from corebound.report.view.provenance import provenance
from corebound.report.view.run_page import run_page
from corebound.report.view.study import latest_studies
from report_sample import NOW, a_sample

BUSY = a_host_check(
    check="busy processes",
    state="warning",
    value="110 % of a CPU: a (b) c (200) 80 %, new (202) 30 %",
    why="they take CPUs",
    mend="kill -STOP 200 202",
    undo="kill -CONT 200 202",
)
SWAPS = replace(
    BUSY, check="swappiness", value="60 (often)", mend="sysctl vm.swappiness=10", undo=None
)


def looked(*seen: HostCheck) -> Run:
    return replace(a_run(run_id="r1", started_at="2026-03-01T02:00:00Z"), preflight=seen)


def test_processes_of_then_have_no_ids_on_a_hosts_page() -> None:
    (page,) = host_pages([(looked(BUSY), ())], now=NOW)

    (row,) = page.checks
    assert row.value == "110 % of a CPU: a (b) c 80 %, new 30 %"
    assert row.mend == "end or pause what keeps CPUs busy; `corebound doctor` says how"
    assert "kill" not in page.told
    assert "(200)" not in page.told


def test_processes_of_then_have_no_ids_on_a_runs_page() -> None:
    run, launches = a_sample()
    page = run_page(replace(run, preflight=(BUSY,)), launches)

    assert page.checks is not None
    (row,) = page.checks
    assert "(200)" not in row.value
    assert row.mend.startswith("end or pause")


def test_processes_of_then_have_no_ids_on_a_scenarios_page() -> None:
    run, launches = a_sample()
    (one, *_) = latest_studies([(replace(run, preflight=(BUSY,)), launches)])

    told = " ".join(fact.value for fact in provenance(one, records_file="f").facts)

    assert "busy processes 110 %" in told
    assert "(200)" not in told


def test_what_mends_a_host_at_any_time_is_shown_as_the_doctor_says_it() -> None:
    (page,) = host_pages([(looked(SWAPS), ())], now=NOW)

    (row,) = page.checks
    assert (row.value, row.mend) == ("60 (often)", "sysctl vm.swappiness=10")

"""A run's page counts launches as the pages of its scenarios do."""

from msgspec.structs import replace

from corebound.analysis.selection import latest_results
from corebound.analysis.wording import plain
from corebound.errors import Fault
from corebound.records.launch_record import HugePages, Launch
from corebound.records.telemetry import Disturbance
from corebound.report.elements import Page
from corebound.report.pages.run import run_page
from corebound.report.scenario.provenance import command_comment
from corebound.scenario.matrix import expand
from support.build import (
    a_launch,
    a_profiled_launch,
    a_quota_use,
    a_run,
    a_scenario,
    a_worker,
    an_operator,
)
from support.report_sample import page_of as page_of_scenario
from support.texts import in_order

SCENARIO = a_scenario(matrix={"binding": ["none", "one-cpu", "smt-siblings"]})
FREE, BOUND, SIBLINGS = expand(SCENARIO, "s.yaml")
RUN = a_run(scenarios=(SCENARIO,))
EVIDENCE = "90 % of its iterations overlapped a disturbance"
REASON = f"the launch was disturbed from outside: {EVIDENCE}."
DOCTOR = "`corebound doctor` names what else uses this host."
MEND = f"It is launched again. {DOCTOR}"


def refused(attempt: int = 0) -> Launch:
    launch = a_launch(
        cell=BOUND, status="invalid", reason=REASON, fix=MEND, evidence=(EVIDENCE, "it swapped")
    )
    found = Disturbance(share=0.9, by=("steal",), evidence=(EVIDENCE,), refused=True)
    return replace(launch, id=f"bound-{attempt}", attempt=attempt, disturbance=found)


def a_night() -> tuple[Launch, ...]:
    """Three launches, one of which is invalid, one skipped cell, one profile."""
    return (
        a_launch(cell=FREE),
        a_launch(cell=BOUND, position=1),
        a_launch(cell=BOUND, block=1, status="invalid", reason="it moved."),
        replace(a_launch(cell=SIBLINGS, status="skipped"), duration_ns=0),
        a_profiled_launch(an_operator("add", 1_000_000), cell=FREE),
    )


def page_of(*launches: Launch) -> Page:
    return run_page(RUN, launches, raw=False)


def test_what_is_skipped_or_profiled_is_no_launch_that_could_count() -> None:
    page = page_of(*a_night())

    assert plain(page.hero.verdict) == "1 of 3 launches discarded."
    assert in_order(plain(page.hero.support), "1 skipped", "1 more", "profiled", "1 scenario")


def test_a_run_and_its_scenario_say_how_long_it_took_in_one_unit() -> None:
    launches = [
        replace(a_launch(cell=FREE, block=b), duration_ns=20 * 60 * 10**9) for b in range(4)
    ]
    result = latest_results([(RUN, launches)])[0]

    assert "80 minutes" in command_comment(result)
    assert "80 minutes together" in plain(page_of(*launches).hero.support)


def test_a_run_whose_every_cell_was_skipped_made_no_launch() -> None:
    page = page_of(a_launch(cell=SIBLINGS, status="skipped"))
    assert "No launch" in plain(page.hero.verdict)


def test_what_a_reason_says_is_not_said_again_as_evidence() -> None:
    ((_, notes),) = page_of(refused()).uncounted

    assert (EVIDENCE in notes[0], notes[1]) == (True, "it swapped")


def test_each_advice_is_given_once_with_the_number_of_launches_it_is_for() -> None:
    page = page_of(*(refused(attempt=attempt) for attempt in range(3)))

    assert [number for _, number in page.fixes] == ["2 launches", "1 launch"]
    assert all(advice.endswith(f" {DOCTOR}") for advice, _ in page.fixes)
    assert not any(DOCTOR in note for _, notes in page.launches for note in notes)


def test_a_scenario_tells_the_same_of_its_launches() -> None:
    result = latest_results([(RUN, (a_launch(cell=FREE), refused()))])[0]

    page = page_of_scenario(result)

    row = page.launches[-1]
    assert (EVIDENCE in row.reason, row.evidence) == (True, ("it swapped",))
    (unmeasured,) = page.configurations.unmeasured
    assert "another attempt" in unmeasured.fix


def test_the_openmp_runtime_and_the_huge_pages_are_shown_where_the_cell_sets_them() -> None:
    pages = HugePages(disabled=False, size_bytes=4 << 20, unadvised_bytes=0)
    worker = replace(a_worker(), libraries=("libgomp.so.1.0.0", "libiomp5.so"), huge_pages=pages)
    launch = replace(a_launch(cell=replace(FREE, openmp="intel")), workers=(worker,))

    ((_, notes),) = page_of(launch).launches

    loaded, pages_used = notes
    assert in_order(loaded, "libgomp.so.1.0.0", "libiomp5.so")
    assert in_order(pages_used, "4.0 MiB", "huge pages")


def test_what_a_quota_did_is_told_of_every_launch() -> None:
    page = page_of(replace(a_launch(cell=FREE), quota=a_quota_use()))

    ((_, notes),) = page.launches
    (quota,) = notes
    assert in_order(quota, "0.5 CPUs", "80 of 100 periods", "3.20 s")


def test_a_record_that_could_not_be_read_is_told_with_where_it_is() -> None:
    faults = [Fault(file="records/h/r1.jsonl", line=line, what="…", fix="…") for line in (20, 30)]

    (flag,) = run_page(RUN, a_night(), raw=False, faults=faults).hero.flags

    assert flag.title == "2 records damaged"
    assert in_order(flag.detail, "r1.jsonl, line 20", "1 more")

"""All pages and the terminal have one count of discarded launches, and one reason for each."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from corebound.analysis.launch_counts import discarded_launches, launch_counts
from corebound.analysis.selection import latest_results
from corebound.analysis.wording import plain
from corebound.records.launch_record import Launch, Status
from corebound.records.telemetry import Cause, Disturbance
from corebound.report.inputs import PageContext
from corebound.report.pages.overview import overview_page
from corebound.report.pages.run import run_page
from corebound.report.scenario.page import scenario_page
from corebound.scenario.matrix import expand
from support.build import a_launch, a_run, a_scenario
from support.examples import examples
from support.report_sample import NOW

SCENARIO = a_scenario(matrix={"binding": ["none", "one-cpu"]})
CELLS = expand(SCENARIO, "s.yaml")
RUN = a_run(scenarios=(SCENARIO,))

CAUSES: tuple[Cause, ...] = ("steal", "throttling", "foreign load", "suspension")
UNLIKE = ("it kept 17 threads busy and the baseline 16",)


def disturbance(by: tuple[Cause, ...], evidence: tuple[str, ...], *, refused: bool) -> Disturbance:
    return Disturbance(share=1.0 if by else 0.0, by=by, evidence=evidence or by, refused=refused)


KINDS: st.SearchStrategy[tuple[Status, Disturbance | None]] = st.sampled_from(
    [
        ("ok", None),
        ("failed", None),
        ("timed-out", None),
        ("invalid", None),
        ("skipped", None),
        ("invalid", disturbance((), UNLIKE, refused=True)),
        ("invalid", Disturbance(share=0.0, by=(), evidence=(), refused=True)),
        *(("invalid", disturbance((cause,), (), refused=True)) for cause in CAUSES),
        *(("ok", disturbance((cause,), (), refused=False)) for cause in CAUSES),
    ]
)


@st.composite
def runs(draw: st.DrawFn) -> tuple[Launch, ...]:
    """A run with launches of all kinds."""
    kinds = draw(st.lists(KINDS, min_size=1, max_size=12))
    return tuple(
        replace(
            a_launch(cell=CELLS[at % 2], block=at, status=status, reason=None),
            id=f"launch-{at}",
            disturbance=found,
        )
        for at, (status, found) in enumerate(kinds)
    )


@examples(20)
@given(launches=runs())
def test_every_page_counts_alike(launches: tuple[Launch, ...]) -> None:
    (result,) = latest_results([(RUN, launches)])
    counts = launch_counts(launches)

    scenario = scenario_page(result, PageContext(now=NOW), findings=(), records_file="r.jsonl")
    run = run_page(RUN, launches, raw=False)
    overview = overview_page([result], PageContext(now=NOW))

    # What no value is computed from is discarded, and nothing else.
    used = sum(len(cell.summary.launches) for cell in result.cells)
    assert counts.counted == used
    assert overview.launches == counts
    for text in (counts.reasons, *counts.others):
        assert text.casefold() in plain(run.hero.support).casefold()
    assert [text for _, _, text, _ in run.scenarios] == [counts.says]
    assert len(run.uncounted) == counts.total_discarded
    assert all(notes for _, notes in run.uncounted)
    for row in scenario.configurations.rows:
        note = launch_counts(row.cell.launches).note
        assert [text for text in row.notes if "launches d" in text or "launch d" in text] == (
            [note] if note else []
        )
    flags = [flag.title for flag in scenario.hero.flags if flag.title.endswith("discarded")]
    assert flags == ([counts.headline] if counts.total_discarded else [])


def test_another_number_of_busy_threads_is_no_disturbance_from_outside() -> None:
    refused = replace(
        a_launch(cell=CELLS[0], status="invalid"), disturbance=disturbance((), UNLIKE, refused=True)
    )

    ((_, reason),) = discarded_launches([refused])

    assert "threads" in reason
    assert "disturbed" not in reason

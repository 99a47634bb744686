"""What a screen reader gets: names of images, captions of tables, unbroken names and code."""

import math
import re
from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from corebound.machine.topology import CpuId
from corebound.records.history import Series
from corebound.report.charts.axis import linear_axis
from corebound.report.charts.history import sparkline_svg
from corebound.report.charts.intervals import interval_svg, spark_svg
from corebound.report.charts.svg import describe_series, img_attributes
from corebound.report.charts.topology import topology_html
from corebound.report.inputs import RequestedComparison
from corebound.report.render import keep_together, nowrap, soft_break
from corebound.scenario.matrix import expand
from support.build import a_comparison, a_host, a_host_check, a_launch, a_run, a_scenario, a_series
from support.markup import Element, parse_html
from support.report_sample import pages_of

AXIS = linear_axis(0.5, 2.0)


def test_an_interval_is_told_by_the_side_of_1_it_lies_on() -> None:
    def spark(*ends: float) -> str:
        return spark_svg(a_comparison(1.0, (ends[0], ends[1]) if ends else None), AXIS)

    paired = replace(a_comparison(1.0, (1.1, 1.3)), per_block=((0, 1.2),))
    assert 'aria-label="interval above 1"' in spark(1.1, 1.3)
    assert 'aria-label="interval below 1"' in spark(0.7, 0.9)
    assert 'aria-label="interval on both sides of 1"' in spark(1.0, 1.2)
    assert 'aria-label="interval on both sides of 1"' in spark(0.5, math.inf)
    assert 'aria-label="no interval"' in spark()
    assert '"interval above 1; 1 pair, 1.20×"' in interval_svg(paired, AXIS, margin=0.02)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ((1.0, 1.06), "2 values, the last 6.0 % above the first"),
        ((1.0, 3.0, 0.4), "3 values, the last 40.0 % of the first"),
        ((1.0, 2.5), "2 values, the last 2.50× the first"),
        ((1.0, math.nan, 1.0), "2 values, the last equal to the first"),
        ((math.nan, 1.0), "1 value"),
    ],
)
def test_a_course_is_told_by_its_last_figure_beside_its_first(
    values: tuple[float, ...], text: str
) -> None:
    assert describe_series(values) == text
    assert f'aria-label="{text}"' in sparkline_svg(values, "m-node")


def test_a_machine_is_one_image_that_tells_what_it_holds_and_what_of_it_is_used() -> None:
    topology = a_host(cpus_per_core=2, allowed=frozenset({0, 1}))

    drawn = topology_html(topology, frozenset({CpuId(0), CpuId(1)}))

    text = (
        "1 socket, 1 node, 1 last-level cache, 2 cores, 4 CPUs; used: CPUs 0-1;"
        " not allowed: CPUs 2-3"
    )
    assert drawn.startswith(f'<div role="img" aria-label="{text}"><ul class="machine" aria-hidden')


def test_a_name_cannot_break_out_of_its_attribute() -> None:
    assert img_attributes('"><script>') == ' role="img" aria-label="&quot;&gt;&lt;script&gt;"'


# Each of one word, longer than any column need be.
BENCHMARK = "core.runner.time_iterkeys_of_all_kinds"
CELL = "n_layers=3,environment=virtualenv_py3.12"
HOST = "a_machine_of.many_words"

# What is copied to a terminal, or is only heard.
_NOT_SEEN = ("code", "pre", "title", "caption")


@pytest.mark.parametrize(
    ("name", "broken"),
    [
        (BENCHMARK, "core.|runner.|time_|iterkeys_|of_|all_|kinds"),
        ("n_layers=3,environment=py3.12", "n_|layers=|3,|environment=|py3.12"),
        # Numbers stay whole, and so does what is short, or has nothing to break at.
        ("n=1000000000,m=0.0000000001", "n=|1000000000,|m=|0.0000000001"),
        ("n_1=2, m=3.", "n_1=2, m=3."),
        ("averylongnamewithoutanything", "averylongnamewithoutanything"),
        # Not between dots, nor where a word ends.
        ("module.__init__...end=", "module.__|init__...|end="),
        ("<b>.time_'x'&amp", "&lt;b&gt;.|time_|&#39;x&#39;&amp;amp"),
    ],
)
def test_a_word_may_break_behind_the_signs_that_join_its_parts(name: str, broken: str) -> None:
    assert soft_break(name) == broken.replace("|", '<wbr aria-hidden="true">')


def a_project() -> list[Series]:
    values = [1e6 * (1.2 if day >= 40 else 1) + day % 7 * 1e3 for day in range(60)]
    changed = {"project": "p", "host": HOST, "host_name": HOST}
    return [
        a_series(values, scenario=BENCHMARK, title=BENCHMARK, cell=CELL, **changed),
        a_series(values, scenario=BENCHMARK, title=BENCHMARK, cell=CELL + "1", **changed),
        a_series([*values, None], scenario=BENCHMARK + "2", title=BENCHMARK + "2", **changed),
        a_series([None], scenario=BENCHMARK + "3", title=BENCHMARK + "3", **changed),
    ]


def texts(element: Element) -> Iterator[str]:
    for part in element.parts:
        if isinstance(part, str):
            yield part
        elif part.tag not in _NOT_SEEN and "hidden" not in part.classes:
            yield from texts(part)


def test_no_name_of_an_imported_benchmark_or_cell_stands_anywhere_in_one_piece() -> None:
    all_series = a_project()
    shas = [
        point.commit.sha
        for point in (all_series[0].points[10], all_series[0].points[50])
        if point.commit
    ]
    pages = {
        name: text
        for name, text in pages_of(
            [],
            series=all_series,
            compared=[RequestedComparison(project="p", before=shas[0], after=shas[1])],
        ).items()
        if name.endswith(".html")
    }

    whole = {
        (name, text.strip())
        for name, page in pages.items()
        for text in texts(parse_html(page))
        for part in (BENCHMARK, CELL, "n_layers", "environment=virtual", HOST)
        if part in text
    }
    assert len(pages) >= 5
    assert whole == set()


def test_a_long_unit_goes_on_the_next_line_and_figures_do_not() -> None:
    glue = "\N{NO-BREAK SPACE}"

    assert nowrap("0.160 to 8.24 % overhead") == f"0.160{glue}to{glue}8.24 % overhead"
    assert nowrap("[1.2, ∞] particles / second") == f"[1.2,{glue}∞] particles / second"
    assert " " not in nowrap("[800 µs, 1.20 ms]") + nowrap("122 to 193 KiB") + nowrap("3 %")
    assert nowrap("–") == "–"


def test_an_option_or_a_day_in_a_sentence_stays_on_one_line_with_its_dashes() -> None:
    text = "ended early (--budget 1m40s); corebound run --resume goes on, not a--b <i> 2026-11-22 7"
    told = keep_together(text)

    assert re.findall("<span[^>]*nowrap[^>]*>([^<]*)</span>", told) == [
        "--budget",
        "--resume",
        "2026-11-22",
    ]
    assert parse_html(told).text == text


SCENARIO = a_scenario(matrix={"binding": ["none", "one-cpu", "smt-siblings"]})


def test_no_backtick_is_shown_raw() -> None:
    free, bound, siblings = expand(SCENARIO, "s.yaml")
    check = a_host_check(
        state="warning", value="`always`", why="`khugepaged` takes time.", fix="Set `madvise`."
    )
    run = replace(a_run(scenarios=(SCENARIO,), run_id="b1"), preflight=(check,))
    moved = a_launch(
        cell=bound,
        status="invalid",
        reason="it was not `taskset`.",
        fix="`corebound doctor` names what else uses this host.",
        evidence=("`taskset -c 0` failed",),
    )
    skipped = a_launch(
        cell=siblings,
        status="skipped",
        reason="`smt-siblings` need SMT.",
        fix="Leave `smt-siblings` out here.",
    )
    # The other scenario has no launch that counts.
    document = {**run.scenarios[0].document, "name": "another"}
    alone = replace(run, id="b2", scenarios=(replace(run.scenarios[0], document=document),))
    refused = [
        replace(launch, run="b2", cell=replace(launch.cell, scenario="another"))
        for launch in (moved, skipped)
    ]

    made = pages_of([(run, (a_launch(cell=free), moved, skipped)), (alone, refused)])

    pages = {name: text for name, text in made.items() if name.endswith(".html")}
    bodies = {
        name: body.text for name, text in pages.items() for body in parse_html(text).all("body")
    }
    assert {name.split("/")[0] for name in pages} >= {"scenario", "run", "host"}
    assert [name for name, text in bodies.items() if "`" in text] == []


def test_a_backtick_that_opens_nothing_stays_what_it_is() -> None:
    free = expand(SCENARIO, "s.yaml")[0]
    run = a_run(scenarios=(SCENARIO,))
    launch = a_launch(cell=free, status="failed", reason="it said <`> and ended.")

    pages = pages_of([(run, (launch,))])

    assert "It said &lt;`&gt; and ended." in pages["run/r1.html"]

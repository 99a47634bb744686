"""The page to choose two runs from, and the pairs that have a comparison of their own."""

from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from corebound.analysis.run_comparison import compare_runs, recent_pairs
from corebound.records.jsonl import UnreadLaunches
from corebound.records.launch_record import Launch
from corebound.report import site
from corebound.report.downloads import comparison_csv
from corebound.report.inputs import SiteInputs
from support.build import a_machine, a_run, a_scenario
from support.markup import Element, by_id, parse_html
from support.report_sample import NOW, first_site, pages_of, site_over_time, small_nights


def linked_pairs(page: str) -> dict[str, str]:
    """The address of each comparison by the two runs in it."""
    links = [link for link in parse_html(page).all("a") if "data-pair" in link.attributes]
    return {link.attributes["data-pair"]: link.attributes["href"] for link in links}


def test_recent_pairs_are_of_one_host_and_a_common_scenario() -> None:
    other = a_scenario(name="other")
    runs = [
        a_run(run_id="a", started_at="2026-01-01T00:00:00Z"),
        a_run(run_id="b", started_at="2026-01-02T00:00:00Z"),
        a_run(run_id="c", started_at="2026-01-03T00:00:00Z", scenarios=(other,)),
        a_run(run_id="d", started_at="2026-01-04T00:00:00Z", host=a_machine(name="elsewhere")),
    ]

    pairs = recent_pairs([(run, ()) for run in reversed(runs)])

    assert [(before[0].id, after[0].id) for before, after in pairs] == [("a", "b")]


def test_each_two_of_the_latest_five_runs_of_a_host_have_a_page() -> None:
    pages = pages_of(small_nights(6))

    pairs = linked_pairs(pages["compare.html"])
    assert set(pairs) == {
        f"r{before} r{after}" for after in range(2, 7) for before in range(2, after)
    }
    assert all(address in pages for address in pairs.values())


def test_the_numbers_are_those_of_corebound_compare() -> None:
    records = small_nights(3)
    pages = pages_of(records)

    # `corebound compare r1 r2` calls the same function with the same results of earlier runs.
    compared = compare_runs(records[0], records[1], {})
    assert pages["data/compare/r1-r2.csv"] == comparison_csv(compared)


def test_a_comparison_is_made_once(tmp_path: Path) -> None:
    def unreadable() -> tuple[Launch, ...]:
        raise AssertionError("nobody has to look at these")

    records = small_nights(4)
    stamps = {run.id: "as it was" for run, _ in records}

    def write(oldest: Sequence[Launch]) -> bytes:
        site.write(
            SiteInputs(records=[(records[0][0], oldest), *records[1:]], now=NOW, stamps=stamps),
            tmp_path / "site",
            records=tmp_path,
        )
        return (tmp_path / "site/compare/r1-r2.html").read_bytes()

    assert write(records[0][1]) == write(UnreadLaunches(unreadable))


def test_runs_of_different_environments_have_no_page() -> None:
    (first, launches), second, third = small_nights(3)
    upgraded = replace(first, host=replace(first.host, kernel="7.0.0"))

    pages = pages_of([(upgraded, launches), second, third])

    assert [*linked_pairs(pages["compare.html"])] == ["r2 r3"]


def choices(page: str) -> dict[str, list[str]]:
    """What can be chosen first, by its group."""
    form = by_id(parse_html(page), "choose")
    assert form is not None
    first: Element = next(form.all("select"))
    return {
        group.attributes["label"]: [each.attributes["value"] for each in group.all("option")]
        for group in first.all("optgroup")
    }


def test_runs_are_chosen_by_host_and_commits_by_project() -> None:
    page = site_over_time()["compare.html"]

    groups = choices(page)
    # The latest first; a run of another scenario can be chosen too, as for the command.
    assert groups["Host bench-01"] == ["r1", "r0"]
    assert len(groups["Project sunpy"]) == 90
    assert "0000000000 0000000000" in linked_pairs(page)


def test_a_site_of_one_run_compares_nothing() -> None:
    assert "compare.html" not in first_site()

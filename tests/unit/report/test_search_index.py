"""The index of the search: what it finds, where that leads, and how large it is."""

import gzip
import json
from typing import Any

from corebound.analysis.change_history import ChangeHistory
from corebound.report.search_index import search_script
from support.build import a_run, a_series
from support.report_sample import site_over_time

START, END = "corebound.index = ", ";\n"


def index_of(script: str) -> list[Any]:
    assert script.startswith(START)
    assert script.endswith(END)
    groups = json.loads(script.removeprefix(START).removesuffix(END))
    return [
        (kind, group, name, path, *detail)
        for kind, group, rows in groups
        for name, path, *detail in rows
    ]


def test_scenarios_benchmarks_hosts_commits_and_runs_are_found() -> None:
    entries = index_of(site_over_time()["data/search.js"])

    assert {kind for kind, *_ in entries} == {"scenario", "benchmark", "host", "commit", "run"}
    assert (
        "scenario",
        "",
        "ResNet-50, one image at a time",
        "scenario/resnet50-inference.html",
        "resnet50-inference",
    ) in entries
    assert (
        "benchmark",
        "sunpy",
        "io.Read.time_read",
        "history/io.Read.time_read-b69fd9f5.html",
    ) in entries


def test_every_address_is_a_page_with_that_place() -> None:
    for _, _, name, address, *_ in index_of(site_over_time()["data/search.js"]):
        page, _, place = address.partition("#")
        assert page in site_over_time(), name
        assert not place or f'id="{place}"' in site_over_time()[page], address


def test_a_commit_leads_to_what_changed_with_it() -> None:
    commits = {
        name: path
        for kind, _, name, path, *_ in index_of(site_over_time()["data/search.js"])
        if kind == "commit"
    }

    # The sample's cell got slower with this one.
    assert commits["4e1d9c7a0b"].startswith("scenario/resnet50-inference.html#")


def test_a_run_without_a_change_is_found_by_its_commit() -> None:
    history = ChangeHistory(series=(), cells={})

    entries = index_of(search_script([], history, [(a_run(), ())]))

    assert [kind for kind, *_ in entries] == ["host", "run"]


def test_8000_benchmarks_are_under_300_kb_compressed() -> None:
    modules = ("algorithms", "arithmetic", "frame_methods", "groupby", "indexing", "io.csv")
    classes = ("Duplicated", "Factorize", "SortValues", "NumericSeriesIndexing", "ReadParquet")
    names = [
        f"{modules[at % 6]}.{classes[at % 5]}{at // 30}.time_{'loc' if at % 2 else 'take'}_{at}"
        for at in range(8_000)
    ]
    series = tuple(
        a_series([1.0, 2.0, 3.0], project="pandas", scenario=name, title=name) for name in names
    )
    history = ChangeHistory(series=series, cells={})

    script = search_script([], history, [])

    assert len(index_of(script)) == 8_000
    assert len(gzip.compress(script.encode())) < 300_000

"""The page of all hosts: what holds on which class, and which hosts are odd."""

from pathlib import Path

import pytest
from benchmarks.fleet import StubFleet, write_fleet

from support.commands import corebound
from support.markup import by_id, parse_html


def hosts_page_of(folder: Path, fleet: StubFleet) -> str:
    write_fleet(fleet, folder / "reports/records")
    code, _, err = corebound(folder, "report", "--out", "site", in_process=True)
    assert (code, err) == (0, "")
    return (folder / "site/hosts.html").read_text()


def text_of(page: str, name: str) -> str:
    text = next(each.text for each in parse_html(page).all() if name in each.classes)
    return " ".join(text.split())


def test_an_effect_that_all_classes_share_is_the_headline(tmp_path: Path) -> None:
    page = hosts_page_of(tmp_path, StubFleet(hosts=8, nights=1, cells=2))

    assert "faster on every class of hosts" in text_of(page, "verdict")
    assert "outlier host" not in text_of(page, "flags")


def test_one_host_has_no_page_of_hosts(tmp_path: Path) -> None:
    write_fleet(StubFleet(hosts=1, nights=1, cells=2), tmp_path / "reports/records")

    corebound(tmp_path, "report", "--out", "site", in_process=True)

    assert not (tmp_path / "site/hosts.html").exists()


def test_a_site_of_many_hosts_has_the_latest_run_of_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("corebound.workflow.report._MOST_RUN_PAGES", 3)

    page = hosts_page_of(tmp_path, StubFleet(hosts=3, nights=3, cells=2))

    names = sorted(file.stem for file in (tmp_path / "site/run").iterdir())
    assert names == [f"{host:012x}-0002" for host in range(3)]
    assert "3 hosts, 9 runs" in text_of(page, "hero")
    host = (tmp_path / "site/host" / f"{1:012x}.html").read_text()
    assert "2 older runs in the records" in host


def test_a_scenario_that_only_an_older_run_measured_keeps_its_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("corebound.workflow.report._MOST_RUN_PAGES", 1)
    write_fleet(StubFleet(hosts=2, nights=2, cells=2), tmp_path / "reports/records")
    for file in (tmp_path / "reports/records").glob("*/*-0001.jsonl"):
        run, *_ = file.read_bytes().split(b"\n")
        file.write_bytes(run + b"\n")

    corebound(tmp_path, "report", "--out", "site", in_process=True)

    assert (tmp_path / "site/scenario/fleet-stub.html").exists()
    assert (tmp_path / "site/run" / f"{0:012x}-0000.html").exists()


def test_a_scenario_page_lists_the_hosts_on_which_something_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("corebound.report.scenario.history._MOST_ELSEWHERE", 4)
    fleet = StubFleet(hosts=8, nights=16, cells=2, regression=(9, 1.1))

    hosts_page_of(tmp_path, fleet)

    page = (tmp_path / "site/scenario/fleet-stub.html").read_text()
    assert "series of other hosts without a change" in page
    assert "all 8 hosts" in page


def test_many_hosts_are_folded_by_class(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("corebound.report.pages.hosts._MOST_OPEN", 4)

    page = hosts_page_of(tmp_path, StubFleet(hosts=8, nights=1, cells=2))

    hosts = by_id(parse_html(page), "hosts")
    assert hosts is not None
    folded = [each.text.strip() for each in hosts.all("summary")]
    assert folded == [f"{name}: 2 hosts" for name in ("arm-1s", "epyc-1s", "epyc-2s", "xeon-2s")]

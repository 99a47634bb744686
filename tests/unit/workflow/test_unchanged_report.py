"""A report with nothing new to show leaves its site alone, and is made again for anything new."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from corebound.records.decisions import HEAD
from corebound.records.history_files import keep
from corebound.report import site
from corebound.report.inputs import SiteInputs
from corebound.workflow.report import write_site
from support.build import a_series


@pytest.fixture
def sites_made(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The sites that are made from now on."""
    made: list[Path] = []
    really = site.write

    def watched(inputs: SiteInputs, out: Path, **options: Any) -> Path:
        made.append(out)
        return really(inputs, out, **options)

    monkeypatch.setattr(site, "write", watched)
    return made


@pytest.fixture
def report(tmp_path: Path, sites_made: list[Path]) -> Callable[..., bool]:
    """Write a report of a history; returns whether anything was made."""
    keep("p", [a_series([1e6] * 9, project="p")], tmp_path / "records")

    def write(only: Sequence[str] = ()) -> bool:
        before = len(sites_made)
        written = write_site(
            tmp_path / "site",
            records=tmp_path / "records",
            status=tmp_path / "status.yaml",
            only=only,
        )
        assert written.index.is_file()
        return len(sites_made) > before

    return write


def test_nothing_new_makes_nothing(report: Callable[..., bool]) -> None:
    assert [report(), report(), report()] == [True, False, False]


def test_another_history_another_selection_and_another_decision_are_new(
    report: Callable[..., bool], tmp_path: Path
) -> None:
    report()

    keep("q", [a_series([2e6] * 9, project="q")], tmp_path / "records")
    assert report()
    assert report(only=["p"])
    (tmp_path / "status.yaml").write_text(HEAD)
    assert report()
    assert not report()


@pytest.mark.parametrize("name", ["index.html", "data/history/p.moments.js", "assets/site.css"])
def test_a_site_that_somebody_touched_is_made_again(
    report: Callable[..., bool], tmp_path: Path, name: str
) -> None:
    report()
    before = (tmp_path / "site" / name).read_bytes()
    (tmp_path / "site" / name).write_text("something else")

    assert report()
    assert (tmp_path / "site" / name).read_bytes() == before


def test_a_warning_is_repeated_by_each_report(report: Callable[..., bool], tmp_path: Path) -> None:
    (tmp_path / "records" / "histories" / "damaged.json").write_text("{}")

    assert [report(), report()] == [True, True]

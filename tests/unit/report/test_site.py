"""The site writer: which files it writes, keeps and removes, and how it treats foreign text."""

import gzip
import json
import os
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from corebound.errors import InputError
from corebound.records import codec, jsonl
from corebound.records.cache import digest
from corebound.records.history import HistoryPoints, Series
from corebound.records.jsonl import UnreadLaunches
from corebound.records.launch_record import Launch
from corebound.records.traces import folder_of
from corebound.report import site
from corebound.report.inputs import SiteInputs
from corebound.report.site import FILE_LIST
from corebound.scenario.matrix import expand
from support.build import a_point, a_profiled_launch, a_run, a_scenario, a_series
from support.report_sample import NOW, a_sample, pages_of, small_nights

FIRST, SECOND, THIRD = small_nights(3)
# For tests about files only: pages without results take a seventh of the time.
FIRST_RUN, SECOND_RUN = ((run, ()) for run, _ in (FIRST, SECOND))


def everything(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_a_site_is_an_overview_pages_figures_and_assets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site, "share_image", lambda _hero: None)  # as without Pillow
    index = site.write(SiteInputs(records=[a_sample()], now=NOW), tmp_path / "site")

    assert index == tmp_path / "site" / "index.html"
    assert list(everything(tmp_path / "site")) == [
        ".corebound-files.json",
        "assets/compare.js",
        "assets/pairwise.js",
        "assets/points.js",
        "assets/search.js",
        "assets/site.css",
        "assets/site.js",
        "assets/uplot-1.6.32.LICENSE.txt",
        "assets/uplot-1.6.32.css",
        "assets/uplot-1.6.32.js",
        "badge/resnet50-inference.svg",
        "claims.html",
        "data/host/bench-01-0123456789ab.json",
        "data/resnet50-inference.csv",
        "data/resnet50-inference.json",
        "data/resnet50-inference.operators.csv",
        "data/search.js",
        "host/bench-01-0123456789ab.html",
        "index.html",
        "operators.html",
        "run/r1.html",
        "scenario/resnet50-inference.html",
    ]


def test_a_page_that_would_not_change_is_left_alone(tmp_path: Path) -> None:
    index = site.write(SiteInputs(records=[SECOND_RUN], now=NOW), tmp_path)
    os.utime(index, ns=(1, 1))

    site.write(SiteInputs(records=[SECOND_RUN], now=NOW), tmp_path)

    assert index.stat().st_mtime_ns == 1


def test_a_place_that_cannot_be_written_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")

    with pytest.raises(InputError, match="--out"):
        site.write(SiteInputs(records=[], now=NOW), tmp_path / "file")


def test_traces_beside_the_records_are_part_of_the_site(tmp_path: Path) -> None:
    cell = expand(a_scenario(), "a.yaml")[0]
    profiled = a_profiled_launch(cell=cell, trace="a-scenario-profile-0.json.gz")
    gone = a_profiled_launch(cell=cell, position=1, trace="a-scenario-profile-1.json.gz")
    run = a_run()
    folder = folder_of(jsonl.file_of(run, tmp_path / "records"))
    folder.mkdir(parents=True)
    (folder / "a-scenario-profile-0.json.gz").write_bytes(b"a trace")

    site.write(
        SiteInputs(records=[(run, (profiled, gone))], now=NOW),
        tmp_path / "site",
        records=tmp_path / "records",
    )

    made = everything(tmp_path / "site")
    assert made["traces/a-scenario-profile-0.json.gz"] == b"a trace"
    page = made["scenario/a-scenario.html"].decode()
    assert 'href="../traces/a-scenario-profile-0.json.gz"' in page
    assert "profile-1.json.gz" not in page


def test_records_are_in_the_site_as_they_are_kept(tmp_path: Path) -> None:
    run, launches = FIRST
    file = jsonl.file_of(run, tmp_path / "records")
    file.parent.mkdir(parents=True)
    file.write_bytes(codec.encode(run))

    site.write(
        SiteInputs(records=[(run, launches)], now=NOW),
        tmp_path / "site",
        records=tmp_path / "records",
    )

    raw = everything(tmp_path / "site")["data/run/r1.jsonl.gz"]
    assert gzip.decompress(raw) == file.read_bytes()
    assert 'href="../data/run/r1.jsonl.gz"' in (tmp_path / "site/run/r1.html").read_text()


def a_site_of(past: Sequence[Series], folder: Path, now: str = NOW) -> Path:
    """A site of histories alone."""
    (folder / "records").mkdir(exist_ok=True)
    return site.write(
        SiteInputs(records=[], now=now, series=past), folder / "site", records=folder / "records"
    )


def written_at(folder: Path, now: str = NOW, **changes: Series) -> dict[str, int]:
    """When each file was written: 1 for those that the last of two reports left alone."""
    past = {series.scenario: series for series in an_imported_pair()}
    a_site_of([*past.values()], folder)
    files = [*(folder / "site").rglob("history/*")]
    for file in files:
        os.utime(file, ns=(1, 1))
    a_site_of([*(past | changes).values()], folder, now)
    return {file.name: file.stat().st_mtime_ns for file in files}


def an_imported_pair() -> list[Series]:
    values = [1e6 * (1 + night % 3 / 500) for night in range(20)]
    return [a_series(values, project="p", scenario=name) for name in ("one", "two")]


def changed(files: dict[str, int]) -> set[str]:
    return {re.sub(r"-[0-9a-f]{8}\.", ".", name) for name, at in files.items() if at != 1}


def test_another_day_alone_changes_nothing_about_a_history(tmp_path: Path) -> None:
    assert changed(written_at(tmp_path, now="2031-01-01T00:00:00+00:00")) == set()


def test_one_more_point_changes_only_the_files_of_its_benchmark(tmp_path: Path) -> None:
    _, two = an_imported_pair()
    two = replace(two, points=two.points.followed_by(HistoryPoints.of([a_point(1e6, day=99)])))

    assert changed(written_at(tmp_path, two=two)) == {"two.html", "two.js", "p.moments.js"}


def test_an_earlier_point_changes_the_places_of_all_others(tmp_path: Path) -> None:
    _, two = an_imported_pair()
    two = replace(two, points=HistoryPoints.of([a_point(1e6, day=-9)]).followed_by(two.points))

    assert changed(written_at(tmp_path, two=two)) >= {"one.js", "two.html", "two.js"}


def test_a_new_title_changes_the_page_that_shows_it(tmp_path: Path) -> None:
    one, _ = an_imported_pair()

    assert changed(written_at(tmp_path, one=replace(one, title="another"))) == {"one.html"}


def test_a_file_of_a_history_that_was_lost_is_made_again(tmp_path: Path) -> None:
    a_site_of(an_imported_pair(), tmp_path)
    before = everything(tmp_path / "site")
    lost = [*(tmp_path / "site" / "data" / "history").glob("*.js")]
    for file in lost:
        file.unlink()

    a_site_of(an_imported_pair(), tmp_path)

    assert lost
    assert everything(tmp_path / "site") == before


def test_a_page_that_somebody_touched_is_made_again(tmp_path: Path) -> None:
    a_site_of(an_imported_pair(), tmp_path)
    page, *_ = sorted((tmp_path / "site" / "history").glob("*.html"))
    before = page.read_bytes()
    page.write_text("something else")

    a_site_of(an_imported_pair(), tmp_path)

    assert page.read_bytes() == before


def test_a_site_that_grew_is_that_which_is_made_at_once(tmp_path: Path) -> None:
    (tmp_path / "grown").mkdir()
    (tmp_path / "fresh").mkdir()
    all_series = [replace(series, points=series.points[:-1]) for series in an_imported_pair()]

    a_site_of(all_series, tmp_path / "grown")
    a_site_of(an_imported_pair(), tmp_path / "grown")
    a_site_of(an_imported_pair(), tmp_path / "fresh")

    assert everything(tmp_path / "grown" / "site") == everything(tmp_path / "fresh" / "site")


def test_launches_of_a_night_long_past_are_not_asked_for_again(tmp_path: Path) -> None:
    def unreadable() -> tuple[Launch, ...]:
        raise AssertionError("nobody has to look at these")

    (oldest_run, launches), *later = FIRST, SECOND, THIRD
    stamps = {run.id: "as it was" for run, _ in (FIRST, SECOND, THIRD)}

    def write(oldest: Sequence[Launch]) -> None:
        inputs = SiteInputs(records=[(oldest_run, oldest), *later], now=NOW, stamps=stamps)
        site.write(inputs, tmp_path / "site", records=tmp_path)

    write(launches)
    before = everything(tmp_path / "site")

    write(UnreadLaunches(unreadable))

    assert "run/r1.html" in before
    assert everything(tmp_path / "site") == before


def test_a_site_of_fewer_runs_is_that_which_is_made_of_them_at_once(tmp_path: Path) -> None:
    site.write(SiteInputs(records=[FIRST, SECOND, THIRD], now=NOW), tmp_path / "shrunk")
    assert (tmp_path / "shrunk/compare/r1-r2.html").is_file()

    site.write(SiteInputs(records=[SECOND], now=NOW), tmp_path / "shrunk")

    site.write(SiteInputs(records=[SECOND], now=NOW), tmp_path / "fresh")
    assert everything(tmp_path / "shrunk") == everything(tmp_path / "fresh")
    assert not (tmp_path / "shrunk/compare").exists()


def test_what_somebody_else_put_there_stays(tmp_path: Path) -> None:
    site.write(SiteInputs(records=[FIRST, SECOND], now=NOW), tmp_path)
    theirs = [tmp_path / name for name in ("robots.txt", "compare/notes.html", "run/r1.html")]
    for file in theirs:
        file.write_text("mine")

    site.write(SiteInputs(records=[SECOND], now=NOW), tmp_path)

    assert [file.read_text() for file in theirs] == ["mine"] * 3
    assert not (tmp_path / "compare/r1-r2.html").exists()


def test_a_page_that_is_not_made_again_stays(tmp_path: Path) -> None:
    stamps = {"r1": "as it was", "r2": "as it was"}
    inputs = SiteInputs(records=[FIRST_RUN, SECOND_RUN], now=NOW, stamps=stamps)
    for _ in range(2):
        site.write(inputs, tmp_path / "site", records=tmp_path)

    assert (tmp_path / "site/run/r1.html").is_file()


def test_a_page_of_a_site_of_everything_is_not_kept_in_one_of_a_selection(tmp_path: Path) -> None:
    inputs = SiteInputs(records=[FIRST_RUN], now=NOW, stamps={"r1": "as it was"})
    for only in ((), ("a-scenario",)):
        site.write(replace(inputs, only=only), tmp_path / "site", records=tmp_path)

    assert "Only of a-scenario" in (tmp_path / "site/run/r1.html").read_text()


@pytest.mark.parametrize(
    "name", ["../theirs.html", "linked/theirs.html", "link.html", "{}", "a\0b"]
)
def test_a_list_from_anybody_removes_nothing_outside_the_site(tmp_path: Path, name: str) -> None:
    theirs = tmp_path / "theirs.html"
    theirs.write_bytes(b"theirs")
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "linked").symlink_to(tmp_path)
    (folder / "link.html").symlink_to(theirs)
    (folder / FILE_LIST).write_text(json.dumps({name.format(theirs): digest(b"theirs")}))

    site.write(SiteInputs(records=[SECOND_RUN], now=NOW), folder)

    assert theirs.read_bytes() == b"theirs"
    assert (folder / "link.html").is_symlink()


@pytest.mark.parametrize("text", ["", "[]", '{"run/r1.html": 1}', "\udc80"])
def test_a_list_that_cannot_be_read_names_nothing(tmp_path: Path, text: str) -> None:
    site.write(SiteInputs(records=[FIRST_RUN, SECOND_RUN], now=NOW), tmp_path)
    (tmp_path / FILE_LIST).write_text(text, errors="surrogateescape")

    site.write(SiteInputs(records=[SECOND_RUN], now=NOW), tmp_path)

    assert (tmp_path / "run/r1.html").is_file()


def test_series_and_pages_are_counted_up_to_the_last() -> None:
    told: list[tuple[str, int, int]] = []
    all_series = [a_series([1e6] * 9, project="p", scenario=name) for name in ("one", "two")]

    pages_of(
        [FIRST_RUN, SECOND_RUN], series=all_series, progress=lambda *so_far: told.append(so_far)
    )

    # Series are searched several at a time, and so counted several at a time.
    assert told == [
        ("searching for changes in series", 2, 2),
        *((what, done, 2) for what in ("pages of benchmarks", "pages of runs") for done in (1, 2)),
    ]

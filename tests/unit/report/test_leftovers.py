"""What a site is written over: nothing of ours stays that was not made now, nothing else goes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from corebound.records.cache import digest
from corebound.report import site
from corebound.report.inputs import SiteInputs
from corebound.report.site import FILE_LIST
from support.report_sample import NOW, sample_records

EARLIER, LATEST, SERVED = sample_records()


def everything(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_a_site_of_fewer_runs_is_that_which_is_made_of_them_at_once(tmp_path: Path) -> None:
    site.write(SiteInputs(records=[EARLIER, LATEST, SERVED], now=NOW), tmp_path / "shrunk")
    assert (tmp_path / "shrunk/compare/r0-r1.html").is_file()

    site.write(SiteInputs(records=[LATEST], now=NOW), tmp_path / "shrunk")

    site.write(SiteInputs(records=[LATEST], now=NOW), tmp_path / "fresh")
    assert everything(tmp_path / "shrunk") == everything(tmp_path / "fresh")
    assert not (tmp_path / "shrunk/compare").exists()


def test_what_somebody_else_put_there_stays(tmp_path: Path) -> None:
    site.write(SiteInputs(records=[EARLIER, LATEST], now=NOW), tmp_path)
    theirs = [tmp_path / name for name in ("robots.txt", "compare/notes.html", "run/r0.html")]
    for file in theirs:
        file.write_text("mine")

    site.write(SiteInputs(records=[LATEST], now=NOW), tmp_path)

    assert [file.read_text() for file in theirs] == ["mine"] * 3
    assert not (tmp_path / "compare/r0-r1.html").exists()


def test_a_page_that_is_not_made_again_stays(tmp_path: Path) -> None:
    stamps = {"r0": "as it was", "r1": "as it was"}
    for _ in range(2):
        site.write(
            SiteInputs(records=[EARLIER, LATEST], now=NOW, stamps=stamps),
            tmp_path / "site",
            records=tmp_path,
        )

    assert (tmp_path / "site/run/r0.html").is_file()


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

    site.write(SiteInputs(records=[LATEST], now=NOW), folder)

    assert theirs.read_bytes() == b"theirs"
    assert (folder / "link.html").is_symlink()


@pytest.mark.parametrize("text", ["", "[]", '{"run/r0.html": 1}', "\udc80"])
def test_a_list_that_cannot_be_read_names_nothing(tmp_path: Path, text: str) -> None:
    site.write(SiteInputs(records=[EARLIER, LATEST], now=NOW), tmp_path)
    (tmp_path / FILE_LIST).write_text(text, errors="surrogateescape")

    site.write(SiteInputs(records=[LATEST], now=NOW), tmp_path)

    assert (tmp_path / "run/r0.html").is_file()

"""What a site is written over: nothing of ours stays that was not made now, nothing else goes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from corebound.report import site
from corebound.report.folder import LIST
from corebound.store.cache import digest
from report_sample import NOW, sample_records

EARLIER, LATEST, SERVED = sample_records()


def everything(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_a_site_of_fewer_runs_is_that_which_is_made_of_them_at_once(tmp_path: Path) -> None:
    site.write([EARLIER, LATEST, SERVED], tmp_path / "shrunk", now=NOW)
    assert (tmp_path / "shrunk/compare/r0-r1.html").is_file()

    site.write([LATEST], tmp_path / "shrunk", now=NOW)

    site.write([LATEST], tmp_path / "fresh", now=NOW)
    assert everything(tmp_path / "shrunk") == everything(tmp_path / "fresh")
    assert not (tmp_path / "shrunk/compare").exists()


def test_what_somebody_else_put_there_stays(tmp_path: Path) -> None:
    site.write([EARLIER, LATEST], tmp_path, now=NOW)
    theirs = [tmp_path / name for name in ("robots.txt", "compare/notes.html", "run/r0.html")]
    for file in theirs:
        file.write_text("mine")

    site.write([LATEST], tmp_path, now=NOW)

    assert [file.read_text() for file in theirs] == ["mine"] * 3
    assert not (tmp_path / "compare/r0-r1.html").exists()


def test_a_page_that_is_not_made_again_stays(tmp_path: Path) -> None:
    stamps = {"r0": "as it was", "r1": "as it was"}
    for _ in range(2):
        site.write([EARLIER, LATEST], tmp_path / "site", now=NOW, kept=tmp_path, stamps=stamps)

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
    (folder / LIST).write_text(json.dumps({name.format(theirs): digest(b"theirs")}))

    site.write([LATEST], folder, now=NOW)

    assert theirs.read_bytes() == b"theirs"
    assert (folder / "link.html").is_symlink()


@pytest.mark.parametrize("text", ["", "[]", '{"run/r0.html": 1}', "\udc80"])
def test_a_list_that_cannot_be_read_names_nothing(tmp_path: Path, text: str) -> None:
    site.write([EARLIER, LATEST], tmp_path, now=NOW)
    (tmp_path / LIST).write_text(text, errors="surrogateescape")

    site.write([LATEST], tmp_path, now=NOW)

    assert (tmp_path / "run/r0.html").is_file()

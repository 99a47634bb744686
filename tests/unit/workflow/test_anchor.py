"""An anchor is built like the nights before, or the difference is named."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from corebound.asv_bridge.project import Project
from corebound.errors import BuildError
from corebound.records.run_record import Commit, EnvironmentLock
from corebound.scenario.cell import PROJECT
from corebound.workflow.anchor import _require_build
from support.build import a_run, write_records

ANCHOR = Commit(sha="a" * 40, subject="s", committed_at="2026-01-01T00:00:00Z", dirty=False)


def built_with(*packages: str) -> EnvironmentLock:
    return EnvironmentLock(
        name=PROJECT, sha256="", python="3.11.2", packages=packages, commit=ANCHOR
    )


def a_project(now: EnvironmentLock | None) -> Project:
    """A project that builds the anchor with these packages, or not at all."""

    def build(_commit: Commit, _name: str) -> SimpleNamespace:
        if now is None:
            raise BuildError(what="no wheel", where="asv.conf.json", fix="Wait.")
        return SimpleNamespace(lock=now)

    fake = SimpleNamespace(find=lambda *_: None, build=build, file="asv.conf.json")
    return cast("Project", fake)


def notes_of(records: Path, now: EnvironmentLock | None) -> list[str]:
    notes: list[str] = []
    _require_build(a_project(now), ANCHOR, records, notes.append)
    return notes


@pytest.fixture
def records(tmp_path: Path) -> Path:
    """Two nights, the later one with a newer NumPy."""
    for day, numpy in ((1, "2.0"), (2, "2.1")):
        run = a_run(
            run_id=f"r{day}",
            started_at=f"2026-01-0{day}T02:00:00Z",
            environments=(built_with(f"numpy=={numpy}"),),
        )
        write_records(tmp_path, run)
    return tmp_path


def test_packages_that_differ_from_the_latest_nights_are_named(records: Path) -> None:
    *_, note = notes_of(records, built_with("numpy==2.3"))

    assert "numpy in project 2.1 → 2.3" in note


def test_the_same_packages_are_no_news(records: Path) -> None:
    assert len(notes_of(records, built_with("numpy==2.1"))) == 1


def test_an_anchor_that_no_longer_builds_is_told_with_what_it_was_built_with(
    records: Path,
) -> None:
    with pytest.raises(BuildError) as raised:
        notes_of(records, None)

    assert "numpy==2.1" in raised.value.fix

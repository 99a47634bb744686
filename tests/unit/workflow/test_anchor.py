"""An anchor is built like the nights before, or the difference is named."""

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from msgspec import Struct, field

from corebound.asv_bridge.project import Project
from corebound.errors import BuildError, InputError
from corebound.records.run_record import Commit, EnvironmentLock
from corebound.scenario.cell import PROJECT
from corebound.workflow import nightly
from corebound.workflow.anchor import _require_build
from support.build import a_run, write_records

ANCHOR = Commit(sha="a" * 40, subject="s", committed_at="2026-01-01T00:00:00Z", dirty=False)


def built_with(*packages: str) -> EnvironmentLock:
    return EnvironmentLock(
        name=PROJECT, sha256="recipe", python="3.11.2", packages=packages, commit=ANCHOR
    )


class Index(Struct):
    """A package index, with what builds asked of it. Without `newest`, nothing builds.

    `kept` are versions that it still has.
    """

    newest: EnvironmentLock | None
    kept: tuple[str, ...] = ()
    recipe: str = "recipe"
    asked: list[Sequence[str]] = field(default_factory=list)

    def build(self, _commit: Commit, _name: str, versions: Sequence[str] = ()) -> SimpleNamespace:
        self.asked.append(versions)
        if self.newest is None or not set(versions) <= {*self.kept}:
            raise BuildError(what="no wheel", where="asv.conf.json", fix="Wait.")
        return SimpleNamespace(lock=built_with(*versions) if versions else self.newest)

    def notes(self, records: Path) -> list[str]:
        fake = SimpleNamespace(
            find=lambda *_: None, build=self.build, file="asv.conf.json", recipe=self.recipe
        )
        notes: list[str] = []
        _require_build(cast("Project", fake), ANCHOR, records, notes.append)
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


def test_an_anchor_is_built_with_the_versions_of_the_latest_night(records: Path) -> None:
    index = Index(built_with("numpy==2.3"), kept=("numpy==2.1",))

    assert len(index.notes(records)) == 1

    assert index.asked == [("numpy==2.1",)]


def test_versions_that_are_no_longer_there_are_replaced_and_the_difference_is_named(
    records: Path,
) -> None:
    index = Index(built_with("numpy==2.3"))

    *_, failed, note = index.notes(records)

    assert "no wheel" in failed
    assert "numpy in project 2.1 → 2.3" in note


def test_a_changed_matrix_asks_for_other_versions(records: Path) -> None:
    index = Index(built_with("numpy==2.3"), kept=("numpy==2.1",), recipe="another")

    assert "numpy in project 2.1 → 2.3" in index.notes(records)[-1]

    assert index.asked == [()]


def test_an_anchor_that_no_longer_builds_is_told_with_what_it_was_built_with(records: Path) -> None:
    with pytest.raises(InputError) as raised:
        Index(None).notes(records)

    # A night takes this for no result of its launches, shows why, and can be resumed.
    assert raised.value.exit_code not in nightly._RUN_CODES
    assert "numpy==2.1" in raised.value.fix

"""`regressions --confirm` builds and launches the commits on both sides of a change point."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from corebound.records import documents, jsonl
from corebound.records.jsonl import Stored
from corebound.records.run_record import Commit
from support import repositories
from support.build import repeated, write_records
from support.commands import corebound
from support.repositories import Toy

PLANTED = 10
# A busy machine changes the time of a nap; the planted commit trebles it.
SLOWER, MARGIN = 2.0, 0.9
# Of 14 nights, two a commit: the eleventh is the first of commit 9, which is as good as 8.
EQUAL = [4 + index // 2 for index in range(14)]


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[Toy, Stored]:
    """A repository, and one real run of its last commit, of which nights are made."""
    toy = repositories.make_toy(
        tmp_path_factory.mktemp("toy") / "repository",
        commits=PLANTED + 1,
        slower={PLANTED: SLOWER},
        least=4,
        most=6,
        width=0.2,
        iterations=25,
        naps=True,
    )
    scenario = toy.folder / "scenarios" / "toy.yaml"
    scenario.write_text(scenario.read_text().replace("measure:", f"measure:\n  margin: {MARGIN}"))
    code, _, err = corebound(toy.folder, "run", "scenarios/toy.yaml")
    assert code == 0, err
    (file,) = jsonl.files(records_of(toy))
    return toy, jsonl.read(file)


def records_of(toy: Toy) -> Path:
    return toy.folder / "reports" / "records"


def document(toy: Toy, *arguments: str) -> tuple[int, dict[str, Any]]:
    code, out, err = corebound(toy.folder, "regressions", "--json", *arguments)
    assert out, err
    (change,) = json.loads(out)["changes"]
    return code, change


def points(toy: Toy, real: Stored, commits: list[int]) -> None:
    """One for each place of a commit, as long as the run was; from the eleventh on trebled."""
    shutil.rmtree(records_of(toy))
    for index, place in enumerate(commits):
        commit = Commit(
            sha=toy.commits[place], subject="", committed_at="2026-01-01T00:00:00Z", dirty=False
        )
        run = replace(
            real.run,
            id=f"night{index}",
            started_at=f"2026-01-{index + 1:02}T02:00:00Z",
            commit=commit,
            environments=tuple(
                replace(environment, commit=commit) for environment in real.run.environments
            ),
        )
        factor = (1.002 if index % 2 else 0.998) * (1 if index < 10 else 1 + SLOWER)
        write_records(records_of(toy), run, *repeated(real.launches, run.id, factor))


def test_a_regression_is_confirmed_by_interleaving_both_commits(
    measured: tuple[Toy, Stored],
) -> None:
    toy, real = measured
    points(toy, real, [*range(10), *[PLANTED] * 4])
    before = list(jsonl.files(records_of(toy)))

    code, change = document(toy, "--confirm")

    confirmation = change["confirmation"]
    assert (code, change["alarm"]) == (1, True)
    assert (confirmation["answer"], confirmation["both"]) == ("confirmed", True)
    assert confirmation["interval"][0] > 1
    # The two were launched in turns, and are no repositories.
    (file,) = documents.CONFIRMATIONS.folder(records_of(toy)).glob("*/*.jsonl")
    by_block: dict[int, set[str | None]] = {}
    for launch in jsonl.read(file).launches:
        by_block.setdefault(launch.block, set()).add(launch.cell.commit)
    assert set(map(frozenset, by_block.values())) == {
        frozenset({toy.commits[PLANTED - 1][:10], toy.commits[PLANTED][:10]})
    }
    assert list(jsonl.files(records_of(toy))) == before
    # What compares them stands beside it.
    assert change["compare"][:2] == ["corebound", "compare-commits"]
    assert [toy.commits[place][:10] for place in (9, 10)] == change["compare"][2:4]


def test_a_change_point_between_equal_commits_is_refuted_permanently(
    measured: tuple[Toy, Stored],
) -> None:
    toy, real = measured
    points(toy, real, EQUAL)

    code, change = document(toy, "--confirm")

    assert (code, change["alarm"]) == (0, False)
    assert (change["confirmation"]["answer"], change["confirmation"]["both"]) == ("refuted", True)
    assert document(toy)[0] == 0


def test_a_scenario_that_changed_since_the_last_point_is_not_compared(
    measured: tuple[Toy, Stored],
) -> None:
    toy, real = measured
    points(toy, real, EQUAL)
    scenario = toy.folder / "scenarios" / "toy.yaml"
    before = scenario.read_text()
    scenario.write_text(before.replace("iterations: 25", "iterations: 26"))
    try:
        code, change = document(toy, "--confirm")
    finally:
        scenario.write_text(before)

    assert code == 1
    assert change["confirmation"]["answer"] == "impossible"
    assert "the scenario has changed" in change["confirmation"]["how"]

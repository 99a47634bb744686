"""Nights on machines that change make one history, relative to the build of a pinned commit."""

import math

import pytest

from corebound.records import jsonl
from corebound.records.history import ANCHORED
from corebound.records.run_record import Run
from corebound.workflow.run_index import read_suite
from support import repositories
from support.commands import corebound
from support.repositories import Toy, git

# The last commit naps ten times as long, which few launches show on any machine.
SLOWER = 9.0


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Toy:
    """A repository after three nights on three machines, anchored to its first commit."""
    toy = repositories.make_toy(
        tmp_path_factory.mktemp("toy") / "repository",
        commits=4,
        slower={3: SLOWER},
        least=3,
        most=3,
        width=0.2,
        iterations=12,
        naps=True,
    )
    (toy.folder / "scenarios" / "alone.yaml").write_text(
        "schema: 1\nname: alone\ntitle: Not built\nquestion: What is not anchored?\n"
        "workload: alone_steps:setup\nmeasure: {iterations: 5, launches: {min: 3, max: 3}}\n"
    )
    (toy.folder / "scenarios" / "alone_steps.py").write_text(repositories.COUNT)
    for night, commit in enumerate(toy.commits[1:]):
        git(toy.folder, "checkout", "--quiet", commit)
        words = ("--profile", "quick", "--budget", "5m", "--to", "public")
        ended = corebound(
            toy.folder,
            *("nightly", *words, "--anchor", toy.commits[0]),
            COREBOUND_MACHINE_ID=f"machine-{night}",
        )
        assert ended.code in {0, 1}, ended
    return toy


def test_three_machines_are_one_history_relative_to_the_anchor(toy: Toy) -> None:
    suite = read_suite(toy.folder / "reports" / "records")
    anchored = [series for series in suite.series if series.host == ANCHORED]

    (series,) = anchored
    assert (series.scenario, series.cell) == ("toy.commits", "default")
    assert len({run.host.id for run in runs(toy)}) == 3
    values = [value for value in series.points.values if not math.isnan(value)]
    assert len(values) == 3
    assert values[2] == pytest.approx(1 + SLOWER, rel=0.5)
    assert max(values[:2]) < 2


def test_the_run_says_what_its_anchor_was(toy: Toy) -> None:
    assert {tuple(anchor.sha for anchor in run.anchors) for run in runs(toy)} == {(toy.commits[0],)}


def runs(toy: Toy) -> list[Run]:
    return [jsonl.read_run(file) for file in jsonl.files(toy.folder / "reports" / "records")]

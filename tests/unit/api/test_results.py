"""Loading, filtering and comparing recorded results."""

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd
import pytest
from msgspec.structs import replace

import corebound
from corebound.api import tables
from corebound.errors import CoreboundError, InputError
from corebound.records import history_files
from corebound.records.launch_record import Launch
from corebound.records.run_record import Commit, Run
from support.build import a_series, repeated, write_records
from support.commands import corebound as run_corebound
from support.report_sample import a_sample

SLOWER = 1.3


def shortened(launches: Sequence[Launch]) -> list[Launch]:
    """The launches with the first thirty of their iterations."""
    return [
        replace(
            launch,
            workers=tuple(
                replace(worker, wall_ns=worker.wall_ns[:30], cpu_ns=worker.cpu_ns[:30])
                for worker in launch.workers
            ),
        )
        for launch in launches
    ]


@pytest.fixture(scope="module")
def sample() -> tuple[Run, list[Launch]]:
    run, launches = a_sample()
    return run, shortened(launches)


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory, sample: tuple[Run, list[Launch]]) -> Path:
    """Two runs of the sample, the second 1.3 times slower, at another commit."""
    folder = tmp_path_factory.mktemp("records")
    run, launches = sample
    commit = Commit(sha="b" * 40, subject="Slow", committed_at="2026-03-15T00:00:00Z", dirty=False)
    later = replace(run, id="later", started_at="2026-03-15T08:00:00Z", commit=commit)
    write_records(folder, run, *launches)
    write_records(folder, later, *repeated(launches, "later", SLOWER))
    return folder


@pytest.fixture(scope="module")
def results(records: Path) -> corebound.Results:
    return corebound.load(records)


def test_every_launch_has_a_row_with_its_axes(results: corebound.Results) -> None:
    launches = results.filter(run="r1").launches()

    # Five bindings and three thread counts in six blocks, and three skipped cells.
    assert len(launches) == 5 * 3 * 6 + 3
    assert {"axis_binding", "axis_threads"} <= set(launches.columns)
    assert launches["status"].value_counts()["skipped"] == 3
    assert launches["median_ns"].dtype == "Float64"


def test_each_iteration_has_a_row_and_warm_up_does_not_count(results: corebound.Results) -> None:
    one = results.filter(run="r1", axes={"binding": "node", "threads": 2})

    iterations = one.iterations()

    assert len(iterations) == 6 * 30
    # The sample's first iteration takes seven times as long.
    assert not iterations.loc[iterations["iteration"] == 0, "counts"].any()
    medians = iterations[iterations["counts"]].groupby("launch")["wall_ns"].median()
    of_launches = one.launches().set_index("launch")["median_ns"]
    assert (medians - of_launches[medians.index]).abs().max() <= 1


def test_each_table_has_the_documented_columns(results: corebound.Results) -> None:
    for name in ("runs", "iterations", "comparisons", "history", "operators"):
        method = getattr(corebound.Results, name)
        columns = [
            column for column in getattr(results, name)().columns if not column.startswith("axis_")
        ]
        assert columns == list(getattr(tables, name.upper())), name
        assert all(column in (method.__doc__ or "") for column in columns), name


def test_comparisons_agree_with_the_rows_of_the_latest_result(results: corebound.Results) -> None:
    frame = results.filter(run="later").comparisons()

    (result,) = results.filter(run="later").latest()
    ratios = {pair.cell.cell.key: pair.comparison.speedup_ratio for pair in result.ranked}
    assert dict(zip(frame["cell"], frame["speedup_ratio"], strict=True)) == ratios


@pytest.mark.parametrize(
    ("chosen", "rows"),
    [
        ({"scenario": "resnet*"}, 2),
        ({"scenario": "gemm"}, 0),
        ({"host": "bench-01"}, 2),
        ({"host": "bench-*"}, 2),
        ({"commit": "4e1d"}, 1),
        ({"commit": "bbbb"}, 1),
        ({"run": "late"}, 1),
    ],
)
def test_filters_select_runs(results: corebound.Results, chosen: dict[str, str], rows: int) -> None:
    assert len(results.filter(**chosen).runs()) == rows  # type: ignore[arg-type]


def test_filters_of_axes_take_one_or_several_values(results: corebound.Results) -> None:
    frame = results.filter(axes={"threads": [2, "default"], "binding": "node"}).launches()

    assert set(frame["axis_threads"]) == {"2", "default"}
    assert set(frame["axis_binding"]) == {"node"}


def test_two_runs_are_compared_with_verdict_and_interval_as_the_command_prints(
    records: Path, results: corebound.Results
) -> None:
    comparison = results.compare("r1", "later")

    row = comparison["binding=node,threads=2"]
    assert row.slowdown_ratio == pytest.approx(SLOWER, rel=0.01)
    low, high = row.slowdown_interval or (0.0, 0.0)
    assert low < SLOWER < high
    assert "slower" in str(comparison)
    assert set(comparison.to_frame().columns) >= {*tables.COMPARED, "axis_threads"}
    document = as_json(comparison.document)
    assert document == printed(records, "compare", "r1", "later", "--records", ".")
    assert comparison.document["before"]["run"] == "r1"


def test_two_configurations_are_compared_where_the_other_axes_agree(
    results: corebound.Results,
) -> None:
    comparison = results.filter(run="r1").compare({"binding": "none"}, {"binding": "node"})

    assert [row.axes["threads"] for row in comparison] == ["default", "2", "per-core"]
    # 42.3 ms against 33.9 ms in the sample.
    assert comparison["2"].speedup_ratio == pytest.approx(42.3 / 33.9, rel=0.05)


def test_a_history_has_own_and_imported_points_and_a_damaged_line_is_a_warning(
    tmp_path: Path, sample: tuple[Run, list[Launch]]
) -> None:
    run, launches = sample
    file = write_records(tmp_path, run, *launches[:20])
    history_files.keep("trees", (a_series((1.0, 2.0), project="trees"),), tmp_path)
    measured = {launch.cell.key for launch in launches[:20] if launch.status != "skipped"}

    history = corebound.load(tmp_path).history()

    assert history.loc[history["project"] == "trees", "value"].tolist() == [1.0, 2.0]
    assert history["project"].isna().sum() == len(measured)
    file.write_bytes(file.read_bytes() + b"{}\n")
    with pytest.warns(UserWarning, match="damaged"):
        frame = corebound.load(tmp_path).launches()
    assert len(frame) == 20


def test_operators_have_the_time_of_each(results: corebound.Results) -> None:
    operators = results.filter(run="r1").operators()

    assert "aten::addmm" in set(operators["operator"])
    assert operators.groupby("cell")["share_ratio"].sum().between(0.99, 1.01).all()


def test_no_results_have_tables_without_rows_and_no_folder_is_an_error(tmp_path: Path) -> None:
    results = corebound.load(tmp_path)

    frames = [getattr(results, name)() for name in ("launches", "iterations", "comparisons")]
    assert all(isinstance(frame, pd.DataFrame) and frame.empty for frame in frames)
    assert "No results" in results._repr_html_()
    with pytest.raises(CoreboundError, match="no such folder"):
        corebound.load(tmp_path / "nowhere")


def test_a_notebook_shows_names_as_text(results: corebound.Results) -> None:
    page = results._repr_html_()

    assert page.count("<svg") == 2 * 14 // 2
    assert "ResNet-50, one image at a time" in page
    assert "<script" not in page


def test_a_plot_has_a_row_for_each_configuration(results: corebound.Results) -> None:
    pytest.importorskip("matplotlib")

    (panel,) = results.filter(run="r1").plot().axes

    assert len(panel.get_yticks()) == 14


def printed(folder: Path, *arguments: str) -> dict[str, object]:
    """What a command prints with --json, without the header of the command line."""
    completed = run_corebound(folder, *arguments, "--json", in_process=True)
    document = json.loads(completed.out)
    return {key: value for key, value in document.items() if key not in {"corebound", "error"}}


def as_json(document: object) -> object:
    return json.loads(msgspec.json.encode(document))


def test_a_run_is_what_show_prints(records: Path, results: corebound.Results) -> None:
    document = results.filter(run="later").document

    assert as_json(document) == printed(records, "show", "later", "--records", str(records))
    with pytest.raises(CoreboundError, match="2 runs"):
        _ = results.document


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Records with an imported history that has become slower."""
    folder = tmp_path_factory.mktemp("history")
    values = [100.0 + number % 3 for number in range(30)] + [
        150.0 + number % 3 for number in range(20)
    ]
    history_files.keep("parsing", (a_series(values, project="parsing", cell="rows=5"),), folder)
    return folder


def test_regressions_are_what_the_command_prints(history: Path) -> None:
    found = corebound.load(history).regressions()

    (change,) = found.alarms
    assert (change.axes, change.is_regression, change.is_significant) == ({"rows": "5"}, True, True)
    assert 1.4 < change.ratio < 1.6
    assert as_json(found.document) == printed(history, "regressions", "--records", str(history))
    frame = found.to_frame()
    assert frame["axis_rows"].tolist() == ["5"]
    assert frame["ratio"].tolist() == [change.ratio]


def test_the_results_of_one_file_have_no_regressions(records: Path) -> None:
    (file, *_) = records.rglob("*.jsonl")

    with pytest.raises(CoreboundError, match="no folder of records"):
        corebound.load(file).regressions()


def test_importing_corebound_loads_nothing_else() -> None:
    program = (
        "import sys, corebound; corebound.__version__;"
        "print([name for name in sys.modules if name.partition('.')[::2] > ('corebound', '')"
        " and name.partition('.')[0] in {'corebound', 'numpy', 'pandas', 'msgspec'}])"
    )

    process = subprocess.run(
        (sys.executable, "-c", program), capture_output=True, text=True, check=True
    )

    assert process.stdout.strip() == "[]"


def test_the_stub_names_what_the_module_has() -> None:
    stub = Path(corebound.__file__).with_suffix(".pyi").read_text(encoding="utf-8")

    for name in corebound.__all__:
        assert f'"{name}"' in stub
        assert getattr(corebound, name) is not None


@pytest.mark.parametrize(
    "wrong",
    [
        lambda results: results.compare("a\0b", "c"),
        lambda results: results.compare("no-such-run", "no-such-run"),
        lambda results: results.hosts(),
        lambda results: results.hosts("\0"),
        lambda results: results.filter(scenario=3),
        lambda results: results.log(3),
        lambda results: results.regressions(status="/dev/null/x"),
    ],
)
def test_a_wrong_argument_of_a_method_is_an_input_error_in_words_of_python(
    results: corebound.Results, wrong: Callable[[corebound.Results], object]
) -> None:
    with pytest.raises(InputError) as refused:
        wrong(results)

    assert "--" not in str(refused.value)


@pytest.mark.parametrize(
    ("sides", "told"),
    [
        (({"binding": "none"}, {"binding": "nowhere"}), "no scenario has configurations"),
        (("r1", {"binding": "none"}), "different kinds"),
        (("r1", "nothing"), "No run, commit or file"),
    ],
)
def test_what_cannot_be_compared_is_one_error(
    results: corebound.Results, sides: tuple[Any, Any], told: str
) -> None:
    with pytest.raises(CoreboundError, match=told):
        results.compare(*sides)

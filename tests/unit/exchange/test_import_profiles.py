"""Profiles made elsewhere: each format becomes the same table."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from corebound.cli.app import app
from corebound.exchange.profiles.reader import UnreadableProfiles, read_all
from corebound.records import documents, jsonl
from corebound.records.launch_record import ImportedProfile
from corebound.worker.operator_table import Span, Step, chrome_trace, tabulate
from support import paths

DATA = paths.DATA / "profiles"
MSPROF = DATA / "msprof"
STAMP = "20230921103023"


def imported(*paths: Path, name: str | None = None) -> tuple[ImportedProfile, ...]:
    return read_all(paths, name=name, progress=lambda *_: None)


def one(*paths: Path) -> ImportedProfile:
    (profile,) = imported(*paths)
    return profile


def calls(profile: ImportedProfile) -> dict[str, float]:
    return {each.type: each.calls for each in profile.profile.operators}


def totals(profile: ImportedProfile) -> dict[str, int]:
    return {each.type: each.total_ns for each in profile.profile.operators}


def a_folder(folder: Path, *kinds: str) -> Path:
    for kind in kinds:
        shutil.copy(MSPROF / f"{kind.replace('.', f'_{STAMP}.')}", folder)
    return folder


@pytest.mark.parametrize(
    "file", ["torch.pt.trace.json.gz", "torch_unmarked.json", "tensorflow.trace.json.gz", "msprof"]
)
def test_operators_and_what_is_outside_add_up_to_the_step(file: str) -> None:
    profile = one(DATA / file).profile

    assert profile.step_ns is not None
    assert profile.outside_ns is not None
    together_ns = sum(each.total_ns for each in profile.operators)
    # Each figure is rounded by itself.
    assert together_ns + profile.outside_ns == pytest.approx(profile.step_ns, abs=60)


def test_a_torch_trace_has_the_operators_of_its_steps() -> None:
    profile = one(DATA / "torch.pt.trace.json.gz")

    assert profile.source == "PyTorch profiler, Chrome trace"
    assert profile.profile.iterations == 4
    # Two layers: each is one product forward; backward the first has one, the second two.
    assert calls(profile)["aten::addmm"] == 2
    assert calls(profile)["aten::mm"] == 3
    assert list(profile.profile.phases) == ["forward", "backward", "update"]


def test_a_trace_without_marks_is_of_all_that_was_profiled() -> None:
    profile = one(DATA / "torch_unmarked.json").profile

    assert profile.iterations is None
    assert {each.quiet_ns for each in profile.operators} == {None}


def test_traces_of_before_annotations_had_a_category_of_their_own_are_read(tmp_path: Path) -> None:
    events = [
        {"ph": "X", "cat": "Operator", "name": name, "pid": 1, "tid": "7", "ts": ts, "dur": dur}
        for name, ts, dur in (
            ("ProfilerStep#2", 100, 50),
            ("aten::mm", 110, 30),
            ("Optimizer.step#SGD.step", 141, 8),
            ("aten::add_", 142, 5),
        )
    ]
    (tmp_path / "old.json").write_text(json.dumps({"traceEvents": events}))

    profile = one(tmp_path / "old.json")

    assert totals(profile) == {"aten::mm": 30_000, "aten::add_": 5_000}
    assert (profile.profile.step_ns, profile.profile.outside_ns) == (50_000, 15_000)


def a_torch_trace(file: Path, *operators: tuple[str, int, int]) -> ImportedProfile:
    events = [
        {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur}
        for name, ts, dur in operators
    ]
    file.write_text(json.dumps({"traceEvents": events}))
    return one(file)


def test_an_operator_that_only_calls_itself_counts_once_as_in_torchs_tables(
    tmp_path: Path,
) -> None:
    same = [
        ("aten::mean", 0, 20),
        ("aten::mean", 1, 18),
        ("aten::mean", 2, 10),
        ("aten::sum", 3, 5),
    ]
    twice = [("aten::cat", 20, 20), ("aten::cat", 21, 5), ("aten::cat", 30, 5)]

    profile = a_torch_trace(tmp_path / "a.json", *same, *twice)

    assert calls(profile) == {"aten::mean": 1, "aten::sum": 1, "aten::cat": 3}
    assert totals(profile) == {"aten::mean": 15_000, "aten::sum": 5_000, "aten::cat": 20_000}


def test_tensorflows_trace_and_its_xplane_tell_the_same(tmp_path: Path) -> None:
    traced = one(DATA / "tensorflow.trace.json.gz")
    planes = one(DATA / "tensorflow.xplane.pb")

    assert traced.profile == planes.profile
    assert traced.profile.iterations == 4
    assert calls(traced)["_MklMatMul"] == 3


def test_of_tensorflows_trace_and_its_xplane_in_one_folder_one_counts(tmp_path: Path) -> None:
    for name in ("tensorflow.trace.json.gz", "tensorflow.xplane.pb"):
        shutil.copy(DATA / name, tmp_path)

    assert one(tmp_path).source == "TensorFlow profiler, XPlane"


def test_mindspores_table_and_its_trace_tell_the_same() -> None:
    folder = one(DATA / "mindspore_ascend_ms")
    table = one(DATA / "mindspore_ascend_ms" / "FRAMEWORK" / "cpu_op_type_info_0.csv")

    assert folder.source == "MindSpore profiler, CPU trace"
    assert (folder.profile.iterations, table.profile.iterations) == (4, 4)
    assert calls(folder) == calls(table)
    # The table counts time that two kernels share twice.
    for type_, total_ns in totals(folder).items():
        assert total_ns == pytest.approx(totals(table)[type_], rel=0.1)
    # A call's shortest time is not in the table, and a step's length in neither.
    assert {each.min_ns for each in table.profile.operators} == {None}
    assert folder.profile.step_ns is table.profile.step_ns is None


def test_the_files_of_an_ascend_export_make_one_profile() -> None:
    profile = one(MSPROF)

    assert profile.device == "0"
    assert len(profile.files) == 5
    assert profile.profile.iterations == 3
    # 400.25 + 200.5 + 50.125 + 600 + 210.75 + 80.5 of the 1702.125 us of an iteration.
    assert (profile.profile.step_ns, profile.profile.outside_ns) == (1_702_125, 160_000)
    assert profile.profile.phases == {"forward and backward": 1_461_625, "update": 80_500}
    assert totals(profile)["MatMul"] == 411_250
    # Both passes have one.
    assert calls(profile)["MatMul"] == 2


def test_iterations_may_come_from_the_trace_instead_of_the_table(tmp_path: Path) -> None:
    profile = one(a_folder(tmp_path, "op_summary.csv", "step_trace.json"))

    assert profile.profile == one(MSPROF).profile


def test_a_summary_alone_is_of_all_that_was_profiled(tmp_path: Path) -> None:
    profile = one(a_folder(tmp_path, "op_summary.csv"))

    assert profile.profile.iterations is None
    assert calls(profile)["MatMul"] == 6


def test_a_statistic_alone_tells_no_step(tmp_path: Path) -> None:
    profile = one(a_folder(tmp_path, "op_statistic.csv"))

    assert totals(profile)["MatMul"] == 1_233_750
    assert profile.profile.iterations is None
    assert profile.profile.step_ns is profile.profile.outside_ns is None


def test_with_iterations_a_statistic_is_of_one(tmp_path: Path) -> None:
    profile = one(a_folder(tmp_path, "op_statistic.csv", "step_trace.csv", "step_trace.json"))

    assert (profile.profile.iterations, profile.profile.step_ns) == (3, 1_702_125)
    assert (calls(profile)["MatMul"], totals(profile)["MatMul"]) == (2, 411_250)
    # Operators may have run at the same time, so what is outside of them is not known.
    assert profile.profile.outside_ns is None


def test_a_summary_on_another_clock_than_its_iterations_is_divided_by_their_number(
    tmp_path: Path,
) -> None:
    a_folder(tmp_path, "op_summary.csv", "step_trace.csv")
    steps = tmp_path / f"step_trace_{STAMP}.csv"
    steps.write_text(steps.read_text().replace(",1695263423", ",1"))

    profile = one(tmp_path)

    assert (profile.profile.iterations, profile.profile.step_ns) == (3, None)
    assert totals(profile)["MatMul"] == 411_250


def test_the_ai_cpus_count_where_no_other_file_has_them(tmp_path: Path) -> None:
    profile = one(a_folder(tmp_path, "aicpu.csv"))

    assert totals(profile) == {"GetNext_dequeue": 93_000}


def test_milliseconds_of_an_older_version_are_milliseconds(tmp_path: Path) -> None:
    (tmp_path / "aicpu_0_1_1.csv").write_text(
        "Timestamp,Node,Compute_time(ms),Memcpy_time(us),Task_time(ms),Dispatch_time(ms),"
        "Total_time(ms),Stream ID,Task ID\n1,GetNext,0.5,3,0.6,0.1,0.75,1,1\n"
    )

    profile = one(tmp_path)

    assert totals(profile) == {"GetNext": 750_000}
    # Before tables had a column for it, a file was named by its device.
    assert profile.device == "0"


def test_the_columns_of_kernel_details_are_known_too(tmp_path: Path) -> None:
    (tmp_path / "kernel_details.csv").write_text(
        "Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us)\n"
        "MatMul1,MatMul,AI_CORE,10.5\t,4,0\n"
    )

    assert totals(one(tmp_path)) == {"MatMul": 4_000}


def test_each_device_of_an_export_has_a_profile(tmp_path: Path) -> None:
    (tmp_path / "op_statistic_1.csv").write_text(
        "Device_id,OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us)\n"
        "0,MatMul,AI_CORE,1,4,4,4,4\n1,MatMul,AI_CORE,2,6,3,3,3\n"
    )

    found = imported(tmp_path, name="run")

    assert [(each.name, each.device) for each in found] == [
        ("run, device 0", "0"),
        ("run, device 1", "1"),
    ]


def test_a_trace_that_corebound_kept_is_read_back(tmp_path: Path) -> None:
    spans = tuple(Span(type=t, thread=1, begin_ns=b, end_ns=e) for t, b, e in (
        ("MatMul", 1_000, 5_000), ("Add", 2_000, 3_000),
    ))  # fmt: skip
    steps = [Step(begin_ns=0, end_ns=8_000, spans=spans)]
    (tmp_path / "kept.json").write_text(chrome_trace(steps))

    profile = one(tmp_path / "kept.json").profile

    assert list(profile.operators) == tabulate(steps, None).operators


def test_contents_decide_not_names(tmp_path: Path) -> None:
    packed = (DATA / "torch.pt.trace.json.gz").read_bytes()
    (tmp_path / "profile.bin").write_bytes(gzip.decompress(packed))
    (tmp_path / "x.csv").write_bytes(packed)

    assert one(tmp_path / "profile.bin").profile == one(tmp_path / "x.csv").profile


def test_a_folder_may_hold_other_files(tmp_path: Path) -> None:
    a_folder(tmp_path, "op_statistic.csv")
    (tmp_path / "msprof_1.json").write_text('[{"ph": "M", "name": "process_name"}]')
    (tmp_path / "settings.json").write_text('{"a": 1}')
    (tmp_path / "communication_statistic_1.csv").write_text(
        "Device_id,OP Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)\n"
    )

    assert one(tmp_path).files == (f"op_statistic_{STAMP}.csv",)


def run(*words: str) -> str:
    done = CliRunner().invoke(app, ["import", "profile", *words], env={"COLUMNS": "80"})
    assert done.exit_code == 0, done.output
    return done.stdout


def test_the_table_fits_eighty_columns(tmp_path: Path) -> None:
    said = run(*map(str, (DATA / "torch.pt.trace.json.gz", MSPROF)), "--records", str(tmp_path))

    table = [line for line in said.splitlines() if not line.startswith("Stored in")]
    assert max(map(len, table)) <= 80
    headings = [line.split() for line in said.splitlines() if line.startswith("Operator ")]
    assert headings == [["Operator", "Calls", "Total", "Mean", "Max", "Min", "Ratio"]] * 2
    (line,) = [line for line in said.splitlines() if line.startswith("Conv2DBackpropFilterD")]
    # 600 of 1702.125.
    assert line.split()[1:] == [
        "1",
        "600",
        "µs",
        "600",
        "µs",
        "600",
        "µs",
        "600",
        "µs",
        "35.3",
        "%",
    ]


def test_importing_again_changes_nothing(tmp_path: Path) -> None:
    words = (str(MSPROF), "--records", str(tmp_path), "--name", "night")
    run(*words)
    (file,) = tmp_path.glob("profiles/*.json")
    before = file.read_bytes()

    run(*words[:3])

    assert list(tmp_path.glob("profiles/*")) == [file]
    assert file.read_bytes() == before


def test_importing_again_under_another_name_renames(tmp_path: Path) -> None:
    for name in ("night", "day"):
        run(str(MSPROF), "--records", str(tmp_path), "--name", name)

    assert [each.name for each in documents.read_profiles(tmp_path)[0]] == ["day"]


def test_json_holds_what_is_kept(tmp_path: Path) -> None:
    said = json.loads(run(str(MSPROF), "--records", str(tmp_path), "--json"))

    ((kept,), faults) = documents.read_profiles(tmp_path)
    assert faults == ()
    assert kept == one(MSPROF)
    assert said[0]["profile"]["profile"]["step_ns"] == 1_702_125
    assert Path(said[0]["file"]) == documents.file_of(kept, tmp_path)


def test_imported_profiles_are_no_runs(tmp_path: Path) -> None:
    run(str(MSPROF), "--records", str(tmp_path))

    assert list(jsonl.files(tmp_path)) == []


def test_a_profile_that_cannot_be_read_back_is_named_and_passed_over(tmp_path: Path) -> None:
    run(str(MSPROF), "--records", str(tmp_path))
    (tmp_path / "profiles" / "torn.json").write_text('{"schema": 1,')
    (tmp_path / "profiles" / "newer.json").write_text('{"schema": 99}')

    kept, faults = documents.read_profiles(tmp_path)

    assert len(kept) == 1
    assert [Path(fault.file).name for fault in faults] == ["newer.json", "torn.json"]


def test_nothing_is_kept_where_one_file_is_bad(tmp_path: Path) -> None:
    (tmp_path / "empty.json").write_text("")

    done = CliRunner().invoke(
        app,
        [
            "import",
            "profile",
            str(MSPROF),
            str(tmp_path / "empty.json"),
            "--records",
            str(tmp_path),
        ],
    )

    assert isinstance(done.exception, UnreadableProfiles)
    assert not (tmp_path / "profiles").exists()

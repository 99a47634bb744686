"""Profiles of every format give one kind of table; damaged or hostile files are reported."""

import gzip
import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from typer.testing import CliRunner

from corebound.cli.app import app
from corebound.exchange.profiles import chrome, detect
from corebound.exchange.profiles.reader import UnreadableProfiles, profile_of, read_all
from corebound.exchange.reading import Unreadable
from corebound.records import codec, documents, jsonl
from corebound.records.launch_record import ImportedProfile
from corebound.worker.operator_table import Span, Step, chrome_trace, tabulate
from support import paths
from support.known import known
from support.report_sample import pages_of
from support.texts import in_order

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
def test_operators_and_time_outside_add_up_to_the_step(file: str) -> None:
    profile = one(DATA / file).profile

    together_ns = sum(each.total_ns for each in profile.operators)
    # Each figure is rounded by itself.
    assert together_ns + known(profile.outside_ns) == pytest.approx(known(profile.step_ns), abs=60)


def test_a_torch_trace_has_the_operators_of_its_steps() -> None:
    profile = one(DATA / "torch.pt.trace.json.gz")

    assert in_order(profile.source, "PyTorch", "trace")
    assert profile.profile.iterations == 4
    # Two layers: each is one product forward; backward the first has one, the second two.
    assert calls(profile)["aten::addmm"] == 2
    assert calls(profile)["aten::mm"] == 3
    assert list(profile.profile.phases) == ["forward", "backward", "update"]


def test_a_trace_without_marks_covers_everything_profiled() -> None:
    profile = one(DATA / "torch_unmarked.json").profile

    assert profile.iterations is None
    assert {each.quiet_ns for each in profile.operators} == {None}


def test_traces_without_an_annotation_category_are_read(tmp_path: Path) -> None:
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


def test_a_wrapper_of_the_same_operator_counts_once(tmp_path: Path) -> None:
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


def test_tensorflow_s_trace_and_xplane_agree(tmp_path: Path) -> None:
    traced = one(DATA / "tensorflow.trace.json.gz")
    planes = one(DATA / "tensorflow.xplane.pb")

    assert traced.profile == planes.profile
    assert traced.profile.iterations == 4
    assert calls(traced)["_MklMatMul"] == 3


def test_of_tensorflow_s_trace_and_xplane_in_one_folder_one_counts(tmp_path: Path) -> None:
    for name in ("tensorflow.trace.json.gz", "tensorflow.xplane.pb"):
        shutil.copy(DATA / name, tmp_path)

    assert one(tmp_path).source == "TensorFlow profiler, XPlane"


def test_mindspore_s_table_and_trace_agree() -> None:
    folder = one(DATA / "mindspore_ascend_ms")
    table = one(DATA / "mindspore_ascend_ms" / "FRAMEWORK" / "cpu_op_type_info_0.csv")

    assert in_order(folder.source, "MindSpore", "trace")
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


MATMUL = 6, 1_233_750
MATMUL_OF_ONE = 2, 411_250


@pytest.mark.parametrize(
    ("kinds", "step", "operator"),
    [
        # Iterations may come from the trace.
        (("op_summary.csv", "step_trace.json"), (3, 1_702_125, 160_000), MATMUL_OF_ONE),
        # A statistic alone has no step. With iterations it is of one: operators may have run at
        # the same time, so what is outside of them is not known.
        (("op_statistic.csv",), (None, None, None), MATMUL),
        (
            ("op_statistic.csv", "step_trace.csv", "step_trace.json"),
            (3, 1_702_125, None),
            MATMUL_OF_ONE,
        ),
    ],
)
def test_the_files_of_an_export_give_what_they_tell(
    tmp_path: Path,
    kinds: tuple[str, ...],
    step: tuple[int | None, int | None, int | None],
    operator: tuple[float, int],
) -> None:
    profile = one(a_folder(tmp_path, *kinds))

    told = profile.profile
    assert (told.iterations, told.step_ns, told.outside_ns) == step
    assert (calls(profile)["MatMul"], totals(profile)["MatMul"]) == operator


def test_a_summary_alone_covers_everything_profiled(tmp_path: Path) -> None:
    profile = one(a_folder(tmp_path, "op_summary.csv"))

    assert (profile.profile.iterations, calls(profile)["MatMul"]) == (None, 6)


def test_ai_cpu_tables_count_only_without_a_better_source(tmp_path: Path) -> None:
    assert totals(one(a_folder(tmp_path, "aicpu.csv"))) == {"GetNext_dequeue": 93_000}


def test_a_summary_on_another_clock_than_its_iterations_is_divided_by_their_number(
    tmp_path: Path,
) -> None:
    a_folder(tmp_path, "op_summary.csv", "step_trace.csv")
    steps = tmp_path / f"step_trace_{STAMP}.csv"
    steps.write_text(steps.read_text().replace(",1695263423", ",1"))

    profile = one(tmp_path)

    assert (profile.profile.iterations, profile.profile.step_ns) == (3, None)
    assert totals(profile)["MatMul"] == 411_250


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        (
            # Milliseconds of an older version; a file was named by its device then.
            "aicpu_0_1_1.csv",
            "Timestamp,Node,Task_time(ms),Total_time(ms),Stream ID\n1,GetNext,0.6,0.75,1\n",
            ("0", {"GetNext": 750_000}),
        ),
        (
            "kernel_details.csv",
            (
                "Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us)\n"
                "MatMul1,MatMul,AI_CORE,10.5\t,4,0\n"
            ),
            (None, {"MatMul": 4_000}),
        ),
    ],
)
def test_tables_of_other_versions_are_read(
    tmp_path: Path, name: str, text: str, expected: tuple[str | None, dict[str, int]]
) -> None:
    (tmp_path / name).write_text(text)

    profile = one(tmp_path)

    assert (profile.device, totals(profile)) == expected


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


def test_a_stored_trace_is_read_back(tmp_path: Path) -> None:
    spans = tuple(Span(type=t, thread=1, begin_ns=b, end_ns=e) for t, b, e in (
        ("MatMul", 1_000, 5_000), ("Add", 2_000, 3_000),
    ))  # fmt: skip
    steps = [Step(begin_ns=0, end_ns=8_000, spans=spans)]
    (tmp_path / "kept.json").write_text(chrome_trace(steps))

    profile = one(tmp_path / "kept.json").profile

    assert list(profile.operators) == tabulate(steps, None).operators


def test_formats_are_detected_from_content(tmp_path: Path) -> None:
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


def test_importing_again_changes_nothing_but_the_name(tmp_path: Path) -> None:
    words = (str(MSPROF), "--records", str(tmp_path), "--name", "night")
    run(*words)
    (file,) = tmp_path.glob("profiles/*.json")
    before = file.read_bytes()

    run(*words[:3])

    assert list(tmp_path.glob("profiles/*")) == [file]
    assert file.read_bytes() == before
    run(*words[:4], "day")
    assert [each.name for each in documents.PROFILES.read(tmp_path)[0]] == ["day"]


def test_json_has_the_stored_profile_which_is_no_run_and_damaged_ones_are_skipped(
    tmp_path: Path,
) -> None:
    said = json.loads(run(str(MSPROF), "--records", str(tmp_path), "--json"))
    (tmp_path / "profiles" / "torn.json").write_text('{"schema": 1,')
    (tmp_path / "profiles" / "newer.json").write_text('{"schema": 99}')

    ((kept,), faults) = documents.PROFILES.read(tmp_path)
    assert [Path(fault.file).name for fault in faults] == ["newer.json", "torn.json"]
    assert kept == one(MSPROF)
    assert said["results"][0]["profile"]["profile"]["step_ns"] == 1_702_125
    assert Path(said["results"][0]["file"]) == documents.PROFILES.file_of(kept, tmp_path)
    assert list(jsonl.files(tmp_path)) == []


def test_one_bad_file_rejects_the_whole_import(tmp_path: Path) -> None:
    (tmp_path / "empty.json").write_text("")
    words = ["import", "profile", MSPROF, tmp_path / "empty.json", "--records", tmp_path]

    done = CliRunner().invoke(app, [*map(str, words)])

    assert isinstance(done.exception, UnreadableProfiles)
    assert not (tmp_path / "profiles").exists()


KNOWN = {
    file.name: file.read_bytes()
    for file in sorted(DATA.rglob("*"))
    if file.suffix in {".json", ".csv", ".pb"} or file.name.endswith(".json.gz")
}


def refused(*paths: Path) -> list[str]:
    with pytest.raises(UnreadableProfiles) as caught:
        read_all(paths, name=None, progress=lambda *_: None)
    return str(caught.value).splitlines()


def refused_text(folder: Path, text: str, name: str = "a.json") -> str:
    (folder / name).write_text(text)
    (line,) = refused(folder / name)
    return line.removeprefix(f"{folder / name}: ")


def test_all_bad_files_are_reported_together(tmp_path: Path) -> None:
    (tmp_path / "empty.csv").write_text(" \n")
    (tmp_path / "foreign.json").write_text('{"a": []}')
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")

    lines = refused(
        tmp_path / "empty.csv", MSPROF, tmp_path / "foreign.json", tmp_path / "picture.png",
        tmp_path / "missing",
    )  # fmt: skip

    assert [Path(line.partition(":")[0]).name for line in lines] == [
        "empty.csv", "foreign.json", "picture.png", "missing",
    ]  # fmt: skip
    assert in_order(lines[0], "file is empty", "Export")
    assert "no such file" in lines[3].lower()


@pytest.mark.parametrize("name", sorted(KNOWN))
@pytest.mark.parametrize("share", [0.3, 0.8])
def test_a_truncated_file_is_rejected(tmp_path: Path, name: str, share: float) -> None:
    whole = KNOWN[name]
    cut = whole[: int(len(whole) * share)]
    if name.endswith(".csv"):
        # Within a row: after a whole one, nothing tells that there were more.
        cut = whole[: whole.index(b",", cut.rfind(b"\n") + 1) + 1]
    (tmp_path / name).write_bytes(cut)

    assert refused(tmp_path / name)


def with_time(ts: str) -> str:
    return f'[{{"ph":"X","cat":"cpu_op","name":"a","ts":{ts},"dur":1}}]'


NO_OPERATOR = '[{"ph": "X", "cat": "user_annotation", "name": "a", "ts": 1, "dur": 2}]'
BAD_ROW = "OP Type,Core Type,Count,Total Time(us)\nMatMul,AI_CORE,1,2\nAdd,AI_CORE,1,many\n"


@pytest.mark.parametrize(
    ("name", "text", "facts"),
    [
        ("a.csv", BAD_ROW, ("row 3: ", "'many'", "time")),
        ("a.json", NO_OPERATOR, ("no executed operator",)),
        *(
            ("a.json", with_time(ts), ("not a time",))
            for ts in (
                "1e400", "1e999999999", '"x"', "null", "[]", "123456789012345678901234567890",
                "inf", "nan", "NaN", "-Infinity",
            )
        ),
        ("a.json", '{"traceEvents": [' + "[" * 100_000, ("damaged", "event 1")),
    ],
)  # fmt: skip
def test_what_is_no_profile_is_rejected_with_its_place(
    tmp_path: Path, name: str, text: str, facts: tuple[str, ...]
) -> None:
    assert in_order(refused_text(tmp_path, text, name), *facts)


def test_other_files_are_rejected_and_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "notes.csv").write_text("a,b\n1,2\n")
    packed = gzip.compress(b'{"traceEvents": []}' + b" " * 20_000)

    assert "no known profile" in refused(tmp_path)[0]
    assert in_order(refused(MSPROF / f"step_trace_{STAMP}.csv")[0], "op_summary", "op_statistic")
    (tmp_path / "a.json.gz").write_bytes(packed[:-9])
    assert "truncated gzip" in refused(tmp_path / "a.json.gz")[0]
    os.mkfifo(tmp_path / "fifo.json")
    assert "not a regular" in refused(tmp_path / "fifo.json")[0]


# An event before, of 78 bytes with its comma, and one after whatever is tried.
BEFORE = '{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":1,"dur":2},\n'
AFTER = BEFORE.strip(",\n").replace('"ts":1', '"ts":9')
ODD_EVENT = '{"ph":"X","cat":"cpu_op","name":"odd","pid":1,"tid":1,"ts":5,"dur":2,"args":%s}'


@pytest.mark.parametrize(
    "args",
    [
        '{"a": inf}', '{"a": -inf, "b": "inf"}', '{"a": NaN}', '{"a": nan}', '{"a": [Infinity]}',
        '{"a": "line\nend\ttab"}', '{"a": "\udcff\udc80"}',
    ],
)  # fmt: skip
def test_what_is_beside_the_times_of_an_event_is_not_needed(tmp_path: Path, args: str) -> None:
    text = f"[{BEFORE}{ODD_EVENT % args},{AFTER}]"
    (tmp_path / "a.json").write_bytes(text.encode(errors="surrogateescape"))

    (profile,) = imported(tmp_path / "a.json")

    assert {each.type: each.calls for each in profile.profile.operators} == {
        "aten::mm": 2, "odd": 1,
    }  # fmt: skip


@pytest.mark.parametrize("end", ["", ",", ",\n", "\n", "]", " ] "])
def test_a_list_of_events_needs_no_end(tmp_path: Path, end: str) -> None:
    # Trace Event Format, "JSON Array Format": the closing bracket is optional.
    (tmp_path / "a.json").write_text(f"[{BEFORE}{AFTER}{end}")

    (profile,) = imported(tmp_path / "a.json")

    assert [each.calls for each in profile.profile.operators] == [2]


@pytest.mark.parametrize(
    "fault",
    [
        '{"a": "torch\\cuda"}', '{"a": "x"y"}', '{"a: 1}', '{a": 1}', '{"a": 1,5}', '{"a": 2%}',
        '{"a" 1}', '{"a": 1 "b": 2}', "{'a': 1}", '{"a": 0x10}', '{"a": 1};',
    ],
)  # fmt: skip
@pytest.mark.parametrize("before", [0, 3, 20_000])
def test_invalid_json_of_a_profiler_is_named_with_event_and_byte(
    tmp_path: Path, fault: str, before: int
) -> None:
    text = f'{{"é": "ü", "traceEvents": [{BEFORE * before}{ODD_EVENT % fault},{AFTER}]}}'
    at = len(text[: text.index(fault)].encode())

    said = refused_text(tmp_path, text)

    found = known(re.search(r"event ([\d,]+), byte ([\d,]+): ", said))
    event, byte = (int(number.replace(",", "")) for number in found.groups())
    # A quote that is missing shows only where the next one is.
    assert before + 1 <= event <= before + 2
    assert at <= byte <= at + len(fault) + 60
    assert "truncated" not in said
    assert "copy" not in said


@given(share=st.floats(0.05, 0.99))
def test_a_truncated_trace_is_called_truncated(
    tmp_path_factory: pytest.TempPathFactory, share: float
) -> None:
    whole = f'{{"traceEvents": [{BEFORE * 5}{ODD_EVENT % "{}"}], "more": [1.5, true]}}'
    folder = tmp_path_factory.mktemp("cut")

    assert "it is truncated" in refused_text(folder, whole[: int(len(whole) * share)])


def test_damage_after_the_events_says_how_many_there_were(tmp_path: Path) -> None:
    text = f'{{"traceEvents": [{BEFORE * 40}{AFTER}], "INFO": ["cuda "event": 64"]}}'

    assert "after event 41, " in refused_text(tmp_path, text)


def test_a_large_trace_is_read_in_pieces() -> None:
    written = [
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": number, "dur": 0.5}
        for number in range(20_000)
    ]
    text = json.dumps({"traceEvents": written}).encode()
    # What was read is released after 1 MiB; 997 is prime, so pieces end anywhere in an event.
    pieces = (text[at : at + 997] for at in range(0, len(text), 997))

    read = list(chrome.trace_events(pieces))

    assert len(text) > 1 << 20
    assert read == [{**event, "dur": "0.5"} for event in written]


def hostile(name: str) -> str:
    events = [
        {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": 0, "dur": 9},
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1, "dur": 2},
    ]
    return json.dumps({"traceEvents": events})


def test_markup_in_names_is_escaped(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(hostile("<script>alert(1)</script>"))
    profiles = imported(tmp_path / "a.json", name='"><img src=x>')

    made = pages_of([], profiles=profiles)

    assert "<script>" not in made["operators.html"]
    assert "<img" not in made["operators.html"]
    assert "&lt;script&gt;alert(1)" in made["operators.html"]


@pytest.mark.parametrize("name", ["\x1b[31mred", "half \ud800", "a\nb", "x" * 5000])
def test_names_are_cleaned(tmp_path: Path, name: str) -> None:
    (tmp_path / "a.json").write_text(hostile(name))

    (profile,) = imported(tmp_path / "a.json")

    (shown,) = (each.type for each in profile.profile.operators if each.type != "aten::mm")
    assert shown.isprintable()
    assert len(shown) < 220
    documents.PROFILES.keep(profile, tmp_path / "records")
    assert documents.PROFILES.read(tmp_path / "records") == ((profile,), ())


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(
        st.sampled_from(["ph", "cat", "name", "ts", "dur", "pid", "tid", "args", "type", "step_num",
                         "long_name", "traceEvents"]) | st.text(max_size=3),
        inner, max_size=7,
    ),
    max_leaves=30,
)  # fmt: skip
EVENTS = st.lists(
    st.fixed_dictionaries(
        {"ph": st.sampled_from(["X", "M", "i"])},
        optional={
            "cat": st.sampled_from(["cpu_op", "Operator", "user_annotation", "Iteration Time",
                                    "FP_BP Time"]) | JSON,
            "name": st.sampled_from(["ProfilerStep#1", "step", "EagerLocalExecute: Mul"]) | JSON,
            "ts": st.integers(-100, 10**6) | JSON,
            "dur": st.integers(-100, 10**6) | st.floats(0, 1e6) | JSON,
            "pid": st.just(1) | JSON,
            "tid": st.just(0) | JSON,
            "args": st.sampled_from([{"type": "HostCpuOps"}, {"step_num": "1"}, {"name": "CPU OP"},
                                     {"long_name": "a:step"}]) | JSON,
        },
    ),
    max_size=12,
)  # fmt: skip


def read_or_refuse(data: bytes, pieces: int = 1) -> None:
    """Whatever it is, a profile that can be stored comes of it, or the readers' own error."""
    length = max(1, len(data) // pieces)
    try:
        parts = detect.read(data[at : at + length] for at in range(0, len(data), length))
        for part in parts:
            _, profile = profile_of([part])
            codec.canonical(profile)
            assert profile.operators
            assert all(each.total_ns >= 0 for each in profile.operators)
    except Unreadable:
        return


@given(EVENTS, st.integers(1, 5))
def test_any_events_are_read_or_rejected(events: list[dict[str, Any]], pieces: int) -> None:
    read_or_refuse(json.dumps({"traceEvents": events}).encode(), pieces)


@given(JSON, st.binary(max_size=200))
@example(None, b"\x0a\x0b/host:CPU,\xff\xff\xff")
def test_any_json_and_any_bytes_are_read_or_rejected(document: Any, data: bytes) -> None:
    read_or_refuse(json.dumps(document).encode())
    read_or_refuse(data)


@given(st.sampled_from(sorted(KNOWN)), st.data())
def test_a_file_with_changed_bytes_is_read_or_rejected(name: str, data: st.DataObject) -> None:
    whole = KNOWN[name]
    content = bytearray(gzip.decompress(whole) if name.endswith(".gz") else whole)
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(content) - 1))
        content[place : place + data.draw(st.integers(1, 9))] = data.draw(st.binary(max_size=9))
    read_or_refuse(bytes(content[:20_000] if name.endswith("json") else content), pieces=3)


@given(
    st.lists(st.lists(st.text(max_size=6) | st.integers().map(str), max_size=9), max_size=5),
    st.sampled_from(
        [KNOWN[name].split(b"\n")[0] for name in sorted(KNOWN) if name.endswith("csv")]
    ),
)
def test_any_table_is_read_or_rejected(rows: list[list[str]], heading: bytes) -> None:
    text = "\n".join(",".join(row) for row in rows)
    read_or_refuse(heading + b"\n" + text.encode("utf-8", "replace"))

"""Files that are torn, foreign, huge or hostile: named, all at once, never a traceback."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from corebound.exchange.profiles import chrome, detect
from corebound.exchange.profiles.reader import UnreadableProfiles, profile_of, read_all
from corebound.exchange.reading import Unreadable
from corebound.records import codec, documents
from support.report_sample import pages_of
from unit.exchange.test_import_profiles import DATA, MSPROF, STAMP, imported

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


def test_all_bad_files_are_named_at_once(tmp_path: Path) -> None:
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
    assert lines[0].endswith("it is empty. Export the profile again, or leave it out.")
    assert "no such file" in lines[3].lower()


@pytest.mark.parametrize("name", sorted(KNOWN))
@pytest.mark.parametrize("share", [0.3, 0.8])
def test_a_torn_file_is_refused(tmp_path: Path, name: str, share: float) -> None:
    whole = KNOWN[name]
    cut = whole[: int(len(whole) * share)]
    if name.endswith(".csv"):
        # Within a row: after a whole one, nothing tells that there were more.
        cut = whole[: whole.index(b",", cut.rfind(b"\n") + 1) + 1]
    (tmp_path / name).write_bytes(cut)

    assert refused(tmp_path / name)


def test_a_folder_without_a_profile_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.csv").write_text("a,b\n1,2\n")

    (line,) = refused(tmp_path)

    assert "no profile that is known is in this folder" in line


def test_a_row_that_is_wrong_is_named(tmp_path: Path) -> None:
    head = "OP Type,Core Type,Count,Total Time(us)\n"

    said = refused_text(tmp_path, f"{head}MatMul,AI_CORE,1,2\nAdd,AI_CORE,1,many\n", "a.csv")

    assert said.startswith("row 3: 'many' stands where a time should.")


def test_iterations_without_operators_ask_for_the_rest(tmp_path: Path) -> None:
    (line,) = refused(MSPROF / f"step_trace_{STAMP}.csv")

    assert "Name op_summary or op_statistic of the same export with it." in line


def test_a_profile_in_which_nothing_ran_is_refused(tmp_path: Path) -> None:
    event = {"ph": "X", "cat": "user_annotation", "name": "a", "ts": 1, "dur": 2}

    said = refused_text(tmp_path, json.dumps({"traceEvents": [event]}))

    assert said.startswith("it holds no operator that ran.")


@pytest.mark.parametrize(
    "value", ["1e400", "1e999999999", '"x"', "null", "[]", "123456789012345678901234567890"]
)
def test_a_time_that_is_none_is_refused(tmp_path: Path, value: str) -> None:
    event = f'{{"ph":"X","cat":"cpu_op","name":"a","ts":{value},"dur":1}}'

    assert "stands where a time should." in refused_text(tmp_path, f"[{event}]")


def test_deep_nesting_is_refused(tmp_path: Path) -> None:
    said = refused_text(tmp_path, '{"traceEvents": [' + "[" * 100_000)

    assert said.startswith("it is no whole trace")


def test_a_gzip_that_is_torn_is_refused(tmp_path: Path) -> None:
    packed = gzip.compress(b'{"traceEvents": []}' * 1000)
    (tmp_path / "a.json.gz").write_bytes(packed[:-20])

    assert "gzip" in refused(tmp_path / "a.json.gz")[0]


def test_a_large_trace_is_read_in_pieces() -> None:
    """A trace that never was in memory as a whole, each piece cut anywhere."""
    seen = 0

    def text() -> Iterator[bytes]:
        yield b'{"traceEvents": ['
        for number in range(50_000):
            event = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": number, "dur": 0.5}
            yield json.dumps(event).encode()[:7]
            yield json.dumps(event).encode()[7:] + (b"," if number < 49_999 else b"]}")

    for event in chrome.trace_events(text()):
        assert event["dur"] == "0.5"
        seen += 1

    assert seen == 50_000


def hostile(name: str) -> str:
    events = [
        {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": 0, "dur": 9},
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1, "dur": 2},
    ]
    return json.dumps({"traceEvents": events})


def test_markup_in_names_is_text_on_the_page(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(hostile("<script>alert(1)</script>"))
    profiles = imported(tmp_path / "a.json", name='"><img src=x>')

    made = pages_of([], profiles=profiles)

    assert "<script>" not in made["operators.html"]
    assert "<img" not in made["operators.html"]
    assert "&lt;script&gt;alert(1)" in made["operators.html"]


@pytest.mark.parametrize("name", ["\x1b[31mred", "half \ud800", "a\nb", "x" * 5000])
def test_names_are_made_fit_to_store_and_to_show(tmp_path: Path, name: str) -> None:
    (tmp_path / "a.json").write_text(hostile(name))

    (profile,) = imported(tmp_path / "a.json")

    (shown,) = (each.type for each in profile.profile.operators if each.type != "aten::mm")
    assert shown.isprintable()
    assert len(shown) <= 200
    documents.keep_profile(profile, tmp_path / "records", rename=False)
    assert documents.read_profiles(tmp_path / "records") == ((profile,), ())


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
def test_any_events_are_read_or_refused(events: list[dict[str, Any]], pieces: int) -> None:
    read_or_refuse(json.dumps({"traceEvents": events}).encode(), pieces)


@given(JSON)
def test_any_json_is_read_or_refused(document: Any) -> None:
    read_or_refuse(json.dumps(document).encode())


@given(st.binary(max_size=200))
@example(b"\x0a\x0b/host:CPU,\xff\xff\xff")
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    read_or_refuse(data)


@given(st.sampled_from(sorted(KNOWN)), st.data())
def test_a_known_file_with_bytes_changed_is_read_or_refused(name: str, data: st.DataObject) -> None:
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
def test_any_table_is_read_or_refused(rows: list[list[str]], heading: bytes) -> None:
    text = "\n".join(",".join(row) for row in rows)
    read_or_refuse(heading + b"\n" + text.encode("utf-8", "replace"))

"""Records on the disk: whole or not at all, never lost, never rewritten."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from build import a_launch, a_run
from corebound.errors import InputError
from corebound.store import codec, jsonl


def a_file(folder: Path, *, launches: int = 3) -> Path:
    file = folder / "host" / "run.jsonl"
    appender = jsonl.Appender(file)
    appender.append(a_run())
    for block in range(launches):
        appender.append(a_launch(block=block))
    appender.close()
    return file


def test_a_run_and_its_launches_come_back_as_they_were(tmp_path: Path) -> None:
    stored = jsonl.read(a_file(tmp_path))

    assert stored.run == a_run()
    assert stored.launches == tuple(a_launch(block=block) for block in range(3))
    assert stored.faults == ()


def test_a_run_from_before_budgets_were_kept_still_reads() -> None:
    document = json.loads(codec.encode(replace(a_run(), budget_s=60.0)))
    del document["record"]["budget_s"]

    assert codec.decode_run(json.dumps(document).encode()) == a_run()


@given(st.binary())
def test_a_line_is_a_record_or_unreadable(line: bytes) -> None:
    with pytest.raises(codec.UnreadableError):
        codec.decode_launch(line)
    with pytest.raises(codec.UnreadableError):
        codec.decode_run(line)


@given(cut=st.integers(min_value=1, max_value=10_000))
def test_however_a_file_is_torn_only_the_torn_launch_is_gone(
    cut: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = a_file(tmp_path_factory.mktemp("torn"))
    whole = file.read_bytes()
    kept = whole[: max(len(whole.split(b"\n")[0]) + 1, len(whole) - cut)]
    file.write_bytes(kept)

    appender = jsonl.Appender(file)
    appender.append(a_launch(block=9))
    appender.close()

    stored = jsonl.read(file)
    assert stored.faults == ()
    blocks = [launch.block for launch in stored.launches]
    assert blocks == [*range(kept.count(b"\n") - 1), 9]


def test_a_damaged_line_is_named_and_the_rest_is_kept(tmp_path: Path) -> None:
    file = a_file(tmp_path)
    lines = file.read_bytes().split(b"\n")
    lines[2] = lines[2][:50] + b"\xff" + lines[2][51:]
    file.write_bytes(b"\n".join(lines))

    stored = jsonl.read(file)

    assert [launch.block for launch in stored.launches] == [0, 2]
    assert [fault.line for fault in stored.faults] == [3]


def test_records_of_a_newer_corebound_are_refused_and_say_so(tmp_path: Path) -> None:
    file = a_file(tmp_path)
    file.write_bytes(file.read_bytes().replace(b'"schema":1', b'"schema":999', 1))

    with pytest.raises(InputError, match="newer corebound"):
        jsonl.read(file)


@pytest.mark.parametrize("content", [b"", b"\n", b"hello\n", b'{"kind":"run"}\n'])
def test_a_file_that_is_none_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "x.jsonl"
    file.write_bytes(content)

    with pytest.raises(InputError, match="not a file of records"):
        jsonl.read(file)


def test_a_folder_that_cannot_be_written_is_an_error_for_people(tmp_path: Path) -> None:
    (tmp_path / "host").write_text("in the way")

    with pytest.raises(InputError, match="records cannot be written"):
        jsonl.Appender(tmp_path / "host" / "run.jsonl")


def test_hashes_do_not_depend_on_the_order_of_keys() -> None:
    assert codec.canonical({"b": 1, "a": [2]}) == codec.canonical({"a": [2], "b": 1})

"""Tables of any tool, CSV and JSON: columns that the user names, odd forms, and bad rows."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from corebound.errors import InputError
from corebound.exchange import result_files
from corebound.exchange.importers import IMPORTERS
from corebound.exchange.result_files import Columns, Context, ResultFiles
from corebound.records.history import Series
from support.commands import corebound
from support.examples import examples
from support.known import known

# The shape of the examples of Apache Otava.
WIDE = """time,commit,p50,p99
2026.01.01 3:00:00 +0100,aaaa0000,154023,10.43
2026.01.02 3:00:00 +0100,aaaa0001,138455,10.23
2026.01.03 3:00:00 +0100,aaaa0002,,10.29
"""


def read_file(file: Path, content: str | bytes, **columns: Any) -> ResultFiles:
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return result_files.read_all(
        [file],
        IMPORTERS["csv"].read,
        Context(project="p", columns=Columns(**columns)),
        lambda _done, _of: None,
    )


def read(tmp_path: Path, content: str | bytes, **columns: Any) -> dict[str, Series]:
    found = read_file(tmp_path / "table", content, **columns)
    assert not found.faults
    return {f"{series.scenario}[{series.cell}]": series for series in found.series}


def values(series: Series) -> list[float]:
    return list(series.points.measured)


def test_each_column_of_a_wide_table_is_a_benchmark(tmp_path: Path) -> None:
    series = read(tmp_path, WIDE, time="time", revision="commit", value=("p50", "p99"), unit="ms")

    assert [*series] == ["p50[default]", "p99[default]"]
    first, *_ = series["p99[default]"].points
    assert first.at == "2026-01-01T02:00:00Z"
    assert first.value == pytest.approx(10.43e6)
    assert known(first.commit).sha == "aaaa0000"
    # An empty cell is no point.
    assert len(series["p50[default]"].points) == 2


def test_each_row_of_a_long_table_names_its_benchmark_and_parameters(tmp_path: Path) -> None:
    table = "name,rows,ops,at\nsort,10,5,2026-01-01\nsort,20,4,2026-01-01\nmap,10,3,2026-01-01\n"

    series = read(
        tmp_path,
        table,
        time="at",
        benchmark="name",
        parameter=("rows",),
        value=("ops",),
        unit="ops/s",
    )

    assert [*series] == ["sort[rows=10]", "sort[rows=20]", "map[rows=10]"]
    assert series["map[rows=10]"].more_is_better


def test_rows_of_one_commit_and_day_are_launches_of_one_point(tmp_path: Path) -> None:
    rows = "".join(f"2026-01-01T0{hour}:00,aaaa0000,{10 + hour}\n" for hour in range(6))

    (series,) = read(
        tmp_path, f"at,sha,ms\n{rows}", time="at", revision="sha", value=("ms",)
    ).values()

    (point,) = series.points
    assert len(point.launches) == 6
    assert point.bounds is not None


@pytest.mark.parametrize(
    ("unit", "better", "is_rate"),
    [("ms", None, False), ("req/s", None, True), ("points", "higher", True), ("", None, False)],
)
def test_the_direction_is_that_of_the_unit_unless_it_is_said(
    unit: str, better: str | None, is_rate: bool, tmp_path: Path
) -> None:
    (series,) = read(tmp_path, "v\n3\n", value=("v",), unit=unit, better=better).values()

    assert series.more_is_better is is_rate


@pytest.mark.parametrize(
    "content",
    [
        "at;größe;ms\n2026-01-01;x;1,5\n".encode("cp1252"),
        "\ufeffat;größe;ms\r\n2026-01-01;x;1,5\r\n".encode(),
        "at\tgröße\tms\n2026-01-01\tx\t1.5\n".encode("utf-16"),
        '"at","größe","ms"\n\n"2026-01-01","x\ny"," 1.5 "\n'.encode(),
        '[{"at": 1767225600, "größe": "x", "ms": 1.5}]'.encode(),
        '[{"at": "1767225600000", "größe": "x", "ms": "1.5"}]'.encode(),
        '{"at": "2026/1/1", "größe": 3, "ms": 15e-1}\n\n{"at": "20260101", "ms": 1.5}\n'.encode(),
    ],
)
def test_odd_encodings_separators_and_times_are_understood(content: bytes, tmp_path: Path) -> None:
    (series,) = read(tmp_path, content, time="at", value=("ms",)).values()

    assert series.points[0].at == "2026-01-01T00:00:00Z"
    assert values(series) == pytest.approx([1.5])


def test_rows_may_lie_deep_in_json(tmp_path: Path) -> None:
    document = {"data": [{"runs": [{"stats": {"p99": 3}, "at": "2026-01-01"}]}]}

    (series,) = read(
        tmp_path, json.dumps(document), rows="data[0].runs", time="at", value=("stats.p99",)
    ).values()

    assert values(series) == pytest.approx([3])


def test_a_bad_row_is_told_with_line_and_column_and_costs_no_other(tmp_path: Path) -> None:
    table = (
        'at,sha,ms\n"2026-01-01",x,1\nsoon,x,2\n2026-01-03,x,abc\n2026-01-04,x\n2026-01-05,x,5\n'
    )

    found = read_file(tmp_path / "t", table, time="at", revision="sha", value=("ms",))

    (series,) = found.series
    assert values(series) == pytest.approx([1, 5])
    said = [fault.what for fault in found.faults]
    assert len(said) == 4
    for where in ("line 3, column `at`", "line 4, column `ms`", "line 5", "line 2, column `sha`"):
        assert any(where in what for what in said)


@pytest.mark.parametrize(
    ("content", "columns", "said"),
    [
        ("a,b\n1,x\n", {"value": ()}, "Columns with numbers: a"),
        ("a,b\n1,2\n", {"value": ("c",)}, "It has: a, b"),
        ("a,a\n1,2\n", {"value": ("a",)}, "two columns"),
        ("a,b\n", {"value": ("a",)}, "no rows"),
        ("", {"value": ("a",)}, "no rows"),
        ('{"x": [{"a": 1}]}', {"value": ("a",)}, "--rows"),
        ('{"x": [{"a": 1}]}', {"value": ("a",), "rows": "y[0]"}, "y[0]"),
        ('[{"a": 1}, {"a": ', {"value": ("a",)}, "truncated"),
    ],
)
def test_a_table_that_cannot_be_read_says_what_to_name(
    content: str, columns: dict[str, Any], said: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError) as caught:
        read_file(tmp_path / "t", content, **columns)

    assert said in str(caught.value)


CELLS = st.one_of(
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.none(),
    st.booleans(),
    st.sampled_from(["1,5", "1e999", "NaN", "-0", '"', "2026-13-45", "9" * 400, "=1+1", "\0"]),
)


@settings(examples(100), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(st.lists(CELLS, min_size=1, max_size=4), max_size=5),
    separator=st.sampled_from([",", ";", "\t", "\n"]),
    form=st.sampled_from(["csv", "json", "lines", "bytes"]),
    noise=st.binary(max_size=12),
)
def test_odd_tables_are_read_or_refused(
    rows: list[list[Any]], separator: str, form: str, noise: bytes, tmp_path: Path
) -> None:
    names = ["at", "sha", "ms", "name"]
    if form == "csv":
        lines = [separator.join(names), *(separator.join(map(str, row)) for row in rows)]
        content = "\n".join(lines).encode("utf-8", "surrogatepass")
    else:
        objects = [dict(zip(names, row, strict=False)) for row in rows]
        text = "\n".join(map(json.dumps, objects)) if form == "lines" else json.dumps(objects)
        content = noise + text.encode() if form == "bytes" else text.encode()
    try:
        found = read_file(
            tmp_path / "t", content, time="at", revision="sha", value=("ms",), benchmark="name"
        )
    except InputError:
        return
    assert all(value > 0 for series in found.series for value in values(series))


def test_change_points_of_a_table_are_found(tmp_path: Path) -> None:
    rows = "".join(
        f"2026-01-{day:02},{(13 if day > 12 else 10) + day % 3 / 50}\n" for day in range(1, 25)
    )
    (tmp_path / "nights.csv").write_text(f"day,ms\n{rows}")
    words = ["--project", "db", "--time", "day", "--value", "ms", "--unit", "ms"]
    imported = corebound(tmp_path, "import", "csv", "nights.csv", *words, in_process=True)

    found = corebound(tmp_path, "regressions", "--json", in_process=True)

    assert imported.code == 0
    assert found.code == 1
    assert json.loads(found.out)["alarms"] == 1

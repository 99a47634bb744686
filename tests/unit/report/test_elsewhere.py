"""Commands on pages of records that lie elsewhere than where corebound looks by itself."""

from __future__ import annotations

import contextlib
import html
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from msgspec.structs import replace
from typer.testing import CliRunner

from corebound.analysis.commands import CommandLine, asked_command
from corebound.cli.app import app
from corebound.records import jsonl
from support.build import a_run
from support.report_sample import (
    COMMITS,
    a_serving_sample,
    pages_of,
    sample_history,
    sample_imports,
    sample_records,
)

ELSEWHERE = "else where/it's"


@pytest.fixture(scope="module")
def elsewhere() -> dict[str, str]:
    return pages_of(
        sample_records(),
        series=sample_history(),
        profiles=sample_imports(),
        compared=[COMMITS],
        records_folder=ELSEWHERE,
    )


def commands_of(page: str) -> list[str]:
    """Every command of corebound's own that a page shows, as it would be copied."""
    shown = re.findall(r"<(?:code|pre)[^>]*>(.*?)</(?:code|pre)>", page, re.DOTALL)
    texts = (html.unescape(re.sub(r"<[^>]+>", "", one)) for one in shown)
    return [line for text in texts for line in text.splitlines() if line.startswith("corebound ")]


def test_every_command_on_every_page_finds_the_records_where_they_are(
    elsewhere: dict[str, str],
) -> None:
    # What was asked of a run stays on its page as it was asked.
    asked = {(f"run/{run.id}.html", shlex.join(run.argv)) for run, _ in sample_records()}
    pages = {name: commands_of(text) for name, text in elsewhere.items() if name.endswith("html")}

    takes = {path for path, command in _leaves(typer.main.get_command(app)) if _takes(command)}
    wrong = {
        f"{name}: {line}"
        for name, lines in pages.items()
        for line in lines
        if (name, line) not in asked
        and (_command(line) in takes) != (f"--records {shlex.quote(ELSEWHERE)}" in line)
    }

    assert wrong == set()
    seen = {_command(line) for lines in pages.values() for line in lines}
    assert {("run",), ("reproduce",), ("compare",), ("import", "profile")} <= seen


def test_a_site_of_nothing_says_what_to_run_for_that_folder() -> None:
    page = pages_of([], records_folder="r")["index.html"]

    assert commands_of(page) == [
        "corebound run scenarios --profile quick --records r",
        "corebound report --records r",
    ]


def test_the_commands_in_the_data_do_too(elsewhere: dict[str, str]) -> None:
    scenario = "data/resnet50-inference"
    for name in (f"{scenario}.csv", f"{scenario}.json", "data/changes.csv", "feed.xml"):
        told = re.findall(r"corebound (?:run|reproduce) .*", elsewhere[name])

        assert told
        assert all("--records 'else where/" in html.unescape(line) for line in told)


def _leaves(group: Any, above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    context = typer.Context(group)
    for name in group.list_commands(context):
        document = group.get_command(context, name)
        if hasattr(document, "list_commands"):
            yield from _leaves(document, (*above, name))
        else:
            yield (*above, name), document


def _takes(command: Any) -> bool:
    return any("--records" in one.opts for one in command.params)


def _command(line: str) -> tuple[str, ...]:
    parts = line.split()[1:]
    return tuple(parts[:2] if parts[0] in {"import", "export"} else parts[:1])


def test_where_the_records_are_is_told_to_what_reads_them() -> None:
    assert CommandLine("corebound run a.yaml").at("my recs") == (
        "corebound run a.yaml --records 'my recs'"
    )
    assert CommandLine("corebound run a.yaml").at("") == "corebound run a.yaml"
    assert CommandLine("corebound topology", reads_records=False).at("x") == "corebound topology"


def test_what_was_asked_for_with_a_folder_of_records_keeps_it() -> None:
    run = replace(a_run(), argv=("corebound", "run", "a", "--records", "r"))

    assert asked_command(run).at("x") == "corebound run a --records r"


def test_a_site_of_another_folder_shows_it_and_one_of_the_usual_folder_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run, launches = a_serving_sample()
    for folder in ("my records", "reports/records"):
        file = jsonl.file_of(run, Path(folder))
        with contextlib.closing(jsonl.begin(run, file)) as appender:
            for launch in launches[:4]:
                appender.append(launch)

    for parts in (["--records", "my records"], []):
        assert CliRunner().invoke(app, ["report", *parts]).exit_code == 0
        pages = [path.read_text() for path in Path("reports/site").rglob("*.html")]
        told = [line for page in pages for line in commands_of(page)]

        assert any("reproduce" in line for line in told)
        assert any("--records 'my records'" in line for line in told) is bool(parts)

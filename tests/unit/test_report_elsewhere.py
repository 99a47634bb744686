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
from typer.testing import CliRunner

from corebound.cli.app import app
from corebound.report import site
from corebound.report.view.command import READS_RECORDS, kept_at
from corebound.store import jsonl
from report_sample import COMMITS, NOW, a_past, a_serving_sample, sample_imports, sample_records

ELSEWHERE = "else where/it's"


@pytest.fixture(scope="module")
def elsewhere() -> dict[str, str]:
    return dict(
        site.files(
            sample_records(),
            now=NOW,
            series=a_past(),
            profiles=sample_imports(),
            compared=[COMMITS],
            asked=ELSEWHERE,
        )
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

    lost = {
        f"{name}: {line}"
        for name, lines in pages.items()
        for line in lines
        if (name, line) not in asked
        and _command(line) in READS_RECORDS
        and f"--records {shlex.quote(ELSEWHERE)}" not in line
    }

    assert lost == set()
    seen = {_command(line) for lines in pages.values() for line in lines}
    assert {("run",), ("reproduce",), ("compare",), ("import", "profile")} <= seen


def test_a_site_of_nothing_says_what_to_run_for_that_folder() -> None:
    (page,) = (text for name, text in site.files([], now=NOW, asked="r") if name == "index.html")

    assert commands_of(page) == [
        "corebound run scenarios --profile quick --records r",
        "corebound report --records r",
    ]


def test_the_commands_in_the_data_do_too(elsewhere: dict[str, str]) -> None:
    for name in ("data/resnet50-inference.csv", "data/resnet50-inference.json", "data/changes.csv"):
        told = re.findall(r"corebound (?:run|reproduce) .*", elsewhere[name])

        assert told
        assert all("--records 'else where/" in line for line in told)


def _leaves(group: Any, above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    context = typer.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        if hasattr(found, "list_commands"):
            yield from _leaves(found, (*above, name))
        else:
            yield (*above, name), found


def _takes(command: Any) -> bool:
    return any("--records" in one.opts for one in command.params)


def _command(line: str) -> tuple[str, ...]:
    words = line.split()[1:]
    return tuple(words[:2] if words[0] in {"import", "export"} else words[:1])


def test_where_the_records_are_is_added_once_and_to_those_that_read_them() -> None:
    assert kept_at("corebound run a.yaml --seed 1", "my recs") == (
        "corebound run a.yaml --seed 1 --records 'my recs'"
    )
    assert kept_at("corebound run a.yaml --records r", "x") == "corebound run a.yaml --records r"
    assert kept_at("corebound topology", "x") == "corebound topology"
    assert kept_at("asv run --bench '^a'", "x") == "asv run --bench '^a'"
    assert kept_at("corebound reproduce a\ncorebound plan b", "x") == (
        "corebound reproduce a --records x\ncorebound plan b"
    )
    # What the shell puts in stays for the shell, and a line's end in quotes is none.
    assert kept_at('corebound import profile "$PWD" --name a', "x") == (
        'corebound import profile "$PWD" --name a --records x'
    )
    assert kept_at("corebound run a --only 'b\nc'", "x") == (
        "corebound run a --only 'b\nc' --records x"
    )
    assert kept_at("corebound run a", "") == "corebound run a"


def test_what_takes_the_folder_is_known() -> None:
    takes = {path for path, command in _leaves(typer.main.get_command(app)) if _takes(command)}

    assert takes == READS_RECORDS


def test_a_site_of_another_folder_shows_it_and_one_of_the_usual_folder_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run, launches = a_serving_sample()
    for folder in ("my records", "reports/records"):
        file = jsonl.file_of(run, Path(folder))
        jsonl.begin(run, file)
        with contextlib.closing(jsonl.Appender(file)) as appender:
            for launch in launches[:4]:
                appender.append(launch)

    for words in (["--records", "my records"], []):
        assert CliRunner().invoke(app, ["report", *words]).exit_code == 0
        pages = [one.read_text() for one in Path("reports/site").rglob("*.html")]
        told = [line for page in pages for line in commands_of(page)]

        assert any("reproduce" in line for line in told)
        assert any("--records 'my records'" in line for line in told) is bool(words)

"""Specifies `corebound regressions`: changes, decisions, alarms and failed analyses."""

import json
import math
import random
import re
from pathlib import Path
from typing import Any

import pytest
from defusedxml.ElementTree import fromstring
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from typer.testing import CliRunner, Result

from corebound.analysis.change_history import build_change_history
from corebound.analysis.commit_comparison import compare_imported_commits
from corebound.cli.app import app
from corebound.errors import InputError
from corebound.records import documents, history_files
from corebound.records.decisions import (
    DECISIONS_FILE,
    HEAD,
    Answer,
    ChangeLocation,
    Confirmation,
    Decision,
    State,
    entry,
    read_decisions,
    read_decisions_file,
)
from corebound.records.history import HistoryPoints, Series
from corebound.stats.history import regressions
from corebound.stats.history.alerts import HistoryChange, assess_changes
from corebound.stats.history.change_point import HistoryArrays
from corebound.stats.history.early_warnings import early_warning
from corebound.stats.history.regressions import Change, analyse, arrays_of, failing
from corebound.stats.intervals import Interval
from support.build import a_calibration, a_point, a_series
from support.examples import examples
from support.known import known
from support.markup import parse_xml
from support.texts import in_order

LONG_AGO = "2020-01-01T00:00:00Z"
FOREIGN = "<b>a & 'b'\x1b[31m\x00| `c` \ud7ff"


def nights(
    count: int = 60, *, step: int | None = None, back: int | None = None, seed: int = 1
) -> list[float | None]:
    """Figures that vary by 1 %, from `step` to `back` 8 % higher."""
    chance = random.Random(seed)
    ends = (count if step is None else step, count if back is None else back)
    return [
        100e6 * math.exp(chance.gauss(0, 0.01) + (0.08 if ends[0] <= night < ends[1] else 0))
        for night in range(count)
    ]


def a_change(**changed: Any) -> Change:
    (change,) = analyse([a_series(nights(step=50), **changed)]).changes
    return change


def a_decision(
    state: State = "accepted", *, change: Change | None = None, at: str = LONG_AGO
) -> Decision:
    about = change or a_change()
    return Decision(id=about.id, state=state, because="why not", at=at, location=about.location)


def a_confirmation(
    answer: Answer, *, change: Change | None = None, both: bool = False, seen: str | None = None
) -> Confirmation:
    about = change or a_change()
    return Confirmation(
        schema=1,
        id=about.id,
        location=about.location,
        answer=answer,
        both=both,
        how="somehow",
        at=LONG_AGO,
        last_point=seen or about.series.points[-1].at,
        run=None,
        ratio=None,
        interval=None,
    )


def assessed(change: Change, *known: Decision | Confirmation) -> HistoryChange:
    (found,) = assess_changes(
        [change],
        [each for each in known if isinstance(each, Decision)],
        [each for each in known if isinstance(each, Confirmation)],
    )
    return found


def test_a_new_regression_without_a_decision_alarms_and_an_improvement_does_not() -> None:
    (better,) = analyse(
        [a_series([figure and 1e16 / figure for figure in nights(step=50)])]
    ).changes

    assert assessed(a_change()).is_alarm
    assert not better.is_regression
    assert not assessed(better).is_alarm


def test_the_last_decision_about_a_step_counts_under_any_id() -> None:
    accepted = a_decision("accepted")
    earlier = replace(accepted, id="as it was called when it was seen first")
    other = replace(
        accepted, id="other", location=replace(accepted.location, by=accepted.location.after)
    )

    assert not assessed(a_change(), accepted).is_alarm
    assert assessed(a_change(), accepted, a_decision("open")).is_alarm
    assert assessed(a_change(), a_decision("fixed"), accepted).state == "accepted"
    assert assessed(a_change(), earlier).state == "accepted"
    assert assessed(a_change(), other).is_alarm


def test_an_accepted_step_stays_accepted_as_its_location_narrows() -> None:
    figures = nights(step=50)
    seen = [
        change for until in range(51, 61) for change in analyse([a_series(figures[:until])]).changes
    ]  # night by night, from the first on which it is seen at all

    told = {assessed(a_change(), a_decision("accepted", change=change)).state for change in seen}

    assert told == {"accepted"}


def test_a_fixed_step_that_has_recovered_does_not_alarm() -> None:
    (first, _) = sorted(
        analyse([a_series(nights(70, step=50, back=60))]).changes, key=lambda c: c.change_point.at
    )

    assert not assessed(
        first, a_decision("fixed", change=first, at=first.series.points[59].at)
    ).is_alarm


def test_a_fixed_step_that_persists_for_three_points_alarms() -> None:
    change = a_change()
    points = change.series.points

    assert not assessed(change, a_decision("fixed", at=points[-3].at)).is_alarm
    back = assessed(change, a_decision("fixed", at=points[-4].at))
    assert back.is_alarm
    assert back.is_back


def test_a_fixed_step_that_returns_alarms() -> None:
    figures = [*nights(80, step=30, back=50), *nights(10, step=0, seed=2)]
    found = sorted(analyse([a_series(figures)]).changes, key=lambda each: each.change_point.at)
    decision = a_decision("fixed", change=found[0], at=found[0].series.points[55].at)

    told = assess_changes(found, [decision], [])

    assert [each.is_alarm for each in told] == [False, False, True]


def test_a_refuted_step_alarms_only_after_three_more_points() -> None:
    change = a_change()
    points = change.series.points

    assert not assessed(change, a_confirmation("refuted")).is_alarm
    assert not assessed(change, a_confirmation("refuted", seen=points[-3].at)).is_alarm
    assert assessed(change, a_confirmation("refuted", seen=points[-4].at)).is_alarm
    # Commits do not change with the nights, but a change may prove to be beside them.
    both = a_confirmation("refuted", both=True, seen=points[0].at)
    assert not assessed(change, both).is_alarm
    assert assessed(
        change, replace(both, location=replace(both.location, after=change.first_bad.at))
    ).is_alarm


def test_a_change_that_no_re_run_refutes_alarms_if_it_is_significant_in_the_suite() -> None:
    told = assessed(replace(a_change(), clear=False))

    assert (told.is_open, told.is_alarm) == (True, False)
    answers: tuple[Answer, ...] = ("inconclusive", "impossible", "confirmed")
    assert all(assessed(a_change(), a_confirmation(answer)).is_alarm for answer in answers)


def an_early_warning() -> Change:
    series = a_series([*nights(60), 108e6, 109e6])
    step = known(early_warning(arrays_of(series), ()))
    return Change(series=series, change_point=step, clear=False)


def test_an_early_warning_alarms_once_both_commits_confirm_it() -> None:
    change = an_early_warning()

    assert change.change_point.at == 60
    assert not assessed(change).is_alarm
    assert assessed(change).is_open
    assert not assessed(change, a_confirmation("confirmed", change=change)).is_alarm
    assert assessed(change, a_confirmation("confirmed", change=change, both=True)).is_alarm


def missing(series: Series, *reasons: str) -> Series:
    """The series with these reasons at its last points, which have no figure."""
    kept, ends = series.points[: -len(reasons)], series.points[-len(reasons) :]
    told = (
        replace(point, value=None, missing=why) for point, why in zip(ends, reasons, strict=True)
    )
    return replace(series, points=HistoryPoints.of([*kept, *told]))


# As datalad's overheads, which are below 0 in every other night.
BELOW_0 = "-2.88 %: only values above 0 can be compared"
ZERO = "0 %: only values above 0 can be compared"
REFUSED = "invalid: another program used the CPUs."
NO_SPACE = "failed: no space"


@pytest.mark.parametrize(
    ("reasons", "expected"),
    [
        (("it failed", "it failed"), ("it failed", 2)),
        # Values not above 0 are values.
        ((BELOW_0,), None),
        ((ZERO, BELOW_0), None),
        (("it failed", BELOW_0), None),
        ((BELOW_0, "it failed", "it failed"), ("it failed", 2)),
        # Refused launches neither end a series nor continue it.
        ((REFUSED, REFUSED), None),
        ((NO_SPACE, REFUSED), (NO_SPACE, 1)),
        ((REFUSED, NO_SPACE, REFUSED, "timed-out: 60 s"), (NO_SPACE, 2)),
    ],
)
def test_a_series_is_failing_from_the_first_point_after_its_last_value(
    reasons: tuple[str, ...], expected: tuple[str, int] | None
) -> None:
    series = missing(a_series([1.0] * (2 + len(reasons))), *reasons)

    found = [(entry.since.missing, entry.points) for entry in failing([series])]

    assert found == ([] if expected is None else [expected])


def test_a_series_that_never_had_a_value_is_not_failing() -> None:
    assert failing([a_series([None, None]), a_series([None, 1.0])]) == ()


@examples(60)
@given(
    seed=st.integers(0, 10_000),
    size=st.floats(0.02, 0.1),
    apart=st.floats(0, 0.1),
    at=st.integers(8, 52),
)
def test_no_decided_change_has_an_interval_with_1(
    seed: int, size: float, apart: float, at: int
) -> None:
    # Two kinds of night: the votes may be sure of a change whose size is not.
    chance = random.Random(seed)
    values = [
        100e6
        * math.exp(chance.gauss(0, 0.01) + apart * (chance.random() < 0.5) + size * (day >= at))
        for day in range(60)
    ]
    for change in analyse([a_series(values)]).changes:
        interval = change.change_point.interval
        assert not (change.clear and interval is not None and interval.contains(1))


def test_a_change_is_decided_only_if_its_interval_excludes_1() -> None:
    change = a_change()
    around_1 = replace(change.change_point, interval=Interval(low=0.9, high=1.2, confidence=0.95))

    (clear,) = regressions._correct_over_suite([(change.series, change.change_point)])
    (open_,) = regressions._correct_over_suite([(change.series, around_1)])

    assert clear.clear
    assert not open_.clear


# The file of decisions.


WORDS = st.text(st.characters().filter(str.isprintable), min_size=1).filter(str.strip)


@given(words=WORDS, odd=st.text())
def test_any_reason_reads_back_from_the_file(words: str, odd: str) -> None:
    decision = Decision(
        id=words,
        state="fixed",
        because=words,
        at=LONG_AGO,
        location=ChangeLocation(series=words, direction="down", after=LONG_AGO, by=LONG_AGO),
    )
    unprintable = replace(a_decision(), because=f"a {odd}".encode("utf-8", "replace").decode())

    (found, _), faults = read_decisions((HEAD + entry(decision) + entry(unprintable)).encode(), "f")

    assert not faults
    assert replace(found, line=None) == decision


@given(st.binary(max_size=200))
def test_any_file_is_read_or_rejected(data: bytes) -> None:
    read_decisions(b"schema: 1\ndecisions:\n" + data, "f")
    read_decisions(data, "f")


def test_all_faults_of_the_file_are_reported_with_their_lines() -> None:
    data = b"""schema: 1
decisions:
  - change: 12
    status: mended
    because: [a]
    at: yesterday
    series: s
    direction: up
    after: 2026-01-01
    by: 2026-01-02T00:00:00Z
    who: me
  - a word
more: 1
"""

    found, faults = read_decisions(data, "f.yaml")

    assert found == ()
    assert [fault.line for fault in faults] == [4, 5, 6, 11, 12, 13]
    assert in_order(
        "\n".join(fault.what for fault in faults),
        "`status: mended`", "`because`", "`at: yesterday`", "`who`", "decision", "`more`",
    )  # fmt: skip


@pytest.mark.parametrize("schema", [b"", b"schema: 2\n", b"schema: true\n"])
def test_a_file_of_another_schema_is_rejected(schema: bytes) -> None:
    _, faults = read_decisions(schema + b"decisions: []\n", "f")

    assert len(faults) == 1
    assert "schema" in faults[0].what


# The command.


@pytest.fixture
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def store_series(*series: Series) -> None:
    history_files.keep("proj", [replace(each, project="proj") for each in series], RECORDS)


RECORDS = Path("reports/records")


# The planted change is 8 %.
SIZE = r"▼ 1\.0[78]× slower \(95 % CI 1\.0[678]–1\.0[789]"


def regressions_command(*words: str) -> Result:
    result = CliRunner().invoke(app, ["regressions", *words], env={"COLUMNS": "400"})
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result


@pytest.mark.parametrize("words", [(), ("--records", "mistyped")])
@pytest.mark.parametrize("is_damaged", [False, True])
def test_without_a_readable_history_the_command_fails(
    empty_folder: Path, words: tuple[str, ...], *, is_damaged: bool
) -> None:
    if is_damaged:
        store_series(a_series(nights(step=50), project="p"))
        (file,) = (RECORDS / "histories").iterdir()
        file.write_bytes(file.read_bytes()[:100])

    with pytest.raises(InputError, match="no results"):
        CliRunner().invoke(app, ["regressions", *words], catch_exceptions=False)


def test_an_unknown_id_or_an_invalid_decisions_file_is_reported_and_changes_nothing(
    empty_folder: Path,
) -> None:
    store_series(a_series(nights(step=50)))
    name = json.loads(regressions_command("--json").stdout)["changes"][0]["id"]
    status = empty_folder / "status.yaml"
    status.write_text("decisions: []\nschema: 1\n")

    result = CliRunner().invoke(app, ["regressions", "--status", "status.yaml", "--fixed", name])
    unknown = CliRunner().invoke(app, ["regressions", "--fixed", "nope"])

    assert "cannot be appended" in str(result.exception)
    assert status.read_text() == "decisions: []\nschema: 1\n"
    assert "no change `nope`" in str(unknown.exception)


def test_an_accepted_regression_never_alarms_again_and_comments_stay(empty_folder: Path) -> None:
    store_series(a_series(nights(step=50)))
    name = json.loads(regressions_command("--json").stdout)["changes"][0]["id"]
    status = empty_folder / "reports" / "regressions.yaml"
    status.parent.mkdir(exist_ok=True)
    ours = "# ours\nschema: 1\ndecisions: # none yet\n# so far"
    status.write_text(ours)

    refused = CliRunner().invoke(app, ["regressions", "--accept", name])
    accepted = regressions_command("--accept", name, "--because", 'it "checks": more')

    assert refused.exit_code != 0
    assert accepted.exit_code == 0
    assert status.read_text().startswith(f"{ours}\n  - ")
    assert regressions_command().exit_code == 0
    listed = regressions_command("--all")
    assert in_order(listed.stdout, "acknowledged", 'it "checks": more')
    assert regressions_command("--reopen", name).exit_code == 0
    assert regressions_command().exit_code == 1


def test_a_fixed_regression_that_persists_is_reported_in_every_format(empty_folder: Path) -> None:
    series = a_series(nights(step=50))
    (change,) = analyse([replace(series, project="proj")]).changes
    store_series(series)
    status = empty_folder / "reports" / "regressions.yaml"
    status.parent.mkdir(exist_ok=True)
    status.write_text(HEAD + entry(a_decision("fixed", change=change)))

    said = {form: regressions_command("--format", form) for form in ("text", "md", "json", "junit")}

    assert {result.exit_code for result in said.values()} == {1}
    assert json.loads(said["json"].stdout)["changes"][0]["state"] == "back"
    words = "new (marked as fixed on 2020-01-01, but still present"
    assert all(words in said[form].stdout for form in ("text", "junit"))
    assert "why not" not in said["text"].stdout


def test_details_have_size_interval_commits_link_and_the_command(empty_folder: Path) -> None:
    store_series(a_series(nights(step=50)))

    for form in ("text", "junit"):
        result = regressions_command("--format", form, "--site", "https://example.org/perf")

        said = result.stdout.replace("\\", "")
        assert result.exit_code == 1
        assert re.search(SIZE, said)
        assert re.search(r"02:00 UTC, 0{8}\w\w\.\.0{8}\w\w \(", said)
        assert in_order(said, "2026-", "(change 5")
        assert "https://example.org/perf/history/matmul-" in said
        assert "corebound run matmul.yaml" in said


def test_a_recovery_is_reported_with_its_commits(empty_folder: Path) -> None:
    store_series(a_series(nights(70, step=50, back=60)))

    said = regressions_command("--all").stdout
    told = {
        assessed["step"]: assessed["recovery"]
        for assessed in json.loads(regressions_command("--json").stdout)["changes"]
    }

    span = f"{'0' * 10}..{'0' * 10}"
    assert in_order(said, "fully recovered", "2026-03-02 02:00 UTC", span, "(change 60)")
    assert told["new"] is None
    found = told["recovered"]
    subjects = [found[name]["subject"] for name in ("last_good", "first_bad")]
    assert subjects == ["change 59", "change 60"]
    assert found["left"] == pytest.approx(1.0, abs=0.01)
    assert (found["steps"], found["whole"], found["clear"]) == (1, True, True)


def test_failing_series_are_reported_but_are_no_regression(empty_folder: Path) -> None:
    series = a_series([*nights(20), None, None])
    points = (
        *series.points[:-2],
        *(replace(p, missing="out of memory") for p in series.points[-2:]),
    )
    store_series(replace(series, points=HistoryPoints.of(points)))

    result = regressions_command()

    assert result.exit_code == 0
    assert in_order(result.stdout, "out of memory", "2026-01-21 02:00 UTC", "2 runs")


def a_retired_suite() -> tuple[Series, ...]:
    """A regression whose series then ended, one that stands out at its end, and one that goes on.

    A retired environment is like this: its host has runs long after its own last one.
    """
    spared = random.Random(2)
    calm = [100e6 * math.exp(spared.gauss(0, 0.01)) for _ in range(58)]
    return (
        a_series(nights(step=50), scenario="retired", title="Retired"),
        a_series([*calm, 104e6, 104.2e6], scenario="stood-out"),
        a_series([*calm, None, None], scenario="failed-last"),
        a_series(nights(120, seed=5), scenario="goes-on"),
    )


def test_changes_in_retired_series_are_new_only_if_reopened_as_on_the_site(
    empty_folder: Path,
) -> None:
    store_series(*a_retired_suite())

    told = json.loads(regressions_command("--json").stdout)

    assert (told["alarms"], told["failing"]) == (0, [])
    (change,) = told["changes"]
    assert change["ended"]
    said = regressions_command().stdout
    assert in_order(said, "No new regression", "4 series", "3 of them retired")
    assert "retired" in regressions_command("--all").stdout
    assert news_of_the_site() == []

    regressions_command("--reopen", change["id"])

    assert json.loads(regressions_command("--json").stdout)["alarms"] == 1
    assert news_of_the_site() == [change["id"]]


def news_of_the_site() -> list[str]:
    every, _ = history_files.read_all(RECORDS)
    decisions, _ = read_decisions_file(DECISIONS_FILE)
    return [assessed.id for assessed in build_change_history(every, decisions=decisions).news]


def test_junit_is_well_formed_for_any_names(empty_folder: Path) -> None:
    worse = a_series(nights(step=50), title=FOREIGN, cell=FOREIGN, reproduce=("a", FOREIGN))
    points = [a_point(1.0, day=58), a_point(None, day=59, missing=FOREIGN)]
    failed = a_series([1.0], scenario=FOREIGN, points=HistoryPoints.of(points))
    store_series(worse, failed)

    result = regressions_command("--format", "junit")

    suite = parse_xml(result.stdout)
    assert result.exit_code == 1
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("2", "1", "1")
    assert len(suite.findall("testcase/failure")) == len(suite.findall("testcase/error")) == 1


def test_text_drops_escape_sequences_and_markdown_escapes_markup(empty_folder: Path) -> None:
    store_series(a_series(nights(step=50), title=FOREIGN))

    assert "\x1b" not in regressions_command().stdout
    shown = regressions_command("--format", "md").stdout
    assert "\x1b" not in shown
    assert r"\<b\>a \& 'b'" in shown


def test_an_imported_history_cannot_be_re_run_but_alarms(empty_folder: Path) -> None:
    store_series(a_series(nights(step=50)))

    result = regressions_command("--confirm")

    assert result.exit_code == 1
    assert "measured again" in result.stdout
    (kept,), _ = documents.CONFIRMATIONS.read(RECORDS)
    assert kept.answer == "impossible"


def test_a_regression_of_asv_is_re_run_at_both_commits(empty_folder: Path) -> None:
    store_series(a_series(nights(step=50), reproduce=("asv", "run", "--bench", "matmul")))

    (change,) = json.loads(regressions_command("--json").stdout)["changes"]

    shas = [change[name]["commit"][:10] for name in ("last_good", "first_bad")]
    again = ["asv", "continuous", "--bench", "matmul", *shas]
    assert change["compare"] == again
    for form in ("text", "junit"):
        told = regressions_command("--format", form).stdout.replace("\\", "")
        assert f"Both commits: {' '.join(again)}" in told


def test_re_runs_and_calibrations_with_the_former_word_for_inconclusive_are_read(
    tmp_path: Path,
) -> None:
    # A note may hold the word, and even the key: it stays as it was.
    written = replace(a_confirmation("inconclusive"), how='"answer":"undecided"')
    files = (
        documents.CONFIRMATIONS.keep(written, tmp_path),
        documents.CALIBRATIONS.keep(a_calibration(verdict="inconclusive"), tmp_path),
    )
    for file in files:
        file.write_bytes(file.read_bytes().replace(b'"inconclusive"', b'"undecided"'))
    files[0].with_name("0.json").write_text("{")

    confirmations, faults = documents.CONFIRMATIONS.read(tmp_path)
    calibrations, _ = documents.CALIBRATIONS.read(tmp_path)

    assert (confirmations, len(faults)) == ((written,), 1)
    assert [each.verdict for each in calibrations] == ["inconclusive"]


STEADY = [1e6 * (1 + night * 7 % 5 / 1000) for night in range(60)]
STEPPED = [figure * (1.2 if night >= 40 else 1.0) for night, figure in enumerate(STEADY)]


def a_series_named(scenario: str, figures: list[float]) -> Series:
    return a_series(figures, project="p", scenario=scenario, title=scenario)


@pytest.fixture
def one_analysis_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the analysis of the history called `odd` fail."""
    course_of = regressions.arrays_of

    def failing(series: Series) -> HistoryArrays:
        if series.scenario == "odd":
            raise ZeroDivisionError("float\ndivision by zero")
        return course_of(series)

    monkeypatch.setattr(regressions, "arrays_of", failing)


@pytest.fixture
def records(tmp_path: Path, one_analysis_fails: None) -> Path:
    """Enough series for several processes, one of which cannot be analysed."""
    others = [a_series_named(f"steady{number}", STEADY) for number in range(20)]
    history_files.keep("p", [*others, a_series_named("odd", STEADY)], tmp_path)
    return tmp_path


def run_corebound(*words: str) -> Result:
    return CliRunner().invoke(app, [*words], catch_exceptions=False)


def test_a_failed_analysis_does_not_affect_other_series(one_analysis_fails: None) -> None:
    odd = a_series_named("odd", STEADY)

    found = analyse([a_series_named("a", STEPPED), odd, a_series_named("b", STEADY)])

    assert [change.series.scenario for change in found.changes] == ["a"]
    assert found.not_analysed.keys() == {odd.id}
    assert in_order(found.not_analysed[odd.id], "ZeroDivisionError: ", "(test_regressions.py")


def test_a_value_without_a_logarithm_fails_with_a_reason() -> None:
    (reason,) = analyse([a_series_named("odd", [0.0, *STEADY])]).not_analysed.values()

    assert in_order(reason, "ValueError: ", "above 0", "(")


def test_a_failed_analysis_is_reported_and_fails_the_command(records: Path) -> None:
    said = {}
    for form in ("text", "md", "json", "junit"):
        result = run_corebound("regressions", "--format", form, "--records", str(records))
        assert result.exit_code == 5
        assert "ZeroDivisionError: " in result.stdout
        assert "Traceback" not in result.output
        said[form] = result.stdout

    assert in_order(said["text"], "No new regression", "1 not analysed", "21 series")
    (told,) = json.loads(said["json"])["not_analysed"]
    assert told["scenario"] == "odd"
    assert fromstring(said["junit"]).attrib["errors"] == "1"

    history_files.keep("q", [a_series_named("stepped", STEPPED)], records)
    result = run_corebound("regressions", "--records", str(records))
    assert result.exit_code == 1
    assert in_order(result.stdout, "1 new regression", "1 commit", "1 not analysed")


def test_the_site_shows_the_series_whose_analysis_failed(records: Path) -> None:
    out = records / "site"

    result = run_corebound("report", "--records", str(records), "--out", str(out))

    assert result.exit_code == 0
    assert "ZeroDivisionError" in result.stderr
    assert in_order((out / "index.html").read_text(), "1 series", "not be analysed")
    history = (out / "history.html").read_text()
    assert 'id="not-analysed"' in history
    assert "ZeroDivisionError: " in history
    (page,) = [file for file in (out / "history").iterdir() if "odd" in file.name]
    assert "not be analysed" in page.read_text()
    assert len([*(out / "history").iterdir()]) == 21


def test_commits_of_a_series_whose_analysis_failed_are_not_compared(
    one_analysis_fails: None,
) -> None:
    odd, other = a_series_named("odd", STEADY), a_series_named("other", STEADY)
    one, two = (other.points.moments[at].commit for at in (20, 50))
    assert one is not None
    assert two is not None

    found = compare_imported_commits("p", one.sha, two.sha, build_change_history([odd, other]))

    assert [one.series.scenario for one in found.series] == ["other"]
    ((name, why),) = found.not_comparable
    assert "odd" in name
    assert "not be analysed" in why

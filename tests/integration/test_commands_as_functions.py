"""The commands as functions of `import corebound`: their `document` is what `--json` prints."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

import corebound
from support import commands, repositories
from support.commands import output_of
from support.paths import DATA

FLEET = """\
schema: 1
name: lab
engine: dask
hosts: [n1]
scenarios: [scenarios/counting.yaml]
launches: 1
work: {work}
dask: {{scheduler: "tcp://127.0.0.1:9"}}
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A suite in a repository, with one run of its two cells and a fleet file."""
    folder = tmp_path_factory.mktemp("api")
    suite = repositories.two_sizes_suite(folder / "suite")
    (suite / "fleet.yaml").write_text(FLEET.format(work=folder / "work"))
    repositories.git(suite, "add", "--all")
    repositories.git(suite, "commit", "--quiet", "--message", "add a fleet")
    output_of(suite, "run", "scenarios", "--seed", "5")
    return suite


@pytest.fixture
def suite(recorded: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same, as the current folder."""
    monkeypatch.chdir(recorded)
    for name, value in commands.isolation(recorded).items():
        monkeypatch.setenv(name, value)
    return recorded


def printed(suite: Path, *arguments: str) -> dict[str, Any]:
    """The result that a command prints with `--json`, without the header."""
    document: dict[str, Any] = json.loads(output_of(suite, *arguments, "--json"))
    return {key: value for key, value in document.items() if key not in {"corebound", "error"}}


def as_json(document: object) -> Any:
    return json.loads(json.dumps(document))


def as_plain(result: object) -> Any:
    """A result as `--json` serialises it."""
    return json.loads(msgspec.json.encode(result))


def test_a_plan_is_what_the_command_prints(suite: Path) -> None:
    plan = corebound.plan("scenarios")

    assert [planned.cell for planned in plan] == ["size=1", "size=2"]
    assert all(planned.commands and planned.skipped is None for planned in plan)
    assert plan.duration_s > 0
    assert as_json(plan.document) == printed(suite, "plan", "scenarios")["results"]


def test_the_checks_of_the_host_are_those_that_the_command_prints(suite: Path) -> None:
    host = corebound.doctor("scenarios")

    command = printed(suite, "doctor", "scenarios")
    assert host.document.keys() == command.keys()
    # The load changes from one moment to the next.
    assert [check.check for check in host] == [check["check"] for check in command["checks"]]
    assert all(check.fix for check in host.warnings)


@pytest.mark.quick
def test_a_recorded_result_is_reproduced(suite: Path) -> None:
    (run,) = corebound.load().runs()["run"]

    again = corebound.reproduce(run, "size=1")

    assert (again.scenario, again.cell, again.axes) == ("counting", "size=1", {"size": "1"})
    assert again.slowdown_ratio == pytest.approx(again.now_ns / again.recorded_ns, rel=0.5)
    assert again.holds == again.document["holds"]
    assert len(again.results.runs()) == 2
    command = printed(suite, "reproduce", f"{run}:size=1")
    assert again.document.keys() == command.keys()


def test_a_calibration_has_the_noise_of_each_number_of_launches(suite: Path) -> None:
    calibrations = corebound.calibrate("scenarios", seed=1)

    (calibration,) = calibrations
    assert [noise.launches for noise in calibration.noise] == [3]
    assert len(calibrations.results.launches()) == 6
    (document,) = calibrations.document
    assert document["noise"][0]["floor_ratio"] == calibration.noise[0].floor_ratio
    assert document["id"].startswith("counting[")


def test_a_nightly_run_measures_and_publishes(suite: Path) -> None:
    night = corebound.nightly("scenarios", profile="quick", budget_s=60, to="public")

    assert (night.status, night.failed_step) == ("ok", None), night.text
    assert night.steps.keys() >= {"run", "regressions", "report", "publish"}
    assert night.document["status"] == "ok"
    assert len(night.results.runs()) == 2
    assert (suite / "public" / "index.html").is_file()


def test_a_fleet_is_planned_and_its_missing_shards_are_named(
    suite: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("corebound.fleet.engines.dask._CONNECT_S", 1)
    fleet = corebound.Fleet("fleet.yaml")

    plan = fleet.plan()

    assert as_json(plan) == printed(suite, "fleet", "plan", "fleet.yaml")
    assert not fleet.status().is_measured
    assert as_json(fleet.status().document) == printed(suite, "fleet", "status", "fleet.yaml")
    assert as_json(fleet.collect().document) == printed(suite, "fleet", "collect", "fleet.yaml")
    # The scheduler of this fleet file does not exist.
    with pytest.raises(corebound.CoreboundError) as raised:
        fleet.run()
    assert raised.value.document["fix"]


def test_the_host_and_a_valid_scenario_are_as_printed(suite: Path) -> None:
    assert as_plain(corebound.topology()) == printed(suite, "topology")
    assert as_plain(corebound.check("scenarios")) == printed(suite, "check", "scenarios")["results"]


def test_recorded_runs_and_their_logs_are_as_printed(suite: Path) -> None:
    (listed, *_) = printed(suite, "list")["results"]
    results = corebound.load().filter(run=listed["run"])

    assert as_json(results.document) == printed(suite, "show", listed["run"])
    assert [*results.runs()["run"]] == [listed["run"]]
    with pytest.raises(corebound.CoreboundError, match="no launch of this run failed"):
        results.log()
    launch = results.launches()["launch"][0]
    assert as_plain(results.log(launch)) == printed(suite, "log", listed["run"], launch)


@pytest.mark.quick
def test_the_site_is_written_and_published(suite: Path) -> None:
    site = corebound.write_site("site")

    assert site.index.is_file()
    assert as_json(site.document) == printed(suite, "report", "--out", "site")
    published = corebound.publish("site", to="public-site")
    assert (suite / "public-site" / "index.html").is_file()
    assert as_json(published.document) == printed(
        suite, "publish", "--site", "site", "--to", "public-site"
    )
    on_branch = corebound.publish("site", branch="pages")
    assert (on_branch.branch, on_branch.is_new) == ("pages", True)
    again = printed(suite, "publish", "--site", "site", "--branch", "pages")
    assert again == {"branch": "pages", "commit": on_branch.commit, "new": False}
    with pytest.raises(corebound.CoreboundError, match="exactly one place"):
        corebound.publish("site")


def test_records_are_exported(suite: Path) -> None:
    exported = corebound.export("csv", "launches.csv")

    assert (suite / "launches.csv").read_text().startswith("run,")
    command = printed(suite, "export", "csv", "--out", "launches.csv")
    assert as_json(exported.document) == command
    for arguments in (("pdf", "x.pdf"), ("bencher", "missing/\0/x.json")):
        with pytest.raises((corebound.CoreboundError, ValueError)):
            corebound.export(*arguments)


def test_results_of_other_tools_are_imported(suite: Path) -> None:
    options: dict[str, Any] = {"project": "tool", "host": "ci", "records": "imported"}
    imported = corebound.import_results(
        "hyperfine", DATA / "results" / "hyperfine.json", commit="HEAD", **options
    )

    command = printed(
        suite,
        "import",
        "hyperfine",
        str(DATA / "results" / "hyperfine.json"),
        "--commit=HEAD",
        *(f"--{name}={value}" for name, value in options.items()),
    )
    # The second import adds nothing.
    assert as_json(imported.document) == {**command, "added": imported.history.added}
    assert len(corebound.load("imported").history()) == imported.history.points
    # A name that only a type checker would refuse.
    unknown: Any = "jmh"
    with pytest.raises(corebound.CoreboundError, match="jmh"):
        corebound.import_results(unknown, "x.json")


def test_a_repository_gets_its_first_files(suite: Path, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text("def total():\n    return sum(range(9))\n")

    planned = corebound.init("shop:total", folder=tmp_path, integrations=(), dry_run=True)
    written = corebound.init("shop:total", folder=tmp_path, integrations=())

    assert set(planned.files.values()) == {"would be written"}
    assert set(written.files.values()) == {"written"}
    (again,) = (printed(suite, "init", str(tmp_path), "--function=shop:total", "--none"),)
    assert again["folder"] == written.document["folder"]
    assert set(again["files"]) == set(written.files)
    examples = corebound.examples()
    assert as_plain(examples) == printed(suite, "example")["results"]
    files = corebound.write_examples("example-function", into=tmp_path).files
    assert {*files} == {"example-function.yaml", "example_function.py"}


def test_environments_are_listed_and_a_missing_one_is_an_error(suite: Path) -> None:
    assert [one.name for one in corebound.environments()] == [
        one["name"] for one in printed(suite, "environment", "list")["results"]
    ]
    with pytest.raises(corebound.CoreboundError, match="no environment named"):
        corebound.make_environments()
    with pytest.raises(corebound.CoreboundError, match="has not been made"):
        corebound.remove_environments("missing")

"""`corebound init`: the files it writes work, from the scenario to CI workflows and units."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from corebound.machine import lock
from support import needs
from support.commands import corebound
from support.repositories import git, quick_builds, write_pyproject

BIN = Path(sys.executable).parent
MODULE = """\
def total(count=2_000):
    return sum(number & 7 for number in range(count))


def priced(count):
    return count * 3


async def fetched():
    return 1
"""


def shell(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    # The make that runs these tests would make the user's own one talk of its depth.
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    return subprocess.run(
        arguments,
        cwd=folder,
        env={**inherited, "PATH": path, lock.LOCK_VARIABLE: str(folder), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return a_repository(tmp_path / "shop")


def a_repository(made: Path) -> Path:
    """A project in git, of a user who has not heard of us."""
    (made / "src" / "shop").mkdir(parents=True)
    write_pyproject(made, "shop", **{"package-dir": {"": "src"}})
    (made / "src" / "shop" / "__init__.py").touch()
    (made / "src" / "shop" / "prices.py").write_text(MODULE)
    git(made, "init", "--quiet", "--initial-branch", "trunk")
    git(made, "add", "--all")
    git(made, "commit", "--quiet", "--message", "begin")
    return made


def quicker(repository: Path) -> None:
    """Fewer launches than a user would want, for a test that ends soon."""
    file = repository / "scenarios" / "total.yaml"
    text = file.read_text().replace("min: 6, max: 20", "min: 3, max: 3")
    file.write_text(text.replace("iterations: 30", "iterations: 12").replace(
        "binding: one-cpu\n", "binding: none\n", 1))  # fmt: skip


def test_after_init_a_run_of_the_users_function_works(repository: Path) -> None:
    code, out, err = corebound(repository, "init", "shop.prices:total")
    assert code == 0, err
    assert "corebound run scenarios/total.yaml" in out
    (checked, _, message) = corebound(repository, "check", "scenarios/total.yaml")
    assert checked == 0, message

    code, out, err = corebound(
        repository, "run", "scenarios/total.yaml", "--profile", "quick", "--json"
    )

    assert code == 0, err
    (cell,) = json.loads(out)["cells"]
    # Launches that others disturb are made again.
    assert cell["statuses"].pop("ok") == 3
    assert set(cell["statuses"]) <= {"invalid"}
    assert cell["median_ns"] > 0
    # What is measured is the commit, which asv has built.
    (file,) = (repository / "reports" / "records").glob("*/*.jsonl")
    sha = git(repository, "rev-parse", "HEAD").strip()
    assert sha in file.read_text().partition("\n")[0]


@pytest.mark.quick
def test_without_a_package_to_install_the_files_are_measured_as_they_are(tmp_path: Path) -> None:
    made = tmp_path / "loose"
    made.mkdir()
    (made / "counting.py").write_text("def count():\n    return sum(range(1000))\n")

    code, out, err = corebound(made, "init", "--function", "counting:count")
    ran, told, message = corebound(made, "run", "scenarios", "--profile", "quick", "--json")

    assert code == 0, err
    assert "these commits: missing a git repository of its own and a commit and pyproject" in out
    assert not (made / "asv.conf.json").exists()
    assert ran == 0, message
    statuses = json.loads(told)["cells"][0]["statuses"]
    assert statuses.pop("ok") == 3
    assert set(statuses) <= {"invalid"}


def test_missing_project_files_are_named_and_commits_are_measured_once_they_exist(
    repository: Path,
) -> None:
    installs = (repository / "pyproject.toml").read_text()
    (repository / "pyproject.toml").unlink()
    _, lacking, _ = corebound(repository, "init", "--function", "shop.prices:total")
    scenario = repository / "scenarios" / "total.yaml"
    before = scenario.read_text()

    (repository / "pyproject.toml").write_text(installs)
    scenario.unlink()
    _, whole, _ = corebound(repository, "init", "--function", "shop.prices:total")

    assert "missing pyproject.toml." in lacking
    assert "delete scenarios/total.yaml and run this again" in lacking
    assert "environment: host" in before
    assert "lacks" not in whole
    assert "environment: project" in scenario.read_text()
    assert (repository / "asv.conf.json").is_file()


def test_on_a_terminal_it_asks_for_the_ci_service_and_again_after_a_typing_mistake(
    repository: Path,
) -> None:
    ours, its = os.openpty()
    os.write(ours, b"gitub\ngithub\n")

    completed = subprocess.run(
        (str(BIN / "corebound"), "init", "shop.prices:total", "--dry-run"),
        cwd=repository,
        stdin=its,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )

    assert "Did you mean github?" in completed.stdout + completed.stderr
    assert ".github/workflows/corebound.yml" in completed.stdout
    assert ".gitlab-ci.yml" not in completed.stdout
    assert not (repository / "scenarios").exists()


def test_existing_files_are_kept_and_listed(repository: Path) -> None:
    (repository / "Makefile").write_text("all:\n\techo mine\n")
    (repository / ".gitlab-ci.yml").write_text("test: {script: [make]}\n")
    (repository / "asv.conf.json").write_text('{"version": 1}\n')
    before = {name: (repository / name).read_text() for name in ("Makefile", ".gitlab-ci.yml")}

    code, out, _ = corebound(repository, "init", "--function", "shop.prices:total")
    second, told, _ = corebound(repository, "init", "--function", "shop.prices:total", "--json")

    assert code == second == 0
    assert {name: (repository / name).read_text() for name in before} == before
    assert "include corebound.mk" in out
    assert "local: .gitlab/corebound.yml" in out
    fates = json.loads(told)["files"]
    assert fates["Makefile"] == fates["asv.conf.json"] == "left alone"
    assert fates["scenarios/total.yaml"] == "there already"


@pytest.mark.parametrize(
    ("label", "told"),
    [
        ("shop.prices", "does not name a function"),
        ("shop.costs:total", "no module shop.costs"),
        ("shop.prices:totals", "has no `totals`"),
        ("shop.prices:priced", "requires arguments: count"),
        ("shop.prices:fetched", "asynchronous"),
    ],
)
def test_a_function_that_cannot_be_timed_is_an_error_message(
    repository: Path, label: str, told: str
) -> None:
    code, _, err = corebound(repository, "init", "--function", label)

    assert code == 2
    assert told in " ".join(err.split())
    assert not (repository / "scenarios").exists()


# Runners of one's own, and rented ones.
RUNNERS = pytest.mark.parametrize("runners", [(), ("--hosted",)], ids=["own", "hosted"])


@pytest.mark.quick
@RUNNERS
def test_workflows_are_valid_for_github_and_gitlab(
    repository: Path, runners: tuple[str, ...]
) -> None:
    corebound(repository, "init", "shop.prices:total", *runners)

    for schema, name in (
        ("vendor.github-workflows", ".github/workflows/corebound.yml"),
        ("vendor.gitlab-ci", ".gitlab/corebound.yml"),
        ("vendor.gitlab-ci", ".gitlab-ci.yml"),
    ):
        completed = shell(
            repository, str(BIN / "check-jsonschema"), "--builtin-schema", schema, name
        )
        assert completed.returncode == 0, completed.stdout + completed.stderr


@needs.shellcheck
@RUNNERS
def test_shellcheck_finds_nothing_in_the_ci_scripts(
    repository: Path, runners: tuple[str, ...]
) -> None:
    corebound(repository, "init", "shop.prices:total", *runners)
    github = repository / ".github/workflows/corebound.yml"
    of_github = [step for job in ("compare", "nightly") for step in steps(github, job)]
    of_gitlab = ("speed-compare", "speed-nightly", "speed-pages")
    scripts = [
        *(step["run"] for step in of_github if "run" in step),
        *("\n".join(script_of(repository, job)) for job in of_gitlab),
    ]

    for number, script in enumerate(scripts):
        file = repository / "reports" / f"{number}.sh"
        file.parent.mkdir(exist_ok=True)
        file.write_text(script)
        completed = shell(repository, "shellcheck", "--shell", "bash", str(file))
        assert completed.returncode == 0, completed.stdout


def script_of(repository: Path, job: str) -> list[str]:
    """What GitLab runs of a job, line by line."""
    document = yaml.safe_load((repository / ".gitlab/corebound.yml").read_text())
    found: list[str] = document[job]["script"]
    return found


def steps(workflow: Path, job: str) -> list[dict[str, Any]]:
    document = yaml.safe_load(workflow.read_text())
    found: list[dict[str, Any]] = document["jobs"][job]["steps"]
    return found


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh clone of a repository with what init wrote, and one more commit; built once."""
    return cloned(tmp_path_factory.mktemp("cloned"))


def cloned(folder: Path, *runners: str) -> Path:
    """A clone in a folder, of a repository with what `init` wrote for some runners."""
    origin = a_repository(folder / "shop")
    # What installs corebound would fetch a release: it is here already.
    corebound(origin, "init", "--function", "shop.prices:total", "--install", "true", *runners)
    quicker(origin)
    asv = origin / "asv.conf.json"
    asv.write_text(json.dumps({**json.loads(asv.read_text()), **quick_builds(origin)}))
    git(origin, "add", "--all")
    git(origin, "commit", "--quiet", "--message", "measure it")
    module = origin / "src" / "shop" / "prices.py"
    module.write_text(MODULE.replace("2_000", "400_000"))
    git(origin, "commit", "--quiet", "--all", "--message", "total: look twice")
    git(folder, "clone", "--quiet", "--no-hardlinks", str(origin), "clone")
    return folder / "clone"


def on_github(clone: Path, job: str, **given: str) -> tuple[list[int], str, str]:
    """Run a job's steps as a runner does: exit codes, the summary, and what was said last."""
    summary = clone.with_name("summary.md")
    summary.unlink(missing_ok=True)
    completed = [
        # The shell of steps that name none.
        shell(
            clone, "bash", "-e", "-c", step["run"], CI="true", GITHUB_ACTIONS="true",
            GITHUB_WORKSPACE=str(clone), GITHUB_STEP_SUMMARY=str(summary), **given,
        )
        for step in steps(clone / ".github/workflows/corebound.yml", job)
        if "run" in step
    ]  # fmt: skip
    message = completed[-1].stdout + completed[-1].stderr
    return [one.returncode for one in completed], summary.read_text(), message


def on_gitlab(clone: Path, job: str, **given: str) -> subprocess.CompletedProcess[str]:
    """Run a job's script as a runner's shell does, with no branch checked out."""
    git(clone, "checkout", "--quiet", "--detach")
    variables = {
        "CI": "true",
        "GITLAB_CI": "true",
        "CI_PROJECT_DIR": str(clone),
        "CI_COMMIT_SHA": git(clone, "rev-parse", "HEAD").strip(),
        **given,
    }
    try:
        script = "\n".join(script_of(clone, job))
        return shell(clone, "bash", "-e", "-o", "pipefail", "-c", script, **variables)
    finally:
        git(clone, "checkout", "--quiet", "-")


def test_githubs_compare_job_names_the_slower_cell(clone: Path) -> None:
    shas = {
        name: git(clone, "rev-parse", revision).strip()
        for name, revision in (("PULL_BASE", "HEAD~1"), ("PULL_HEAD", "HEAD"))
    }

    codes, summary, message = on_github(clone, "compare", **shas)

    assert codes == [0, 1], message
    assert "1 of 1 cells slower" in summary


def test_githubs_nightly_job_publishes_the_site(clone: Path) -> None:
    codes, summary, message = on_github(clone, "nightly", COREBOUND_WEBHOOK="")

    assert codes == [0, 0], message
    assert "no new regression" in summary
    origin = git(clone, "ls-remote", "origin", "refs/heads/gh-pages").split()
    assert origin
    assert "shop.prices:total" in git(clone, "show", f"{origin[0]}:index.html")


@pytest.mark.parametrize("service", ["github", "gitlab"])
def test_a_rented_runner_finds_what_nights_measured_and_users_accepted(
    tmp_path: Path, service: str
) -> None:
    first = cloned(tmp_path, "--hosted", f"--{service}")

    def another(name: str, *options: str) -> Path:
        git(tmp_path, "clone", "--quiet", *options, str(tmp_path / "shop"), name)
        return tmp_path / name

    def night(clone: Path) -> None:
        if service == "github":
            codes, _, message = on_github(clone, "nightly", COREBOUND_WEBHOOK="")
            assert set(codes) == {0}, message
        else:
            ended = on_gitlab(clone, "speed-nightly")
            assert ended.returncode == 0, ended.stdout + ended.stderr

    night(first)
    # A second night begins, and ends after a user has pushed a decision.
    second = another("second")
    user = another("user", "--branch", "corebound-records")
    (user / "regressions.yaml").write_text("schema: 1\ndecisions: []\n")
    git(user, "add", "--all")
    git(user, "commit", "--quiet", "--message", "accept it")
    hook = second / ".git" / "hooks" / "pre-commit"
    hook.write_text(f"#!/bin/sh\nunset $(git rev-parse --local-env-vars)\ngit -C {user} push\n")
    hook.chmod(0o700)
    night(second)

    last = another("last")
    git(last, "worktree", "add", "--quiet", "reports", "corebound-records")
    corebound(last, "export", "history", "--out", "points.csv")
    points = (last / "points.csv").read_text().splitlines()
    assert len([point for point in points if "× anchor" in point]) == 2, points
    assert sorted(file.name for file in (last / "reports").iterdir()) == [
        ".git", ".gitignore", "records", "regressions.yaml",
    ]  # fmt: skip


def test_gitlabs_compare_script_writes_junit(clone: Path) -> None:
    base = git(clone, "rev-parse", "HEAD~1").strip()

    completed = on_gitlab(clone, "speed-compare", CI_MERGE_REQUEST_DIFF_BASE_SHA=base)

    assert completed.returncode == 1, completed.stderr
    assert "<failure" in (clone / "speed.xml").read_text()


def test_gitlabs_nightly_script_builds_the_site_for_pages(clone: Path) -> None:
    completed = on_gitlab(clone, "speed-nightly", CI_PIPELINE_SOURCE="schedule")

    assert completed.returncode == 0, completed.stdout + completed.stderr
    assert "no new regression" in (clone / "speed.txt").read_text()
    assert "shop.prices:total" in (clone / "public" / "index.html").read_text()
    assert on_gitlab(clone, "speed-pages").returncode == 0


def test_the_makefile_has_its_targets(repository: Path) -> None:
    corebound(repository, "init")

    completed = shell(repository, "make", "--dry-run", "speed", "speed-compare", "speed-nightly")

    assert completed.returncode == 0, completed.stderr
    assert completed.stdout.splitlines() == [
        "corebound run scenarios",
        "corebound report",
        "corebound compare-commits trunk HEAD scenarios",
        "corebound nightly scenarios",
    ]


@needs.systemd
def test_systemd_accepts_the_units_of_a_folder_with_special_characters(
    repository: Path, tmp_path: Path
) -> None:
    odd = tmp_path / "a shop at 100%"
    repository.rename(odd)

    code, _, err = corebound(odd, "init", "--systemd")

    assert code == 0, err
    units = [odd / "nightly" / f"corebound-nightly.{kind}" for kind in ("service", "timer")]
    completed = shell(odd, "systemd-analyze", "verify", "--man=no", *map(str, units))
    assert completed.returncode == 0, completed.stderr
    assert "corebound-nightly" not in completed.stderr, completed.stderr
    assert "17 2 * * * cd" in (odd / "nightly" / "crontab").read_text()

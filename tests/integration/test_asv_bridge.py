"""The asv bridge: invalid configurations, unknown commits, builds that end with their caller."""

import fcntl
import signal
from pathlib import Path

import pytest

from corebound.asv_bridge.project import open_project
from corebound.errors import InputError
from support import commands
from support.commands import until
from support.repositories import commit_all, counting_suite, git, write_asv_conf, write_pyproject

# Nobody else sleeps for as long as that.
SLEEP = "import time; time.sleep(98_765)"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A project whose scenario runs in its environment, in two commits."""
    folder = counting_suite(tmp_path / "repository", environment="project")
    write_pyproject(folder, "counting", **{"py-modules": []})
    write_asv_conf(folder, "counting")
    commit_all(folder, ignored=("/.asv/",))
    git(folder, "commit", "--quiet", "--allow-empty", "--message", "go on")
    return folder


@pytest.mark.quick
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "cannot be determined"),
        ("nonsense", "asv cannot read it"),
        ("[]", "No version specified"),
        ('{"version": 1}', "No repo specified"),
        ('{"version": 1, "repo": 5}', "must be strings"),
        ('{"version": 1, "repo": "nowhere"}', "DVCS"),
        ('{"version": 1, "repo": ".", "plugins": [".nowhere"]}', "No module named 'nowhere'"),
        ('{"version": 1, "repo": "http://127.0.0.1:9/x.git", "project": "x"}', "unable to access"),
    ],
)
def test_an_invalid_asv_configuration_is_an_error_message(
    repository: Path, text: str, message: str
) -> None:
    (repository / "asv.conf.json").write_text(text)

    with pytest.raises(InputError, match=message):
        open_project(repository / "asv.conf.json", lambda _what: None)


@pytest.mark.parametrize("revision", ["nowhere", "", "--all", "HEAD:", "HEAD^{tree}"])
def test_an_unknown_commit_is_an_error_message(repository: Path, revision: str) -> None:
    project = open_project(repository / "asv.conf.json", print)

    with pytest.raises(InputError, match="is not a commit of"):
        project.commit(revision)


def sleepers() -> list[int]:
    """Processes of the build below, which sleeps instead."""
    builds = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                arguments = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue  # it has ended
            if arguments[1:3] == [b"-c", SLEEP.encode()]:
                builds.append(int(entry.name))
    return builds


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_build_ends_with_its_caller_and_releases_its_lock(
    repository: Path, number: signal.Signals
) -> None:
    write_asv_conf(repository, "counting", install_command=[f"python -c '{SLEEP}'"])
    process = commands.start(repository, "compare-commits", "HEAD~1", "HEAD")
    until(lambda: bool(sleepers()) or process.poll() is not None, 120)
    assert process.poll() is None, process.communicate()

    process.send_signal(number)
    process.communicate(timeout=30)

    until(lambda: not sleepers())
    (lock,) = (repository / ".asv" / "env" / "commits").glob("*/lock")
    until(lambda: is_free(lock))


def is_free(lock: Path) -> bool:
    with lock.open("w") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True

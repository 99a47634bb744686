"""`corebound nightly` updates from a real remote, and loses nothing without it."""

import functools
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from corebound.asv_bridge import project
from corebound.errors import LaunchError
from corebound.records import jsonl
from support import repositories
from support.commands import corebound
from support.repositories import COUNT, git, write_asv_conf

MINE = f"# Mine.\n{COUNT}"


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    return repositories.nightly_suite(tmp_path)


def head(folder: Path) -> str:
    return git(folder, "rev-parse", "HEAD").strip()


def test_pushed_commits_are_measured_and_published_once_the_remote_is_back(suite: Path) -> None:
    sha = repositories.push_change(suite)
    (suite / "notes").write_text("changed here, in no one's way\n")
    is_gone(suite)
    assert repositories.run_nightly(suite, "--update")[0] == 4
    (suite.parent / "moved.git").rename(suite.parent / "origin.git")

    code, out, err = repositories.run_nightly(suite, "--update")

    assert code == 0, out + err
    assert "Resuming the interrupted nightly run" in err
    assert head(suite) == sha
    (file,) = jsonl.files(suite / "reports" / "records")
    commit = jsonl.read_run(file).commit
    assert commit is not None
    assert commit.sha == sha
    assert "Counting" in repositories.published_page(suite)
    assert (suite / "notes").is_file()


def is_gone(suite: Path) -> None:
    (suite.parent / "origin.git").rename(suite.parent / "moved.git")


def is_rewritten(suite: Path) -> None:
    repositories.push_change(suite, amended=True)


def is_in_the_way_of_local_changes(suite: Path) -> None:
    repositories.push_change(suite)
    (suite / "scenarios" / "steps.py").write_text(MINE)


def is_followed_by_no_branch(suite: Path) -> None:
    git(suite, "checkout", "--quiet", "--detach")


@pytest.mark.parametrize(
    ("remote", "message"),
    [
        (is_gone, "not appear to be a git repository"),
        (is_rewritten, "git reset --hard @{upstream}"),
        (is_in_the_way_of_local_changes, "Your local changes"),
        (is_followed_by_no_branch, "HEAD does not point to a branch"),
    ],
)
def test_a_remote_that_cannot_be_followed_is_reported_and_nothing_changes(
    suite: Path, remote: Callable[[Path], None], message: str
) -> None:
    before = head(suite)
    remote(suite)
    steps = (suite / "scenarios" / "steps.py").read_text()

    code, out, err = repositories.run_nightly(suite, "--update")

    assert code == 4, err
    assert "FAILED at `update`" in out
    assert message in out
    assert head(suite) == before
    assert (suite / "scenarios" / "steps.py").read_text() == steps
    assert list(jsonl.files(suite / "reports" / "records")) == []
    assert repositories.published_page(suite) == repositories.PREVIOUS_PAGE


@contextmanager
def served(folder: Path, port: int = 0) -> Iterator[int]:
    """The repositories of a folder, as any web server shows them; yields its port."""
    git(folder / "origin.git", "update-server-info")

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_words: object) -> None:
            pass

    handler = functools.partial(Quiet, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", port), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.quick
def test_a_mirror_follows_its_branch_and_survives_the_remote(suite: Path) -> None:
    origin = suite.parent / "origin.git"
    first = head(origin)
    git(origin, "branch", "next")
    with served(suite.parent) as port:
        url = f"http://127.0.0.1:{port}/origin.git"
        write_asv_conf(suite, "mirrored", repo=url, branches=["next"])
        assert first[:10] in corebound(suite, "update")[1]
        # Another commit on the branch that is told of, and none on the remote's own.
        second = git(origin, "commit-tree", "main^{tree}", "-p", "main", "-m", "go on").strip()
        git(origin, "update-ref", "refs/heads/next", second)
        git(origin, "update-server-info")
        assert second[:10] in corebound(suite, "update")[1]
        # History is written anew.
        third = git(origin, "commit-tree", "main^{tree}", "-m", "begin anew").strip()
        git(origin, "update-ref", "refs/heads/next", third)
        git(origin, "update-server-info")
        assert third[:10] in corebound(suite, "update")[1]

    code, _, err = corebound(suite, "update")

    assert code == 4
    assert "git fetch failed" in err
    assert git(suite / "mirrored", "rev-parse", "next").strip() == third


def test_a_remote_that_never_answers_does_not_block_a_nightly_run(
    suite: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = project.open_project(suite / "asv.conf.json", print)
    monkeypatch.setattr(project, "_LONGEST_S", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        git(suite, "remote", "set-url", "origin", f"git://127.0.0.1:{port}/origin.git")

        with pytest.raises(LaunchError, match="did not finish within 1 s"):
            opened.update()

"""`corebound publish`: a published site is complete, whatever happens meanwhile."""

import os
import shutil
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

from corebound.workflow.publish import open_site, publish_to_folder
from support import commands
from support.commands import Completed
from support.repositories import git

PAGES = 40


def write_site(folder: Path, version: str) -> None:
    """A site whose every page says which night it is of, the overview last."""
    (folder / "scenario").mkdir(parents=True, exist_ok=True)
    for number in range(PAGES):
        (folder / "scenario" / f"{number}.html").write_text(version)
    (folder / "index.html").write_text(version)


def versions(folder: Path) -> set[str]:
    """Which nights a reader of the folder finds."""
    return {file.read_text() for file in folder.rglob("*.html")}


def publish(suite: Path, *arguments: str) -> Completed:
    return commands.corebound(suite, "publish", *arguments, in_process=True)


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    folder = tmp_path / "suite"
    write_site(folder / "reports" / "site", "first")
    git(folder, "init", "--quiet", "--initial-branch", "main")
    (folder / "README").write_text("a suite\n")
    git(folder, "add", "README")
    git(folder, "commit", "--quiet", "--message", "begin")
    return folder


@pytest.mark.quick
def test_a_published_folder_holds_only_the_new_site(suite: Path) -> None:
    (suite / "reports" / "site" / "gone.html").write_text("first")
    assert publish(suite, "--to", "public").code == 0
    (suite / "reports" / "site" / "gone.html").unlink()
    write_site(suite / "reports" / "site", "second")

    completed = publish(suite, "--to", "public")

    assert completed.code == 0, completed.err
    assert versions(suite / "public") == {"second"}
    assert not (suite / "public" / "gone.html").exists()
    assert sorted(file.name for file in suite.glob(".public*")) == [".public.lock"]


def test_a_link_is_switched_to_a_new_folder_and_the_old_one_is_removed(suite: Path) -> None:
    (suite / "before").mkdir()
    (suite / "public").symlink_to("before")

    for version in ("second", "third"):
        write_site(suite / "reports" / "site", version)
        assert publish(suite, "--to", "public").code == 0

    assert (suite / "public").is_symlink()
    assert versions(suite / "public") == {"third"}
    assert len([path for path in suite.glob(".public.new-*") if path.is_dir()]) == 1


def test_a_folder_of_something_else_is_left_alone(suite: Path) -> None:
    (suite / "precious").mkdir()
    (suite / "precious" / "thesis.txt").write_text("years of work")

    completed = publish(suite, "--to", "precious")

    assert completed.code == 2
    assert "other than a published site" in completed.err
    assert (suite / "precious" / "thesis.txt").read_text() == "years of work"


# What changes files.
EVENTS = {
    *("open", "os.mkdir", "os.rename", "os.symlink", "os.remove", "os.rmdir"),
    *("shutil.copyfile", "shutil.rmtree", "ctypes.call_function"),
}


def publish_in_fork(suite: Path, killed_after: int = 1_000_000) -> int:
    """Publish in a process that is killed at an event that changes the folder; its exit code.

    Each system call that changes a file is a moment; strace is not everywhere, audit events are.
    """
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    left = killed_after

    def hear(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal left
        if event in EVENTS and (event.startswith("ctypes") or "public" in str(arguments)):
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)

    try:
        os.chdir(suite)
        sys.addaudithook(hear)
        publish_to_folder(open_site(Path("reports/site"), "now"), Path("public"))
        os._exit(0)
    finally:
        os._exit(1)


@pytest.mark.parametrize("linked", [False, True])
def test_publishing_that_is_killed_leaves_one_complete_site(suite: Path, linked: bool) -> None:
    if linked:
        (suite / "empty").mkdir()
        (suite / "public").symlink_to("empty")
    assert publish(suite, "--to", "public").code == 0
    killed = 0
    for count, moment in enumerate([*range(8), *range(20, 300, 30)]):
        version = f"night {count}"
        before = versions(suite / "public")
        write_site(suite / "reports" / "site", version)

        code = publish_in_fork(suite, moment)

        assert code in {0, -signal.SIGKILL}
        killed += code != 0
        shown = versions(suite / "public")
        assert len(list((suite / "public").rglob("*.html"))) == PAGES + 1
        assert shown in ({version}, before), moment
        assert code != 0 or shown == {version}
    assert killed >= 8
    # What was left behind is gone with the next one that ends well.
    assert publish(suite, "--to", "public").code == 0
    published = (suite / "public").resolve()
    assert [path for path in suite.glob(".public.new-*") if path.resolve() != published] == []


def test_readers_never_see_a_mix_of_two_sites(suite: Path) -> None:
    assert publish(suite, "--to", "public").code == 0
    write_site(suite / "reports" / "site", "second")
    observed = set()
    publishing = threading.Thread(target=publish_in_fork, args=(suite,))
    publishing.start()
    while publishing.is_alive():
        # One descriptor of the folder is one site, whatever takes its place meanwhile.
        folder = os.open(suite / "public", os.O_RDONLY)
        try:
            index = os.open("index.html", os.O_RDONLY, dir_fd=folder)
            observed.add(os.read(index, 100))
            os.close(index)
        except FileNotFoundError:
            pass  # the old folder, opened before and removed since
        finally:
            os.close(folder)
        time.sleep(0.0005)

    assert observed <= {b"first", b"second"}
    assert versions(suite / "public") == {"second"}


@pytest.mark.quick
def test_each_publication_is_a_commit_and_the_checkout_is_unchanged(suite: Path) -> None:
    publish(suite, "--branch", "gh-pages")
    write_site(suite / "reports" / "site", "second")

    completed = publish(suite, "--branch", "gh-pages")
    second = publish(suite, "--branch", "gh-pages")

    assert completed.code == 0, completed.err
    assert git(suite, "rev-list", "--count", "gh-pages").strip() == "2"
    assert git(suite, "show", "gh-pages:index.html") == "second"
    assert ".nojekyll" in git(suite, "ls-tree", "--name-only", "gh-pages").split()
    assert "(unchanged)" in second.out
    assert git(suite, "status", "--porcelain", "--untracked-files=no") == ""
    assert git(suite, "branch", "--show-current").strip() == "main"


def test_the_next_publication_removes_what_a_killed_one_left(suite: Path) -> None:
    # A git that kills whoever publishes, when the index is there already.
    killer = suite / "killer"
    killer.mkdir()
    (killer / "git").write_text(
        "#!/bin/sh\n"
        'for word; do [ "$word" = write-tree ] && kill -9 $PPID; done\n'
        f'exec {shutil.which("git")} "$@"\n'
    )
    (killer / "git").chmod(0o755)
    path = f"{killer}{os.pathsep}{os.environ['PATH']}"

    words = ("publish", "--branch", "gh-pages")
    killed, _, _ = commands.corebound(suite, *words, PATH=path)
    left = list(commands.private_tmp(suite).glob("**/index"))
    code, _, err = commands.corebound(suite, *words)

    assert killed == -signal.SIGKILL
    assert len(left) == 1
    assert code == 0, err
    assert list(commands.private_tmp(suite).iterdir()) == []


def test_a_squashed_branch_is_one_commit_and_keeps_its_cname(suite: Path) -> None:
    publish(suite, "--branch", "gh-pages")
    git(suite, "worktree", "add", "--quiet", "aside", "gh-pages")
    (suite / "aside" / "CNAME").write_text("speed.example.org\n")
    git(suite / "aside", "add", "CNAME")
    git(suite / "aside", "commit", "--quiet", "--message", "name it")
    refused = publish(suite, "--branch", "gh-pages")
    git(suite, "worktree", "remove", "aside")

    completed = publish(suite, "--branch", "gh-pages", "--squash")

    assert refused.code == 2
    assert "checked out" in refused.err
    assert completed.code == 0, completed.err
    assert git(suite, "rev-list", "--count", "gh-pages").strip() == "1"
    assert git(suite, "show", "gh-pages:CNAME") == "speed.example.org\n"


def test_a_push_continues_from_the_remote_branch(suite: Path, tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet", "--bare", "remote")
    git(suite, "remote", "add", "origin", str(tmp_path / "remote"))
    assert publish(suite, "--branch", "gh-pages", "--push", "origin").code == 0
    # As a fresh clone of continuous integration: it has no such branch.
    git(suite, "branch", "-D", "gh-pages")
    write_site(suite / "reports" / "site", "second")

    completed = publish(suite, "--branch", "gh-pages", "--push", "origin")

    assert completed.code == 0, completed.err
    assert git(tmp_path / "remote", "rev-list", "--count", "gh-pages").strip() == "2"
    assert git(tmp_path / "remote", "show", "gh-pages:index.html") == "second"


def test_a_refused_push_leaves_both_branches_unchanged(suite: Path, tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet", "--bare", "remote")
    git(suite, "remote", "add", "origin", str(tmp_path / "remote"))
    publish(suite, "--branch", "gh-pages", "--push", "origin")
    before = git(suite, "rev-parse", "gh-pages")
    hook = tmp_path / "remote" / "hooks" / "pre-receive"
    hook.write_text("#!/bin/sh\necho 'no room' >&2\nexit 1\n")
    hook.chmod(0o755)
    write_site(suite / "reports" / "site", "second")

    completed = publish(suite, "--branch", "gh-pages", "--push", "origin")

    assert completed.code == 4
    assert "no room" in completed.err
    assert git(suite, "rev-parse", "gh-pages") == before
    assert git(tmp_path / "remote", "rev-parse", "gh-pages") == before


@pytest.mark.quick
@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "exactly one place"),
        (("--to", "a", "--branch", "b"), "exactly one place"),
        (("--to", "a", "--squash"), "require --branch"),
        (("--to", "reports/site"), "the site itself"),
        (("--to", "a", "--site", "nowhere"), "no site here"),
        (("--branch", "a..b"), "not a valid branch name"),
        (("--branch", "gh-pages", "--push", "nowhere"), "no remote"),
        (("--branch", "gh-pages", "--repo", "/"), "not a git repository"),
    ],
)
def test_bad_input_is_an_error_message(suite: Path, words: tuple[str, ...], message: str) -> None:
    completed = publish(suite, *words)

    assert completed.code == 2
    assert message in completed.err
    assert "Traceback" not in completed.err

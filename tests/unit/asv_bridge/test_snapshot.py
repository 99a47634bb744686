"""A snapshot commits the working tree and leaves the repository unchanged."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from corebound.asv_bridge import snapshot
from corebound.errors import InputError
from corebound.records.run_record import Commit
from support.repositories import git

SILENT: Callable[[str], None] = lambda _what: None  # noqa: E731


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """One commit of three files."""
    folder = tmp_path / 'with "quotes": and colons' / "repository"
    (folder / "package").mkdir(parents=True)
    for name in ("a.py", "b.py", "package/c.py"):
        (folder / name).write_text(f"# {name}\n")
    git(folder, "init", "--quiet", "--initial-branch", "main")
    commit_all(folder)
    return folder


def commit_all(folder: Path) -> None:
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "go on")


def head(folder: Path) -> Commit:
    sha = git(folder, "rev-parse", "HEAD").strip()
    return Commit(sha=sha, subject="go on", committed_at="2026-01-01T00:00:00Z", dirty=False)


def taken(folder: Path, say: Callable[[str], None] = SILENT, **options: tuple[Path, ...]) -> Commit:
    return snapshot.take_snapshot(folder, store_of(folder), head(folder), notify=say, **options)


def store_of(folder: Path) -> Path:
    return folder.parent / "store.git"


def files_of(folder: Path, commit: Commit) -> dict[str, str]:
    """What is in a snapshot, each file with its mode."""
    sha = snapshot.commit_to_build(store_of(folder), commit)
    words = ("git", "--git-dir", str(store_of(folder)), "ls-tree", "-r", "-z", sha)
    lines = subprocess.run(words, check=True, capture_output=True, text=True).stdout.split("\0")
    return {line.partition("\t")[2]: line[:6] for line in lines if line}


def everything(folder: Path) -> dict[Path, bytes]:
    return {one: one.read_bytes() for one in folder.rglob("*") if one.is_file()}


def test_an_unchanged_tree_is_its_commit(repository: Path) -> None:
    (repository / ".gitignore").write_text("*.log\n")
    commit_all(repository)
    (repository / "noise.log").write_text("ignored")
    (repository / "__pycache__").mkdir()
    (repository / "__pycache__" / "a.pyc").write_text("bytecode")

    assert taken(repository) == head(repository)


def staged(folder: Path) -> None:
    (folder / "a.py").write_text("edited\n")
    git(folder, "add", "a.py")


def in_a_merge(folder: Path) -> None:
    git(folder, "checkout", "--quiet", "-b", "theirs")
    (folder / "a.py").write_text("theirs\n")
    commit_all(folder)
    git(folder, "checkout", "--quiet", "-b", "ours", "main")
    (folder / "a.py").write_text("ours\n")
    commit_all(folder)
    with pytest.raises(subprocess.CalledProcessError):
        git(folder, "merge", "--quiet", "theirs")


def told_unchanged(folder: Path) -> None:
    git(folder, "update-index", "--assume-unchanged", "a.py")
    (folder / "a.py").write_text("edited\n")


def told_skipped(folder: Path) -> None:
    git(folder, "update-index", "--skip-worktree", "a.py")
    (folder / "a.py").write_text("edited\n")


def become_a_folder(folder: Path) -> None:
    (folder / "a.py").unlink()
    (folder / "a.py").mkdir()
    (folder / "a.py" / "inside").write_text("1")


def detached(folder: Path) -> None:
    git(folder, "checkout", "--quiet", "--detach")
    (folder / "a.py").write_text("edited\n")


def with_odd_ends(folder: Path) -> None:
    git(folder, "config", "core.safecrlf", "true")
    (folder / ".gitattributes").write_text("* text=auto eol=crlf\n")
    (folder / "a.py").write_bytes(b"one\r\ntwo\n")


@pytest.mark.parametrize(
    ("change", "differ"),
    [
        (lambda folder: (folder / "a.py").write_text("edited\n"), {"a.py"}),
        (staged, {"a.py"}),
        (lambda folder: (folder / "a.py").unlink(), {"a.py"}),
        (lambda folder: (folder / "a.py").chmod(0o755), {"a.py"}),
        (lambda folder: (folder / "new\n:*.py").write_text("new"), {"new\n:*.py"}),
        (lambda folder: (folder / "link").symlink_to("/nowhere"), {"link"}),
        (become_a_folder, {"a.py", "a.py/inside"}),
        (in_a_merge, {"a.py"}),
        (told_unchanged, {"a.py"}),
        (told_skipped, {"a.py"}),
        (detached, {"a.py"}),
        (with_odd_ends, {".gitattributes", "a.py"}),
    ],
)
def test_changes_are_included_and_the_repository_is_unchanged(
    repository: Path, change: Callable[[Path], object], differ: set[str]
) -> None:
    change(repository)
    before, of_head = everything(repository), head(repository)

    one, again = taken(repository), taken(repository)

    assert one == again
    assert (one.sha, one.dirty) == (of_head.sha, True)
    assert one.name == f"{of_head.sha[:10]}+dirty.{one.tree[:7] if one.tree else None}"
    assert everything(repository) == before
    built = snapshot.commit_to_build(store_of(repository), one)
    words = ("diff-tree", "-r", "-z", "--name-only", of_head.sha, built)
    said = subprocess.run(
        ("git", "--git-dir", str(store_of(repository)), *words),
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    assert {name for name in said.split("\0") if name} == differ
    assert snapshot.find(store_of(repository), one.name) == (one.sha, one.tree)


def test_output_of_the_measurement_is_no_change(repository: Path) -> None:
    (repository / "reports").mkdir()
    (repository / "reports" / "old.json").write_text("{}")
    commit_all(repository)
    (repository / "reports" / "old.json").write_text("[]")
    (repository / "reports" / "new.json").write_text("{}")

    assert taken(repository, outputs=(repository / "reports",)) == head(repository)
    assert taken(repository).dirty


def test_a_sparse_checkout_keeps_absent_files(repository: Path) -> None:
    git(repository, "sparse-checkout", "set", "--no-cone", "/*", "!package")
    assert not (repository / "package").exists()
    assert taken(repository) == head(repository)

    (repository / "a.py").write_text("edited\n")

    assert "package/c.py" in files_of(repository, taken(repository))


def test_a_linked_worktree_is_measured_itself(repository: Path) -> None:
    worktree = repository.parent / "worktree"
    git(repository, "worktree", "add", "--quiet", str(worktree))
    (worktree / "a.py").write_text("edited\n")

    assert taken(worktree).dirty
    assert taken(repository) == head(repository)


def test_a_bare_repository_has_no_working_tree(repository: Path, tmp_path: Path) -> None:
    git(repository, "clone", "--quiet", "--bare", str(repository), str(tmp_path / "bare.git"))

    of_head = head(repository)

    assert (
        snapshot.take_snapshot(tmp_path / "bare.git", tmp_path / "s", of_head, notify=SILENT)
        == of_head
    )


def test_a_nested_repository_is_reported_and_skipped(repository: Path) -> None:
    git(repository, "init", "--quiet", str(repository / "inside"))
    said: list[str] = []

    assert taken(repository, say=said.append) == head(repository)
    assert said == ["inside/ is a separate repository: it is not measured."]


def test_a_submodule_with_changes_is_rejected(repository: Path, tmp_path: Path) -> None:
    library = tmp_path / "library"
    git(repository, "clone", "--quiet", str(repository), str(library))
    words = ("-c", "protocol.file.allow=always", "submodule", "add", "--quiet")
    git(repository, *words, str(library), "library")
    commit_all(repository)
    assert taken(repository) == head(repository)

    (repository / "library" / "a.py").write_text("edited\n")
    with pytest.raises(InputError, match="submodule library has uncommitted changes"):
        taken(repository)

    commit_all(repository / "library")
    assert files_of(repository, taken(repository))["library"] == "160000"


def test_large_untracked_files_cause_a_warning(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "_LARGE_BYTES", 100)
    (repository / "big.bin").write_bytes(b"0" * 200)
    said: list[str] = []

    taken(repository, say=said.append)

    assert "200 B" in said[0]
    assert "big.bin" in said[0]
    assert ".gitignore" in said[0]


def test_an_unreadable_working_tree_is_reported(repository: Path) -> None:
    (repository / ".git" / "index").write_bytes(b"no index")

    with pytest.raises(InputError, match="cannot be read"):
        taken(repository)


def test_a_git_hook_may_take_a_snapshot(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (repository / "a.py").write_text("edited\n")
    of_head, outside = head(repository), taken(repository)
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    monkeypatch.setenv("GIT_INDEX_FILE", "/nowhere/index")

    inside = snapshot.take_snapshot(repository, store_of(repository), of_head, notify=SILENT)

    assert inside == outside


def test_a_missing_snapshot_is_reported(repository: Path) -> None:
    (repository / "a.py").write_text("edited\n")
    one = taken(repository)

    with pytest.raises(InputError, match="no longer exists"):
        snapshot.commit_to_build(repository.parent / "another.git", one)
    assert snapshot.find(repository.parent / "another.git", one.name) is None

"""`corebound init`: what it writes for a repository, and how CI installs corebound."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from corebound import git
from corebound.errors import InputError
from corebound.workflow import init
from corebound.workflow.init import inspect_repository, install_command
from support import repositories
from support.commands import corebound
from support.texts import in_order


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "corebound"
    folder.mkdir()
    repositories.git(folder, "init", "--quiet", "--initial-branch", "main")
    repositories.git(folder, "commit", "--quiet", "--allow-empty", "--message", "first")
    return folder


def installed_from(monkeypatch: pytest.MonkeyPatch, url: str, **more: Any) -> None:
    class Distribution:
        def read_text(self, _name: str) -> str:
            return json.dumps({"url": url, **more})

    monkeypatch.setattr(init, "distribution", lambda _name: Distribution())


def what_is_installed() -> str:
    *command, what = shlex.split(install_command())
    assert command == ["python", "-m", "pip", "install"]
    return what


@pytest.mark.parametrize(
    ("remote", "url"),
    [
        ("https://example.org/corebound.git", "git+https://example.org/corebound.git"),
        ("https://me:secret@example.org/c.git", "git+https://example.org/c.git"),
        ("git@example.org:team/corebound.git", "git+ssh://git@example.org/team/corebound.git"),
    ],
)
def test_a_checkout_is_installed_from_its_remote(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, remote: str, url: str
) -> None:
    repositories.git(checkout, "remote", "add", "origin", remote)
    installed_from(monkeypatch, checkout.as_uri(), dir_info={"editable": True})

    assert what_is_installed() == f"corebound @ {url}"


def test_a_commit_that_was_pushed_is_named(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repositories.git(checkout, "remote", "add", "origin", "https://example.org/c.git")
    sha = git.query(checkout, "rev-parse", "HEAD")
    repositories.git(checkout, "update-ref", "refs/remotes/origin/main", "HEAD")
    installed_from(monkeypatch, checkout.as_uri())

    assert install_command().endswith(f"git+https://example.org/c.git@{sha}'")


def test_without_a_remote_the_path_the_commit_or_a_blank_is_named(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed_from(monkeypatch, checkout.as_uri())
    assert what_is_installed() == str(checkout)

    vcs = {"vcs": "git", "commit_id": "c" * 40}
    installed_from(monkeypatch, "https://example.org/c.git", vcs_info=vcs)
    assert what_is_installed() == f"corebound @ git+https://example.org/c.git@{'c' * 40}"

    installed_from(monkeypatch, "")
    assert install_command().endswith(f" {init.NO_ADDRESS}")


@pytest.mark.parametrize("text", ["", "[project\n", "project = 1\n", "[project]\nname = 2\n"])
def test_a_pyproject_without_a_name_leaves_the_name_of_the_folder(
    checkout: Path, text: str
) -> None:
    (checkout / "pyproject.toml").write_text(text)

    assert inspect_repository(checkout).project == "corebound"


def test_without_options_only_the_used_service_has_files_and_a_dry_run_writes_none(
    checkout: Path,
) -> None:
    (checkout / ".github").mkdir()

    result = corebound(checkout, "init", "--dry-run", in_process=True)

    assert in_order(result.out, "would be written", ".github/workflows/corebound.yml")
    assert "gitlab" not in result.out
    assert sorted(file.name for file in checkout.iterdir()) == [".git", ".github"]


def test_a_folder_without_git_gets_nothing_about_ci(tmp_path: Path) -> None:
    corebound(tmp_path, "init", in_process=True)

    assert not list(tmp_path.glob(".git*/*"))
    assert not (tmp_path / ".gitlab-ci.yml").exists()
    assert (tmp_path / "corebound.mk").exists()


@pytest.mark.parametrize(
    ("options", "written"),
    [
        (["--none"], set()),
        (["--gitlab"], {".gitlab-ci.yml", ".gitlab"}),
        (["--github", "--makefile"], {".github", "Makefile", "corebound.mk"}),
    ],
)
def test_options_select_what_is_written(
    checkout: Path, options: list[str], written: set[str]
) -> None:
    corebound(checkout, "init", *options, in_process=True)

    optional = {".github", ".gitlab", ".gitlab-ci.yml", "Makefile", "corebound.mk"}
    assert optional & {file.name for file in checkout.iterdir()} == written


@pytest.mark.parametrize(
    ("function", "files", "is_refused"),
    [
        ("shop.prices:total", {"shop/__init__.py": ""}, False),
        ("shop.prices:total", {"src/shop/__init__.py": ""}, False),
        ("tools.bench:total", {"shop/__init__.py": ""}, True),
        ("helper:total", {"src/shop/__init__.py": ""}, True),
        ("helper:total", {"shop.py": ""}, True),
        ("helper:total", {"src/store/__init__.py": ""}, True),
        ("helper:total", {"shop/__init__.py": "", "setup.py": "py_modules=['helper']"}, False),
        ("parts.x:total", {"shop.py": "", "parts/__init__.py": "", "setup.py": "find()"}, False),
        # It cannot be known what pip installs.
        ("helper:total", {"store/__init__.py": ""}, False),
    ],
)
def test_a_function_that_builds_would_lack_is_refused(
    tmp_path: Path, function: str, files: dict[str, str], is_refused: bool
) -> None:
    module = function.partition(":")[0].replace(".", "/")
    root = "src/" if any(name.startswith(f"src/{module}"[:8]) for name in files) else ""
    for name, text in {
        "pyproject.toml": '[project]\nname = "shop"\n',
        f"{root}{module}.py": "def total(): ...\n",
        **files,
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    repositories.git(tmp_path, "init", "--quiet", "--initial-branch", "main")
    repositories.git(tmp_path, "commit", "--quiet", "--allow-empty", "--message", "first")

    if is_refused:
        with pytest.raises(InputError, match="outside"):
            init.init(function, folder=tmp_path, integrations=(), dry_run=True)
    else:
        assert init.init(function, folder=tmp_path, integrations=(), dry_run=True).files


def test_a_second_function_of_the_same_name_needs_a_name_of_its_own(tmp_path: Path) -> None:
    for module in ("one", "two"):
        (tmp_path / f"{module}.py").write_text("def work(): ...\n")

    init.init("one:work", folder=tmp_path, integrations=())
    init.init("one:work", folder=tmp_path, integrations=())
    with pytest.raises(InputError, match="--name two-work"):
        init.init("two:work", folder=tmp_path, integrations=())
    named = init.init("two:work", folder=tmp_path, integrations=(), name="two-work")

    assert named.files["scenarios/two-work.yaml"] == "written"

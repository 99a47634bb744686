"""`corebound init` names an address that pip can install corebound from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from corebound import git
from corebound.workflow import init
from corebound.workflow.init import install_command
from support import repositories


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

    assert install_command() == f"python -m pip install 'corebound @ {url}'"


def test_a_commit_that_was_pushed_is_named(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repositories.git(checkout, "remote", "add", "origin", "https://example.org/c.git")
    sha = git.query(checkout, "rev-parse", "HEAD")
    repositories.git(checkout, "update-ref", "refs/remotes/origin/main", "HEAD")
    installed_from(monkeypatch, checkout.as_uri())

    assert install_command().endswith(f"git+https://example.org/c.git@{sha}'")


def test_a_checkout_without_a_remote_is_installed_from_its_path(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed_from(monkeypatch, checkout.as_uri())

    assert install_command() == f"python -m pip install {checkout}"


def test_an_installation_from_a_repository_names_its_commit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    vcs = {"vcs": "git", "commit_id": "c" * 40}
    installed_from(monkeypatch, "https://example.org/c.git", vcs_info=vcs)

    url = f"git+https://example.org/c.git@{'c' * 40}"
    assert install_command() == f"python -m pip install 'corebound @ {url}'"


def test_an_installation_without_an_address_leaves_it_to_be_filled_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    installed_from(monkeypatch, "")

    assert install_command() == f"python -m pip install {init.NO_ADDRESS}"

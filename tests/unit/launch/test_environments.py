"""Specifies how requirements files and their includes identify an environment."""

import hashlib
import os
import platform
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corebound.errors import InputError
from corebound.launch import environments


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COREBOUND_CACHE", str(tmp_path / "cache"))
    (tmp_path / "environments" / "more").mkdir(parents=True)
    return tmp_path


def write(suite: Path, **files: str) -> None:
    for name, text in files.items():
        (suite / "environments" / f"{name.replace('__', '/')}.txt").write_text(text)


def test_a_file_without_includes_is_identified_by_its_content(suite: Path) -> None:
    text = "numpy==2.4.6\n# -r not-an-include.txt\n"
    write(suite, own=text)

    folder = environments.python_of("own", suite).parents[1]

    # Its folder is the one that every version has given it.
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    what = f"{sha256} {platform.python_version()} {platform.machine()}"
    assert folder.name == f"own-{hashlib.sha256(what.encode()).hexdigest()[:12]}"


@pytest.mark.parametrize(
    "line",
    [
        "-r more/base.txt",
        "-rmore/base.txt",
        "--requirement more/base.txt",
        "--requirement=more/base.txt",
        "-c more/base.txt  # pins",
        "--constraint=more/base.txt",
        "-r \\\n  more/base.txt",
        "-r 'more/base.txt'",
        "-r ${FOLDER}/base.txt",
    ],
)
def test_a_change_of_an_included_file_makes_another_environment(
    line: str, suite: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOLDER", "more")
    # Relative to the file that includes it, as pip has it.
    write(suite, own=f"{line}\n", more__base="-r deep.txt\n", more__deep="numpy==1.26.4\n")
    before = environments.python_of("own", suite)

    write(suite, more__deep="numpy==2.4.6\n")

    assert environments.python_of("own", suite) != before


def test_circular_includes_terminate(suite: Path) -> None:
    write(suite, own="-r own.txt\n-r other.txt\n", other="-c own.txt\n")

    assert environments.find("own", suite) is None


@pytest.mark.parametrize("odd", ["nowhere.txt", "/dev/zero", "fifo", "more", "a\0b"])
def test_an_unreadable_include_is_named_when_the_environment_is_made(odd: str, suite: Path) -> None:
    os.mkfifo(suite / "environments" / "fifo")
    write(suite, own=f"-r {odd}\n")

    assert environments.find("own", suite) is None
    with pytest.raises(InputError, match="readable file"):
        environments.make("own", suite, lambda _what: None)
    assert not list(suite.glob("cache/**/*"))


@given(st.text(alphabet="-rc= \"'\\\n#${}A./:x", max_size=40))
def test_no_content_of_a_requirements_file_makes_listing_fail(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    suite = tmp_path_factory.getbasetemp() / "odd"
    (suite / "environments").mkdir(parents=True, exist_ok=True)
    write(suite, own=text)

    environments.python_of("own", suite)


@pytest.mark.parametrize("known", [None, b"", b"9" * 5000, b"\xff", b"12x"])
def test_the_size_of_an_environment_is_measured_once(
    suite: Path, monkeypatch: pytest.MonkeyPatch, known: bytes | None
) -> None:
    write(suite, own="numpy==2.4.6\n")
    folder = environments.python_of("own", suite).parents[1]
    folder.mkdir(parents=True)
    (folder / environments.MARKER).write_text('{"python": "3.11.7", "packages": []}')
    (folder / "file").write_bytes(bytes(10_000))
    if known is not None:
        (folder / environments.SIZE).write_bytes(known)

    def size_bytes() -> int | None:
        return next(row.size_bytes for row in environments.statuses(suite) if row.name == "own")

    measured = size_bytes()
    assert measured is not None
    assert measured >= 10_000
    monkeypatch.setattr(os, "walk", None)
    assert size_bytes() == measured

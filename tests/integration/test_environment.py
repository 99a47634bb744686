"""`corebound environment`: built once, found by content, rebuilt when unfinished."""

import fcntl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from corebound.errors import HostError, InputError, LaunchError
from corebound.launch import environments
from corebound.launch.environments import Environment


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Where environments are kept: nobody else's, and empty at first."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COREBOUND_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    return a_suite(tmp_path)


def a_suite(folder: Path) -> Path:
    (folder / "environments").mkdir()
    (folder / "environments" / "bare.txt").write_text("# nothing but the interpreter\n")
    return folder


# What was found before it was made, what was said meanwhile, and what was made.
Made = tuple[Environment | None, list[str], Environment]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """The bare environment, made once: it takes seconds."""
    suite, messages = a_suite(tmp_path_factory.mktemp("suite")), list[str]()
    return (
        environments.find("bare", suite),
        messages,
        environments.make("bare", suite, messages.append),
    )


def test_an_environment_is_built_once_and_found_by_its_files_content(
    suite: Path, made: Made
) -> None:
    before, messages, bare = made

    assert before is None
    assert messages
    assert bare.python == environments.python_of("bare", suite)
    assert any(package.startswith("pip==") for package in bare.lock.packages)
    assert subprocess.run((bare.python, "-c", "pass"), check=False).returncode == 0
    messages.clear()
    assert environments.make("bare", suite, messages.append) == bare
    assert messages == []

    (suite / "environments" / "bare.txt").write_text("# other content\n")
    assert environments.find("bare", suite) is None
    why = environments.reason_not_made("bare", suite)
    assert why.what == "environment `bare` has changed since it was made: environments/bare.txt."
    assert "changed" in {one.state for one in environments.statuses(suite) if one.name == "bare"}


def test_an_unfinished_environment_is_rebuilt(suite: Path, made: Made) -> None:
    _, _, bare = made
    marker = bare.python.parents[1] / environments.MARKER
    # Its marker was cut short, or was never written, or is another program's.
    for left in ("", '{"python": "3.11', "[]", "{}", None):
        if left is None:
            marker.unlink()
        else:
            marker.write_text(left)
        assert environments.find("bare", suite) is None, left
    bare.python.unlink()

    assert environments.make("bare", suite, lambda _what: None) == bare


def test_packages_that_cannot_be_installed_are_reported_with_pips_message(suite: Path) -> None:
    (suite / "environments" / "bad.txt").write_text("./no-such-folder-here\n")

    with pytest.raises(LaunchError, match="no-such-folder-here"):
        environments.make("bad", suite, lambda _what: None)

    assert environments.find("bad", suite) is None
    assert environments.reason_not_made("bad", suite).what == "environment `bad` has not been made."
    assert not list(environments.environments_dir().glob("bad-*"))


def test_an_abandoned_build_is_removed_unless_it_is_in_progress(suite: Path, made: Made) -> None:
    _, _, bare = made
    whole, left = bare.python.parents[1], environments.environments_dir() / "left-0123456789ab"
    lock = left.with_name(f"{left.name}.lock")
    (left / "bin").mkdir(parents=True)

    with lock.open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        environments.sweep()
        assert left.is_dir()
    environments.sweep()

    assert not left.exists()
    assert not lock.exists()
    assert whole.is_dir()


@pytest.mark.quick
def test_an_unknown_environment_lists_the_known_ones(suite: Path) -> None:
    with pytest.raises(InputError, match="bare"):
        environments.find("brae", suite)


@pytest.mark.quick
def test_the_host_environment_needs_no_build(suite: Path) -> None:
    environment = environments.find("host", suite)

    assert environment is not None
    assert any(package.startswith("corebound==") for package in environment.lock.packages)


def test_an_environment_in_use_is_not_removed(suite: Path, made: Made) -> None:
    _, _, bare = made
    holding = "import sys; from pathlib import Path; from corebound.launch import environments;"
    holding += "environments.hold(Path(sys.argv[1])); print(flush=True); sys.stdin.read()"
    with subprocess.Popen(
        (sys.executable, "-c", holding, str(bare.python)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()

        with pytest.raises(HostError, match="running in it"):
            environments.remove("bare")
        process.communicate()
    assert environments.find("bare", suite) == bare

    count, size_bytes = environments.remove("bare")

    assert (count, environments.find("bare", suite)) == (1, None)
    assert size_bytes > 1_000_000
    assert not list(environments.environments_dir().glob("bare-*"))
    with pytest.raises(InputError, match="`bare` has not been made"):
        environments.remove("bare")

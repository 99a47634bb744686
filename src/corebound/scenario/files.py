"""Where the files that a scenario names are: beside it, and in a launch's working directory."""

import posixpath
from collections.abc import Callable
from pathlib import PurePosixPath

# Whether a file exists, or any that a pattern with `*` matches; relative paths are relative to the
# scenario's folder.
FileFinder = Callable[[str], bool]
# Raises an InputError if an environment that corebound did not make is not there.
EnvironmentFinder = Callable[[str], object]


def name_in_working_directory(file: str) -> str:
    """The path of a file of `files` below the working directory; empty if it has no name.

    >>> name_in_working_directory("data/"), name_in_working_directory("./conf/a.json")
    ('data', 'conf/a.json')
    >>> name_in_working_directory("../shared/weights.bin"), name_in_working_directory("/srv/images")
    ('weights.bin', 'images')
    """
    normal = posixpath.normpath(file)
    is_below = not normal.startswith(("/", ".."))
    name = normal if is_below else PurePosixPath(normal).name
    return "" if name in {".", ".."} else name


def beside_scenario(program: str, folder: str) -> str:
    """A program as it is executed: one with a `/` is relative to the scenario's folder.

    >>> beside_scenario("./script.sh", "/suite"), beside_scenario("sort", "/suite")
    ('/suite/script.sh', 'sort')
    """
    return posixpath.normpath(PurePosixPath(folder, program)) if "/" in program else program

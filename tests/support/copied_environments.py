"""An asv plugin: the first environment is made by virtualenv, all others are copies of it.

asv makes one for each commit, with five runs of pip that install the same packages every time.
A project whose asv.conf.json names this plugin has its commits built and installed as usual.
"""

import fcntl
import hashlib
import os
import shutil
from pathlib import Path

from asv.plugins.virtualenv import Virtualenv


class Copied(Virtualenv):  # type: ignore[misc]  # asv is untyped, so its class is Any
    """An environment that is copied, if one with the same packages was made before."""

    tool_name = "copied"

    def _setup(self) -> None:
        first = self._first()
        with first.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if first.is_dir():
                shutil.copytree(first, self._path, symlinks=True, dirs_exist_ok=True)
                return
            super()._setup()
            # Its pip has no bytecode, and would compile itself in every copy.
            self.run_executable("python", ["-m", "compileall", "-q", str(self._path)])
            unfinished = first.with_suffix(".unfinished")
            shutil.copytree(self._path, unfinished, symlinks=True)
            unfinished.rename(first)

    def _first(self) -> Path:
        packages = sorted({**self._requirements, **self._base_requirements}.items())
        digest = hashlib.sha256(repr((self._executable, packages)).encode()).hexdigest()
        # Beside the project's own, where no fixture gives a folder for all projects.
        folder = Path(os.environ.get("COREBOUND_TESTS_ENVIRONMENTS", ".asv"))
        folder.mkdir(parents=True, exist_ok=True)
        return folder / digest[:16]

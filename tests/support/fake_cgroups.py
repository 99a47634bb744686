"""Cgroups of version 2 in a folder: what the kernel allows, as far as corebound asks it to.

tests/numa has a real kernel.
"""

import errno
import os
import shutil
from pathlib import Path

import pytest

from corebound.launch import cpu_quota


class FakeCgroups:
    """The hierarchy at `sys/fs/cgroup` of a root; making it replaces the kernel's functions."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.mount = root / "sys/fs/cgroup"
        self.root = root
        self.has_quotas = True
        # Who may not write where, with the kernel's errno.
        self.refused: dict[Path, int] = {}
        self._make_folder, self._remove_folder = Path.mkdir, Path.rmdir
        self.mount.mkdir(parents=True)
        for name, text in (("controllers", "cpu memory pids"), ("subtree_control", "")):
            (self.mount / f"cgroup.{name}").write_text(text)
        (self.mount / "cgroup.procs").write_text("1")

        def mkdir(
            folder: Path, mode: int = 0o777, parents: bool = False, exist_ok: bool = False
        ) -> None:
            self._mkdir(folder, mode, parents=parents, exist_ok=exist_ok)

        def rmdir(folder: Path) -> None:
            self._rmdir(folder)

        monkeypatch.setattr(Path, "mkdir", mkdir)
        monkeypatch.setattr(Path, "rmdir", rmdir)
        monkeypatch.setattr(cpu_quota, "_write", self.write)
        marks: dict[tuple[Path, str], bytes] = {}
        monkeypatch.setattr(
            os, "setxattr", lambda path, name, value: marks.update({(path, name): value})
        )
        monkeypatch.setattr(os, "getxattr", lambda path, name: marks.get((path, name), b""))
        monkeypatch.setattr(os, "removexattr", lambda path, name: marks.pop((path, name)))

    def group(self, path: str, *, processes: bool = False, **files: str) -> Path:
        """A cgroup below the root; its parents are made too."""
        folder = self.mount / path
        for each in [*reversed(folder.relative_to(self.mount).parents), Path(path)]:
            if not (self.mount / each).is_dir():
                self._mkdir(self.mount / each)
        for name, text in files.items():
            (folder / name.replace("_", ".", 1)).write_text(text)
        if processes:
            (folder / "cgroup.procs").write_text("1")
        return folder

    def enter(self, path: str, *, root: str = "/", shown: str | None = None) -> Path:
        """Become a process in a cgroup; the mount and /proc/self/cgroup may show other paths."""
        folder = self.group(path, processes=True)
        proc = self.root / "proc/self"
        proc.mkdir(parents=True, exist_ok=True)
        mount = f"31 23 0:28 {root} /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
        (proc / "mountinfo").write_text(mount)
        (proc / "cgroup").write_text(f"0::{f'/{path}' if shown is None else shown}\n")
        return folder

    def enable(self, path: str, controllers: str) -> None:
        """Give controllers to the children of a cgroup."""
        (self.mount / path / "cgroup.subtree_control").write_text(controllers)
        for child in below(self.mount / path):
            self._control(child)

    def enabled(self) -> set[str]:
        """The cgroups that give the CPU controller to their children."""
        controls = self.mount.glob("**/cgroup.subtree_control")
        return {
            str(file.parent.relative_to(self.mount)) for file in controls if "cpu" in words(file)
        }

    def write(self, file: Path, text: str) -> None:
        folder = file.parent
        self._check(folder, file)
        if not file.exists():
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), str(file))
        if file.name != "cgroup.subtree_control":
            file.write_text(text)
            return
        enabled = set(words(file))
        if text == "+cpu" and "cpu" not in words(folder / "cgroup.controllers"):
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), str(file))
        if (text == "+cpu" and self._is_occupied(folder)) or (
            text == "-cpu"
            and any("cpu" in words(child / "cgroup.subtree_control") for child in below(folder))
        ):
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), str(file))
        file.write_text(" ".join(enabled | {"cpu"} if text == "+cpu" else enabled - {"cpu"}))
        for child in below(folder):
            self._control(child)

    def _is_occupied(self, folder: Path) -> bool:
        """Whether it has processes, and so has a child that is a domain of its own."""
        return (
            folder != self.mount
            and bool(words(folder / "cgroup.procs"))
            and any(
                words(child / "cgroup.procs") and words(child / "cgroup.type") == ["domain"]
                for child in below(folder)
            )
        )

    def _check(self, folder: Path, file: Path) -> None:
        for path, number in self.refused.items():
            if folder == path:
                raise OSError(number, os.strerror(number), str(file))

    def _mkdir(
        self, folder: Path, mode: int = 0o777, *, parents: bool = False, exist_ok: bool = False
    ) -> None:
        is_ours = folder.is_relative_to(self.mount) and folder != self.mount
        if is_ours:
            self._check(folder.parent, folder)
        self._make_folder(folder, mode, parents, exist_ok)
        if is_ours:
            for name in ("cgroup.procs", "cgroup.subtree_control"):
                (folder / name).write_text("")
            is_threaded = words(folder.parent / "cgroup.type") == ["threaded"] or (
                folder.parent != self.mount
                and words(folder.parent / "cgroup.procs")
                and words(folder.parent / "cgroup.subtree_control")
            )
            (folder / "cgroup.type").write_text("domain invalid" if is_threaded else "domain")
            self._control(folder)

    def _control(self, folder: Path) -> None:
        (folder / "cgroup.controllers").write_text(
            (folder.parent / "cgroup.subtree_control").read_text()
        )
        has_cpu = self.has_quotas and "cpu" in words(folder / "cgroup.controllers")
        if not has_cpu:
            (folder / "cpu.max").unlink(missing_ok=True)
        elif not (folder / "cpu.max").exists():
            (folder / "cpu.max").write_text("max 100000")

    def _rmdir(self, folder: Path) -> None:
        if not folder.is_relative_to(self.mount):
            self._remove_folder(folder)
        elif words(folder / "cgroup.procs") or below(folder):
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), str(folder))
        else:
            shutil.rmtree(folder)


def words(file: Path) -> list[str]:
    return file.read_text().split() if file.exists() else []


def below(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.is_dir()]

"""Change settings of the host so that what they were can be restored, whatever happens."""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, replace

from corebound.errors import HostError
from corebound.machine.doctor.check import Change
from corebound.machine.sysfs import chosen

_SCHEMA = 1
# Root writes there whatever the file says, so it may say nothing else.
_SETTABLE = re.compile(r"(?:proc/sys|proc/irq|sys)(?:/(?!\.\.?(?:/|$))[^/\0]+)+")


class SavedSetting(Struct, frozen=True, kw_only=True):
    """One setting: its file below the root, what it was, and what it was set to last."""

    path: str
    prior: str
    value: str


def encode(kept: Sequence[SavedSetting]) -> bytes:
    """Write the settings, in the order they were changed first."""
    document = {"schema": _SCHEMA, "settings": [asdict(one) for one in kept]}
    return json.dumps(document, indent=1).encode() + b"\n"


def decode(data: bytes) -> tuple[SavedSetting, ...]:
    """Read them back.

    Raises:
        ValueError: the file is damaged, of a newer corebound, or names a file that
            is no setting.
    """
    document: Any = json.loads(data)
    settings = document.get("settings") if isinstance(document, dict) else None
    if not isinstance(settings, list) or document.get("schema") != _SCHEMA:
        raise ValueError(f"it holds no settings of schema {_SCHEMA}")
    return tuple(_kept(one) for one in settings)


def _kept(one: Any) -> SavedSetting:
    fields = ("path", "prior", "value")
    if not isinstance(one, dict) or not all(isinstance(one.get(name), str) for name in fields):
        raise ValueError("a setting lacks its path, prior or value")
    if not _SETTABLE.fullmatch(one["path"]):
        raise ValueError(f"`{one['path'][:80]}` is no setting")
    return SavedSetting(path=one["path"], prior=one["prior"], value=one["value"])


STATE = "run/corebound/tuned.json"


class SettingResult(Struct, frozen=True, kw_only=True):
    """What became of one setting.

    Attributes:
        path: Its file below the root.
        before, after: What it said; None where it cannot be read.
        meanwhile: What somebody else had set it to since it was tuned, if somebody did.
        fault: Why it is not what it ought to be; None where it is.
    """

    path: str
    before: str | None
    after: str | None
    meanwhile: str | None = None
    fault: str | None = None


class Disk:
    """Every step that leaves something behind: a process may be killed between any two."""

    def write(self, path: Path, data: bytes) -> None:
        """Write a file of ours and sync it."""
        with path.open("wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())

    def rename(self, source: Path, target: Path) -> None:
        """Put one file in another's place."""
        source.replace(target)

    def remove(self, path: Path) -> None:
        """Remove a file of ours."""
        path.unlink()

    def sync(self, folder: Path) -> None:
        """Make the names in a folder last."""
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def set(self, path: Path, value: str) -> None:
        """Write a setting, at once: the kernel takes each write as a value of its own.

        Raises:
            OSError: the kernel or the file's mode does not allow it.
        """
        # Never created: what is not there is no setting of this kernel.
        descriptor = os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)
        try:
            os.write(descriptor, f"{value}\n".encode())
        finally:
            os.close(descriptor)


def writable(changes: Sequence[Change], root: Path) -> tuple[Change, ...]:
    """Those that we are allowed to make."""
    return tuple(change for change in changes if os.access(root / change.path, os.W_OK))


def standing(root: Path) -> tuple[SavedSetting, ...]:
    """The settings that were changed and have not been restored.

    Raises:
        HostError: the state file cannot be read.
    """
    file = root / STATE
    try:
        return decode(file.read_bytes())
    except FileNotFoundError:
        return ()
    except (OSError, ValueError) as error:
        raise HostError(
            what=f"what settings were before they were changed cannot be read: {error}.",
            where=str(file),
            mend="Set them by hand as you want them (`corebound doctor` names them), and"
            " remove that file; a restart resets them too.",
        ) from None


def tune(changes: Sequence[Change], root: Path, disk: Disk) -> tuple[SettingResult, ...]:
    """Make the changes, each after what it replaces was kept.

    A setting that was changed before keeps the value it had before that.

    Raises:
        HostError: the state file cannot be read or written; what had been changed
            by then can be restored.
    """
    with _alone(root):
        return tuple(_tune(change, root, disk) for change in changes)


def restore(root: Path, disk: Disk) -> tuple[SettingResult, ...]:
    """Bring every setting back to what it was before the first change, the latest first.

    The state file stays as long as one of them is not.

    Raises:
        HostError: the state file cannot be read or removed.
    """
    if not standing(root):
        return ()
    with _alone(root):
        outcomes = tuple(_restore(one, root, disk) for one in reversed(standing(root)))
        if all(outcome.fault is None for outcome in outcomes):
            _keep((), root, disk)
        return outcomes


def _tune(change: Change, root: Path, disk: Disk) -> SettingResult:
    path = root / change.path
    before = _current(path)
    if before is None:
        return SettingResult(path=change.path, before=None, after=None, fault="it cannot be read")
    kept = standing(root)
    known = {one.path: one for one in kept}
    earlier = known.get(change.path, SavedSetting(path=change.path, prior=before, value=before))
    known[change.path] = replace(earlier, value=change.value)
    _keep(tuple(known.values()), root, disk)
    fault = _set(path, change.value, disk)
    after = _current(path)
    if fault is not None and after == before:
        # Nothing happened, so there is nothing to restore either.
        _keep(kept, root, disk)
    return SettingResult(path=change.path, before=before, after=after, fault=fault)


def _restore(kept: SavedSetting, root: Path, disk: Disk) -> SettingResult:
    path = root / kept.path
    before = _current(path)
    if before is None:
        return SettingResult(path=kept.path, before=None, after=None, fault="it cannot be read")
    if before == kept.prior:
        return SettingResult(path=kept.path, before=before, after=before)
    return SettingResult(
        path=kept.path,
        before=before,
        fault=_set(path, kept.prior, disk),
        after=_current(path),
        meanwhile=before if before != kept.value else None,
    )


def _set(path: Path, value: str, disk: Disk) -> str | None:
    """Write a setting and read it again; why it did not take, else None."""
    try:
        disk.set(path, value)
    except OSError as error:
        return f"it cannot be set to {value}: {error.strerror}"
    after = _current(path)
    return None if after == value else f"it is {after} after {value} was written"


def _current(path: Path) -> str | None:
    try:
        return chosen(path.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return None


def _keep(kept: Sequence[SavedSetting], root: Path, disk: Disk) -> None:
    """Let the state file say this, or be gone; whenever we are killed it is whole."""
    file = root / STATE
    try:
        if kept:
            part = file.with_suffix(".part")
            disk.write(part, encode(kept))
            disk.rename(part, file)
        elif file.exists():
            disk.remove(file)
        disk.sync(file.parent)
    except OSError as error:
        raise _no_state(file, error) from None


@contextmanager
def _alone(root: Path) -> Iterator[None]:
    """Hold the folder of the state file; the kernel lets go of it however we end."""
    folder = (root / STATE).parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise _no_state(folder, error) from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise HostError(
            what="another corebound is changing settings.",
            where=str(folder),
            mend="Wait for it to end.",
        ) from None
    finally:
        os.close(descriptor)


def _no_state(path: Path, error: OSError) -> HostError:
    return HostError(
        what=f"what settings are cannot be kept: {error.strerror}. Nothing more is changed.",
        where=str(path),
        mend="Let root run it, with /run writable.",
    )

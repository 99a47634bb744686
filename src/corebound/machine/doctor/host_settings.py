"""Change settings of the host so that they can be restored, even after a crash."""

import fcntl
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from msgspec import Struct, json
from msgspec.structs import replace

from corebound.errors import HostError
from corebound.machine.doctor.result import SettingChange
from corebound.machine.sysfs import selected

# Root writes to every path in the file, so no other paths are allowed.
_SETTABLE = re.compile(r"(?:proc/sys|proc/irq|sys)(?:/(?!\.\.?(?:/|$))[^/\0]+)+")


class _State(Struct, frozen=True, kw_only=True):
    """The state file: each setting with the value before its first change, and the last one."""

    schema: Literal[1]
    settings: tuple[SettingChange, ...]


def encode(settings: Sequence[SettingChange]) -> bytes:
    """Encode the settings, in the order of their first change."""
    state = json.encode(_State(schema=1, settings=tuple(settings)))
    return json.format(state, indent=1) + b"\n"


def decode(data: bytes) -> tuple[SettingChange, ...]:
    """Decode settings.

    Raises:
        ValueError: the file is damaged, from a newer corebound, or names a file that
            is not a setting.
    """
    settings = json.decode(data, type=_State).settings
    for setting in settings:
        if not _SETTABLE.fullmatch(setting.path):
            raise ValueError(f"`{setting.path[:80]}` is not a known setting")
    return settings


STATE = "run/corebound/tuned.json"


class SettingResult(Struct, frozen=True, kw_only=True):
    """The result of changing or restoring one setting.

    Attributes:
        path: Its file below the root.
        before, after: Its values; None if they cannot be read.
        meanwhile: The value that someone else set after it was tuned; None if no one did.
        fault: Why it does not have the intended value; None if it does.
    """

    path: str
    before: str | None
    after: str | None
    meanwhile: str | None = None
    fault: str | None = None


class Disk:
    """All operations with lasting effects; the process may be killed between any two."""

    def write(self, path: Path, data: bytes) -> None:
        """Write one of our files and sync it."""
        with path.open("wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())

    def rename(self, source: Path, target: Path) -> None:
        """Rename a file, replacing the target."""
        source.replace(target)

    def remove(self, path: Path) -> None:
        """Remove one of our files."""
        path.unlink()

    def sync(self, folder: Path) -> None:
        """Sync a folder, so that its entries are durable."""
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def set(self, path: Path, value: str) -> None:
        """Write a setting in one call: the kernel treats each write as a separate value.

        Raises:
            OSError: the kernel or the file's mode does not allow it.
        """
        # Never create the file: a missing file is not a setting of this kernel.
        descriptor = os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)
        try:
            os.write(descriptor, f"{value}\n".encode())
        finally:
            os.close(descriptor)


def writable(changes: Sequence[SettingChange], root: Path) -> tuple[SettingChange, ...]:
    """The changes that we have permission to make."""
    return tuple(change for change in changes if os.access(root / change.path, os.W_OK))


def saved_settings(root: Path) -> tuple[SettingChange, ...]:
    """The settings that were changed and not yet restored.

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
            what=f"the saved settings cannot be read: {error}.",
            where=str(file),
            fix="Change the settings by hand (`corebound doctor` lists them) and delete that"
            " file, or restart the machine.",
        ) from None


def tune(changes: Sequence[SettingChange], root: Path, disk: Disk) -> tuple[SettingResult, ...]:
    """Make the changes; save the value that each replaces first.

    A setting that was changed earlier keeps its original value from before that.

    Raises:
        HostError: the state file cannot be read or written; the changes made so far can
            still be restored.
    """
    with _exclusive_lock(root):
        return tuple(_tune(change, root, disk) for change in changes)


def restore(root: Path, disk: Disk) -> tuple[SettingResult, ...]:
    """Restore every setting to its value before the first change, the latest setting first.

    The state file remains until all of them are restored.

    Raises:
        HostError: the state file cannot be read or removed.
    """
    if not saved_settings(root):
        return ()
    with _exclusive_lock(root):
        results = tuple(_restore(setting, root, disk) for setting in reversed(saved_settings(root)))
        if all(result.fault is None for result in results):
            _save((), root, disk)
        return results


def _tune(change: SettingChange, root: Path, disk: Disk) -> SettingResult:
    path = root / change.path
    before = _current(path)
    if before is None:
        return SettingResult(path=change.path, before=None, after=None, fault="it cannot be read")
    saved = saved_settings(root)
    by_path = {setting.path: setting for setting in saved}
    previous = by_path.get(change.path, SettingChange(path=change.path, prior=before, value=before))
    by_path[change.path] = replace(previous, value=change.value)
    _save(tuple(by_path.values()), root, disk)
    fault = _set(path, change.value, disk)
    after = _current(path)
    if fault is not None and after == before:
        # The setting did not change, so there is nothing to restore.
        _save(saved, root, disk)
    return SettingResult(path=change.path, before=before, after=after, fault=fault)


def _restore(setting: SettingChange, root: Path, disk: Disk) -> SettingResult:
    path = root / setting.path
    before = _current(path)
    if before is None:
        return SettingResult(path=setting.path, before=None, after=None, fault="it cannot be read")
    if before == setting.prior:
        return SettingResult(path=setting.path, before=before, after=before)
    return SettingResult(
        path=setting.path,
        before=before,
        fault=_set(path, setting.prior, disk),
        after=_current(path),
        meanwhile=before if before != setting.value else None,
    )


def _set(path: Path, value: str, disk: Disk) -> str | None:
    """Write a setting and read it back; return why it did not take effect, or None."""
    try:
        disk.set(path, value)
    except OSError as error:
        return f"it cannot be set to {value}: {error.strerror}"
    after = _current(path)
    return None if after == value else f"it is {after} after {value} was written"


def _current(path: Path) -> str | None:
    try:
        return selected(path.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return None


def _save(settings: Sequence[SettingChange], root: Path, disk: Disk) -> None:
    """Write the state file, or remove it if it is empty; it stays valid if we are killed."""
    file = root / STATE
    try:
        if settings:
            part = file.with_suffix(".part")
            disk.write(part, encode(settings))
            disk.rename(part, file)
        elif file.exists():
            disk.remove(file)
        disk.sync(file.parent)
    except OSError as error:
        raise _no_state(file, error) from None


@contextmanager
def _exclusive_lock(root: Path) -> Iterator[None]:
    """Lock the folder of the state file; the kernel releases it however we end."""
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
            fix="Wait for it to end.",
        ) from None
    finally:
        os.close(descriptor)


def _no_state(path: Path, error: OSError) -> HostError:
    return HostError(
        what=f"the current settings cannot be saved: {error.strerror}. No further setting is"
        " changed.",
        where=str(path),
        fix="Run it as root, with a writable /run.",
    )

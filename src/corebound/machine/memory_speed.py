"""The speed of a machine's memory modules, where a program may read it."""

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from corebound.machine.sysfs import Files

# udev's copy of the firmware's table (systemd 248 and later), which every user may read.
_UDEV = "run/udev/data/+dmi:id"
_PROPERTY = re.compile(r"E:MEMORY_DEVICE_\d+_CONFIGURED_SPEED_MTS=(\d{1,9})")
# The firmware's own table, which only root may read: one file for each memory device.
_ENTRIES = "sys/firmware/dmi/entries"
_MEMORY_DEVICE = re.compile(r"17-\d+")
# Offsets in a memory device's structure, and values that stand for others.
# Source: DMTF DSP0134, System Management BIOS 3.6, section 7.18.
_SIZE, _CONFIGURED, _EXTENDED = 0x0C, 0x20, 0x58
_UNKNOWN_SPEED, _IN_EXTENDED = 0, 0xFFFF


def memory_speed(root: Path) -> str:
    """The configured speed of the memory modules, or why it is unknown.

    Args:
        root: The directory that contains `run/` and `sys/`: `/`, or a saved machine.

    Returns:
        `3200 MT/s`; `6 × 3200 MT/s, 2 × 2666 MT/s` if modules differ; or `unknown: REASON`.
    """
    published = _PROPERTY.findall(Files(root).read(_UDEV) or "")
    if speeds := [int(speed) for speed in published if int(speed)]:
        return _text(speeds)
    devices = [name for name in Files(root).names(_ENTRIES) if _MEMORY_DEVICE.fullmatch(name)]
    if not devices:
        return "unknown: the firmware does not describe the memory"
    try:
        tables = [(root / _ENTRIES / name / "raw").read_bytes() for name in devices]
    except OSError:
        return "unknown: only root may read the firmware's table, and udev has no copy"
    speeds = [speed for table in tables if (speed := _configured_speed(table)) is not None]
    return _text(speeds) if speeds else "unknown: the firmware gives no speed"


def _configured_speed(table: bytes) -> int | None:
    """The configured speed of one memory device in MT/s; None if it is empty or unknown."""
    # The second byte is the length of what follows: older firmware has fewer fields.
    known = table[: table[1]] if len(table) > 1 else b""
    size, speed = _word(known, _SIZE), _word(known, _CONFIGURED)
    if speed == _IN_EXTENDED:
        speed = _word(known, _EXTENDED, length=4)
    return speed if size and speed != _UNKNOWN_SPEED else None


def _word(table: bytes, offset: int, *, length: int = 2) -> int | None:
    field = table[offset : offset + length]
    return int.from_bytes(field, "little") if len(field) == length else None


def _text(speeds: Iterable[int]) -> str:
    """The speeds with the number of modules of each; a single speed without it."""
    numbers = sorted(Counter(speeds).items(), key=lambda item: (-item[1], -item[0]))
    if len(numbers) == 1:
        return f"{numbers[0][0]} MT/s"
    return ", ".join(f"{modules} × {speed} MT/s" for speed, modules in numbers)

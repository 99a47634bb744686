"""The memory's speed is read from udev's copy or the firmware's table, else said to be unknown."""

from pathlib import Path

import pytest

from corebound.machine.memory_speed import memory_speed
from support.texts import in_order


def with_udev(root: Path, *lines: str) -> Path:
    file = root / "run/udev/data/+dmi:id"
    file.parent.mkdir(parents=True)
    file.write_text("\n".join(("I:2381", *lines, "G:systemd")))
    return root


def with_modules(root: Path, *modules: bytes) -> Path:
    for number, module in enumerate(modules):
        file = root / f"sys/firmware/dmi/entries/17-{number}/raw"
        file.parent.mkdir(parents=True)
        file.write_bytes(module)
    (root / "sys/firmware/dmi/entries/4-0").mkdir()
    return root


def a_module(*, configured: int, size: int = 0x4000, extended: int = 0, length: int = 92) -> bytes:
    """A memory device of the firmware's table: DSP0134, section 7.18."""
    table = bytearray(length)
    table[0], table[1] = 17, length
    table[0x0C:0x0E] = size.to_bytes(2, "little")
    if length > 0x21:
        table[0x20:0x22] = configured.to_bytes(2, "little")
    if length > 0x5B:
        table[0x58:0x5C] = extended.to_bytes(4, "little")
    return bytes(table) + b"DIMM_A1\0Samsung\0\0"


def test_every_user_can_read_what_udev_has_copied(tmp_path: Path) -> None:
    root = with_udev(
        tmp_path,
        "E:MEMORY_DEVICE_0_SPEED_MTS=3200",
        "E:MEMORY_DEVICE_0_CONFIGURED_SPEED_MTS=2933",
        "E:MEMORY_DEVICE_1_CONFIGURED_SPEED_MTS=2933",
    )

    assert memory_speed(root) == "2933 MT/s"


def test_modules_that_differ_are_counted(tmp_path: Path) -> None:
    modules = [a_module(configured=3200)] * 3 + [a_module(configured=2666)]

    assert memory_speed(with_modules(tmp_path, *modules)) == "3 × 3200 MT/s, 1 × 2666 MT/s"


def test_empty_sockets_do_not_count(tmp_path: Path) -> None:
    root = with_modules(tmp_path, a_module(configured=4800), a_module(configured=0, size=0))

    assert memory_speed(root) == "4800 MT/s"


def test_a_speed_beyond_16_bits_is_in_another_field(tmp_path: Path) -> None:
    root = with_modules(tmp_path, a_module(configured=0xFFFF, extended=70_000))

    assert memory_speed(root) == "70000 MT/s"


@pytest.mark.parametrize(
    "module", [a_module(configured=0, length=28), a_module(configured=0), b"", b"\x11"]
)
def test_old_and_damaged_tables_give_no_speed(tmp_path: Path, module: bytes) -> None:
    assert in_order(memory_speed(with_modules(tmp_path, module)), "unknown: ", "no speed")


def test_a_machine_without_the_table_is_unknown_with_the_reason(tmp_path: Path) -> None:
    assert in_order(memory_speed(tmp_path), "unknown: ", "not describe")


def test_a_table_that_only_root_may_read_is_unknown_with_the_reason(tmp_path: Path) -> None:
    # A folder in its place cannot be read by anybody.
    (tmp_path / "sys/firmware/dmi/entries/17-0/raw").mkdir(parents=True)

    assert memory_speed(tmp_path).startswith("unknown: only root")

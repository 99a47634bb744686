"""Find the GPUs that CUDA could use, from NVIDIA's driver and without any framework."""

from __future__ import annotations

import re
from pathlib import Path

from msgspec import Struct


class Gpu(Struct, frozen=True, kw_only=True):
    """A GPU that CUDA could use: its id in CUDA_VISIBLE_DEVICES and its model's name."""

    id: str
    name: str


_NODE = re.compile(r"nvidia(0|[1-9][0-9]{0,3})")
_UNNAMED = "NVIDIA GPU"


def gpus(root: Path, visible: str | None) -> tuple[Gpu, ...]:
    """Read a machine's GPUs.

    A GPU counts if its device node exists: in a container the driver also lists GPUs that
    the container has no access to. Other vendors' GPUs are not detected.

    Args:
        root: The directory that contains `dev/` and `proc/`: `/`, or a saved machine.
        visible: CUDA_VISIBLE_DEVICES, or None if it is not set.

    Returns:
        The GPUs in the order of the driver's numbers, which is mostly CUDA's order. If
        models differ, CUDA puts the fastest first, so names may be swapped.
    """
    described = _described(root / "proc/driver/nvidia/gpus")
    names = [described.get(minor, {}).get("Model", _UNNAMED) for minor in _minors(root / "dev")]
    found = tuple(Gpu(id=str(index), name=name) for index, name in enumerate(names))
    if visible is None:
        return found
    uuids = [described.get(minor, {}).get("GPU UUID", "") for minor in _minors(root / "dev")]
    return _chosen(found, uuids, visible)


def _minors(folder: Path) -> list[int]:
    try:
        matches = [_NODE.fullmatch(node.name) for node in folder.iterdir()]
    except OSError:
        return []
    return sorted(int(match[1]) for match in matches if match)


def _described(folder: Path) -> dict[int, dict[str, str]]:
    """The driver's information on each GPU, by the number of its device node."""
    found: dict[int, dict[str, str]] = {}
    try:
        texts = [(each / "information").read_text(errors="replace") for each in folder.iterdir()]
    except OSError:
        return found
    for text in texts:
        lines = (line.partition(":") for line in text.splitlines())
        said = {name.strip(): value.strip() for name, _, value in lines}
        if re.fullmatch("[0-9]{1,4}", minor := said.get("Device Minor", "")):
            found[int(minor)] = said
    return found


def _chosen(found: tuple[Gpu, ...], uuids: list[str], visible: str) -> tuple[Gpu, ...]:
    """The GPUs that CUDA_VISIBLE_DEVICES leaves visible.

    They end before the first entry that names no GPU, or one that is already listed.

    Source: CUDA Programming Guide, environment variables, CUDA_VISIBLE_DEVICES.
    """
    chosen: list[Gpu] = []
    for entry in visible.split(","):
        gpu = _named(found, uuids, entry.strip())
        if gpu is None or gpu in chosen:
            break
        chosen.append(gpu)
    return tuple(chosen)


def _named(found: tuple[Gpu, ...], uuids: list[str], entry: str) -> Gpu | None:
    if re.fullmatch("[0-9]{1,4}", entry):
        return found[int(entry)] if int(entry) < len(found) else None
    if entry.startswith("MIG-"):
        return Gpu(id=entry, name="part of an NVIDIA GPU (MIG)") if found else None
    if not entry.startswith("GPU-"):
        return None
    matching = [gpu for gpu, uuid in zip(found, uuids, strict=True) if uuid.startswith(entry)]
    return matching[0] if len(matching) == 1 else None

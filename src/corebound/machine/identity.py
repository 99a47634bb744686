"""Describes this machine and its GPUs, with an identity that survives a change of its name."""

import hashlib
import json
import os
import platform
import re
from pathlib import Path

from msgspec import Struct

from corebound.bounded_numbers import Count
from corebound.machine import procfs
from corebound.machine.memory_speed import memory_speed
from corebound.machine.peak_flops import Peak, peak
from corebound.machine.sysfs import LIVE, Files, Tree, numbered_entries, read_text
from corebound.machine.topology import Topology


class Gpu(Struct, frozen=True, kw_only=True):
    """A GPU that CUDA could use: its id in CUDA_VISIBLE_DEVICES and its model's name."""

    id: str
    name: str


class Host(Struct, frozen=True, kw_only=True):
    """A machine.

    `id` is a hash of machine-id, CPU model and topology: it stays the same if the host is
    renamed, and changes if it is resized. `gpus` and `peak` are None in records of versions
    of corebound that did not detect them. `microcode` is the revision of the CPUs' microcode and
    `governors` are the frequency governors of the CPUs, sorted; each is None if the host does
    not show it or the record's version of corebound did not detect it. `memory_speed` is the
    speed of the memory modules, or why it is unknown.
    """

    id: str
    name: str
    cpu_model: str
    kernel: str
    os: str
    memory_bytes: Count | None
    topology: Topology
    gpus: tuple[Gpu, ...] | None = None
    peak: Peak | None = None
    microcode: str | None = None
    governors: tuple[str, ...] | None = None
    memory_speed: str | None = None


# Replaces /etc/machine-id: for containers, which have none or share the one of their image.
MACHINE_ID_VARIABLE = "COREBOUND_MACHINE_ID"

_CPUFREQ = "sys/devices/system/cpu/cpufreq"


def host(topology: Topology) -> Host:
    """Describe this machine, with an identity that survives a change of its host name.

    The CPUs and memory that we may use differ between shells and containers of one
    machine, so they are not part of the identity.
    """
    cpu_model = _cpu_model()
    shape = [
        [cpu.id, cpu.core.package, cpu.core.die, cpu.core.core, cpu.node, cpu.kind]
        for cpu in topology.cpus
    ]
    identity = json.dumps([machine_id(), cpu_model, shape]).encode()
    return Host(
        id=hashlib.sha256(identity).hexdigest()[:12],
        name=platform.node() or "unnamed",
        cpu_model=cpu_model,
        kernel=f"{platform.system()} {platform.release()}",
        os=_os_name(),
        memory_bytes=topology.memory_bytes,
        topology=topology,
        gpus=gpus(Path("/"), os.environ.get("CUDA_VISIBLE_DEVICES")),
        peak=peak(Path("/")),
        microcode=microcode(LIVE),
        governors=governors(LIVE),
        memory_speed=memory_speed(Path("/")),
    )


def microcode(tree: Tree) -> str | None:
    """The revision of the first CPU's microcode; None on hosts that do not show it."""
    return read_text(tree, "sys/devices/system/cpu/cpu0/microcode/version") or _cpuinfo(tree).get(
        "microcode"
    )


def governors(tree: Tree) -> tuple[str, ...] | None:
    """The frequency governors of all CPUs, each once and sorted; None without cpufreq."""
    policies = numbered_entries(tree, _CPUFREQ, "policy")
    names = (read_text(tree, f"{_CPUFREQ}/policy{number}/scaling_governor") for number in policies)
    return tuple(sorted({name for name in names if name})) or None


def machine_id() -> str:
    """This machine's id, or COREBOUND_MACHINE_ID; empty if it has none."""
    return os.environ.get(MACHINE_ID_VARIABLE) or next(
        filter(
            None, (read_text(LIVE, path) for path in ("etc/machine-id", "var/lib/dbus/machine-id"))
        ),
        "",
    )


def _cpuinfo(tree: Tree) -> dict[str, str]:
    """The fields of /proc/cpuinfo, each with the value of the first CPU that has it."""
    fields: dict[str, str] = {}
    for block in procfs.cpuinfo(tree.read("proc/cpuinfo") or ""):
        for name, value in block.items():
            fields.setdefault(name, value)
    return fields


def _cpu_model() -> str:
    fields = _cpuinfo(LIVE)
    model = fields.get("model name") or fields.get("Model") or platform.machine()
    # If a hypervisor hides the model's name, its numbers still distinguish processors.
    parts = ("cpu family", "model", "CPU implementer", "CPU part")
    numbers = ", ".join(f"{part} {fields[part]}" for part in parts if part in fields)
    return f"{model} ({numbers})" if numbers else model


def _os_name() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return platform.platform()


_GPU_DEVICE = re.compile(r"nvidia(0|[1-9][0-9]{0,3})")
_GPU_FOLDER = "proc/driver/nvidia/gpus"
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
    tree = Files(root)
    information = _gpu_information(tree)
    matches = (_GPU_DEVICE.fullmatch(name) for name in tree.names("dev"))
    minors = sorted(int(match[1]) for match in matches if match)
    models = [information.get(minor, {}).get("Model", _UNNAMED) for minor in minors]
    every_gpu = tuple(Gpu(id=str(index), name=model) for index, model in enumerate(models))
    if visible is None:
        return every_gpu
    uuids = [information.get(minor, {}).get("GPU UUID", "") for minor in minors]
    return _visible_gpus(every_gpu, uuids, visible)


def _gpu_information(tree: Tree) -> dict[int, dict[str, str]]:
    """The driver's information on each GPU, by the number of its device node."""
    information = {}
    for name in tree.names(_GPU_FOLDER):
        lines = (tree.read(f"{_GPU_FOLDER}/{name}/information") or "").splitlines()
        pairs = (line.partition(":") for line in lines)
        fields = {key.strip(): value.strip() for key, _, value in pairs}
        if re.fullmatch("[0-9]{1,4}", minor := fields.get("Device Minor", "")):
            information[int(minor)] = fields
    return information


def _visible_gpus(every_gpu: tuple[Gpu, ...], uuids: list[str], visible: str) -> tuple[Gpu, ...]:
    """The GPUs that CUDA_VISIBLE_DEVICES leaves visible.

    They end before the first entry that names no GPU, or one that is already listed.

    Source: CUDA Programming Guide, environment variables, CUDA_VISIBLE_DEVICES.
    """
    selected: list[Gpu] = []
    for entry in visible.split(","):
        gpu = _gpu_of_entry(every_gpu, uuids, entry.strip())
        if gpu is None or gpu in selected:
            break
        selected.append(gpu)
    return tuple(selected)


def _gpu_of_entry(every_gpu: tuple[Gpu, ...], uuids: list[str], entry: str) -> Gpu | None:
    if re.fullmatch("[0-9]{1,4}", entry):
        return every_gpu[int(entry)] if int(entry) < len(every_gpu) else None
    if entry.startswith("MIG-"):
        return Gpu(id=entry, name="part of an NVIDIA GPU (MIG)") if every_gpu else None
    if not entry.startswith("GPU-"):
        return None
    matching = [gpu for gpu, uuid in zip(every_gpu, uuids, strict=True) if uuid.startswith(entry)]
    return matching[0] if len(matching) == 1 else None

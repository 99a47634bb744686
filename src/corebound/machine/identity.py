"""Describe this machine, with an identity that survives a change of its host name."""

from __future__ import annotations

import hashlib
import json
import os
import platform
from pathlib import Path

from msgspec import Struct

from corebound.bounds import Count
from corebound.machine.gpus import Gpu, gpus
from corebound.machine.peak_flops import Peak, peak
from corebound.machine.topology import Topology


class Host(Struct, frozen=True, kw_only=True):
    """A machine.

    `id` is a hash of machine-id, CPU model and topology: it stays the same if the host is
    renamed, and changes if it is resized. `gpus` and `peak` are None in records of versions
    of corebound that did not detect them.
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
    identity = json.dumps([_machine_id(), cpu_model, shape]).encode()
    return Host(
        id=hashlib.sha256(identity).hexdigest()[:12],
        name=platform.node() or "unnamed",
        cpu_model=cpu_model,
        kernel=f"{platform.system()} {platform.release()}",
        os=_os_name(),
        memory_bytes=_memory_bytes(),
        topology=topology,
        gpus=gpus(Path("/"), os.environ.get("CUDA_VISIBLE_DEVICES")),
        peak=peak(Path("/")),
    )


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _machine_id() -> str:
    return _read("/etc/machine-id").strip() or _read("/var/lib/dbus/machine-id").strip()


def _cpu_model() -> str:
    named: dict[str, str] = {}
    for line in _read("/proc/cpuinfo").splitlines():
        name, _, value = line.partition(":")
        named.setdefault(name.strip(), value.strip())
    model = named.get("model name") or named.get("Model") or platform.machine()
    # If a hypervisor hides the model's name, its numbers still distinguish processors.
    parts = ("cpu family", "model", "CPU implementer", "CPU part")
    numbers = ", ".join(f"{part} {named[part]}" for part in parts if part in named)
    return f"{model} ({numbers})" if numbers else model


def _os_name() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return platform.platform()


def _memory_bytes() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return None

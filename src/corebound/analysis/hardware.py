"""The class of a host's hardware, and what may differ between hosts of one class."""

import re
from collections import Counter

from msgspec import Struct

from corebound.machine.topology import Topology
from corebound.records.run_record import Run
from corebound.units import cpu_quota

# The label that names or refines a host's class.
CLASS_LABEL = "class"
_NOISE_WORDS = re.compile(r"\((?:R|TM|tm|cpu family|CPU implementer)[^)]*\)|\bCPU\b|@.*$")


class HardwareClass(Struct, frozen=True, kw_only=True, order=True):
    """Hosts that should behave alike: one CPU model, one shape, and one label if they have any.

    Whether SMT is on, and how much memory a host has, may differ within a class.

    Attributes:
        label: The value of the label `class`; empty without one.
        shape: The sockets with the number of cores of each, such as `2 × 28`.
    """

    label: str
    cpu_model: str
    shape: str

    @property
    def name(self) -> str:
        """A short name: the label, else CPU and shape.

        >>> HardwareClass(label="", cpu_model="Intel(R) Xeon(R) CPU @ 2.1GHz", shape="2 × 28").name
        'Intel Xeon, 2 × 28'
        """
        model = " ".join(_NOISE_WORDS.sub(" ", self.cpu_model).split())
        return self.label or f"{model}, {self.shape}"


def hardware_class(run: Run) -> HardwareClass:
    """The class of the host of a run."""
    return HardwareClass(
        label=run.labels.get(CLASS_LABEL, ""),
        cpu_model=run.host.cpu_model,
        shape=_shape(run.host.topology),
    )


def _shape(topology: Topology) -> str:
    """The sockets with their cores: `2 × 28`, `1 × 8 + 16` of two kinds, `2 × 64 in 8 nodes`."""
    cores = {(cpu.core.package, cpu.core, cpu.kind or "") for cpu in topology.cpus}
    by_package: dict[int, Counter[str]] = {}
    for package, _, kind in cores:
        by_package.setdefault(package, Counter())[kind] += 1
    sockets = Counter(
        " + ".join(str(number) for _, number in sorted(kinds.items(), reverse=True))
        for kinds in by_package.values()
    )
    text = ", ".join(f"{number} × {each}" for each, number in sorted(sockets.items()))
    nodes = sum(1 for node in topology.nodes if node.cpus)
    return f"{text} in {nodes} nodes" if nodes > len(by_package) else text


def varying_facts(run: Run) -> dict[str, str]:
    """What may differ between hosts of one class, by name; what a host does not show is absent."""
    host, topology = run.host, run.host.topology
    sizes = [node.memory_bytes for node in topology.nodes if node.memory_bytes is not None]
    nodes = [round(size_bytes / 2**30) for size_bytes in sizes]
    facts = {
        "microcode": host.microcode,
        "kernel": host.kernel,
        "governor": ", ".join(host.governors or ()),
        "SMT": "on" if topology.has_smt else "off",
        # A kernel reserves a few MiB more or less at each start.
        "memory": f"{round(host.memory_bytes / 2**30)} GiB" if host.memory_bytes else None,
        "memory speed": host.memory_speed,
        "memory of nodes": " + ".join(map(str, nodes)) + " GiB" if len(nodes) > 1 else None,
        "CPU quota": cpu_quota(topology.cpu_quota) if not topology.quota_unknown else "unknown",
        "allowed CPUs": str(len(topology.allowed)),
        "OS": host.os,
        "commit": run.commit.name if run.commit is not None else None,
        **{f"packages of {lock.name}": lock.sha256[:12] for lock in run.environments},
        **{
            check.check: check.value
            for check in run.preflight or ()
            if check.group in {"processor", "memory", "kernel"}
            and check.state != "unavailable"
            and check.check != "memory"
        },
        **{f"label {name}": value for name, value in run.labels.items() if name != CLASS_LABEL},
    }
    return {name: value for name, value in facts.items() if value}

"""`corebound inspect` without a terminal: what a running service does wrong, from outside."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, ClassVar

import yaml
from msgspec import Struct, to_builtins
from msgspec.structs import replace

from corebound.diagnosis.diagnose import diagnose_service
from corebound.diagnosis.service_evidence import (
    ServiceEvidence,
    ServiceFinding,
    named_threads,
    waited,
)
from corebound.errors import REGRESSION, HostError, InputError, report_os_errors
from corebound.launch.service_sampler import ServiceSampler
from corebound.machine import discovery, find_processes
from corebound.machine.topology import Topology, cpu_list
from corebound.present.inspect import State, headline, shown_command, without_secrets
from corebound.present.shown import Shown
from corebound.records import atomic_write
from corebound.records.service_use import Hidden, ProcessUse, ServiceUse, ThreadUse
from corebound.scenario.checks import OWN_VARIABLES
from corebound.text import lines, one_line
from corebound.workflow.options import Argument, Option, request_of

_LONGEST_S = 3600
# The finding whose line is a command, and which a scenario can vary nonetheless.
_PINNED = "pinned-to-one-cpu"
_POLICIES = {0: "other", 1: "fifo", 2: "rr", 3: "batch", 5: "idle", 6: "deadline"}


class InspectRequest(Struct, frozen=True, kw_only=True):
    """Which service to inspect, and for how long."""

    pids: Annotated[tuple[int, ...], Argument("Processes; their descendants belong to them.")] = ()
    port: Annotated[int | None, Option("The service on this TCP port.", min=1, max=65535)] = None
    name: Annotated[
        str | None,
        Option("Services whose name or command line contains this, or matches: `uvicorn*`."),
    ] = None
    cgroup: Annotated[str | None, Option("The processes in this cgroup.", metavar="PATH")] = None
    seconds: Annotated[float, Option("How long to watch.", min=1, max=_LONGEST_S)] = 30.0
    save: Annotated[
        Path | None, Option("Write a scenario that starts this service.", metavar="FILE")
    ] = None

    @property
    def target(self) -> str:
        """What is inspected, as the options of a command."""
        named = {"port": self.port, "name": self.name, "cgroup": self.cgroup}
        options = [f"--{name} {shlex.quote(str(value))}" for name, value in named.items() if value]
        return " ".join((*options, *map(str, self.pids)))


class Inspection(Shown, frozen=True, kw_only=True):
    """What a running service did over an interval, and the likely causes of what is slow.

    Attributes:
        target: What was inspected, as the options of the command.
        state: `healthy`, `idle` (too little to do for any conclusion), `findings`, or `unseen`:
            nothing was found, but a part that matters was not visible.
        findings: The likely causes, most certain first: `rule`, `what`, `evidence`, `fix`, `line`
            (the line to set), `certainty` and `pids`.
        service: What it did.
        topology: The host; the CPUs that the cgroup of the service excludes are not allowed.
        saved: The scenario that was written.
    """

    shown: ClassVar = ("rule", "certainty", "what", "line")

    target: str
    state: State
    findings: tuple[ServiceFinding, ...]
    service: ServiceEvidence
    topology: Topology
    saved: Path | None = None

    @property
    def exit_code(self) -> int:
        """What the command exits with."""
        return {"findings": REGRESSION, "unseen": HostError.exit_code}.get(self.state, 0)

    @property
    def unseen(self) -> tuple[Hidden, ...]:
        """What was not visible, and what would allow it."""
        return self.service.use.hidden

    @property
    def document(self) -> dict[str, Any]:
        """The same as plain data, as `corebound inspect --json` prints it."""
        service, use = self.service, self.service.use
        minor_faults = sum(process.minor_faults for process in use.processes)
        document: dict[str, Any] = {
            "state": self.state,
            "target": self.target,
            "seconds": use.duration_ns / 1e9,
            "processes": [_process_document(process, service) for process in use.processes],
            "limits": {
                "host": len(self.topology.cpus),
                "smt": self.topology.has_smt,
                "host_cpus": cpu_list(cpu.id for cpu in self.topology.cpus),
                "cpus": cpu_list(cpu.id for cpu in self.topology.allowed),
                "quota_cpus": service.runnable_cpus,
                "quotas": [
                    {"group": group.folder, "own": group.is_own, **to_builtins(group.quota)}
                    for group in use.quotas
                ],
                "cpu_weight": use.weight.weight if use.weight else None,
            },
            "use": {
                **{name: getattr(service, name) for name in _USED},
                "foreign_cpus": service.foreign_share * len(service.cpus),
                "steal_cpus": service.steal_share * len(service.cpus),
                "minor_faults_per_s": minor_faults / use.duration_ns * 1e9,
            },
            "findings": [self._finding_document(finding) for finding in self.findings],
            "unseen": [hidden._asdict() for hidden in use.hidden],
            "cost": {"cpu_share": use.own_ns / use.duration_ns, "samples": use.samples},
            "saved": str(self.saved) if self.saved else None,
        }
        return {name: _plain(value) for name, value in document.items()}

    def _finding_document(self, finding: ServiceFinding) -> dict[str, Any]:
        names = ("rule", "certainty", "what", "evidence", "fix", "pids")
        command = f"corebound inspect {self.target}"
        if finding.assignments or finding.rule == _PINNED:
            command += " --save service.yaml && corebound run service.yaml"
        fields = {name: getattr(finding, name) for name in names}
        return {**fields, "set": finding.line, "prove": command}

    def heading(self) -> str:
        """The number of findings, or that there are none."""
        return headline(self.state, len(self.findings))

    def __len__(self) -> int:
        """The number of findings."""
        return len(self.findings)

    def __iter__(self) -> Iterator[ServiceFinding]:
        """Every finding."""
        return iter(self.findings)


def inspect(
    *pids: int,
    port: int | None = None,
    name: str | None = None,
    cgroup: str | None = None,
    seconds: float = 30.0,
    save: str | PathLike[str] | None = None,
) -> Inspection:
    """Watch a running service from outside, and say what is wrong, as `corebound inspect` does.

    It only reads /proc and cgroups: nothing is traced, signalled or changed.

    Args:
        pids: Its processes; their descendants belong to it.
        port: Or the TCP port on which it listens.
        name: Or a part of its name or command line, or a pattern such as `uvicorn*`.
        cgroup: Or its cgroup.
        seconds: How long to watch, from 1 to 3600.
        save: A file for a scenario that starts this service, to measure and tune it.

    Raises:
        InputError: There is no such service, or not exactly one of the first four was passed.
        HostError: It cannot be seen, or it ended meanwhile.
    """
    return inspect_service(request_of(InspectRequest, locals()))


def inspect_service(request: InspectRequest) -> Inspection:
    """Do what `inspect` does, for a request.

    Raises:
        InputError: As for `inspect`.
        HostError: As for `inspect`.
    """
    if not 1 <= request.seconds <= _LONGEST_S:
        raise InputError(
            what=f"{request.seconds} is not between 1 and {_LONGEST_S}.",
            where="--seconds",
            fix="Write a number of seconds, such as 30.",
        )
    use = ServiceSampler(_roots(request)).watch(request.seconds)
    inspection = judge(use, discovery.live_topology(), target=request.target)
    if request.save is not None:
        _save(request.save, inspection)
    return replace(inspection, saved=request.save)


def judge(use: ServiceUse, topology: Topology, *, target: str) -> Inspection:
    """What a service did wrong in an interval.

    Args:
        use: What it was seen to do.
        topology: The host.
        target: As in `Inspection`.
    """
    allowed = use.group_cpus or frozenset(cpu.id for cpu in topology.cpus)
    cpus = tuple(replace(cpu, allowed=cpu.id in allowed) for cpu in topology.cpus)
    topology, service = replace(topology, cpus=cpus), ServiceEvidence(use)
    findings = diagnose_service(service, topology)
    state: State = "healthy"
    if findings:
        state = "findings"
    elif service.is_idle:
        state = "idle"
    elif use.hidden:
        state = "unseen"
    return Inspection(
        target=target, state=state, findings=findings, service=service, topology=topology
    )


def _roots(request: InspectRequest) -> tuple[int, ...]:
    """The processes that a request names."""
    match (request.pids, request.port, request.name, request.cgroup):
        case ((_, *_), None, None, None):
            return find_processes.of_ids(request.pids)
        case ((), int(port), None, None):
            return find_processes.of_port(port)
        case ((), None, str(name), None):
            return find_processes.of_name(name, own=os.getpid())
        case ((), None, None, str(path)):
            return find_processes.of_cgroup(path)
    raise InputError(
        what="name one service: by process ids, `--port`, `--name` or `--cgroup`.",
        where="corebound inspect",
        fix="For example `corebound inspect 4711`.",
    )


def _plain(value: Any) -> Any:
    """The same without control characters, and with 5 digits after the point at most."""
    match value:
        case str():
            return one_line(value)
        case float():
            return round(value, 5)
        case dict():
            return {name: _plain(item) for name, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
    return value


# What the document has of a service, and of a process as it was read.
_USED = (
    *("busy_cpus", "wait_share", "throttled_share", "migrations", "major_faults_per_s"),
    "swap_bytes",
)
_READ = (
    *("pid", "parent", "user", "inner_pid", "variables", "major_faults"),
    *("swap_bytes", "resident_bytes", "node_bytes"),
)


def _process_document(process: ProcessUse, service: ServiceEvidence) -> dict[str, Any]:
    """A process as plain data."""
    computing, duration_ns = service.computing[process.pid], service.use.duration_ns

    def use(threads: Sequence[ThreadUse]) -> dict[str, Any]:
        return {
            "threads": len(threads),
            "computing": sum(thread in computing for thread in threads),
            "busy_cpus": sum(thread.run_ns for thread in threads) / duration_ns,
            "waiting_cpus": sum(thread.wait_ns for thread in threads) / duration_ns,
            "wait_share": waited(threads) or 0.0,
        }

    pools = [{"name": name, **use(each)} for name, each in named_threads(process).items()]
    busiest = process.threads[0] if process.threads else None
    return {
        **{name: getattr(process, name) for name in _READ},
        **use(process.threads),
        "name": process.name,
        "libraries": list(process.libraries),
        "command": shown_command(process.command),
        "works": process in service.active,
        "threads": process.thread_count,
        "busy_cpus": process.cpu_ns / duration_ns,
        "cpus": cpu_list(process.cpus),
        "nice": busiest.nice if busiest else None,
        "policy": _POLICIES.get(busiest.policy, "unknown") if busiest else None,
        "pools": sorted(pools, key=lambda each: -each["busy_cpus"] - each["waiting_cpus"]),
    }


def _save(file: Path, inspection: Inspection) -> None:
    """Write a scenario that starts the busiest process that is nobody's child in the service."""
    uses = {process.pid: process for process in inspection.service.use.processes}
    tops = [process for process in uses.values() if process.parent not in uses]
    top = max(tops, key=lambda process: process.ready_ns)
    if not top.command:
        raise InputError(
            what="this process has no command line.",
            where=f"process {top.pid}",
            fix="Inspect the program that starts it.",
        )
    program = find_processes.program_of(top.pid)
    ports, folder = find_processes.ports_of(uses), find_processes.folder_of(top.pid)
    text = scenario_text(inspection, top, ports, program=program, folder=folder)
    with report_os_errors("cannot write", where=file, fix="Name a file that you may write."):
        atomic_write.put(file, text.encode())


def scenario_text(
    inspection: Inspection,
    top: ProcessUse,
    ports: tuple[int, ...],
    *,
    program: str | None = None,
    folder: str | None = None,
) -> str:
    """A scenario that starts a service, in YAML.

    Args:
        inspection: The service.
        top: Its process that starts the others.
        ports: The TCP ports on which it listens.
        program: The file that it runs; None if unknown.
        folder: The folder in which it runs; likewise.
    """
    slug = re.sub(r"[^a-z0-9]+", "-", top.name.lower()).strip("-") or "service"
    # What /proc shows may be a title, such as `nginx: master process`, or hold control characters.
    safe = without_secrets(top.command)
    first, *others = map(lines, safe)
    if re.search(r"\s", first):
        first = program or re.sub(r"\s+", "-", one_line(top.name).strip())
    cleaned = (first, *others)
    command, port = _with_port(cleaned, ports)
    workload: dict[str, Any] = {"command": list(command)}
    if ports:
        url = f"http://127.0.0.1:{port}/"
        workload = {"server": workload, "requests": {"url": url}}
    matrix, env = _settings(inspection)
    if inspection.service.runnable_cpus:
        matrix["cpu_quota"] = [inspection.service.runnable_cpus]
    scenario: dict[str, Any] = {
        "schema": 1,
        "name": slug,
        "title": one_line(" ".join(shown_command(top.command)))[:80],
        "question": "What does following the findings gain?",
        "workload": workload,
        "environment": "host",
    }
    if env:
        scenario["env"] = env
    if ports:
        scenario["parameters"] = {"concurrency": 8}
    scenario["matrix"] = matrix or {"threads": ["default", 1]}
    notes = [
        f"# Written by `corebound inspect {one_line(inspection.target)} --save`. Before a run:",
        "# - The command runs in the folder of this file, in the foreground.",
        f"# - Move this file to {one_line(folder or 'that folder')}, where the service runs.",
        "# - It gets few variables. Name others under `pass_env`.",
    ]
    if safe != top.command:
        notes.append("# - In `command`, *** is what may be secret. Pass it as a variable instead.")
    if cleaned != safe or "\ufffd" in "".join(cleaned):
        notes.append("# - What /proc shows as `command` cannot be one. Write it as you start it.")
    if ports:
        notes.append("# - Set the address, and a body, of a typical request.")
        if port != "{port}":
            notes.append(f"# - Write {{port}} for the port {ports[0]} in `command` and in `url`.")
    body = yaml.safe_dump(scenario, sort_keys=False, allow_unicode=True, width=100)
    return "\n".join((*notes, body))


def _settings(inspection: Inspection) -> tuple[dict[str, Any], dict[str, str]]:
    """The axes and the variables of a scenario: what the service has, and what findings set."""
    now = {
        name: value
        for process in inspection.service.use.processes
        for name, value in process.variables.items()
    }
    tried: dict[str, str] = {}
    for finding in inspection.findings:
        tried = finding.assignments | tried
    axes: dict[str, Any] = {}
    if any(finding.rule == _PINNED for finding in inspection.findings):
        axes["binding"] = ["one-cpu", "none"]
    for name in dict.fromkeys((*tried, *now.keys() - {"GOMP_SPINCOUNT"})):
        values = [now.get(name), *([tried[name]] if name in tried else [])]
        if (setting := OWN_VARIABLES.get(name)) is not None:
            axes.setdefault(setting, list(dict.fromkeys(map(_setting_value, values))))
        elif name in tried:
            axes.setdefault("env", {})[name] = values
    env = {name: value for name, value in now.items() if name not in {*tried, *OWN_VARIABLES}}
    return axes, env


def _setting_value(text: str | None) -> int | str | None:
    """The value of a variable as a setting has it; None if it is none."""
    first = (text or "").partition(",")[0].strip().lower()
    if first.isdecimal() and first.isascii():
        return int(first)
    return first if first in {"active", "passive", "infinite"} else None


def _with_port(command: tuple[str, ...], ports: tuple[int, ...]) -> tuple[tuple[str, ...], str]:
    """A command with `{port}` in place of its port, and the port for an address."""
    for port in ports:
        pattern = re.compile(rf"(?<!\d){port}(?!\d)")
        if any(pattern.search(word) for word in command):
            return tuple(pattern.sub("{port}", _braced(word)) for word in command), "{port}"
    return tuple(map(_braced, command)), str(ports[0]) if ports else ""


def _braced(word: str) -> str:
    return re.sub(r"\{(\w+)\}", r"{{\1}}", word)

"""What `corebound inspect` shows of a service: what is wrong, and what it is and did."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal

from corebound.analysis.wording import count
from corebound.diagnosis.host import throttled_text
from corebound.diagnosis.service_evidence import ServiceEvidence, ServiceFinding, named_threads
from corebound.machine.topology import Topology, cpu_list
from corebound.present.sections import Column, Fact, Facts, Section, Sentence, Table
from corebound.records.service_use import ProcessUse
from corebound.text import one_line
from corebound.units import cpu_quota, percent, significant, size

State = Literal["healthy", "idle", "findings", "unseen"]

_MOST_ROWS = 8
# The value after an option of such a name is not shown.
_SECRET = re.compile(r"(?i)(pass|secret|token|key|credential|auth)")
_SIGNS = {"certain": "▼", "likely": "!", "possible": "·"}


def headline(state: State, findings: int) -> str:
    """The result in a sentence."""
    if state == "findings":
        return count(findings, "finding")
    return {
        "idle": "Idle: too little work to judge",
        "unseen": "No finding, but not everything is visible",
    }.get(state, "Healthy: no finding")


def inspect_sections(
    service: ServiceEvidence,
    findings: Sequence[ServiceFinding],
    topology: Topology,
    *,
    state: State,
    target: str,
) -> Iterator[Section]:
    """The parts of the result.

    Args:
        service: The service.
        findings: What is wrong with it.
        topology: Its host.
        state: The result.
        target: What was inspected, as the options of the command.
    """
    use = service.use
    first = use.processes[0].process
    name = f"{one_line(first.name)} ({count(len(use.processes), 'process', 'processes')})"
    duration = service.over.removeprefix("in ")
    yield Sentence(f"{headline(state, len(findings))}: {name}, watched for {duration}.", "lead")
    for finding in findings:
        yield from _finding(finding, target)
    yield _processes(service)
    yield _threads(service)
    yield Facts(tuple(_facts(service, topology)))
    for hidden in use.hidden:
        yield Sentence(f"Not visible: {hidden.what}. {hidden.fix}", "note")
    cost = percent(use.own_ns / use.duration_ns, 2)
    yield Sentence(f"Sampling overhead: {cost} of one CPU, {use.samples} samples.", "note")


def _finding(finding: ServiceFinding, target: str) -> Iterator[Section]:
    sign = _SIGNS[finding.certainty]
    yield Sentence("")
    yield Sentence(f"{sign} {finding.rule} ({finding.certainty}): {finding.what}", "lead")
    for line in finding.evidence:
        yield Sentence(f"  {line}")
    yield Facts(
        (
            Fact(term="  fix", value=finding.fix),
            Fact(term="  proof", value=proof_command(finding, target), code=True),
        )
    )


def proof_command(finding: ServiceFinding, target: str) -> str:
    """The command that shows what following a finding gains."""
    if finding.assignment is not None:
        save = f"corebound inspect {target} --save service.yaml"
        return f"{save} && corebound run service.yaml"
    return f"corebound inspect {target}"


def watch_line(service: ServiceEvidence, findings: Sequence[ServiceFinding], at: str) -> str:
    """One look at a service in a line: when, what it uses, and what is wrong.

    Args:
        service: The service.
        findings: What is wrong with it.
        at: The time of day.
    """
    busy = f"{significant(service.busy_cpus, 2)} CPUs"
    wait = f"wait {percent(service.wait_share or 0, 0)}"
    throttled = service.throttled_share
    stopped = f", throttled {percent(throttled, 0)}" if throttled is not None else ""
    rules = ", ".join(finding.rule for finding in findings) or "no finding"
    return f"{at}  {busy}, {wait}{stopped}  {rules}"


def _processes(service: ServiceEvidence) -> Table:
    shown = sorted(service.use.processes, key=lambda one: -one.cpu_ns)
    columns = (
        Column("process"),
        Column("command", "long"),
        Column("threads", "number"),
        Column("compute", "number"),
        Column("CPUs used", "number"),
        Column("wait", "number"),
        Column("may use"),
    )
    rows = tuple(_process(one, service) for one in shown[:_MOST_ROWS])
    return Table(title="Processes", columns=columns, rows=rows, notes=_more(len(shown)))


def _process(one: ProcessUse, service: ServiceEvidence) -> tuple[str, ...]:
    inner = f" ({one.process.inner_pid} inside)" if one.process.inner_pid else ""
    command = " ".join(shown_command(one.process.command)) or f"[{one_line(one.process.name)}]"
    ready = sum(thread.ready_ns for thread in one.threads)
    waited = sum(thread.wait_ns for thread in one.threads)
    return (
        f"{one.process.pid}{inner}",
        command if len(command) <= _LONGEST else f"{command[: _LONGEST - 1]}…",
        f"{one.thread_count:,}",
        str(len(service.computing(one))),
        significant(one.cpu_ns / service.use.duration_ns, 2),
        percent(waited / ready, 0) if ready else "–",
        cpu_list(service.affinity(one)) or "–",
    )


_LONGEST = 24


def _threads(service: ServiceEvidence) -> Table:
    rows = [
        (
            one_line(name),
            str(one.process.pid),
            f"{len(threads):,}",
            significant(sum(thread.run_ns for thread in threads) / service.use.duration_ns, 2),
            significant(sum(thread.wait_ns for thread in threads) / service.use.duration_ns, 2),
        )
        for one in service.active
        for name, threads in sorted(
            named_threads(one).items(), key=lambda each: -sum(one.ready_ns for one in each[1])
        )
    ]
    columns = (
        Column("threads named", "long"),
        Column("process", "number"),
        Column("number", "number"),
        Column("CPUs used", "number"),
        Column("CPUs waited for", "number"),
    )
    return Table(
        title="Threads of the processes that work",
        columns=columns,
        rows=tuple(rows[:_MOST_ROWS]),
        notes=_more(len(rows)),
    )


def _more(number: int) -> tuple[str, ...]:
    return (f"{number - _MOST_ROWS} more: `--json` has all.",) if number > _MOST_ROWS else ()


def _facts(service: ServiceEvidence, topology: Topology) -> Iterator[Fact]:
    use = service.use
    host = f"{len(topology.cpus)} CPUs{' with SMT' if topology.has_smt else ''}"
    allowed = cpu_list(cpu.id for cpu in topology.allowed)
    yield Fact(term="may use", value=f"CPUs {allowed} of {host}")
    for group in use.quotas:
        parent = "" if group.is_own else ", of a parent"
        yield Fact(
            term="CPU quota",
            value=f"{cpu_quota(group.quota.cpus)} (/{group.folder}{parent}):"
            f" {throttled_text(group.quota)}",
        )
    others = significant(service.foreign_share * len(service.cpus), 2)
    yield Fact(term="others on its CPUs", value=f"{others} CPUs")
    if service.major_faults_per_s >= 1 or any(one.process.swap_bytes for one in use.processes):
        swap = sum(one.process.swap_bytes or 0 for one in use.processes)
        faults = significant(service.major_faults_per_s, 2)
        yield Fact(term="memory", value=f"{size(swap)} in swap, {faults} major faults per second")
    for one in service.active[:1]:
        if one.process.libraries:
            yield Fact(term="compute libraries", value=", ".join(one.process.libraries))
        if one.process.variables:
            values = (f"{name}={one_line(text)}" for name, text in one.process.variables.items())
            yield Fact(term="started with", value=" ".join(values))


def shown_command(command: Sequence[str]) -> tuple[str, ...]:
    """A command line without control characters, and without what may be secret."""
    shown: list[str] = []
    hides_next = False
    for word in command:
        name, sign, _ = word.partition("=")
        is_secret = word.startswith("-") and _SECRET.search(name) is not None
        if hides_next and not word.startswith("-"):
            shown.append("***")
        else:
            shown.append(f"{one_line(name)}=***" if is_secret and sign else one_line(word))
        hides_next = is_secret and not sign
    return tuple(shown)

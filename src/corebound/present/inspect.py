"""What `corebound inspect` shows of its result: what is wrong, and what the service is and did."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from corebound.analysis.wording import count
from corebound.diagnosis.host import throttled_text
from corebound.present.sections import Column, Fact, Facts, Section, Sentence, Table
from corebound.records.telemetry import QuotaUse
from corebound.text import one_line
from corebound.units import cpu_quota, percent, significant, size

State = Literal["healthy", "idle", "findings", "unseen"]

_MOST_ROWS, _LONGEST = 8, 24
# What follows a name with such a word is not shown: `--hf-token x`, `API_KEY=x`, but `--max-tokens
# 9` is.
_SECRET_WORDS = frozenset(
    (
        *("pass", "passwd", "password", "passphrase", "pwd", "secret", "secrets", "token", "key"),
        *("apikey", "auth", "authorization", "bearer", "cookie", "credential", "credentials"),
    )
)
_NAME_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_NAMED_VALUE = re.compile(r"([\w.-]+)[\"']?\s*[=:]\s*(?!//)")
_ADDRESS_PASSWORD = re.compile(r"(?<=://)[^/\s]*@")
_SIGNS = {"certain": "▼", "likely": "!", "possible": "·"}
_HEADLINES = {
    "healthy": "Healthy: no finding",
    "idle": "Idle: too little work to judge",
    "unseen": "No finding, but not everything is visible",
}


def headline(state: State, findings: int) -> str:
    """The result in a sentence."""
    return _HEADLINES.get(state) or count(findings, "finding")


def inspect_sections(document: Mapping[str, Any]) -> Iterator[Section]:
    """The parts of the result.

    Args:
        document: The result as `corebound inspect --json` prints it.
    """
    processes, findings = document["processes"], document["findings"]
    duration = f"{significant(document['seconds'], 2)} s"
    name = f"{processes[0]['name']} ({count(len(processes), 'process', 'processes')})"
    lead = headline(document["state"], len(findings))
    yield Sentence(f"{lead}: {name}, watched for {duration}.", "lead")
    for finding in findings:
        certainty = finding["certainty"]
        title = f"{_SIGNS[certainty]} {finding['rule']} ({certainty}): {finding['what']}"
        yield from (Sentence(""), Sentence(title, "lead"))
        yield from (Sentence(f"  {line}") for line in finding["evidence"])
        fix = Fact(term="  fix", value=finding["fix"])
        yield Facts((fix, Fact(term="  proof", value=finding["prove"], code=True)))
    busiest = sorted(processes, key=lambda process: -process["busy_cpus"])
    heads = ("process", "command*", "threads", "compute", "CPUs used", "wait", "may use*")
    yield _table("Processes", heads, [_process(process) for process in busiest])
    working = [process for process in busiest if process["works"]]
    rows = [_threads(process, pool) for process in working for pool in process["pools"]]
    yield _table(
        "Threads of the processes that work",
        ("threads named*", "process", "number", "CPUs used", "CPUs waited for"),
        rows,
    )
    yield Facts(tuple(_facts(document, working)))
    for hidden in document["unseen"]:
        yield Sentence(f"Not visible: {hidden['what']}. {hidden['fix']}", "note")
    cost = document["cost"]
    share = percent(cost["cpu_share"], 2)
    yield Sentence(f"Sampling overhead: {share} of one CPU, {cost['samples']} samples.", "note")


def _table(title: str, headings: Sequence[str], rows: Sequence[tuple[str, ...]]) -> Table:
    """A table of numbers, but for columns of text, whose headings end with `*`."""
    more = len(rows) - _MOST_ROWS
    return Table(
        title=title,
        columns=tuple(
            Column(name.rstrip("*"), "long" if name.endswith("*") else "number")
            for name in headings
        ),
        rows=tuple(rows[:_MOST_ROWS]),
        notes=(f"{more} more: `--json` has all.",) if more > 0 else (),
    )


def _process(process: Mapping[str, Any]) -> tuple[str, ...]:
    inner = f" ({process['inner_pid']} inside)" if process["inner_pid"] else ""
    command = " ".join(process["command"]) or f"[{process['name']}]"
    return (
        f"{process['pid']}{inner}",
        command if len(command) <= _LONGEST else f"{command[: _LONGEST - 1]}…",
        f"{process['threads']:,}",
        str(process["computing"]),
        significant(process["busy_cpus"], 2),
        percent(process["wait_share"], 0) if process["wait_share"] or process["busy_cpus"] else "–",
        process["cpus"] or "–",
    )


def _threads(process: Mapping[str, Any], pool: Mapping[str, Any]) -> tuple[str, ...]:
    used, waited = (significant(pool[key], 2) for key in ("busy_cpus", "waiting_cpus"))
    return (pool["name"], str(process["pid"]), f"{pool['threads']:,}", used, waited)


def _facts(document: Mapping[str, Any], working: Sequence[Mapping[str, Any]]) -> Iterator[Fact]:
    limits, use = document["limits"], document["use"]
    smt = " with SMT" if limits["smt"] else ""
    host = f"CPUs {limits['cpus']} of {limits['host']} CPUs{smt}"
    yield Fact(term="its group may use", value=host)
    for group in limits["quotas"]:
        folder = f"/{group['group']}{'' if group['own'] else ', of a parent'}"
        counts = {name: group[name] for name in QuotaUse.__struct_fields__}
        did = throttled_text(QuotaUse(**counts))
        yield Fact(term="CPU quota", value=f"{cpu_quota(group['cpus'])} ({folder}): {did}")
    yield Fact(term="others on its CPUs", value=f"{significant(use['foreign_cpus'], 2)} CPUs")
    faults, swap = use["major_faults_per_s"], use["swap_bytes"]
    if faults >= 1 or swap:
        text = f"{size(swap)} in swap, {significant(faults, 2)} major faults per second"
        yield Fact(term="memory", value=text)
    for process in working[:1]:
        if process["libraries"]:
            yield Fact(term="compute libraries", value=", ".join(process["libraries"]))
        if variables := process["variables"]:
            pairs = (f"{name}={value}" for name, value in variables.items())
            yield Fact(term="started with", value=" ".join(pairs))


def watch_line(document: Mapping[str, Any], at: str) -> str:
    """One look at a service in a line: when, what it uses, and what is wrong.

    Args:
        document: As for `inspect_sections`.
        at: The time of day.
    """
    use = document["use"]
    text = f"{significant(use['busy_cpus'], 2)} CPUs, wait {percent(use['wait_share'] or 0, 0)}"
    if use["throttled_share"] is not None:
        text += f", throttled {percent(use['throttled_share'], 0)}"
    rules = ", ".join(finding["rule"] for finding in document["findings"])
    return f"{at}  {text}  {rules or 'no finding'}"


def shown_command(command: Sequence[str]) -> tuple[str, ...]:
    """A command line without control characters, and without what may be secret."""
    return tuple(map(one_line, without_secrets(command)))


def without_secrets(command: Sequence[str]) -> tuple[str, ...]:
    """A command line with `***` for each value that may be secret."""
    shown: list[str] = []
    hides_next = False
    for word in command:
        named = (found for found in _NAMED_VALUE.finditer(word) if _is_secret(found[1]))
        end = next((found.end() for found in named), None)
        cleaned = word if end is None else f"{word[:end]}***"
        hides_this = hides_next and not word.startswith("-")
        shown.append("***" if hides_this else _ADDRESS_PASSWORD.sub("***@", cleaned))
        hides_next = word.startswith("-") and end is None and _is_secret(word)
    return tuple(shown)


def _is_secret(name: str) -> bool:
    return any(word.lower() in _SECRET_WORDS for word in _NAME_WORD.findall(name))

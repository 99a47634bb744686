"""Runs `corebound inspect`, and judges what it found."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from benchmarks.inspect_services.service import Running

# What the rest of the host must use at least, in CPUs, so that `foreign-load` is true.
_FOREIGN_CPUS = 0.25
# The least stolen time, in CPUs, with which `steal` is true.
_STOLEN_CPUS = 0.1


class Answer(Struct, frozen=True, kw_only=True):
    """What a call of `corebound inspect` answered, and what it used.

    `document` is empty if it printed no JSON.
    """

    code: int
    document: Mapping[str, Any]
    text: str
    errors: str
    took_s: float
    cpu_s: float

    @property
    def rules(self) -> tuple[str, ...]:
        """The names of its findings."""
        return tuple(finding["rule"] for finding in self.document.get("findings", ()))


class Observation(Struct, frozen=True, kw_only=True):
    """A service while it was inspected.

    Attributes:
        name: The service's name; variant: planted, cured, quiet or loaded.
        expects: Findings of which one is right; also: others that are true.
        rules: What was found.
        rate: Steps per second, and cpu_per_step_s, their CPU time; None without steps.
        foreign_cpus: The CPUs that the rest of the host used.
        problem: Why there is no answer; None if there is one.
        document: The whole answer.
    """

    name: str
    variant: str
    expects: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    rate: float | None = None
    cpu_per_step_s: float | None = None
    foreign_cpus: float = 0.0
    problem: str | None = None
    document: Mapping[str, Any] = {}

    @property
    def is_named(self) -> bool:
        """Whether an expected finding is among those found."""
        return not set(self.expects).isdisjoint(self.rules)

    @property
    def false(self) -> tuple[str, ...]:
        """Findings that are neither expected nor otherwise true."""
        return tuple(sorted(set(self.rules) - {*self.expects, *self.also}))


def ask(command: Sequence[str], arguments: Sequence[str], *, limit_s: float = 120) -> Answer:
    """Run `corebound inspect` with these arguments.

    Args:
        command: The command of corebound, perhaps behind one that runs it.
        arguments: The arguments after `inspect`.
        limit_s: When to kill it.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        began_s = time.monotonic()
        process = subprocess.Popen(
            [*command, "inspect", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=errors,
            env={"PATH": os.environ["PATH"], "HOME": os.environ["HOME"]},
        )
        timer = threading.Timer(limit_s, process.kill)
        timer.start()
        try:
            _, status, used = os.wait4(process.pid, 0)
        except BaseException:
            process.kill()
            raise
        finally:
            timer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        took_s = time.monotonic() - began_s
        texts = []
        for file in (out, errors):
            file.seek(0)
            texts.append(file.read().decode("utf-8", "replace"))
    try:
        document = json.loads(texts[0])
    except ValueError:
        document = {}
    return Answer(
        code=process.returncode,
        document=document if isinstance(document, dict) else {},
        text=texts[0],
        errors=texts[1],
        took_s=took_s,
        cpu_s=used.ru_utime + used.ru_stime,
    )


def observe(corebound: str, running: Running, *, seconds: float, variant: str) -> Observation:
    """Inspect a running service; `loaded` and `planted` have neighbours by intention."""
    service = running.service
    before = _Use(running)
    answer = ask((corebound,), (str(running.pid), "--seconds", f"{seconds:g}", "--json"))
    after = _Use(running)
    duration_s = after.at_s - before.at_s
    steps, cpu_s = after.steps - before.steps, after.cpu_s - before.cpu_s
    foreign = (after.busy_s - before.busy_s - cpu_s - answer.cpu_s) / duration_s
    true = set(service.also)
    if foreign >= _FOREIGN_CPUS:
        true |= {"foreign-load"}
    if (after.stolen_s - before.stolen_s) / duration_s >= _STOLEN_CPUS:
        true |= {"steal"}
    has_answer = answer.code in {0, 1} and answer.document
    return Observation(
        name=service.name,
        variant=variant,
        expects=tuple(sorted(service.expects)),
        also=tuple(sorted(true)),
        rules=answer.rules,
        rate=steps / duration_s if service.is_counted else None,
        cpu_per_step_s=cpu_s / steps if steps else None,
        foreign_cpus=foreign,
        problem=None if has_answer else f"exit code {answer.code}: {answer.errors[-400:]}",
        document=answer.document,
    )


class _Use:
    """What a service did, and what the host used, until now."""

    def __init__(self, running: Running) -> None:
        self.at_s = time.monotonic()
        self.steps = running.steps()
        self.cpu_s = running.cpu_s()
        fields = Path("/proc/stat").read_text("ascii").split("\n", 1)[0].split()[1:]
        ticks = [int(field) / os.sysconf("SC_CLK_TCK") for field in fields]
        user, nice, system, _, _, irq, softirq, self.stolen_s = ticks[:8]
        self.busy_s = user + nice + system + irq + softirq

"""Write a configuration as files for other programs: a shell script, a unit of systemd, and so on.

Each artefact gives a program the CPUs, memory nodes and variables that a launch had.
"""

import math
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from pprint import pformat
from typing import Literal, get_args

import yaml
from msgspec import Struct
from msgspec.structs import replace

from corebound.errors import encodable
from corebound.machine.topology import CpuId, cpu_list
from corebound.planning.commands import binder
from corebound.planning.environment_variables import intra_op
from corebound.planning.models import Command, Placement, Slot
from corebound.planning.servers import CONFIGURATION, torchserve_workers
from corebound.scenario.cell import Cell, MemoryPolicy
from corebound.scenario.runtimes import Framework
from corebound.text import one_line
from corebound.units import cpu_quota, systemd_quota

ArtefactKind = Literal[
    "shell",
    "env",
    "python",
    "systemd",
    "docker",
    "kubernetes",
    "torchserve",
    "onnxruntime",
    "openvino",
    "llama.cpp",
    "vllm",
]
KINDS: tuple[ArtefactKind, ...] = get_args(ArtefactKind)
# The kinds that only cells of some frameworks have. A command or a function of the user's, whose
# framework is `none`, and a server of the user's own may run any program.
OF_FRAMEWORKS: Mapping[ArtefactKind, tuple[Framework, ...]] = {
    "torchserve": ("torchserve",),
    "onnxruntime": ("onnxruntime",),
    "openvino": ("openvino",),
    "llama.cpp": ("llama-cpp", "llama-server", "none", "own-server"),
    "vllm": ("none", "own-server"),
}


def fits(kind: ArtefactKind, framework: Framework) -> bool:
    """Whether a kind of file can be written for cells of a framework."""
    return framework in OF_FRAMEWORKS.get(kind, (framework,))


# The hints of OpenVINO by the `mode` of its workloads, if it is not the usual one for latency.
_OPENVINO_HINTS = {"throughput": "THROUGHPUT"}
_OPENVINO_PINNING = {"pinned": True, "unpinned": False}

# The names of systemd.exec(5) for the policies of `memory`.
_NUMA_POLICIES: Mapping[MemoryPolicy, str] = {
    "local": "local",
    "bind": "bind",
    "preferred": "preferred",
    "interleave": "interleave",
    "remote": "bind",
}


class Artefact(Struct, frozen=True, kw_only=True):
    """A configuration in the form that one program reads.

    Attributes:
        title: What it is, in a word or two.
        readme: The content of a file beside it that says where it comes from, if it can have no
            comments.
        note: What it cannot express, or needs; empty if there is nothing to say.
    """

    kind: ArtefactKind
    title: str
    file: str
    text: str
    readme: str = ""
    note: str = ""


class _Launched(Struct, frozen=True, kw_only=True):
    """How a configuration was launched: the cell, its placement and its commands, by worker.

    `program` starts the user's program with this configuration; empty if that is the same in all.
    """

    cell: Cell
    placement: Placement
    commands: tuple[Command, ...]
    program: tuple[str, ...]

    @property
    def quota(self) -> float | None:
        """The CPU quota of its only process, in CPUs; None without one, and for several."""
        return self.cell.cpu_quota if len(self.commands) == 1 else None

    @property
    def env(self) -> dict[str, str]:
        """The variables of the first worker; only OMP_PLACES differs between workers."""
        return dict(self.commands[0].env)

    @property
    def processes(self) -> tuple[tuple[Command, Slot], ...]:
        """Each command with its CPUs; a server has one command, whose workers share its CPUs."""
        is_server = self.cell.runtime.server is not None
        return tuple(zip(self.commands, self.placement.slots, strict=not is_server))

    @property
    def is_bound(self) -> bool:
        """Whether CPUs are chosen here: not by a launcher, and not left to the kernel."""
        return self.placement.bound and self.cell.binding.mode != "launcher"


def artefacts(
    cell: Cell,
    placement: Placement,
    commands: Sequence[Command],
    kinds: Sequence[ArtefactKind] | None = None,
    *,
    program: Sequence[str] = (),
    about: Sequence[str] = (),
) -> tuple[Artefact, ...]:
    """The artefacts of a configuration, in the order of `kinds`.

    A kind has several files if each worker needs its own, and none if it has nothing to set.

    Args:
        commands: The commands of its launches, one for each worker.
        kinds: Which to write. Those of another framework are left out; a framework's launcher
            has only those that can start it. Default: all that fit, without those of programs
            that a command or a function may run, but need not.
        program: The words by `planning.plan.own_program`.
        about: Where the configuration comes from, as comments of each file, a line each.
    """
    if kinds is None:
        kinds = [kind for kind in KINDS if "none" not in OF_FRAMEWORKS.get(kind, ())]
    launched = _Launched(
        cell=cell,
        placement=placement,
        commands=tuple(map(_without_own_variables, commands)),
        program=tuple(program),
    )
    of_launcher = {"shell", "env", "torchserve"}
    return tuple(
        _with_comments(_with_notes(artefact, launched), about)
        for kind in kinds
        if (cell.binding.mode != "launcher" or kind in of_launcher) and fits(kind, cell.framework)
        if not _sets_nothing(kind, launched)
        for artefact in _written(kind, launched)
    )


def _written(kind: ArtefactKind, launched: _Launched) -> Iterator[Artefact]:
    """The files of a kind, before comments and notes."""
    title, file, write = _FORMATS[kind]
    texts = [*write(launched)]
    for number, (text, note) in enumerate(texts):
        unit = "NAME" if len(texts) == 1 else f"NAME@{number}"
        yield Artefact(kind=kind, title=title, file=file.format(unit=unit), text=text, note=note)


def _sets_nothing(kind: ArtefactKind, launched: _Launched) -> bool:
    """Whether a kind of file could only say what holds without it."""
    cell, placement = launched.cell, launched.placement
    threads = intra_op(cell, placement)
    # Cells without a GPU hide all GPUs.
    has_variables = any(item != ("CUDA_VISIBLE_DEVICES", "") for item in launched.env.items())
    of_process = has_variables or launched.is_bound
    is_started_so = placement.memory != "default" or launched.quota or len(launched.commands) > 1
    is_started_so = of_process or is_started_so or cell.binding.mode == "launcher"
    sets: dict[ArtefactKind, object] = {
        "env": has_variables,
        "onnxruntime": threads or dict(cell.parameters).get("mode", "usual") != "usual",
        "llama.cpp": threads or launched.is_bound,
        "python": of_process or (threads and cell.runtime.calls),
        **dict.fromkeys(("systemd", "docker"), is_started_so),
        "shell": is_started_so or launched.program,
    }
    return not sets.get(kind, True)


# A Python file may name its encoding in its first two lines, which a path of the race must not do.
_WARNING = (
    "Written by corebound. Valid for the host and the workload below, and for no others: measure",
    "again after a change of the host, its kernel, the framework or the workload.",
)


def _with_comments(artefact: Artefact, about: Sequence[str]) -> Artefact:
    """The artefact, with where it comes from: as comments, or beside a file that can have none."""
    if not about:
        return artefact
    lines = (*_WARNING, *(one_line(encodable(line)) for line in about))
    if artefact.kind == "llama.cpp":
        # All of its words become arguments of a command.
        return replace(artefact, readme="".join(f"{line}\n" for line in lines))
    comments = "".join(f"# {line}\n" for line in lines)
    after_shebang = re.compile(r"\A(#!.*\n)?")
    return replace(artefact, text=after_shebang.sub(lambda it: it[0] + comments, artefact.text))


def _without_own_variables(command: Command) -> Command:
    """A command without what only a launch has: its port, and variables of built-in servers."""
    env = tuple(
        (name, value)
        for name, value in command.env
        if not name.startswith("COREBOUND_") and "{port}" not in value
    )
    return replace(command, env=env)


# These limit the CPU time of one process; none of them limits several together.
_LIMITS_CPU_TIME: frozenset[ArtefactKind] = frozenset({"systemd", "docker", "kubernetes"})


def _with_notes(artefact: Artefact, launched: _Launched) -> Artefact:
    """The artefact, with notes on what the configuration has and this file cannot set."""
    cell, notes = launched.cell, [artefact.note]
    alone = len(launched.commands) == 1
    if cell.cpu_quota is not None and not (alone and artefact.kind in _LIMITS_CPU_TIME):
        limited = "the process" if alone else "all processes together"
        notes.append(f"It sets no CPU quota: limit {limited} to {cpu_quota(cell.cpu_quota)}.")
    parameters = dict(cell.parameters)
    varied = [f"{axis}={parameters[axis]}" for axis, _ in cell.axes if axis in parameters]
    if launched.program:
        if artefact.kind != "shell":
            notes.append(f"Start the program as `{shlex.join(launched.program)}`.")
        if any("{port}" in word for word in launched.program):
            notes.append("Replace {port} by a port of yours.")
    elif varied:
        notes.append(f"Set the program's own parameters too: {', '.join(varied)}.")
    return replace(artefact, note=" ".join(note for note in notes if note))


# The text of each file of a kind, and a note on it.
_Texts = Iterator[tuple[str, str]]


def _joined(lines: Sequence[str]) -> str:
    return "\n".join(lines) + "\n"


def _shell(launched: _Launched) -> _Texts:
    lines = ["#!/bin/sh", "# Usage: sh corebound.sh COMMAND [ARGUMENT ...]"]
    if launched.program:
        lines += [
            "# Without a command, it starts the one of the scenario with these values.",
            f"[ $# -gt 0 ] || set -- {shlex.join(launched.program)}",
        ]
    alone = len(launched.commands) == 1
    if alone:
        lines += [f"export {name}={shlex.quote(value)}" for name, value in launched.env.items()]
    starts = []
    for command, slot in launched.processes:
        bound = binder(launched.placement, slot)
        variables = [] if alone else ["env", *(f"{name}={value}" for name, value in command.env)]
        words = [*variables, *bound]
        if launched.cell.binding.mode == "launcher":
            words += [command.argv[len(bound)], *launched.cell.runtime.launcher]
        starts.append(f'{shlex.join(words)} "$@"'.lstrip())
    if alone:
        lines.append(f"exec {starts[0]}")
    else:
        lines += [f"{start} &" for start in starts]
        lines.append("wait")
    yield _joined(lines), ""


def _env(launched: _Launched) -> _Texts:
    note = ""
    if launched.is_bound:
        cpus = "; ".join(cpu_list(slot.cpus) for slot in launched.placement.slots)
        note = f"It sets no CPUs. Bind each process to: {cpus}."
    elif launched.cell.binding.mode == "launcher":
        note = "It cannot set the launcher, which sets CPUs and threads: use the shell script."
    note += _if_quoted(launched.env)
    yield _variables(launched.env), note


def _variables(env: Mapping[str, str]) -> str:
    """Variables as `NAME=value` lines, quoted only where a shell would change the value."""
    return "".join(f"{name}={_in_env_file(value)}\n" for name, value in env.items())


def _in_env_file(value: str) -> str:
    # Shells and systemd read these characters as they are, and so do containers.
    is_plain = re.fullmatch(r"[\w@%+=:,./{}^-]*", value, re.ASCII)
    return value if is_plain else shlex.quote(value)


def _if_quoted(env: Mapping[str, str]) -> str:
    quoted = [name for name, value in env.items() if _in_env_file(value) != value]
    if not quoted:
        return ""
    return (
        " Docker and Podman do not remove quotes: with `--env-file`, pass"
        f" {', '.join(quoted)} with `--env` instead."
    )


def _python(launched: _Launched) -> _Texts:
    lines = ["import os", ""]
    if launched.env:
        lines.append(f"os.environ.update({pformat(launched.env, width=60)})")
    slots = launched.placement.slots
    if launched.is_bound and len(slots) == 1:
        lines.append(f"os.sched_setaffinity(0, {pformat(set(slots[0].cpus), width=60)})")
    elif launched.is_bound:
        lines.append("WORKER = 0  # number of this worker")
        cpus = pformat([set(slot.cpus) for slot in slots], width=60)
        lines.append(f"os.sched_setaffinity(0, {cpus}[WORKER])")
    threads = intra_op(launched.cell, launched.placement)
    call = launched.cell.runtime.calls.get("intra_op")
    if call is not None and threads is not None:
        lines += ["", f"import {call.partition('.')[0]}", "", call.format(threads)]
    note = "Run it before the first import of the framework." + _binds_no_memory(launched)
    yield _joined(lines), note


def _systemd(launched: _Launched) -> _Texts:
    """A drop-in, or one for each instance of a template unit."""
    for command, slot in launched.processes:
        lines = ["[Service]"]
        if launched.is_bound:
            lines.append(f"CPUAffinity={cpu_list(slot.cpus)}")
        if launched.placement.memory != "default":
            lines.append(f"NUMAPolicy={_NUMA_POLICIES[launched.placement.memory]}")
            if launched.placement.memory != "local":
                lines.append(f"NUMAMask={cpu_list(slot.memory_nodes)}")
        if launched.quota is not None:
            lines.append(f"CPUQuota={systemd_quota(launched.quota)}")
        lines += [f'Environment="{name}={_in_unit(value)}"' for name, value in command.env]
        yield _joined(lines), ""


def _in_unit(value: str) -> str:
    """A value within double quotes in a unit, whose % begins a specifier: systemd.syntax(7)."""
    escapes = {"\\": r"\\", '"': r"\"", "%": "%%", "\n": r"\n"}
    return "".join(escapes.get(character, character) for character in value)


def _docker(launched: _Launched) -> _Texts:
    lines = []
    for command, slot in launched.processes:
        words = ["docker", "run"]
        if launched.is_bound:
            words += ["--cpuset-cpus", cpu_list(slot.cpus)]
        if slot.memory_nodes and launched.placement.memory in {"bind", "remote"}:
            words += ["--cpuset-mems", cpu_list(slot.memory_nodes)]
        if launched.quota is not None:
            words += ["--cpus", f"{launched.quota:g}"]
        for name, value in command.env:
            words += ["--env", f"{name}={value}"]
        lines.append(shlex.join([*words, "IMAGE"]))
    yield _joined(lines), ""


_MEMORY = "4Gi"


def _kubernetes(launched: _Launched) -> _Texts:
    cpus = str(max(len(slot.cpus) for slot in launched.placement.slots))
    if launched.quota is not None:
        cpus = f"{math.ceil(launched.quota * 1000)}m"
    resources = {"cpu": cpus, "memory": _MEMORY}
    # The CPU manager chooses the CPUs, and Kubernetes replaces $(NAME) by another variable.
    env = [
        {"name": name, "value": value.replace("$(", "$$(")}
        for name, value in launched.env.items()
        if name != "OMP_PLACES"
    ]
    container = {
        "name": "main",
        "image": "IMAGE",
        "env": env,
        "resources": {"requests": resources, "limits": dict(resources)},
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "name"},
        "spec": {"containers": [container]},
    }
    workers = len(launched.commands)
    replicas = f" Run {workers} of them." if workers > 1 else ""
    text = re.sub(
        rf"^( +memory: {_MEMORY})$",
        r"\1  # assumed: set what the program needs",
        yaml.safe_dump(pod, sort_keys=False),
        flags=re.MULTILINE,
    )
    note = "With the static CPU manager a pod has whole CPUs for itself, but cannot name them."
    yield text, f"{note} Set the memory that the program needs.{replicas}"


def _torchserve(launched: _Launched) -> _Texts:
    slots = launched.placement.slots
    of_launcher = launched.cell.binding.mode == "launcher"
    pinned = tuple(slot.cpus for slot in slots) if of_launcher else None
    settings = torchserve_workers(len(slots), pinned)
    note = "Add these lines to the server's configuration."
    note += "" if _sets_nothing("env", launched) else " Start it with the variables of `env`."
    yield "".join(f"{name}={value}\n" for name, value in settings.items()), note


def _onnxruntime(launched: _Launched) -> _Texts:
    threads = intra_op(launched.cell, launched.placement)
    lines = ["import onnxruntime", "", "options = onnxruntime.SessionOptions()"]
    if threads is not None:
        lines.append(f"options.intra_op_num_threads = {threads}")
    mode, note = str(dict(launched.cell.parameters).get("mode", "usual")), _sets_no_cpus(launched)
    if mode == "no-spinning":
        lines.append('options.add_session_config_entry("session.intra_op.allow_spinning", "0")')
    elif mode == "pinned" and (pool := _pinned_pool(launched, threads)):
        entry = f'"session.intra_op_thread_affinities", "{pool}"'
        lines.append(f"options.add_session_config_entry({entry})")
        note = " It sets the CPUs of the pool's threads, not that of the calling one."
    yield _joined(lines), "Pass `options` to each `InferenceSession`." + note


def _pinned_pool(launched: _Launched, threads: int | None) -> str:
    """The CPUs of a pool's threads as ONNX Runtime numbers them, from 1; the caller's has none."""
    cpus = sorted(launched.placement.slots[0].cpus)
    numbers = range(1, threads or len(cpus))
    return ";".join(str(cpus[number % len(cpus)] + 1) for number in numbers)


def _openvino(launched: _Launched) -> _Texts:
    mode = str(dict(launched.cell.parameters).get("mode", "usual"))
    properties: dict[str, str | int | bool] = {
        "PERFORMANCE_HINT": _OPENVINO_HINTS.get(mode, "LATENCY")
    }
    if mode not in _OPENVINO_HINTS:
        properties["NUM_STREAMS"] = 1
    threads = intra_op(launched.cell, launched.placement)
    if threads is not None:
        properties["INFERENCE_NUM_THREADS"] = threads
    if mode in _OPENVINO_PINNING:
        properties["ENABLE_CPU_PINNING"] = _OPENVINO_PINNING[mode]
    lines = [
        "import openvino",
        "",
        "core = openvino.Core()",
        f'core.set_property("CPU", {pformat(properties, width=60, sort_dicts=False)})',
    ]
    yield _joined(lines), "Compile models with this `core`." + _sets_no_cpus(launched)


def _llama_cpp(launched: _Launched) -> _Texts:
    """The flags that all programs of llama.cpp share, a line for each worker."""
    threads = intra_op(launched.cell, launched.placement)
    strict = "1" if launched.placement.backend == "openmp" else "0"
    lines, note = [], "Add these flags to the command."
    for _, slot in launched.processes:
        words = [] if threads is None else ["--threads", str(threads)]
        if launched.is_bound:
            mask = sum(1 << cpu for cpu in slot.cpus)
            words += ["--cpu-mask", f"0x{mask:x}", "--cpu-strict", strict]
        lines.append(" ".join(words))
        if launched.is_bound and threads == 1:
            # Seen with xllamacpp 2026.10: only the threads of a pool of several are bound.
            command = f"taskset -c {cpu_list(slot.cpus)}"
            note += f" With one thread llama.cpp ignores the mask: start it with `{command}`."
    note += " One line for each process." if len(lines) > 1 else ""
    yield _joined(lines), note + _binds_no_memory(launched)


def _vllm(launched: _Launched) -> _Texts:
    """The variables of vLLM, which starts a thread for each CPU of its list, bound to that CPU.

    A list leaves a CPU to the scheduler and the HTTP server, as vLLM's documentation advises.
    """
    threads = intra_op(launched.cell, launched.placement)
    env, engines = launched.env, _engines(launched.placement)
    most = max(len(engines[0]) - 1, 1)
    wanted = len(engines[0]) if threads is None else threads
    notes = []
    if not launched.is_bound:
        env["VLLM_CPU_OMP_THREADS_BIND"] = "nobind"
        if len(engines) > 1:
            notes.append("Nothing is bound, so its engines share all CPUs.")
    else:
        lists = [cpu_list(cpus[: min(wanted, max(len(cpus) - 1, 1))]) for cpus in engines]
        env["VLLM_CPU_OMP_THREADS_BIND"] = "|".join(lists)
        notes.append("vLLM binds each thread to one CPU.")
        if len(engines[0]) == 1:
            notes.append("With one CPU for each engine, none is left for the scheduler.")
        elif wanted > most:
            fewer = f"It starts {most} of {wanted} threads"
            notes.append(f"{fewer}: a CPU of each engine is left for the scheduler.")
    if len(engines) > 1:
        notes.append(f"Start it with `--data-parallel-size {len(engines)}`.")
    note = " ".join(notes)
    yield _variables(env), (note + _if_quoted(env)).strip() + _binds_no_memory(launched)


def _engines(placement: Placement) -> list[tuple[CpuId, ...]]:
    """The CPUs of each engine of vLLM, which share none unless there are too few."""
    slots = [slot.cpus for slot in placement.slots]
    cpus = sorted({cpu for slot in slots for cpu in slot})
    if sum(map(len, slots)) == len(cpus) or len(cpus) < len(slots):
        return slots
    size = len(cpus) // len(slots)
    return [tuple(cpus[number * size : (number + 1) * size]) for number in range(len(slots))]


def _sets_no_cpus(launched: _Launched) -> str:
    return " It sets no CPUs." if launched.is_bound else ""


def _binds_no_memory(launched: _Launched) -> str:
    return " It binds no memory." if launched.placement.memory != "default" else ""


# The title of each kind, its file, and what writes it.
_FORMATS: Mapping[ArtefactKind, tuple[str, str, Callable[[_Launched], _Texts]]] = {
    "shell": ("Shell", "corebound.sh", _shell),
    "env": ("Environment file", "corebound.env", _env),
    "python": ("Python", "corebound_setup.py", _python),
    "systemd": ("systemd drop-in", "{unit}.service.d/corebound.conf", _systemd),
    "docker": ("Docker", "docker-run.sh", _docker),
    "kubernetes": ("Kubernetes", "pod.yaml", _kubernetes),
    "torchserve": ("TorchServe", CONFIGURATION, _torchserve),
    "onnxruntime": ("ONNX Runtime", "corebound_session.py", _onnxruntime),
    "openvino": ("OpenVINO", "corebound_openvino.py", _openvino),
    "llama.cpp": ("llama.cpp", "corebound-llama.flags", _llama_cpp),
    "vllm": ("vLLM", "corebound-vllm.env", _vllm),
}

"""What is wrong with a scenario though its shape is right: workload, settings, measuring."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator
from typing import Any, Literal

from corebound.model.catalogue import BUILT_IN, BuiltIn
from corebound.model.measure import Measure, WarmupIterations, WarmupSeconds, measured
from corebound.model.scenario import CommandWorkload, ExplicitCpus, Scenario
from corebound.planning.command import LAUNCHERS
from corebound.planning.expand import PROJECT, framework_of
from corebound.planning.points import AXES, Key, Point, Setting, parameters, setting, text
from corebound.planning.servers import PINNING, SERVERS
from corebound.planning.tree import Flaw, Path, printable
from corebound.planning.words import close_to, listed

_FUNCTION = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")
_SHELL = frozenset({"|", "||", "&", "&&", ";", "<", ">", ">>", "2>", "2>&1"})

# Variables that corebound sets itself, with the key that sets them; LD_PRELOAD
# and OMP_PROC_BIND are its own only where a key asks for them.
_OWN_VARIABLES = {
    "OMP_NUM_THREADS": "omp",
    "MKL_NUM_THREADS": "mkl",
    "OPENBLAS_NUM_THREADS": "threads",
    "TF_NUM_INTRAOP_THREADS": "intra_op",
    "TF_NUM_INTEROP_THREADS": "inter_op",
    "OMP_WAIT_POLICY": "wait_policy",
    "CUDA_VISIBLE_DEVICES": "gpus",
}


def whole(scenario: Scenario, doubtful: frozenset[str]) -> Iterator[Flaw]:
    """What is wrong with the scenario as such, whatever its cells.

    Args:
        scenario: The scenario.
        doubtful: Keys that other faults leave unknown; nothing is judged by them.
    """
    yield from _workload(scenario)
    if scenario.is_async and (
        isinstance(scenario.workload, CommandWorkload) or scenario.workload in BUILT_IN
    ):
        what = "`async: true` is for a function of your own."
        yield ("async",), what, "Remove it, or write `workload: module:function`."
    yield from _variables(scenario)
    yield from _measure(scenario, doubtful)
    for index, claim in enumerate(scenario.claims):
        if claim.published_ratio is not None and claim.published_ratio < 1:
            yield (
                ("claims", index, "published_ratio"),
                f"`published_ratio: {claim.published_ratio:g}` says that `faster` was slower.",
                "Write how many times as fast it was, or exchange the sides.",
            )


def at_point(point: Point, scenario: Scenario, doubtful: frozenset[str]) -> Iterator[Flaw]:
    """What is wrong with one point of the matrix; `doubtful` as for `whole`."""
    values = {name: setting(point, (name,), scenario) for name in AXES}
    if not doubtful & {"binding", "bind", "backend", "smt", "memory"}:
        yield from _binding(values)
    if not doubtful & {"workload", "environment", "framework"}:
        yield from _framework(values, scenario)
    yield from parameter_flaws(parameters(point, scenario), scenario)


def _workload(scenario: Scenario) -> Iterator[Flaw]:
    workload = scenario.workload
    if isinstance(workload, CommandWorkload):
        yield from _command(workload.command)
    elif workload not in BUILT_IN and not _FUNCTION.fullmatch(workload):
        what = f"`{printable(workload)}` is no workload."
        mend = f"Write {listed([*BUILT_IN, 'module:function', '{command: [...]}'])}."
        if ".py" in workload or "/" in workload:
            mend = "Name a module beside this file without path or .py: module:function."
        elif close := close_to(workload, list(BUILT_IN)):
            mend = f"Did you mean `{close}`?"
        yield ("workload",), what, mend


def _command(words: tuple[str, ...]) -> Iterator[Flaw]:
    path: Path = ("workload", "command")
    if not words[0] or words[0].split() != [words[0]]:
        separate = ", ".join(words[0].split()) or "sort"
        what = f"`{printable(words[0])}` is not the name of a program."
        yield (*path, 0), what, f"Write each word by itself: [{separate}]."
    for index, word in enumerate(words):
        if word in _SHELL:
            what = f"`{word}` would be passed on as it is, for no shell reads the command."
            yield (*path, index), what, 'Write [sh, -c, "…"] if you want a shell.'


def _variables(scenario: Scenario) -> Iterator[Flaw]:
    for name in scenario.env:
        path = ("env", name)
        if not name or "=" in name or name != name.strip():
            what = f"`{printable(name)}` cannot be the name of an environment variable."
            yield path, what, "Write a name without `=` or blanks around it."
        elif (key := _OWN_VARIABLES.get(name)) is not None:
            yield path, f"`{name}` is set by corebound itself.", f"Write `{key}:` instead."


def _measure(scenario: Scenario, doubtful: frozenset[str]) -> Iterator[Flaw]:
    said: set[str] = set()
    profiles: tuple[Literal["quick", "nightly"] | None, ...] = (None, "quick", "nightly")
    for profile in profiles:
        section: Path = ("measure",) if profile is None else ("profiles", profile)
        for path, what, mend in _measures(measured(scenario, profile)):
            if what not in said and not doubtful & _ABOUT[str(path[0])]:
                said.add(what)
                yield (*section, *path), what, mend


# What a finding at each key of `measure` depends on.
_ABOUT = {
    "launches": {"launches", "min", "max"},
    "warmup": {"warmup", "iterations", "seconds", "timeout_s"},
}


def _measures(measure: Measure) -> Iterator[Flaw]:
    launches, warmup = measure.launches, measure.warmup
    if launches.max < launches.min:
        what = f"`min: {launches.min}` is more than `max: {launches.max}`."
        yield ("launches",), what, "Write both, `max` not below `min`."
    if isinstance(warmup, WarmupIterations) and warmup.iterations >= measure.iterations:
        what = (
            f"a warm-up of {warmup.iterations} leaves nothing of {measure.iterations} iterations."
        )
        yield ("warmup",), what, "Lower the warm-up, or raise `iterations`."
    if isinstance(warmup, WarmupSeconds) and warmup.seconds >= measure.timeout_s:
        what = (
            f"a warm-up of {warmup.seconds:g} s does not end"
            f" before the deadline of {measure.timeout_s:g} s."
        )
        yield ("warmup",), what, "Lower the warm-up, or raise `timeout_s`."


def _binding(values: dict[str, Setting]) -> Iterator[Flaw]:
    bind, backend = values["bind"], values["backend"]
    mode = values["binding"].text
    if bind.value == "after-start" and mode in {"none", "launcher"}:
        what = f"`bind: after-start` has nothing to bind with `binding: {mode}`."
        mend = "Choose another binding, or take that cell out with `exclude`."
        yield bind.path, what, mend
    if bind.value == "after-start" and backend.value == "openmp":
        what = "`backend: openmp` binds threads as they start, never after."
        yield bind.path, what, "Write `backend: taskset`, or `bind: before-start`."
    if mode == "smt-siblings" and values["smt"].value is False:
        what = "`smt: false` leaves no siblings for `binding: smt-siblings`."
        yield values["smt"].path, what, "Remove one, or take that cell out with `exclude`."
    memory = values["memory"]
    if (
        backend.value == "taskset"
        and memory.value != "default"
        and mode not in {"none", "launcher"}
    ):
        what = f"`backend: taskset` cannot do `memory: {memory.value}`."
        yield memory.path, what, "Write `backend: auto` or `backend: numactl`."


def _framework(values: dict[str, Setting], scenario: Scenario) -> Iterator[Flaw]:
    environment, explicit = values["environment"], values["framework"]
    name = environment.value
    if values["commit"].value is not None and name != PROJECT:
        commit = values["commit"].value
        what = f"`commit: {commit}` means nothing to `environment: {name or 'host'}`."
        yield values["commit"].path, what, "Write `environment: project`, or remove it."
    if name is not None and name.endswith((".txt", ".yaml", ".yml")):
        what = f"`environment: {name}` is a file name."
        yield environment.path, what, f"Write `{name.rpartition('.')[0]}`."
        return
    workload = scenario.workload
    built_in = BUILT_IN.get(workload) if isinstance(workload, str) else None
    if built_in is not None and name is None and explicit.value is None:
        what = f"`{workload}` needs an environment."
        yield ("workload",), what, f"Write `environment:` with {listed([*built_in.targets])}."
        return
    framework = explicit.value or framework_of(name or "host")
    if framework is None:
        what = f"`environment: {name}` does not say which framework it holds."
        mend = f"Write `framework:` too, or a name that begins with it, such as pytorch-{name}."
        yield environment.path, what, mend
        return
    place = (explicit if explicit.value is not None else environment).path
    if framework in SERVERS and built_in is None:
        what = f"{framework} is a server, which no function or command runs in."
        serving = [f"`{one}`" for one, known in BUILT_IN.items() if known.serves]
        yield place, what, f"Write `workload:` with {listed(serving)}, or another environment."
        return
    if built_in is not None and framework not in built_in.targets:
        plainly = "plain Python" if framework == "none" else framework
        what = f"`{workload}` does not run in {plainly}."
        yield place, what, f"It runs in {listed([*built_in.targets])}."
    elif built_in is not None:
        yield from _gpus(values["gpus"], str(workload), built_in.gpus.get(framework, 0), framework)
    yield from _told(values, framework)


def _gpus(asked: Setting, workload: str, most: int, framework: str) -> Iterator[Flaw]:
    if asked.value <= most:
        return
    if most == 0:
        able = [f"`{name}`" for name, one in BUILT_IN.items() if one.gpus]
        mend = f"Remove it; {listed(able, 'and')} can compute on GPUs, in {_ON_GPUS}."
        yield asked.path, f"`{workload}` computes on no GPU in {framework}.", mend
    else:
        what = f"`gpus: {asked.value}` is more than `{workload}` computes on."
        yield asked.path, what, f"Write {most} at most."


_ON_GPUS = listed(sorted({framework for one in BUILT_IN.values() for framework in one.gpus}))


def _told(values: dict[str, Setting], framework: str) -> Iterator[Flaw]:
    """Settings that only some frameworks can be told."""
    plainly = "plain Python" if framework == "none" else framework
    for key, unable in (("intra_op", {"none"}), ("inter_op", {"none", "numpy"})):
        if values[key].value is not None and framework in unable:
            what = f"`{key}: {values[key].value}` means nothing to {plainly}."
            yield values[key].path, what, "Remove it, or take that cell out with `exclude`."
    launching = sorted({*LAUNCHERS, *PINNING})
    if values["binding"].text == "launcher" and framework not in launching:
        what = f"`binding: launcher` needs a launcher, and {plainly} has none."
        yield values["binding"].path, what, f"Use it with {listed(launching)}."


def parameter_flaws(found: dict[str, Setting], scenario: Scenario) -> Iterator[Flaw]:
    """What is wrong with parameters, each by itself."""
    workload = scenario.workload
    built_in = BUILT_IN.get(workload) if isinstance(workload, str) else None
    for name, given in found.items():
        shown = printable(name)
        if isinstance(workload, CommandWorkload):
            what = f"`{shown}` cannot be given to a command, which has no parameters."
            yield given.path, what, "Write it among the command's words."
        elif built_in is not None:
            yield from _built_in(str(workload), built_in, name, given)
        elif name == "gpus":
            what = "the parameter `gpus` has the name of a setting."
            yield given.path, what, "Write `gpus` at the top level or in `matrix`."
        elif not name.isidentifier() or keyword.iskeyword(name):
            what = f"`{shown}` cannot be the name of a function's parameter."
            yield given.path, what, "Use letters, digits and `_`."


def _built_in(workload: str, built_in: BuiltIn, name: str, given: Setting) -> Iterator[Flaw]:
    value, shown = given.value, printable(name)
    kind = built_in.parameters.get(name)
    if kind is None:
        close = close_to(name, list(built_in.parameters))
        mend = f"It has {listed([*built_in.parameters], 'and')}."
        what = f"`{workload}` has no parameter `{shown}`."
        yield given.path, what, f"Did you mean `{close}`?" if close else mend
        return
    what = f"`{shown}: {printable(given.text)}` is not what `{workload}` takes."
    choices, least = built_in.choices.get(name), built_in.least.get(name)
    if not _is_a(kind, value):
        yield given.path, what, f"Write {_KINDS[kind]}."
    elif choices is not None and value not in choices:
        yield given.path, what, f"Write {listed(choices)}."
    elif least is not None and value < least:
        yield given.path, what, f"Write {least} or more."
    elif name in built_in.above_zero and value <= 0:
        yield given.path, what, "Write a number above 0."


_KINDS: dict[type, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
}


def _is_a(kind: type, value: Any) -> bool:
    return type(value) is kind or (kind is float and type(value) is int)


def explicit(key: Key, value: object) -> str:
    """A key and value as the file would write them."""
    if isinstance(value, ExplicitCpus):
        return f"{key[-1]}: {{cpus: {value.cpus}}}"
    return f"{key[-1]}: {printable(text(value))}"

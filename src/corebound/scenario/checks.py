"""Check the meaning of a scenario of valid shape: workload, settings, matrix, traffic."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from corebound.scenario.builtin_workloads import (
    BUILT_IN,
    LAUNCHERS,
    PINNING,
    SERVERS,
    TAKES,
    BuiltIn,
)
from corebound.scenario.cell import PROJECT, Cell, framework_of
from corebound.scenario.matrix import (
    Key,
    LocatedValue,
    MatrixPoint,
    agrees,
    axes,
    count,
    entry,
    given,
    labels,
    located,
    matching,
    parameters,
    product,
    text,
    under,
    value_at,
    value_of,
)
from corebound.scenario.models import (
    CommandWorkload,
    MatrixEntry,
    Measure,
    Profile,
    ProfileName,
    Scenario,
    WarmupIterations,
    WarmupSeconds,
    measured,
)
from corebound.scenario.select import claim_pairs
from corebound.scenario.settings import SETTINGS, ExplicitCpus, join_words
from corebound.scenario.validation import close_to
from corebound.scenario.yaml_reader import Flaw, Path, printable

_PROFILES: tuple[ProfileName | None, ...] = (None, "quick", "nightly")


def traffic(scenario: Scenario, doubtful: frozenset[str]) -> Iterator[Flaw]:
    """Check the traffic of each cell under each profile; yield nothing if it is not a server.

    Args:
        scenario: The scenario.
        doubtful: Keys that are unknown because of other faults; checks that need them are
            skipped.
    """
    workload = scenario.workload
    built_in = BUILT_IN.get(workload) if isinstance(workload, str) else None
    if built_in is None or not built_in.serves or doubtful & {"workload", "parameters"}:
        return
    is_judged = bool(doubtful & {"iterations", "timeout_s"})
    for profile in _PROFILES:
        changed, points = under(scenario, profile)
        section: Path = ("measure",) if profile is None else ("profiles", profile)
        unmeasurable: list[Flaw] = []
        for point in points:
            found = given(point, changed, scenario, profile)
            for name in built_in.required:
                if name not in found:
                    what = f"`{workload}` needs `{name}`."
                    yield ("parameters",), what, f"Write `{name}:` among the parameters."
            yield from _together(found)
            if not is_judged:
                unmeasurable += _measured(found, measured(scenario, profile), section)
        yield from unmeasurable
        # A profile that does not change it would only repeat the fault.
        is_judged = is_judged or bool(unmeasurable)


def _together(found: Mapping[str, LocatedValue]) -> Iterator[Flaw]:
    """Parameters that the traffic's shape requires but lacks, or does not accept."""
    shape = found["traffic"].text if "traffic" in found else "closed"
    for name, shapes in TAKES.items():
        one = found.get(name)
        if one is None and shape in shapes:
            what = f"`traffic: {shape}` needs `{name}`."
            yield ("parameters",), what, f"Write `{name}:` among the parameters."
        elif one is not None and shape not in shapes:
            what = f"`{name}` means nothing to `traffic: {shape}`."
            yield one.path, what, "Remove it, or take that cell out with `exclude`."
    client = found.get("client")
    if client is not None and client.value == "ab" and shape != "closed":
        what = f"`client: ab` cannot send `traffic: {shape}`."
        yield client.path, what, "Write `client: corebound`, or `traffic: closed`."


def _measured(found: Mapping[str, LocatedValue], measure: Measure, section: Path) -> Iterator[Flaw]:
    """Check the traffic against `measure` as one profile's section changes it."""
    query, rate = found.get("query"), found.get("rate")
    if (
        query is not None
        and type(query.value) is int
        and query.value > 0
        and (measure.iterations % query.value)
    ):
        what = f"{measure.iterations} requests do not make whole queries of {query.text}."
        yield (*section, "iterations"), what, f"Write a multiple of {query.text}."
    # Multiplied rather than divided: with a very small rate the quotient is infinite.
    if (
        rate is not None
        and type(rate.value) in {int, float}
        and (0 < rate.value * measure.timeout_s < measure.iterations)
    ):
        what = (
            f"{measure.iterations} requests at {rate.text} a second do not end"
            f" before the deadline of {measure.timeout_s:g} s."
        )
        yield rate.path, what, "Raise `rate` or `timeout_s`, or lower `iterations`."


_FUNCTION = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")
_SHELL = frozenset({"|", "||", "&", "&&", ";", "<", ">", ">>", "2>", "2>&1"})

# Variables that corebound sets itself, each with the setting that controls it.
_OWN_VARIABLES = {
    variable: name for name, setting in SETTINGS.items() for variable in setting.variables
}


def whole(scenario: Scenario, doubtful: frozenset[str]) -> Iterator[Flaw]:
    """Check the parts of a scenario that do not depend on its cells.

    Args:
        scenario: The scenario.
        doubtful: Keys that are unknown because of other faults; checks that need them are
            skipped.
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


def at_point(point: MatrixPoint, scenario: Scenario, doubtful: frozenset[str]) -> Iterator[Flaw]:
    """Check one point of the matrix; `doubtful` as for `whole`."""
    values = {name: value_at(point, (name,), scenario) for name in SETTINGS}
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
        fix = f"Write {join_words([*BUILT_IN, 'module:function', '{command: [...]}'])}."
        if ".py" in workload or "/" in workload:
            fix = "Name a module beside this file without path or .py: module:function."
        elif close := close_to(workload, list(BUILT_IN)):
            fix = f"Did you mean `{close}`?"
        yield ("workload",), what, fix


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
        for path, what, fix in _measures(measured(scenario, profile)):
            if what not in said and not doubtful & _ABOUT[str(path[0])]:
                said.add(what)
                yield (*section, *path), what, fix


# The keys that a fault at each key of `measure` depends on.
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


def _binding(values: dict[str, LocatedValue]) -> Iterator[Flaw]:
    bind, backend = values["bind"], values["backend"]
    mode = values["binding"].text
    if bind.value == "after-start" and mode in {"none", "launcher"}:
        what = f"`bind: after-start` has nothing to bind with `binding: {mode}`."
        fix = "Choose another binding, or take that cell out with `exclude`."
        yield bind.path, what, fix
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


def _framework(values: dict[str, LocatedValue], scenario: Scenario) -> Iterator[Flaw]:
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
        yield ("workload",), what, f"Write `environment:` with {join_words([*built_in.targets])}."
        return
    framework = explicit.value or framework_of(name or "host")
    if framework is None:
        what = f"`environment: {name}` does not say which framework it holds."
        fix = f"Write `framework:` too, or a name that begins with it, such as pytorch-{name}."
        yield environment.path, what, fix
        return
    place = (explicit if explicit.value is not None else environment).path
    if framework in SERVERS and built_in is None:
        what = f"{framework} is a server, which no function or command runs in."
        serving = [f"`{one}`" for one, known in BUILT_IN.items() if known.serves]
        yield place, what, f"Write `workload:` with {join_words(serving)}, or another environment."
        return
    if built_in is not None and framework not in built_in.targets:
        plainly = "plain Python" if framework == "none" else framework
        what = f"`{workload}` does not run in {plainly}."
        yield place, what, f"It runs in {join_words([*built_in.targets])}."
    elif built_in is not None:
        yield from _gpus(values["gpus"], str(workload), built_in.gpus.get(framework, 0), framework)
    yield from _told(values, framework)


def _gpus(asked: LocatedValue, workload: str, most: int, framework: str) -> Iterator[Flaw]:
    if asked.value <= most:
        return
    if most == 0:
        able = [f"`{name}`" for name, one in BUILT_IN.items() if one.gpus]
        fix = f"Remove it; {join_words(able, 'and')} can compute on GPUs, in {_ON_GPUS}."
        yield asked.path, f"`{workload}` computes on no GPU in {framework}.", fix
    else:
        what = f"`gpus: {asked.value}` is more than `{workload}` computes on."
        yield asked.path, what, f"Write {most} at most."


_ON_GPUS = join_words(sorted({framework for one in BUILT_IN.values() for framework in one.gpus}))


def _told(values: dict[str, LocatedValue], framework: str) -> Iterator[Flaw]:
    """Check the settings that only some frameworks support."""
    plainly = "plain Python" if framework == "none" else framework
    for key, unable in (("intra_op", {"none"}), ("inter_op", {"none", "numpy"})):
        if values[key].value is not None and framework in unable:
            what = f"`{key}: {values[key].value}` means nothing to {plainly}."
            yield values[key].path, what, "Remove it, or take that cell out with `exclude`."
    launching = sorted({*LAUNCHERS, *PINNING})
    if values["binding"].text == "launcher" and framework not in launching:
        what = f"`binding: launcher` needs a launcher, and {plainly} has none."
        yield values["binding"].path, what, f"Use it with {join_words(launching)}."


def parameter_flaws(found: dict[str, LocatedValue], scenario: Scenario) -> Iterator[Flaw]:
    """Check each parameter on its own."""
    workload = scenario.workload
    built_in = BUILT_IN.get(workload) if isinstance(workload, str) else None
    for name, parameter in found.items():
        shown = printable(name)
        if isinstance(workload, CommandWorkload):
            what = f"`{shown}` cannot be given to a command, which has no parameters."
            yield parameter.path, what, "Write it among the command's words."
        elif built_in is not None:
            yield from _built_in(str(workload), built_in, name, parameter)
        elif name == "gpus":
            what = "the parameter `gpus` has the name of a setting."
            yield parameter.path, what, "Write `gpus` at the top level or in `matrix`."
        elif not name.isidentifier() or keyword.iskeyword(name):
            what = f"`{shown}` cannot be the name of a function's parameter."
            yield parameter.path, what, "Use letters, digits and `_`."


def _built_in(workload: str, built_in: BuiltIn, name: str, given: LocatedValue) -> Iterator[Flaw]:
    value, shown = given.value, printable(name)
    kind = built_in.parameters.get(name)
    if kind is None:
        close = close_to(name, list(built_in.parameters))
        fix = f"It has {join_words([*built_in.parameters], 'and')}."
        what = f"`{workload}` has no parameter `{shown}`."
        yield given.path, what, f"Did you mean `{close}`?" if close else fix
        return
    what = f"`{shown}: {printable(given.text)}` is not what `{workload}` takes."
    choices, least = built_in.choices.get(name), built_in.least.get(name)
    if not _is_a(kind, value):
        yield given.path, what, f"Write {_KINDS[kind]}."
    elif choices is not None and value not in choices:
        yield given.path, what, f"Write {join_words(choices)}."
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
    """A key and its value as they are written in a scenario file."""
    if isinstance(value, ExplicitCpus):
        return f"{key[-1]}: {{cpus: {value.cpus}}}"
    return f"{key[-1]}: {printable(text(value))}"


# A day has room for about 10,000 launches of eight seconds. A larger matrix is a mistake
# and must not exhaust memory.
MOST_CELLS = 10_000


def axes_alone(scenario: Scenario) -> Iterator[Flaw]:
    """Check the axes before they are expanded into cells."""
    for key, settings in axes(scenario.matrix).items():
        first: dict[str, LocatedValue] = {}
        for one in settings:
            if first.setdefault(one.text, one) is not one:
                what = f"`{explicit(key, one.value)}` stands twice on its axis."
                yield one.path, what, "Keep one of them."
        at_top = scenario.parameters if len(key) > 1 else scenario.model_fields_set
        if key[-1] in at_top:
            what = f"`{printable(key[-1])}` stands in the matrix and outside it."
            yield ("matrix", *key), what, "Keep one of them."
    yield from _names(scenario)
    if (many := count(scenario.matrix)) > MOST_CELLS:
        what = f"the matrix has {many:,} cells, more than {MOST_CELLS:,}."
        yield ("matrix",), what, "Shorten axes, or make several scenarios."


def _names(scenario: Scenario) -> Iterator[Flaw]:
    matrix = scenario.matrix
    written: list[tuple[Path, Iterable[str]]] = [(("matrix", "parameters"), matrix.parameters)]
    written += [
        (("matrix", "include", index, "parameters"), one.parameters)
        for index, one in enumerate(matrix.include)
    ]
    for path, names in written:
        for name in names:
            if name in SETTINGS or name == "scenario":
                what = f"the parameter `{name}` has the name of a setting."
                yield (*path, name), what, "Vary it under another name."


def excludes(scenario: Scenario, doubtful: frozenset[str]) -> Iterator[Flaw]:
    """Check each exclude; `doubtful` as for `named_cells`."""
    spanned = axes(scenario.matrix)
    every = product(scenario.matrix)
    for index, one in enumerate(scenario.matrix.exclude):
        if not doubtful & ({*one.written, *one.parameters} or {"exclude"}):
            out = entry(one, ("matrix", "exclude", index))
            yield from _exclude(out, index, spanned, every)


def includes(scenario: Scenario, made: tuple[MatrixPoint, ...]) -> Iterator[Flaw]:
    """Check each include, and the cells that are left in the end."""
    # An exclude that names nothing removes all cells; it is reported on its own.
    if not made and scenario.matrix.exclude and all(one.written for one in scenario.matrix.exclude):
        yield ("matrix", "exclude"), "no cell is left.", "Exclude fewer cells."
    spanned = axes(scenario.matrix)
    from_axes = [point for point in made if _first_path(point)[1:2] != ("include",)]
    for index, one in enumerate(scenario.matrix.include):
        path: Path = ("matrix", "include", index)
        extra = entry(one, path)
        adds_nothing = all(key in spanned for key in extra)
        if not extra:
            yield path, "this names nothing.", "Name the settings of a cell, or remove it."
        elif adds_nothing and any(agrees(point, extra) for point in from_axes):
            yield path, "the matrix has this already.", "Remove it, or name something new."
    seen: dict[tuple[tuple[str, str], ...], MatrixPoint] = {}
    for point in made:
        if seen.setdefault(labels(point, scenario), point) is not point:
            yield (
                _first_path(point)[:3],
                "this makes a cell that another makes too.",
                "Remove one of them.",
            )


def _first_path(point: MatrixPoint) -> Path:
    return next((one.path for one in point.values()), ())


def _exclude(
    out: MatrixPoint,
    index: int,
    spanned: dict[Key, tuple[LocatedValue, ...]],
    every: list[dict[Key, LocatedValue]],
) -> Iterator[Flaw]:
    sound = bool(out)
    if not out:
        path: Path = ("matrix", "exclude", index)
        yield path, "this names nothing.", "Name the values of cells to take out, or remove it."
    for key, one in out.items():
        if key not in spanned:
            sound = False
            what = f"`{printable(key[-1])}` is not an axis of the matrix."
            names = [axis[-1] for axis in spanned]
            fix = f"The axes are {join_words(names, 'and')}." if names else "There are no axes."
            yield one.path, what, fix
        elif one.text not in (known := [found.text for found in spanned[key]]):
            sound = False
            what = f"`{explicit(key, one.value)}` is not on its axis."
            yield one.path, what, _offer(one.text, known)
    if sound and not any(agrees(point, out) for point in every):
        yield ("matrix", "exclude", index), "no cell has all of this.", "Name values that meet."


def _offer(written: str, known: list[str]) -> str:
    close = close_to(written, known)
    shown = [*known[:8], "…"] if len(known) > 8 else known
    return f"Did you mean `{close}`?" if close else f"There, it is {join_words(shown)}."


def named_cells(
    scenario: Scenario, cells: tuple[Cell, ...], doubtful: frozenset[str]
) -> Iterator[Flaw]:
    """Check the cells that the baseline and the claims name.

    Args:
        scenario: The scenario.
        cells: All its cells.
        doubtful: Keys that are unknown because of other faults; an entry that names one
            is not checked.
    """
    if not cells:
        return
    if scenario.baseline is not None:
        yield from _named(scenario.baseline, ("baseline",), cells, doubtful)
    for index, claim in enumerate(scenario.claims):
        path: Path = ("claims", index)
        found = [
            *_named(claim.faster, (*path, "faster"), cells, doubtful),
            *_named(claim.than, (*path, "than"), cells, doubtful),
        ]
        yield from found
        unknown = {str(part) for side in (claim.faster, claim.than) for part in side.written}
        if not found and not unknown & doubtful and not claim_pairs(claim, cells):
            what = "`faster` and `than` make no pair of cells."
            yield path, what, "Let them differ in what they name, and agree on every other axis."


def _named(
    wanted: MatrixEntry, path: Path, cells: tuple[Cell, ...], doubtful: frozenset[str]
) -> Iterator[Flaw]:
    named = entry(wanted, path)
    if {part for key in named for part in key} & doubtful:
        return
    if not named:
        yield path, "this names nothing.", "Name the values that the cells meant have."
        return
    sound = True
    for key, one in named.items():
        known = list(dict.fromkeys(value_of(cell, key) for cell in cells))
        if one.text not in known:
            sound = False
            what = f"no cell has `{explicit(key, one.value)}`."
            yield one.path, what, _offer(one.text, known)
    if sound and not matching(wanted, cells):
        yield path, "no cell has all of this.", "Name values that meet in one cell."


def profiles(scenario: Scenario, cells: Sequence[Cell]) -> Iterator[Flaw]:
    """Check each profile, given the cells of the whole matrix."""
    for name, change in scenario.profiles.items():
        yield from _parameters(scenario, change, ("profiles", name, "parameters"))
        for index, one in enumerate(change.only):
            path: Path = ("profiles", name, "only", index)
            if not one.written:
                yield path, "this names nothing.", "Name the settings of cells, or remove it."
            elif not matching(one, cells):
                yield path, "no cell fits it.", "Name values that stand in the matrix."


def _parameters(scenario: Scenario, change: Profile, path: Path) -> Iterator[Flaw]:
    for name, value in change.parameters.items():
        if name in scenario.matrix.parameters:
            what = f"`{printable(name)}` is an axis of the matrix."
            yield (*path, name), what, "Choose among its values with `only`."
        else:
            yield from parameter_flaws({name: located(value, (*path, name))}, scenario)

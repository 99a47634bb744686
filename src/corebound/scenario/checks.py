"""Check what a scenario says of its workload, settings, parameters and measurement."""

import keyword
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from corebound.errors import InputError
from corebound.scenario import matrix
from corebound.scenario.builtin_workloads import (
    BUILT_IN,
    OWN_SERVER,
    SHAPES_BY_PARAMETER,
    BuiltIn,
    built_in_of,
)
from corebound.scenario.cell import (
    HOST,
    PROJECT,
    Cell,
    framework_of,
)
from corebound.scenario.fault_wording import closest, join_words, printable
from corebound.scenario.files import EnvironmentFinder, FileFinder, name_in_working_directory
from corebound.scenario.metrics import parse_json_path
from corebound.scenario.models import (
    CommandWorkload,
    Measure,
    MetricSource,
    Profile,
    ProfileName,
    Scenario,
    WarmupIterations,
    WarmupSeconds,
)
from corebound.scenario.placeholders import PROVIDED, placeholders_in, unknown_placeholder
from corebound.scenario.runtimes import ALIASES, FRAMEWORKS, RUNTIMES, Framework, with_launcher
from corebound.scenario.server_checks import check_bodies, check_server, check_server_point
from corebound.scenario.server_workload import ServerWorkload
from corebound.scenario.settings import SETTINGS
from corebound.scenario.yaml_reader import Flaw, Path

# `measure` under each profile.
Measures = Mapping[ProfileName | None, Measure]

_FUNCTION = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")
_SHELL = frozenset({"|", "||", "&", "&&", ";", "<", ">", ">>", "2>", "2>&1"})

# Variables that corebound sets itself, each with the setting that controls it.
OWN_VARIABLES = {
    variable: name for name, setting in SETTINGS.items() for variable in setting.variables
}


def check_scenario(
    scenario: Scenario, measures: Measures, invalid_keys: frozenset[str]
) -> Iterator[Flaw]:
    """Check the parts of a scenario that do not depend on its cells.

    Args:
        measures: Its `measure` under each profile.
        invalid_keys: Keys that are unknown because of other faults; checks that need them are
            skipped.
    """
    yield from _workload(scenario)
    yield from _metrics(scenario)
    if scenario.is_async and (
        not isinstance(scenario.workload, str) or scenario.workload in BUILT_IN
    ):
        what = "`async: true` is for a function of your own."
        yield ("async",), what, "Remove it, or write `workload: module:function`."
    yield from _files(scenario)
    yield from _passed_variables(scenario)
    yield from _measures(measures, invalid_keys)
    for index, claim in enumerate(scenario.claims):
        if claim.published_ratio is not None and claim.published_ratio < 1:
            yield (
                ("claims", index, "published_ratio"),
                f"`published_ratio: {claim.published_ratio:g}` means that `faster` was slower.",
                "Write how many times as fast it was, or swap the sides.",
            )


def check_point(
    point: matrix.Point,
    scenario: Scenario,
    invalid_keys: frozenset[str],
    find_environment: EnvironmentFinder,
) -> Iterator[Flaw]:
    """Check one point of the matrix; `invalid_keys` as for `check_scenario`."""
    if not invalid_keys & {"binding", "bind", "backend", "smt", "memory", "memory_nodes"}:
        yield from _binding(point.settings)
    if not invalid_keys & {"workload", "environment", "framework"}:
        yield from _framework(point.settings, scenario, find_environment)
        yield from _supported(point, scenario)
        if isinstance(scenario.workload, ServerWorkload):
            yield from check_server_point(scenario.workload, point)
    yield from _parameters(point.parameters, scenario)
    yield from _variables(point.env)


def _workload(scenario: Scenario) -> Iterator[Flaw]:
    workload = scenario.workload
    if isinstance(workload, CommandWorkload):
        yield from _commands(workload)
        yield from _placeholders(workload.commands(), ("workload",), scenario)
    elif isinstance(workload, ServerWorkload):
        if workload.server is not None:
            path = ("workload", "server", "command")
            fix = 'Write `[sh, -c, "exec …"]` if you want a shell.'
            yield from _words(workload.server.command, path, fix)
            yield from _placeholders({"command": workload.server.command}, path[:-1], scenario)
        yield from check_server(workload)
    elif workload not in BUILT_IN and not _FUNCTION.fullmatch(workload):
        what = f"`{printable(workload)}` is not a workload."
        fix = f"Write {join_words([*BUILT_IN, 'module:function', '{command: [...]}'])}."
        if ".py" in workload or "/" in workload:
            fix = "Name a module beside this file without path or .py: module:function."
        elif close := closest(workload, list(BUILT_IN)):
            fix = f"Did you mean `{close}`?"
        yield ("workload",), what, fix


def _commands(workload: CommandWorkload) -> Iterator[Flaw]:
    for key, command in workload.commands().items():
        path: Path = ("workload", key)
        if workload.shell and not isinstance(command, str):
            what = f"`{key}` is a list of words, and a shell takes one text."
            yield path, what, f'Write `{key}: "{printable(" ".join(command))}"`.'
        elif isinstance(command, str) and not workload.shell:
            what = f"`{key}` is one text, not a list of words."
            words = ", ".join(command.split())
            fix = f"Write `{key}: [{printable(words)}]`, or add `shell: true`."
            yield path, what, fix
        elif not isinstance(command, str):
            yield from _words(command, path)


def _words(
    arguments: tuple[str, ...],
    path: Path,
    shell: str = "Write one text and `shell: true` if you want a shell.",
) -> Iterator[Flaw]:
    if not arguments[0] or arguments[0].split() != [arguments[0]]:
        split = ", ".join(arguments[0].split()) or "sort"
        what = f"`{printable(arguments[0])}` is not the name of a program."
        yield (*path, 0), what, f"Write each argument as an item: [{split}]."
    for index, argument in enumerate(arguments):
        if argument in _SHELL:
            what = f"`{argument}` would be passed to the program unchanged, not to a shell."
            yield (*path, index), what, shell


def _placeholders(
    commands: Mapping[str, str | tuple[str, ...]], section: Path, scenario: Scenario
) -> Iterator[Flaw]:
    """Check that each placeholder of a word has a value; `section` has the commands by key."""
    parameters = parameter_names(scenario)
    words: dict[Path, str] = {
        **{
            (*section, key, *((index,) if isinstance(command, tuple) else ())): word
            for key, command in commands.items()
            for index, word in enumerate((command,) if isinstance(command, str) else command)
        },
        **{("env", name): value for name, value in scenario.env.items()},
    }
    for path, word in words.items():
        yield from _unknown_placeholder(word, path, parameters)


def _unknown_placeholder(word: str, path: Path, parameters: Sequence[str]) -> Iterator[Flaw]:
    if (name := unknown_placeholder(word, parameters)) is not None:
        close = closest(name, [*parameters, *PROVIDED])
        fix = f"Did you mean `{{{close}}}`?" if close else f"Write `parameters: {{{name}: …}}`."
        fix += f" For the text itself, write `{{{{{name}}}}}`."
        yield path, f"`{{{name}}}` has no value.", fix


def _metrics(scenario: Scenario) -> Iterator[Flaw]:
    """Check how each metric is found, and that only a command has metrics."""
    sources = scenario.metrics
    if sources and not isinstance(scenario.workload, CommandWorkload):
        yield ("metric",), "only a command has metrics.", "Write `workload: {command: [...]}`."
    names = [source.name for source in sources]
    for index, source in enumerate(sources):
        path: Path = ("metric", index) if isinstance(scenario.metric, tuple) else ("metric",)
        if source.name in names[:index]:
            what = f"another metric is called `{printable(source.name)}`."
            yield (*path, "name"), what, "Give each its own name."
        if (source.json_path is None) == (source.regex is None):
            what = "a metric is found by `json` or by `regex`."
            yield path, what, "Write one of them."
        else:
            yield from _metric(source, path)
        if source.file is not None:
            yield from _unknown_placeholder(source.file, (*path, "file"), parameter_names(scenario))


def _metric(source: MetricSource, path: Path) -> Iterator[Flaw]:
    if source.regex is not None:
        try:
            groups = re.compile(source.regex).groups
        except re.error as error:
            yield (*path, "regex"), f"`regex` is not a regular expression: {error}.", "Correct it."
            return
        if groups != 1:
            what = f"`regex` has {groups or 'no'} groups, not one."
            fix = "Put the number in ( ), as in `rate: ([0-9.]+)`, and write other groups as (?: )."
            yield (*path, "regex"), what, fix
        if source.samples not in {None, "all"}:
            yield (*path, "samples"), "with `regex`, samples are all matches.", "Write `all`."
        return
    for key, text in (("json", source.json_path), ("samples", source.samples)):
        try:
            parse_json_path(text or "[0]")
        except ValueError as error:
            what = (
                f"`{printable(text or '')}` is not a path into JSON, at `{printable(str(error))}`."
            )
            yield (*path, key), what, "Write keys, [index] and [*], as in `results[0].value`."


def parameter_names(scenario: Scenario) -> list[str]:
    """The parameters of any of a scenario's cells, in the order of the file."""
    return [
        *scenario.parameters,
        *scenario.matrix.parameters,
        *(name for entry in scenario.matrix.include for name in entry.parameters),
        *(name for profile in scenario.profiles.values() for name in profile.parameters),
    ]


def is_variable_name(name: str) -> bool:
    """Whether an environment variable can have this name."""
    return bool(name) and "=" not in name and name == name.strip()


def _variables(env: Mapping[str, matrix.LocatedValue]) -> Iterator[Flaw]:
    for name, variable in env.items():
        path = variable.path
        if not is_variable_name(name):
            what = f"`{printable(name)}` cannot be the name of an environment variable."
            yield path, what, "Write a name without `=` or blanks around it."
        elif (key := OWN_VARIABLES.get(name)) is not None:
            yield path, f"`{name}` is set by corebound itself.", f"Write `{key}:` instead."


def _passed_variables(scenario: Scenario) -> Iterator[Flaw]:
    for index, name in enumerate(scenario.pass_env):
        path = ("pass_env", index)
        if name in {*scenario.env, *scenario.matrix.env}:
            what = f"`{printable(name)}` is set in `env` and passed on."
            yield path, what, "Keep one of them."
        elif "=" in name:
            name_only, _, value = name.partition("=")
            fix = f'Write `env: {{{printable(name_only)}: "{printable(value)}"}}` to set it.'
            yield path, f"`{printable(name)}` is not the name of a variable.", fix
        else:
            yield from _variables({name: matrix.located(name, path)})


def _files(scenario: Scenario) -> Iterator[Flaw]:
    if scenario.files and scenario.working_directory == "scenario":
        what = "`files` are linked only in an empty working directory."
        yield ("files",), what, "Remove them, or remove `working_directory: scenario`."
    first: dict[str, str] = {}
    for index, file in enumerate(scenario.files):
        linked = name_in_working_directory(file)
        if not linked:
            what = f"`{printable(file)}` has no name."
            yield ("files", index), what, "Name a file or folder, such as data/."
        elif first.setdefault(linked, file) != file:
            what = f"`{printable(first[linked])}` and `{printable(file)}` would both be"
            yield ("files", index), f"{what} `{printable(linked)}`.", "Keep one of them."


def check_points_files(
    scenario: Scenario, points: Sequence[matrix.Point], exists: FileFinder
) -> Iterator[Flaw]:
    """Check that models exist."""
    built_in = built_in_of(scenario.workload)
    named = {
        parameter.path: parameter.text
        for point in points
        for name in (built_in.files if built_in else ())
        if (parameter := point.parameters.get(name)) is not None
    }
    for path, file in named.items():
        if not exists(file):
            fix = "Paths are relative to this file."
            yield path, f"there is no file `{printable(file)}`.", fix


def check_files(scenario: Scenario, exists: FileFinder) -> Iterator[Flaw]:
    """Check that `files` and the programs that are named by a path exist."""
    for index, file in enumerate(scenario.files):
        if not exists(file):
            fix = "Paths are relative to this file."
            yield ("files", index), f"there is no file or folder `{printable(file)}`.", fix
    workload = scenario.workload
    programs: dict[Path, str] = {}
    if isinstance(workload, ServerWorkload):
        yield from check_bodies(workload, exists)
        if workload.server is not None:
            programs["workload", "server", "command"] = workload.server.command[0]
    elif isinstance(workload, CommandWorkload) and not workload.shell:
        programs = {("workload", key): words[0] for key, words in workload.commands().items()}
    for path, program in programs.items():
        has_parameter = "{" in program
        if "/" in program and not (has_parameter or exists(program)):
            fix = "A path is relative to this file; a name without `/` is searched for in PATH."
            yield path, f"there is no program `{printable(program)}`.", fix


def _section(profile: ProfileName | None) -> Path:
    """Where a scenario says how a profile, or None, measures."""
    return ("measure",) if profile is None else ("profiles", profile)


def _measures(measures: Measures, invalid_keys: frozenset[str]) -> Iterator[Flaw]:
    reported: set[str] = set()
    for profile, measure in measures.items():
        for path, what, fix in _measure(measure):
            if what not in reported and not invalid_keys & _DEPENDS_ON[str(path[0])]:
                reported.add(what)
                yield (*_section(profile), *path), what, fix


# The keys that a fault at each key of `measure` depends on.
_DEPENDS_ON = {
    "launches": {"launches", "min", "max"},
    "warmup": {"warmup", "iterations", "seconds", "timeout_s"},
}


def _measure(measure: Measure) -> Iterator[Flaw]:
    launches, warmup = measure.launches, measure.warmup
    if launches.max < launches.min:
        what = f"`min: {launches.min}` is more than `max: {launches.max}`."
        yield ("launches",), what, "Write both, `max` not below `min`."
    iterations = measure.iterations
    if (
        isinstance(warmup, WarmupIterations)
        and iterations != "auto"
        and warmup.iterations >= iterations
    ):
        what = f"a warm-up of {warmup.iterations} leaves none of the {iterations} iterations."
        yield ("warmup",), what, "Lower the warm-up, or raise `iterations`."
    if isinstance(warmup, WarmupSeconds) and warmup.seconds >= measure.timeout_s:
        what = (
            f"a warm-up of {warmup.seconds:g} s does not end"
            f" before the deadline of {measure.timeout_s:g} s."
        )
        yield ("warmup",), what, "Lower the warm-up, or raise `timeout_s`."


def _binding(settings: Mapping[str, matrix.LocatedValue]) -> Iterator[Flaw]:
    bind, backend = settings["bind"], settings["backend"]
    mode = settings["binding"].text
    if bind.value == "after-start" and mode in {"none", "launcher"}:
        what = f"`bind: after-start` has nothing to bind with `binding: {mode}`."
        fix = "Choose another binding, or remove that cell with `exclude`."
        yield bind.path, what, fix
    if bind.value == "after-start" and backend.value == "openmp":
        what = "`backend: openmp` binds threads as they start, never after."
        yield bind.path, what, "Write `backend: taskset`, or `bind: before-start`."
    if mode == "smt-siblings" and settings["smt"].value is False:
        what = "`smt: false` leaves no siblings for `binding: smt-siblings`."
        yield settings["smt"].path, what, "Remove one, or exclude that cell."
    memory, nodes = settings["memory"], settings["memory_nodes"]
    if nodes.value is not None and memory.value in {"default", "local"}:
        what = f"`memory_nodes: {nodes.text}` does nothing with `memory: {memory.value}`."
        yield nodes.path, what, "Write `memory: bind`, `interleave`, `preferred` or `remote`."
    if (
        backend.value == "taskset"
        and memory.value != "default"
        and mode not in {"none", "launcher"}
    ):
        what = f"`backend: taskset` cannot do `memory: {memory.value}`."
        yield memory.path, what, "Write `backend: auto` or `backend: numactl`."


def _framework(
    settings: Mapping[str, matrix.LocatedValue],
    scenario: Scenario,
    find_environment: EnvironmentFinder,
) -> Iterator[Flaw]:
    environment, framework_setting = settings["environment"], settings["framework"]
    name = None if environment.value is None else environment.text
    if settings["commit"].value is not None and name != PROJECT:
        commit = settings["commit"].value
        what = f"`commit: {commit}` does not apply to `environment: {name or 'host'}`."
        yield settings["commit"].path, what, "Write `environment: project`, or remove it."
    if name is not None and name.endswith((".txt", ".yaml", ".yml")):
        what = f"`environment: {name}` is a file name."
        yield environment.path, what, f"Write `{name.rpartition('.')[0]}`."
        return
    workload = scenario.workload
    built_in = built_in_of(workload)
    if built_in is not None and name is None and framework_setting.value is None:
        what = f"`{workload}` needs an environment."
        yield ("workload",), what, f"Write `environment:` with {join_words([*built_in.functions])}."
        return
    framework = framework_setting.value or framework_of(name or HOST)
    if isinstance(workload, ServerWorkload):
        yield from _framework_settings(settings, workload.framework)
        return
    if framework is None and isinstance(workload, CommandWorkload):
        framework = "none"
    if framework is None:
        name = name or HOST
        yield environment.path, *_unnamed_framework(name, find_environment)
        return
    path = (framework_setting if framework_setting.value is not None else environment).path
    if RUNTIMES[framework].server is not None and built_in is None:
        what = f"{framework} is a server, which no function or command runs in."
        servers = [
            f"`{server}`" for server, workload_info in BUILT_IN.items() if workload_info.serves
        ]
        yield path, what, f"Write `workload:` with {join_words(servers)}, or another environment."
        return
    if built_in is not None and framework not in built_in.functions:
        what = f"`{workload}` does not run in {_name_of(framework)}."
        yield path, what, f"It runs in {join_words([*built_in.functions])}."
    elif built_in is not None:
        yield from _gpus(
            settings["gpus"], str(workload), built_in.gpus.get(framework, 0), framework
        )
    yield from _framework_settings(settings, framework)


def _unnamed_framework(environment: str, find: EnvironmentFinder) -> tuple[str, str]:
    """What is wrong with an environment whose framework is unknown, and how to fix it."""
    try:
        find(environment)
    except InputError as error:
        return error.what, error.fix
    start = re.split(r"[-_.0-9]", environment)[0]
    # Names of environments are free, so only a typo is taken for a framework.
    typo_of = closest(start, FRAMEWORKS, similarity=0.8)
    meant = ALIASES.get(start) or typo_of
    fix = "Write `framework:` too (`none` without one)"
    if ":" not in environment and not meant:
        fix += f", or a name that starts with it, such as pytorch-{environment}"
    fix = f"Did you mean `{meant}`? {fix}." if meant else f"{fix}."
    return f"`environment: {printable(environment)}` does not name its framework.", fix


def _supported(point: matrix.Point, scenario: Scenario) -> Iterator[Flaw]:
    """Check required parameters, and those of which a framework supports only some choices."""
    workload = scenario.workload
    built_in = built_in_of(workload)
    if built_in is None:
        return
    # Those of a server are checked with its traffic.
    for name in () if built_in.serves else built_in.required:
        if name not in point.parameters:
            yield ("parameters",), f"`{workload}` needs `{name}`.", f"Write `{name}:` there."
    settings = point.settings
    environment = matrix.environment_name(settings["environment"])
    framework = settings["framework"].value or framework_of(environment)
    for name, choices in built_in.supported.get(str(framework), {}).items():
        parameter = point.parameters.get(name)
        if (
            parameter is not None
            and parameter.value in (built_in.parameters[name].choices or (parameter.value,))
            and parameter.value not in choices
        ):
            what = f"`{name}: {parameter.text}` does not apply to {framework}."
            other = f"Write {join_words(choices)}" if choices else "Remove it"
            yield parameter.path, what, f"{other}, or remove that cell with `exclude`."


def _gpus(gpus: matrix.LocatedValue, workload: str, most: int, framework: str) -> Iterator[Flaw]:
    if gpus.value <= most:
        return
    if most == 0:
        capable = [f"`{name}`" for name, workload_info in BUILT_IN.items() if workload_info.gpus]
        fix = f"Remove it; {join_words(capable, 'and')} can compute on GPUs, in {_ON_GPUS}."
        yield gpus.path, f"`{workload}` computes on no GPU in {framework}.", fix
    else:
        what = f"`gpus: {gpus.value}` is more than `{workload}` computes on."
        yield gpus.path, what, f"Write {most} at most."


_ON_GPUS = join_words(
    sorted({framework for built_in in BUILT_IN.values() for framework in built_in.gpus})
)


def _framework_settings(
    settings: Mapping[str, matrix.LocatedValue], framework: Framework
) -> Iterator[Flaw]:
    """Check the settings that only some frameworks support."""
    runtime, name = RUNTIMES[framework], _name_of(framework)
    for key in runtime.lacks:
        if settings[key].value is not None:
            what = f"`{key}: {settings[key].value}` does not apply to {name}."
            yield settings[key].path, what, "Remove it, or remove that cell with `exclude`."
    if settings["binding"].text == "launcher" and not runtime.has_launcher:
        what = f"`binding: launcher` needs a launcher, and {name} has none."
        yield settings["binding"].path, what, f"Use it with {join_words(with_launcher())}."


def _name_of(framework: Framework) -> str:
    return "plain Python" if framework == "none" else framework


def _declaration(scenario: Scenario) -> BuiltIn | None:
    """What its workload takes; None if only a function or a command says it."""
    is_own = isinstance(scenario.workload, ServerWorkload)
    return OWN_SERVER if is_own else built_in_of(scenario.workload)


def _parameters(
    parameters: Mapping[str, matrix.LocatedValue], scenario: Scenario
) -> Iterator[Flaw]:
    """Check each parameter on its own."""
    workload = scenario.workload
    built_in = _declaration(scenario)
    for name, parameter in parameters.items():
        if isinstance(workload, ServerWorkload) and name in OWN_SERVER.parameters:
            yield from _built_in_parameter("a server", OWN_SERVER, name, parameter)
        elif not isinstance(workload, str):
            yield from _command_parameter(name, parameter, workload, scenario)
        elif built_in is not None:
            yield from _built_in_parameter(str(workload), built_in, name, parameter)
        elif name == "gpus":
            what = "the parameter `gpus` has the name of a setting."
            yield parameter.path, what, "Write `gpus` at the top level or in `matrix`."
        elif not name.isidentifier() or keyword.iskeyword(name):
            what = f"`{printable(name)}` cannot be the name of a function's parameter."
            yield parameter.path, what, "Use letters, digits and `_`."


def _command_parameter(
    name: str,
    parameter: matrix.LocatedValue,
    workload: CommandWorkload | ServerWorkload,
    scenario: Scenario,
) -> Iterator[Flaw]:
    values = [*scenario.env.values(), *chain.from_iterable(scenario.matrix.env.values())]
    values += [source.file for source in scenario.metrics]
    elsewhere = placeholders_in(" ".join(value for value in values if value is not None))
    used = workload.placeholders() | elsewhere
    if name in used:
        return
    close = closest(name, sorted(used))
    what = f"no command has `{{{printable(name)}}}`, so the parameter does nothing."
    fix = f"Write `{{{printable(name)}}}` where its value belongs, or remove the parameter."
    yield (
        parameter.path,
        what,
        f"Did you mean `{{{name}}}` instead of `{{{close}}}`?" if close else fix,
    )


def _built_in_parameter(
    workload: str, built_in: BuiltIn, name: str, parameter: matrix.LocatedValue
) -> Iterator[Flaw]:
    if name not in built_in.parameters:
        close = closest(name, list(built_in.parameters))
        fix = f"It has {join_words([*built_in.parameters], 'and')}."
        what = f"`{workload}` has no parameter `{printable(name)}`."
        yield parameter.path, what, f"Did you mean `{close}`?" if close else fix
    elif (correction := built_in.parameters[name].correction(parameter.value)) is not None:
        written = f"{printable(name)}: {printable(parameter.text)}"
        yield parameter.path, f"`{written}` is not what `{workload}` takes.", correction


def check_profiles(scenario: Scenario, cells: Sequence[Cell]) -> Iterator[Flaw]:
    """Check each profile, given the cells of the whole matrix."""
    for name, change in scenario.profiles.items():
        yield from _profile_parameters(scenario, change, ("profiles", name, "parameters"))
        for index, entry in enumerate(change.only):
            path: Path = ("profiles", name, "only", index)
            if not entry.written:
                yield path, "this entry is empty.", "Name the settings of cells, or remove it."
            elif not matrix.matching_cells(entry, cells):
                yield path, "no cell matches it.", "Name values that are in the matrix."


def _profile_parameters(scenario: Scenario, change: Profile, path: Path) -> Iterator[Flaw]:
    for name, value in change.parameters.items():
        if name in scenario.matrix.parameters:
            what = f"`{printable(name)}` is an axis of the matrix."
            yield (*path, name), what, "Choose among its values with `only`."
        else:
            yield from _parameters({name: matrix.located(value, (*path, name))}, scenario)


def check_traffic(
    scenario: Scenario, points: matrix.Points, measures: Measures, invalid_keys: frozenset[str]
) -> Iterator[Flaw]:
    """Check the traffic of each cell under each profile; yield nothing if it is not a server.

    Args:
        points: Its points under each profile.
        measures: Its `measure` under each profile.
        invalid_keys: Keys that are unknown because of other faults; checks that need them are
            skipped.
    """
    built_in = _declaration(scenario)
    if built_in is None or not built_in.serves or invalid_keys & {"workload", "parameters"}:
        return
    is_reported = bool(invalid_keys & {"iterations", "timeout_s"})
    for profile, measure in measures.items():
        duration_flaws: list[Flaw] = []
        for point in points[profile]:
            for name in built_in.required:
                if name not in point.parameters:
                    what = f"`{scenario.workload}` needs `{name}`."
                    yield ("parameters",), what, f"Write `{name}:` among the parameters."
            yield from _traffic_parameters(point.parameters)
            if not is_reported:
                duration_flaws += _traffic_duration(point.parameters, measure, _section(profile))
        yield from duration_flaws
        # A profile that does not change it would only repeat the fault.
        is_reported = is_reported or bool(duration_flaws)


def _traffic_parameters(parameters: Mapping[str, matrix.LocatedValue]) -> Iterator[Flaw]:
    """Parameters that the traffic's shape requires but lacks, or does not accept."""
    shape = parameters["traffic"].text if "traffic" in parameters else "closed"
    for name, shapes in SHAPES_BY_PARAMETER.items():
        parameter = parameters.get(name)
        if parameter is None and shape in shapes:
            what = f"`traffic: {shape}` needs `{name}`."
            yield ("parameters",), what, f"Write `{name}:` among the parameters."
        elif parameter is not None and shape not in shapes:
            what = f"`{name}` does not apply to `traffic: {shape}`."
            yield parameter.path, what, "Remove it, or remove that cell with `exclude`."
    client = parameters.get("client")
    if client is not None and client.value == "ab" and shape != "closed":
        what = f"`client: ab` cannot send `traffic: {shape}`."
        yield client.path, what, "Write `client: corebound`, or `traffic: closed`."


def _traffic_duration(
    parameters: Mapping[str, matrix.LocatedValue], measure: Measure, section: Path
) -> Iterator[Flaw]:
    """Check the traffic against `measure` as one profile's section changes it."""
    query, rate = parameters.get("query"), parameters.get("rate")
    if (
        query is not None
        and type(query.value) is int
        and query.value > 0
        and (measure.requests % query.value)
    ):
        what = f"{measure.requests} requests do not make whole queries of {query.text}."
        yield (*section, "iterations"), what, f"Write a multiple of {query.text}."
    # Multiplied rather than divided: with a very small rate the quotient is infinite.
    if (
        rate is not None
        and type(rate.value) in {int, float}
        and (0 < rate.value * measure.timeout_s < measure.requests)
    ):
        what = (
            f"{measure.requests} requests at {rate.text} a second do not end"
            f" before the deadline of {measure.timeout_s:g} s."
        )
        yield rate.path, what, "Raise `rate` or `timeout_s`, or lower `iterations`."

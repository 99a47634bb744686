"""The common input of most commands: scenario files, their cells, and this host's capabilities."""

import hashlib
import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

from msgspec import Struct

from corebound import units
from corebound.errors import CoreboundError, Fault, InputError, ScenarioFaults, encodable
from corebound.launch import environments, find_module
from corebound.launch.cpu_quota import quota_support
from corebound.launch.environments import Environment
from corebound.launch.existing_environments import is_existing
from corebound.launch.process_settings import huge_page_support, openmp_runtimes
from corebound.launch.programs import missing_program
from corebound.launch.search_path import module_folders
from corebound.machine import discovery
from corebound.machine.cgroups import QuotaSupport
from corebound.machine.identity import gpus
from corebound.planning.duplicates import mark_duplicates
from corebound.planning.host_support import HostCapabilities, HugePageSupport
from corebound.planning.models import CannotRun
from corebound.planning.placement import TOOLS
from corebound.planning.plan import plan_cells
from corebound.records import atomic_write
from corebound.records.codec import canonical
from corebound.records.run_record import Run, ScenarioSource
from corebound.runner import Task
from corebound.scenario.cell import HOST, Cell, is_project
from corebound.scenario.checks import OWN_VARIABLES, is_variable_name
from corebound.scenario.function_checks import Module, ModuleFinder
from corebound.scenario.loader import load, load_document
from corebound.scenario.matrix import expand, shorten_labels
from corebound.scenario.models import ProfileName, Scenario
from corebound.scenario.runtimes import RUNTIME_PROGRAMS
from corebound.scenario.select import select
from corebound.serving.servers import find_java
from corebound.text import one_line
from corebound.workflow import projects
from corebound.workflow.projects import ProjectEnvironments

# A scenario is a page or two; a larger file was named by mistake.
MAX_FILE_BYTES = 1 << 20


class LoadedScenario(Struct, frozen=True, kw_only=True):
    """A scenario, its path, and its selected cells."""

    path: Path
    scenario: Scenario
    cells: tuple[Cell, ...]

    @property
    def folder(self) -> Path:
        """The folder of the scenario file, as an absolute path."""
        return self.path.resolve().parent

    @property
    def source(self) -> ScenarioSource:
        """The scenario in the form that a record keeps."""
        document = self.scenario.document()
        sha256 = hashlib.sha256(canonical(document)).hexdigest()
        return ScenarioSource(path=display_path(self.path), sha256=sha256, document=document)


def display_path(path: Path) -> str:
    """Shorten a path to the form that the user would type in the current folder."""
    relative = os.path.relpath(path)
    return encodable(str(path) if relative.startswith("..") else relative)


def scenario_files(paths: Sequence[Path]) -> tuple[Path, ...]:
    """List scenario files: those named, and every *.yaml file of the folders named, each once.

    Raises:
        InputError: No path is named, or a folder contains no scenario files.
    """
    scenario_paths: list[Path] = []
    if not paths:
        raise InputError(
            what="no scenario named.", where="corebound", fix="Name scenario files or folders."
        )
    for path in paths:
        if not path.is_dir():
            scenario_paths.append(path)
            continue
        candidates = (*path.glob("*.yaml"), *path.glob("*.yml"))
        # Opening a pipe would block until something writes to it.
        files = sorted(file for file in candidates if not file.is_fifo())
        if not files:
            raise InputError(
                what="this folder contains no scenario files.",
                where=str(path),
                fix="Name a folder with *.yaml files, or a scenario file.",
            )
        scenario_paths += files
    return tuple({path.resolve(): path for path in scenario_paths}.values())


def load_scenarios(
    paths: Sequence[Path],
    only: Sequence[str],
    profile: ProfileName | None = None,
    *,
    env: Mapping[str, str] | None = None,
) -> tuple[LoadedScenario, ...]:
    """Load scenarios and select their cells, after applying a profile.

    Raises:
        ScenarioFaults: Any of the files has errors; lists all of them.
        InputError: A file cannot be read, or `only` matches nothing.
    """
    faults: list[Fault] = []
    loaded: list[tuple[Path, Scenario]] = []
    for path in scenario_files(paths):
        try:
            folder = path.resolve().parent
            scenario = load(
                _read_file(path),
                display_path(path),
                _module_finder(folder),
                partial(_exists, folder),
                partial(_require_existing, folder),
            )
            loaded.append((path, _with_variables(scenario, env or {})))
        except ScenarioFaults as error:
            faults += error.faults
    faults += _duplicate_names(loaded)
    if faults:
        raise ScenarioFaults(tuple(faults))
    return _select_cells(loaded, only, profile)


def recorded_scenarios(run: Run) -> tuple[LoadedScenario, ...]:
    """Reconstruct the scenarios and cells of a run from its record.

    Raises:
        ScenarioFaults: This version cannot read the scenarios.
        InputError: The requested selection no longer matches any of their cells.
    """
    loaded = [
        (Path(scenario.path), load_document(scenario.document, scenario.path))
        for scenario in run.scenarios
    ]
    return _select_cells(loaded, run.only, run.profile)


def _select_cells(
    loaded: Sequence[tuple[Path, Scenario]], only: Sequence[str], profile: ProfileName | None
) -> tuple[LoadedScenario, ...]:
    expanded = [
        (path, scenario, expand(scenario, display_path(path), profile)) for path, scenario in loaded
    ]
    chosen = set(select(tuple(cell for _, _, cells in expanded for cell in cells), only))
    return tuple(
        LoadedScenario(path=path, scenario=scenario, cells=shorten_labels(selected))
        for path, scenario, cells in expanded
        if (selected := tuple(cell for cell in cells if cell in chosen))
    )


def _module_finder(folder: Path) -> ModuleFinder:
    """Find modules as the workers of a folder's scenarios do."""

    def find(module: str, name: str) -> Module | None:
        if is_project(name):
            # The project's commits are not built yet, or have different modules.
            return find_module.find(module, folder=folder, python=None, is_project=True)
        try:
            made = environments.find(name, folder)
        except CoreboundError:
            return None  # `environments_of` reports that the environment does not exist
        return find_module.find(module, folder=folder, python=made.python if made else None)

    return find


def _with_variables(scenario: Scenario, env: Mapping[str, str]) -> Scenario:
    """A scenario whose cells all have these environment variables, which its record then keeps."""
    for name in env:
        if not is_variable_name(name):
            what = f"`{one_line(name)}` cannot be the name of an environment variable."
            fix = "Write a name without `=` or blanks around it."
        elif name in scenario.matrix.env:
            what = f"`{scenario.name}` varies {name} in its matrix."
            fix = f"Select its cells with --only env.{name}=VALUE."
        elif name in OWN_VARIABLES:
            what = f"{name} is set by corebound itself."
            fix = f"Write `{OWN_VARIABLES[name]}:` in the scenario."
        else:
            continue
        raise InputError(what=what, where=f"--env {name}", fix=fix)
    if not env:
        return scenario
    return scenario.model_copy(update={"env": {**scenario.env, **env}})


def _exists(folder: Path, file: str) -> bool:
    path = folder / file
    if "*" in file:
        return any(Path(path.anchor).glob(str(path.relative_to(path.anchor))))
    return path.exists()


def _require_existing(folder: Path, name: str) -> None:
    """Check that an environment that corebound did not make is there."""
    if is_existing(name):
        environments.existing(name, folder)


def _read_file(path: Path) -> bytes:
    try:
        with atomic_write.opened(path) as stream:
            data = stream.read(MAX_FILE_BYTES + 1)
        if len(data) <= MAX_FILE_BYTES:
            return data
        what = f"the file is larger than {units.size(MAX_FILE_BYTES)}."
    except OSError as error:
        what = f"the file cannot be read: {error.strerror}."
    fix = "Name a scenario file, or a folder of them."
    raise ScenarioFaults((Fault(file=str(path), line=None, what=what, fix=fix),))


def _duplicate_names(loaded: Iterable[tuple[Path, Scenario]]) -> Iterable[Fault]:
    first: dict[str, Path] = {}
    for path, scenario in loaded:
        if (other := first.setdefault(scenario.name, path)) != path:
            yield Fault(
                file=display_path(path),
                line=None,
                what=f"`{display_path(other)}` has the same name, `{scenario.name}`.",
                fix="Give each scenario of a suite a unique name.",
            )


def find_environments(
    loaded: Sequence[LoadedScenario], suite: Path, project: ProjectEnvironments | None = None
) -> dict[str, Environment | None]:
    """Find every required environment; None marks one that has not been created.

    Args:
        loaded: The scenarios. Their own environments take precedence over corebound's.
        project: Environments of the project under test; looked up if omitted.

    Raises:
        InputError: A scenario names an environment that does not exist, or two scenarios mean
            different ones by one name.
    """
    project_environments = project or projects.find(all_cells(loaded), suite / projects.CONFIG)
    environments_by_name: dict[str, Environment | None] = dict(project_environments.made)
    for name, folder, where in _environments_named(loaded):
        if name in project_environments.made:
            continue
        try:
            made = environments.find(name, folder)
            if made is not None:
                environments.hold(made.python)
        except CoreboundError as error:
            raise InputError(what=error.what, where=where, fix=error.fix) from error
        if name in environments_by_name and environments_by_name[name] != made:
            raise InputError(
                what=f"another scenario means a different environment by `{name}`.",
                where=where,
                fix="Run the scenarios one by one, or rename one of the environments.",
            )
        environments_by_name[name] = made
    return environments_by_name


def _environments_named(loaded: Iterable[LoadedScenario]) -> Iterable[tuple[str, Path, str]]:
    """Each environment of each folder of scenarios: its name, the folder, where it is named."""
    places = {
        (cell.environment, scenario.folder): cell.where
        for scenario in loaded
        for cell in scenario.cells
    }
    return ((name, folder, where) for (name, folder), where in places.items())


def python_of(name: str, made: Environment | None, loaded: Iterable[LoadedScenario]) -> Path:
    """The path of an environment's interpreter, even before the environment is created."""
    if made is not None:
        return made.python
    # asv chooses this path, so it is unknown until the environment exists.
    if is_project(name):
        return Path(name) / "bin/python"
    return environments.python_of(name, folder_of(name, loaded))


def folder_of(name: str, loaded: Iterable[LoadedScenario]) -> Path:
    """The folder of the first scenario that names an environment."""
    return next(folder for named, folder, _ in _environments_named(loaded) if named == name)


def all_cells(loaded: Iterable[LoadedScenario]) -> tuple[Cell, ...]:
    """The cells of all scenarios."""
    return tuple(cell for scenario in loaded for cell in scenario.cells)


def host_capabilities(
    made: Mapping[str, Environment | None],
    loaded: Sequence[LoadedScenario],
    unmade: Mapping[str, CannotRun] | None = None,
) -> HostCapabilities:
    """This host's capabilities now.

    Args:
        made: The environments; None marks one that has not been made.
        loaded: The scenarios to plan. Setting a CPU quota is tried only if one of their cells has
            a quota, and setting huge pages only if one of them sets them.
    """
    cells = all_cells(loaded)
    why = {
        name: environments.reason_not_made(name, folder_of(name, loaded))
        for name, environment in made.items()
        if environment is None and not is_project(name)
    }
    return HostCapabilities(
        topology=discovery.live_topology(),
        tools=frozenset(filter(is_installed, TOOLS | RUNTIME_PROGRAMS)),
        pythons={
            name: str(environment.python) if environment else None
            for name, environment in made.items()
        },
        instructions=discovery.instructions(),
        gpus=tuple(gpu.id for gpu in gpus(Path("/"), os.environ.get("CUDA_VISIBLE_DEVICES"))),
        build_failures={**why, **(unmade or {})},
        quota=quota_support()
        if any(cell.cpu_quota is not None for cell in cells)
        else QuotaSupport(),
        huge_pages=huge_page_support()
        if any(cell.thp is not None for cell in cells)
        else HugePageSupport(),
        openmp={
            name: openmp_runtimes(environment.python)
            for name, environment in made.items()
            if environment is not None
        },
        without_framework={
            key: reason
            for key in dict.fromkeys((cell.environment, cell.framework) for cell in cells)
            # The others have requirements of their own.
            if (environment := made[key[0]]) is not None
            and (key[0] == HOST or is_existing(key[0]))
            and (
                reason := find_module.reason_without(
                    key[1], folder=folder_of(key[0], loaded), python=environment.python
                )
            )
        },
        without_program={
            cell.id: reason
            for scenario in loaded
            for cell in scenario.cells
            if (
                reason := missing_program(
                    scenario.scenario,
                    cell,
                    folder=scenario.folder,
                    python=environment.python if (environment := made[cell.environment]) else None,
                )
            )
        },
    )


def is_installed(program: str) -> bool:
    """Whether this host has a program."""
    return (find_java() if program == "java" else shutil.which(program)) is not None


def plan_task(
    scenario: LoadedScenario, host: HostCapabilities, *, profile: ProfileName | None, seed: int
) -> Task:
    """Plan the cells of a scenario, and find those that are the same on this host."""
    planned = plan_cells(
        scenario.scenario,
        scenario.cells,
        host,
        folder=str(scenario.folder),
        fallback_path=tuple(map(str, module_folders(scenario.folder))),
        profile=profile,
        seed=seed,
    )
    return Task(
        scenario=scenario.scenario,
        planned=mark_duplicates(scenario.scenario, planned, host.topology),
    )

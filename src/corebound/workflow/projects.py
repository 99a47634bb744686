"""Find or build, through asv, the project environments that scenarios require."""

import tempfile
from collections.abc import Callable, Iterable, Sequence
from os import PathLike
from pathlib import Path

from msgspec import Struct

from corebound.asv_bridge import project as asv_project
from corebound.errors import BuildError, CoreboundError
from corebound.launch import environments
from corebound.launch.environments import Environment
from corebound.planning.models import CannotRun
from corebound.records.run_record import Commit
from corebound.scenario.cell import Cell, is_project
from corebound.text import one_line

CONFIG = Path("asv.conf.json")
# What is measured if no file is named.
DEFAULT_SCENARIOS = Path("scenarios")
# Where corebound writes by default: records, sites and journals.
OUTPUTS = (Path("reports"),)

# Receives progress messages.
Notify = Callable[[str], None]


def notifier(notify: Callable[[str], object] | None) -> Notify:
    """Pass each message to a function; None shows nothing."""
    return about("", notify)


def about(name: str, notify: Callable[[str], object] | None) -> Notify:
    """Pass each message on with a name before it; None shows nothing."""

    def show(message: str) -> None:
        if notify is not None:
            notify(f"{name}: {message}" if name else message)

    return show


class UpdatedProject(Struct, frozen=True, kw_only=True):
    """The project under test, and the commit that it is at now."""

    project: str
    commit: Commit


def update(
    *, config: str | PathLike[str] = CONFIG, notify: Callable[[str], object] | None = None
) -> UpdatedProject:
    """Fetch and fast-forward the project under test, as `corebound update` does.

    Args:
        config: The asv.conf.json of the project.
        notify: Called with each line about the progress; `print` shows them.

    Raises:
        InputError: The project cannot be identified.
        LaunchError: git refuses, for example after histories diverged.
    """
    project = asv_project.open_project(Path(config), notifier(notify))
    project.update()
    return UpdatedProject(project=project.name, commit=project.commit(project.checked_out))


class ProjectEnvironments(Struct, frozen=True, kw_only=True):
    """Environments of the project under test, by the names that cells use.

    Attributes:
        made: Each environment; None if it has not been built.
        unmade: Why an environment is missing, where that is known.
    """

    made: dict[str, Environment | None]
    unmade: dict[str, CannotRun]


def find(cells: Sequence[Cell], config: Path) -> ProjectEnvironments:
    """Find environments that are already built; build and store nothing.

    Raises:
        InputError: A revision or the project cannot be identified.
    """
    project = _open(cells, config, notifier(None))
    if isinstance(project, ProjectEnvironments):
        return project
    with tempfile.TemporaryDirectory(prefix="corebound-plan-") as folder:
        made = {
            name: project.find(
                project.commit(revision)
                if revision
                else project.working_tree(notifier(None), outputs=OUTPUTS, store=Path(folder)),
                name,
            )
            for name, revision in _revisions(cells).items()
        }
    return ProjectEnvironments(made=made, unmade={})


def build(
    cells: Sequence[Cell],
    config: Path,
    notify: Notify,
    *,
    outputs: Sequence[Path] = (),
    committed: bool = False,
) -> ProjectEnvironments:
    """Build the environments that cells require; report build failures instead of raising.

    Args:
        cells: Cells without a commit use the working tree.
        outputs: Output folders of the measurement, in addition to `OUTPUTS`.
        committed: Whether to build the checked-out commit instead of the working tree.

    Raises:
        InputError: A revision, the project or asv's environment cannot be identified.
    """
    project = _open(cells, config, notify)
    if isinstance(project, ProjectEnvironments):
        return project
    made: dict[str, Environment | None] = {}
    unmade: dict[str, CannotRun] = {}
    for name, revision in _revisions(cells).items():
        if revision is None and not committed:
            commit = project.working_tree(notify, outputs=(*OUTPUTS, *outputs))
        else:
            commit = project.commit(revision or project.checked_out)
        try:
            made[name] = project.find(commit, name)
            if made[name] is None:
                notify(f"Building {project.name} {commit.name}: {one_line(commit.subject)}")
                made[name] = project.build(commit, name)
        except BuildError as error:
            notify(f"{error.where}: {error.what.splitlines()[0]} …")
            made[name] = None
            unmade[name] = CannotRun(what=error.what, fix=error.fix, cause="build")
    return ProjectEnvironments(made=made, unmade=unmade)


def _open(
    cells: Sequence[Cell], config: Path, notify: Notify
) -> asv_project.Project | ProjectEnvironments:
    """The project under test, or the environments that cannot be built without it.

    Other cells do not need it: a file that is missing or broken costs only those that do, unless
    the user has named it.
    """
    of_project = [cell for cell in cells if is_project(cell.environment)]
    if not of_project:
        return ProjectEnvironments(made={}, unmade={})
    try:
        return asv_project.open_project(config, notify)
    except CoreboundError as error:
        if config.absolute() != CONFIG.absolute():
            raise
        names = ", ".join(dict.fromkeys(f"`{cell.scenario}`" for cell in of_project))
        what = f"{names} measures a project. {error.where}: {error.what}"
        reason = CannotRun(what=what, fix=error.fix, cause="environment")
    unmade = dict.fromkeys((cell.environment for cell in of_project), reason)
    return ProjectEnvironments(made=dict.fromkeys(unmade), unmade=unmade)


def use_existing(cells: Iterable[Cell], python: Path) -> ProjectEnvironments:
    """Use an environment in which the project is already installed, as asv does."""
    made: dict[str, Environment | None] = {
        name: environments.describe_python(python, name) for name in _revisions(cells)
    }
    return ProjectEnvironments(made=made, unmade={})


def _revisions(cells: Iterable[Cell]) -> dict[str, str | None]:
    """The revision of each project environment, by the environment's name.

    None means that no revision is named.
    """
    return {cell.environment: cell.commit for cell in cells if is_project(cell.environment)}

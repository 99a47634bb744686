"""Runs anchored to a pinned commit: HEAD alternates with its build on whatever machine came."""

import contextlib
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from corebound.analysis.run_changes import changes_text, package_changes
from corebound.asv_bridge.project import Project, open_project
from corebound.errors import BuildError, InputError
from corebound.launch.environments import Environment
from corebound.records import jsonl
from corebound.records.run_record import Commit, EnvironmentLock
from corebound.scenario.cell import PROJECT
from corebound.scenario.compared_axis import runs_in_project
from corebound.text import one_line
from corebound.workflow import scenarios
from corebound.workflow.comparison_sides import repeat_for_commits
from corebound.workflow.prepare import PreparedRun, RunRequest, prepare_comparison, prepare_run
from corebound.workflow.projects import Notify

# HEAD, the anchor, and the anchor that it replaces; more would only cost time.
_MOST_ANCHORS = 2


def configured_anchor(config: Path) -> tuple[str, ...]:
    """The `anchor` of an asv.conf.json; empty without one, or without the file.

    Raises:
        InputError: The file cannot be read, or the anchor is not a revision.
    """
    try:
        # Without the key nothing is asked of asv, which may clone the repository.
        if b'"anchor"' not in config.read_bytes():
            return ()
    except OSError:
        return ()
    anchor: object = open_project(config, lambda _: None).anchor
    named = [anchor] if isinstance(anchor, str) else anchor
    if named is None:
        return ()
    if not isinstance(named, list) or not all(isinstance(each, str) for each in named):
        raise InputError(
            what="`anchor` is neither a revision nor a list of two.",
            where=str(config),
            fix='Write "anchor": "v1.2", or while it moves "anchor": ["v2.0", "v1.2"].',
        )
    return tuple(named)


def prepare_anchored(
    request: RunRequest, anchors: Sequence[str], notify: Notify, *, resume: bool
) -> PreparedRun:
    """Prepare a run in which scenarios of the project alternate HEAD with the anchor.

    Scenarios in another environment have no builds to alternate, and are measured as they are.

    Args:
        request: The user's request, with files.
        anchors: The anchor, and during a move the one that it replaces.
        resume: Whether to continue an identical run that was interrupted.

    Raises:
        InputError: There are no such files or commits, too many anchors, or one does not build.
        CoreboundError: The scenarios, environments or host do not allow the run.
    """
    if not request.files or len(anchors) > _MOST_ANCHORS or request.project_python is not None:
        raise InputError(
            what="it takes scenario files, one anchor or two, and no --project-python.",
            where="--anchor",
            fix="Write `corebound run scenarios --anchor v1.2`. The second anchor is the one that"
            " the first replaces.",
        )
    loaded = scenarios.load_scenarios(request.files, request.only, request.profile, env=request.env)
    anchored = tuple(each for each in loaded if runs_in_project(each.scenario))
    if len(anchored) < len(loaded):
        notify(
            f"{len(loaded) - len(anchored)} of {len(loaded)} scenarios do not run in"
            " `environment: project`: they are not anchored, and measured on this host alone."
        )
    project = open_project(request.config, notify)
    head = project.commit(project.checked_out)
    pinned = tuple(map(project.commit, anchors))
    builds = dict.fromkeys(commit for commit in pinned if commit.sha != head.sha)
    if not anchored or not builds:
        if anchored:
            notify(
                f"{head.name} is the anchor itself: it is measured alone, and this night is no"
                " point of the anchored histories."
            )
        return prepare_run(replace(request, committed=True), notify)
    for commit in builds:
        _require_build(project, commit, request.records, notify)
    repeated = repeat_for_commits(anchored, (*builds, head), request)
    alone = tuple(each for each in loaded if not runs_in_project(each.scenario))
    return prepare_comparison(
        (*repeated, *alone),
        replace(request, committed=True),
        notify,
        resume=resume,
        anchors=tuple(builds),
    )


def _require_build(project: Project, commit: Commit, records: Path, notify: Notify) -> None:
    """Build an anchor, which every later point is compared with; the build is kept and reused.

    It is built with the versions of the nights before, where these can still be installed. Other
    ones are named: points before and after are then not compared.
    """
    before = _last_lock(records, commit)
    # Who changes the matrix wants other versions.
    versions = before.packages if before is not None and before.sha256 == project.recipe else ()
    try:
        made = project.find(commit, PROJECT)
        if made is None:
            notify(f"Building the anchor {commit.name}: {one_line(commit.subject)}")
            made = _build(project, commit, versions, notify)
    except BuildError as error:
        needed = "the versions that it needs"
        if before is not None:
            needed = f"the versions of its last build ({', '.join(before.packages)})"
        # As an error of the request: a night goes on after launches that failed.
        raise InputError(
            what=f"the anchor can no longer be built: {error.what}",
            where=error.where,
            fix=f"Pin {needed} in `matrix` of that file, or move the anchor to a"
            " commit that builds: --anchor NEW. Where the old build is still there, measure both"
            " for some nights, --anchor NEW --anchor OLD, so that the history goes on.",
        ) from error
    changes = tuple(package_changes(before, made.lock)) if before is not None else ()
    if changes:
        notify(
            f"The anchor {commit.name} was built with other packages ({changes_text(changes)}):"
            f" a new segment of its histories begins. Pin others in `matrix` of {project.file}."
        )


def _build(
    project: Project, commit: Commit, versions: Sequence[str], notify: Notify
) -> Environment:
    """Build a commit with these versions, or if that fails with those that there are."""
    if versions:
        try:
            return project.build(commit, PROJECT, versions=versions)
        except BuildError as error:
            notify(f"With the versions of its last build, {error.what}")
    return project.build(commit, PROJECT)


def _last_lock(records: Path, commit: Commit) -> EnvironmentLock | None:
    """What the anchor was built with in the latest run that measured it."""
    # File names begin with the time.
    for file in sorted(jsonl.files(records), key=lambda file: file.name, reverse=True):
        with contextlib.suppress(InputError, FileNotFoundError):
            if (lock := jsonl.read_run(file).lock_of_commit(commit.sha)) is not None:
                return lock
    return None

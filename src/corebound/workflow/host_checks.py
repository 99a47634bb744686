"""The checks of `corebound doctor`, with this host's tools and environments, and before a run."""

import contextlib
import json
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from corebound import clock
from corebound.analysis.wording import count
from corebound.errors import CoreboundError, HostError, InputError
from corebound.launch import environments
from corebound.launch.environments import Environment
from corebound.launch.existing_environments import is_existing
from corebound.machine import discovery, sysfs
from corebound.machine.doctor import host_settings
from corebound.machine.doctor.checks_system import PROGRAMS
from corebound.machine.doctor.examine import examine
from corebound.machine.doctor.host_facts import SNAPSHOT_INTERVAL_S, HostFacts, take_snapshot
from corebound.machine.doctor.host_settings import Disk, SettingResult
from corebound.machine.doctor.result import CheckResult, HostCheck, SettingChange, command
from corebound.machine.lock import host_lock
from corebound.machine.topology import Topology
from corebound.planning.host_support import programs_of
from corebound.planning.models import CannotRun
from corebound.planning.placement import TOOLS
from corebound.present.shown import Shown
from corebound.records import atomic_write
from corebound.scenario.cell import is_project
from corebound.scenario.runtimes import RUNTIME_PROGRAMS
from corebound.workflow import projects, scenarios
from corebound.workflow.execute import Reporter
from corebound.workflow.prepare import PreparedRun

LIVE = Path("/")
_SHOWN = "warnings-shown.json"
# Groups that a run reports itself, with the cells that it skips.
_REPORTED_BY_RUN = {"tools", "environments"}


class SuiteNeeds(Struct, frozen=True, kw_only=True):
    """The programs and the environments that scenarios need.

    `lacking` says why the project under test cannot be built, what environments that corebound
    does not make lack, and which programs are missing, by the name of the check.
    """

    programs: frozenset[str]
    environments: Mapping[str, Environment | None]
    lacking: tuple[tuple[str, CannotRun], ...] = ()


def needs_of(files: Sequence[Path]) -> SuiteNeeds:
    """What scenarios need on this host.

    Args:
        files: Scenario files, or folders of them. Without any, those of the folder `scenarios` and
            of the current folder count, and other YAML files there do not matter.

    Raises:
        ScenarioFaults: A file that was named has errors.
        InputError: A file that was named cannot be read.
    """
    if files:
        loaded = scenarios.load_scenarios(files, ())
    else:
        found = [path for folder in _SUITE_FOLDERS for path in sorted(folder.glob("*.yaml"))]
        loaded = tuple(scenario for path in found for scenario in _load_if_valid(path))
    project = projects.find(scenarios.all_cells(loaded), projects.CONFIG)
    made = scenarios.find_environments(loaded, Path.cwd(), project)
    capabilities = scenarios.host_capabilities(made, loaded)
    everything = replace(
        capabilities,
        tools=TOOLS | RUNTIME_PROGRAMS,
        pythons=dict.fromkeys(made, sys.executable),
        without_framework={},
        without_program={},
    )
    planned = [
        cell
        for scenario in loaded
        for cell in scenarios.plan_task(scenario, everything, profile=None, seed=0).planned
    ]
    programs = {command.argv[0] for cell in planned for command in cell.commands}
    programs |= {program.name for cell in planned for program in programs_of(cell.cell)}
    if any(cell.traffic is not None and cell.traffic.client == "ab" for cell in planned):
        programs.add("ab")
    return SuiteNeeds(
        programs=frozenset(Path(program).name for program in programs) & PROGRAMS,
        environments={
            name: made[name] for name in made if not (is_project(name) or is_existing(name))
        },
        lacking=(
            *[("project", reason) for reason in project.unmade.values()][:1],
            *(
                failure
                for failure in capabilities.build_failures.items()
                if is_existing(failure[0])
            ),
            *((name, reason) for (name, _), reason in capabilities.without_framework.items()),
            *(("program", name) for name in dict.fromkeys(capabilities.without_program.values())),
        ),
    )


_SUITE_FOLDERS = (Path("scenarios"), Path())


def _load_if_valid(path: Path) -> tuple[scenarios.LoadedScenario, ...]:
    try:
        return scenarios.load_scenarios((path,), ())
    except CoreboundError:
        return ()


class HostChecks(Shown, frozen=True, kw_only=True):
    """The conditions of a host that affect measurements.

    Attributes:
        results: The checks, with the settings that may be changed to fix them.
        tuned: The settings that `corebound doctor --tune` has changed.
    """

    shown: ClassVar = ("check", "state", "value", "fix")

    results: tuple[CheckResult, ...]
    tuned: tuple[SettingChange, ...] = ()

    @property
    def checks(self) -> tuple[HostCheck, ...]:
        """The checks, each with its `state`, `value`, `why` and `fix`."""
        return tuple(result.host_check for result in self.results)

    @property
    def warnings(self) -> tuple[HostCheck, ...]:
        """The checks that are warnings."""
        return tuple(check for check in self.checks if check.state == "warning")

    @property
    def document(self) -> dict[str, Any]:
        """The same as plain data, as `corebound doctor --json` prints it."""
        return {"checks": to_builtins(self.checks), "tuned": to_builtins(self.tuned)}

    def heading(self) -> str:
        """The number of warnings."""
        return f"{count(len(self.warnings), 'warning')} in {count(len(self), 'check')}"

    def __len__(self) -> int:
        """The number of checks."""
        return len(self.results)

    def __iter__(self) -> Iterator[HostCheck]:
        """Every check."""
        return iter(self.checks)


def doctor(*files: str | PathLike[str], root: str | PathLike[str] = LIVE) -> HostChecks:
    """Check this host and change nothing, as `corebound doctor` does.

    Args:
        files: The scenario files, or folders of them, whose programs and environments to check;
            without any, those of the folder `scenarios` and of the current folder.
        root: Another machine: a folder with its proc/ and sys/.

    Raises:
        ScenarioFaults: A file that was named has errors.
        InputError: A file that was named cannot be read, or there is no such folder.
    """
    root = Path(root)
    if not root.is_dir():
        raise InputError(
            what="no such folder.",
            where=str(root),
            fix="Name a folder that contains proc/ and sys/.",
        )
    try:
        topology = discovery.live_topology() if root == LIVE else discovery.saved_topology(root)
    except HostError:
        topology = None  # no CPUs are visible: the checks that need them report it
    # A saved machine has neither this PATH nor this cache.
    needs = needs_of([Path(file) for file in files]) if root == LIVE else None
    return HostChecks(
        results=check_host(root, topology, needs=needs), tuned=host_settings.saved_settings(root)
    )


def tune_host(
    *files: str | PathLike[str], root: str | PathLike[str] = LIVE
) -> tuple[SettingResult, ...]:
    """As root, change the settings that cause warnings, as `corebound doctor --tune` does.

    Args:
        files: As for `doctor`.
        root: As for `doctor`.

    Returns:
        The result of each setting, with its `fault` if it could not be changed; empty if no warning
        can be fixed by a setting.

    Raises:
        HostError: No permission to change any of them, or a run is active.
    """
    return change_settings(doctor(*files, root=root).results, Path(root))


def restore_host(root: str | PathLike[str] = LIVE) -> tuple[SettingResult, ...]:
    """Restore the settings that `tune_host` has changed, as `corebound doctor --restore` does.

    Args:
        root: As for `doctor`.

    Raises:
        HostError: Some settings could not be restored, or a run is active.
    """
    results, error = restore_settings(Path(root))
    if error is not None:
        raise error
    return results


def change_settings(checks: Sequence[CheckResult], root: Path) -> tuple[SettingResult, ...]:
    """Do what `tune_host` does, for a host that has been checked."""
    fixable = [check for check in checks if check.changes]
    changes = [change for check in fixable for change in check.changes]
    if changes and not host_settings.writable(changes, root):
        raise HostError(
            what="no permission to change any of these settings.",
            where="corebound doctor --tune",
            fix="Run it as root, or run these commands as root yourself:\n"
            + "\n".join(f"    {check.host_check.fix}" for check in fixable),
        )
    with _without_runs(root) if changes else contextlib.nullcontext():
        return tuple(host_settings.tune(changes, root, Disk())) if changes else ()


def restore_settings(root: Path) -> tuple[tuple[SettingResult, ...], HostError | None]:
    """Do what `restore_host` does; the error is about settings that could not be restored."""
    tuned = host_settings.saved_settings(root)
    with _without_runs(root) if tuned else contextlib.nullcontext():
        results = tuple(host_settings.restore(root, Disk()))
    failed = {result.path for result in results if result.fault is not None}
    if not failed:
        return results, None
    return results, HostError(
        what=f"{len(failed)} of {len(results)} settings could not be restored.",
        where=str(root / host_settings.STATE),
        fix="Run it again as root. Or run this as root, and then delete that file:\n    "
        + command((change.path, change.prior) for change in tuned if change.path in failed),
    )


def _without_runs(root: Path) -> contextlib.AbstractContextManager[object]:
    """Lock out runs: a setting that changes between launches would look like a difference."""
    return host_lock() if root == LIVE else contextlib.nullcontext()


def check_host(
    root: Path, topology: Topology | None, *, needs: SuiteNeeds | None
) -> tuple[CheckResult, ...]:
    """Check a machine.

    Args:
        root: `LIVE`, or a folder with another machine's proc/ and sys/.
        topology: Its topology; None if no CPUs are visible.
        needs: The tools and environments to check on this host; None checks none.
    """
    is_live, tree = root == LIVE, sysfs.Files(root)
    before = take_snapshot(tree)
    if is_live:  # the files of a saved machine do not change
        time.sleep(SNAPSHOT_INTERVAL_S)
    facts = HostFacts(
        tree=tree,
        topology=topology,
        before=before,
        after=take_snapshot(tree),
        pid=os.getpid() if is_live else 0,
        sudo="SUDO_UID" in os.environ,
        tools=frozenset(filter(scenarios.is_installed, PROGRAMS)) if needs else None,
        needed=needs.programs if needs else None,
        environments={name: found is not None for name, found in needs.environments.items()}
        if needs
        else None,
    )
    lacking = (
        HostCheck(
            check=name,
            group="environments",
            state="warning",
            value=reason.what,
            why="its configurations are skipped",
            fix=reason.fix,
            undo=None,
        )
        for name, reason in (needs.lacking if needs else ())
    )
    return (*examine(facts), *(CheckResult(host_check=check) for check in lacking))


def preflight(prepared: PreparedRun, reporter: Reporter) -> PreparedRun:
    """Show the warnings before a run, and store the checks with it.

    A resumed run keeps its first checks.
    """
    passed = {
        name
        for task in prepared.tasks
        for planned in task.planned
        for command in planned.commands
        for name in command.inherits
    }
    if unset := sorted(passed - os.environ.keys()):
        reporter.notify(f"Not set here, although scenarios pass it on: {', '.join(unset)}.")
    checks = [
        check
        for check in check_host(LIVE, prepared.run.host.topology, needs=None)
        if check.host_check.group not in _REPORTED_BY_RUN
    ]
    reporter.show_warnings(_not_shown_today([check.host_check for check in checks]))
    if prepared.run.preflight is not None:
        return prepared
    stored = tuple(check.recorded for check in checks)
    return replace(prepared, run=replace(prepared.run, preflight=stored))


def _not_shown_today(checks: list[HostCheck]) -> list[HostCheck]:
    """The checks without warnings about settings that were shown on this host today.

    Settings stay as they are for weeks. Load changes from run to run, so it is always shown.
    """
    settings = {
        check.check: check.value
        for check in checks
        if check.state == "warning" and check.group != "load"
    }
    hidden = settings.keys() - new_today(settings)
    return [check for check in checks if check.check not in hidden]


def new_today(notes: Mapping[str, str]) -> frozenset[str]:
    """The keys of notes whose text was not shown on this host today; from now on it was.

    Args:
        notes: Texts by a key; a text that changes is new.
    """
    file, today = environments.cache_dir() / _SHOWN, clock.timestamp()[:10]
    try:
        shown = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError):
        shown = {}
    if not isinstance(shown, dict) or shown.get("day") != today:
        shown = {"day": today}
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        atomic_write.put(file, json.dumps({**shown, **notes}).encode())
    return frozenset(key for key, text in notes.items() if shown.get(key) != text)

"""Measure on many hosts from a script or a notebook."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from corebound.api.arguments import checked
from corebound.api.reporter import CallReporter
from corebound.fleet.status import FleetStatus
from corebound.records.jsonl import RECORDS
from corebound.workflow import fleet as workflow
from corebound.workflow.fleet import CollectResult, FleetRequest


class Fleet:
    """The hosts of a fleet file; each method does what `corebound fleet` and its name does.

    The methods raise `CoreboundError` if the fleet file, a scenario or the commit is invalid, there
    is no plan, or the engine cannot be reached.
    """

    @functools.partial(checked, name="Fleet")
    def __init__(
        self,
        file: str | PathLike[str],
        *,
        folder: str | PathLike[str] = workflow.FOLDER,
        round_name: str | None = None,
        notify: Callable[[str], object] | None = None,
    ) -> None:
        """Name the fleet file; nothing is read yet.

        Args:
            file: The fleet file.
            folder: The folder of the plans of all fleets.
            round_name: The round, or the id of the plan; default: what was planned last.
            notify: Called with each line about the progress; `print` shows them.
        """
        self._request = FleetRequest(file=Path(file), folder=Path(folder), round_name=round_name)
        self._notify = CallReporter(notify).notify

    @checked
    def plan(self, round_name: str = "1") -> dict[str, Any]:
        """Freeze what each host measures.

        Args:
            round_name: The name of this repetition, such as the date of a night.

        Returns:
            The plan, as `corebound fleet plan --json` prints it.
        """
        return workflow.plan_fleet(self._request, round_name, self._notify).document

    @checked
    def run(self, *, detach: bool = False) -> FleetStatus:
        """Measure what the plan has not measured yet, and wait for it; plans first if necessary.

        Args:
            detach: Whether to return when the engine has the jobs (Slurm, Kubernetes).

        Returns:
            The status of each shard; its `document` is what `corebound fleet run --json` prints.
        """
        return self._run(again=False, detach=detach)

    @checked
    def resume(self, *, detach: bool = False) -> FleetStatus:
        """Measure what is missing, including shards that failed or were cancelled; as `run`."""
        return self._run(again=True, detach=detach)

    def _run(self, *, again: bool, detach: bool) -> FleetStatus:
        plan_folder = workflow.open_or_plan(self._request, self._notify)
        return workflow.run_fleet(plan_folder, self._notify, again=again, detach=detach)

    def status(self) -> FleetStatus:
        """What is measured, what is missing, and why."""
        return workflow.status_of_fleet(self._request.open())

    @checked
    def collect(
        self,
        *,
        records: str | PathLike[str] = RECORDS,
        copied: Sequence[str | PathLike[str]] = (),
    ) -> CollectResult:
        """Merge the records of all hosts into one folder. Collecting twice changes nothing.

        Args:
            records: The folder of records; `corebound.load` reads it.
            copied: Copies of the working folders of hosts that cannot be reached.

        Returns:
            The files of each shard, and the status; `document` is what
            `corebound fleet collect --json` prints.
        """
        copies = tuple(Path(path) for path in copied)
        return workflow.collect_fleet(self._request.open(), Path(records), copies, self._notify)

    def cancel(self) -> int | None:
        """Stop all shards in flight.

        Returns:
            How many were cancelled; None if a `run` in another process stops its own.
        """
        return workflow.cancel_fleet(self._request.open())

    @checked
    def forget_host(self, host: str) -> str:
        """Forget which machine a host was; returns the host id that it had."""
        return workflow.forget_host(self._request.open(), host)

"""Slurm: one job array for each host, through submitit; each task is a shard."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from submitit import SlurmExecutor
from submitit.core.utils import FailedJobError

from corebound.errors import HostError
from corebound.fleet import agent
from corebound.fleet.engines import JobState, answer_of, no_answer
from corebound.fleet.file import FleetFile, HostEntry, Slurm, duration_s
from corebound.fleet.folder import AttemptState
from corebound.fleet.plan import Assignment

# States of squeue(1) in which a job has not ended.
_STATES: Mapping[str, AttemptState] = {
    "PENDING": "queued", "CONFIGURING": "queued", "REQUEUED": "queued", "SUSPENDED": "running",
    "RUNNING": "running", "COMPLETING": "running", "STAGE_OUT": "running", "SIGNALING": "running",
}  # fmt: skip
_SILENT = "Check the controller with `scontrol ping`, and try again. Jobs go on without us."
# Arrays of a cluster may be limited to 1,001 tasks (MaxArraySize).
_MOST_TASKS = 1000
_T = TypeVar("_T")


def connect(fleet: FleetFile, _hosts: Sequence[str], files: Path) -> SlurmEngine:
    """Take Slurm's commands on this machine.

    Raises:
        HostError: There are none.
    """
    _slurm("sinfo", "--version")
    return SlurmEngine(fleet.slurm or Slurm(), files)


def _slurm(*command: str) -> str:
    """Run a command of Slurm and return its output."""
    return answer_of(
        command,
        of="Slurm",
        missing="Run this command on a login node of the cluster.",
        silent=_SILENT,
    )


def _carry_out(assignment: bytes, again: bool) -> bytes:  # noqa: FBT001
    """The task of an array; Slurm tells it which node it is on."""
    return agent.carry_out(assignment, host=os.environ.get("SLURMD_NODENAME", ""), again=again)


class SlurmEngine:
    """Job arrays: one for each host, exclusive, pinned to it, and never requeued elsewhere."""

    outlives_us = True
    one_at_a_time = False

    def __init__(self, section: Slurm, files: Path) -> None:
        """Take the options of jobs, and a folder that all nodes share."""
        self._section = section
        self._files = files

    def select(self, entry: HostEntry) -> Sequence[str]:
        """The nodes of a partition, or with features.

        Raises:
            HostError: There is none, or Slurm does not answer.
        """
        partition = ("--partition", entry.partition) if entry.partition else ()
        lines = _slurm(
            "sinfo", "--Node", "--noheader", *partition, "--format", "%N|%b"
        ).splitlines()
        wanted = {word for word in (entry.features or "").split("&") if word}
        names = {
            name
            for name, _, features in (line.strip().partition("|") for line in lines)
            if wanted <= set(features.split(","))
        }
        if not names:
            raise HostError(
                what=f"no node has {entry.features or entry.partition}.",
                where="sinfo",
                fix="Check `sinfo --Node --long`.",
            )
        return sorted(names)[: entry.count]

    def absent(self, hosts: Sequence[str]) -> Mapping[str, str]:
        """Nodes that Slurm does not know; jobs of one that is down wait for it."""
        lines = _slurm("sinfo", "--Node", "--noheader", "--format", "%N").split()
        return {host: f"Slurm has no node {host}" for host in hosts if host not in lines}

    def submit(
        self, assignments: Sequence[Assignment], *, again: bool
    ) -> Iterator[tuple[str, str]]:
        """Submit an array for each host; its tasks run one after the other."""
        agent.forget_failures(assignments)
        for host, tasks in groupby(assignments, key=lambda task: task.host):
            for some in _pieces(list(tasks)):
                executor = self._executor(host)
                try:
                    with executor.batch():
                        submitted = [
                            executor.submit(_carry_out, msgspec.json.encode(task), again)
                            for task in some
                        ]
                except (FailedJobError, subprocess.CalledProcessError, OSError) as error:
                    why = str(error).strip().splitlines()[-1]
                    raise no_answer("Slurm", why, where="sbatch", fix=_SILENT) from error
                for task, job in zip(some, submitted, strict=True):
                    yield task.shard, job.job_id

    def _executor(self, host: str) -> SlurmExecutor:
        executor = SlurmExecutor(folder=self._files)
        section = self._section
        options: dict[str, Any] = {
            "partition": section.partition,
            "account": section.account,
            "qos": section.qos,
            "constraint": section.constraint,
        }
        executor.update_parameters(
            **{name: value for name, value in options.items() if value is not None},
            job_name="corebound",
            time=max(1, duration_s(section.time_limit) // 60),
            nodes=1,
            nodelist=host,
            exclusive=True,
            array_parallelism=1,
            # A shard is a question about one host; whether to repeat it is ours to decide.
            additional_parameters={"no-requeue": True},
            # The measurement binds its own threads, to any CPU of the node.
            srun_args=["--cpu-bind=none"],
        )
        return executor

    def poll(self, jobs: Mapping[str, tuple[Assignment, str]]) -> Mapping[str, JobState]:
        """The state of jobs: the agent's report, else what squeue says."""
        reports = {shard: agent.report_of(task) for shard, (task, _) in jobs.items()}
        queue = _queue(job for _, job in jobs.values())
        answers = {}
        for shard, (_, job) in jobs.items():
            state, reason = queue.get(job, ("", ""))
            report = reports[shard]
            if state in _STATES:
                is_waiting = _STATES[state] == "queued" and reason not in {"None", ""}
                answers[shard] = JobState(
                    state=_STATES[state], reason=f"Slurm: {reason}" if is_waiting else ""
                )
            elif report is not None:
                answers[shard] = JobState(state="ended", report=report)
            else:
                ended = f"Slurm ended job {job}" + (f": {state}" if state else "")
                answers[shard] = JobState(state="lost", reason=ended)
        return answers

    def cancel(self, jobs: Mapping[str, tuple[Assignment, str]]) -> None:
        """Cancel jobs; what they have started ends with them."""
        if jobs:
            _slurm("scancel", *(job for _, job in jobs.values()))

    def close(self) -> None:
        """Nothing is open."""


def _pieces(items: Sequence[_T]) -> Iterator[Sequence[_T]]:
    for start in range(0, len(items), _MOST_TASKS):
        yield items[start : start + _MOST_TASKS]


def _queue(jobs: Iterable[str]) -> dict[str, tuple[str, str]]:
    """The state and the reason of those jobs that Slurm still knows, by their ids: ARRAY_TASK."""
    lines: list[str] = []
    # By id, not by user: somebody else of the team may have submitted them.
    for arrays in _pieces(sorted({job.partition("_")[0] for job in jobs})):
        selection = ("--array", "--states", "all", "--jobs", ",".join(arrays))
        try:
            lines += _slurm("squeue", "--noheader", *selection, "--format", "%i|%T|%r").splitlines()
        except HostError as error:
            # Some minutes after a job's end (MinJobAge), Slurm refuses to look for that one job.
            if "Invalid job id" not in error.what:
                raise
    rows = (line.strip().split("|", 2) for line in lines)
    return {row[0]: (row[1], row[2]) for row in rows if len(row) == 3}

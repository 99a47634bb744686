"""What is asked of Slurm, with a squeue that records its arguments."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from corebound.errors import HostError
from corebound.fleet.coordinator import assignment_of, fleet_of
from corebound.fleet.engines import JobState
from corebound.fleet.engines.slurm import SlurmEngine
from corebound.fleet.file import Slurm
from corebound.fleet.plan import Assignment
from support.fleets import a_plan, a_plan_folder

SQUEUE = """\
#!/bin/sh
echo "$@" >> {folder}/asked
cat {folder}/answer
cat {folder}/error >&2
exit $(cat {folder}/code)
"""


class Squeue:
    """A program with an answer, and the job ids that it was asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        (folder / "squeue").write_text(SQUEUE.format(folder=folder))
        (folder / "squeue").chmod(0o755)
        self.answer()

    def answer(self, out: str = "", error: str = "", code: int = 0) -> None:
        for name, content in (("answer", out), ("error", error), ("code", str(code))):
            (self._folder / name).write_text(content)

    def asked(self) -> list[list[str]]:
        calls = (self._folder / "asked").read_text().splitlines()
        return [call.partition("--jobs ")[2].split()[0].split(",") for call in calls]


@pytest.fixture
def squeue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Squeue:
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    return Squeue(tmp_path)


def poll(tmp_path: Path, *jobs: str) -> dict[str, JobState]:
    """The answers for jobs, by the name of the job."""
    folder = a_plan_folder(tmp_path, a_plan(hosts=[f"n{number}" for number in range(len(jobs))]))
    fleet = fleet_of(folder.plan)
    tasks: dict[str, tuple[Assignment, str]] = {}
    for job, shard in zip(jobs, folder.plan.shards, strict=True):
        task = assignment_of(folder, fleet, shard)
        tasks[shard.id] = replace(task, work=str(tmp_path / "work")), job
    answers = SlurmEngine(Slurm(), tmp_path).poll(tasks)
    return {tasks[shard][1]: answer for shard, answer in answers.items()}


def test_only_our_own_jobs_are_asked_for(tmp_path: Path, squeue: Squeue) -> None:
    squeue.answer("7_0|RUNNING|None\n8_[0]|PENDING|Priority\n8_0|PENDING|Resources\n")

    answers = poll(tmp_path, "7_0", "7_1", "8_0")

    assert {job: answer.state for job, answer in answers.items()} == {
        "7_0": "running", "7_1": "lost", "8_0": "queued",
    }  # fmt: skip
    assert squeue.asked() == [["7", "8"]]


def test_the_jobs_of_many_hosts_fit_the_command_line(tmp_path: Path, squeue: Squeue) -> None:
    jobs = [f"{10_000_000 + number}_0" for number in range(2_500)]

    poll(tmp_path, *jobs)

    assert [len(ids) for ids in squeue.asked()] == [1000, 1000, 500]
    assert [one for ids in squeue.asked() for one in ids] == [
        job.removesuffix("_0") for job in jobs
    ]


def test_a_job_that_slurm_has_forgotten_is_over(tmp_path: Path, squeue: Squeue) -> None:
    squeue.answer(error="slurm_load_jobs error: Invalid job id specified", code=1)

    assert poll(tmp_path, "7_0")["7_0"].state == "lost"


def test_a_controller_that_does_not_answer_ends_no_job(tmp_path: Path, squeue: Squeue) -> None:
    squeue.answer(error="slurm_load_jobs error: Unable to contact slurm controller", code=1)

    with pytest.raises(HostError, match="Unable to contact"):
        poll(tmp_path, "7_0")

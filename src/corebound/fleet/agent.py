"""The agent: carries out one shard on its host, through `corebound run` in a process of its own.

It measures nothing itself and returns no samples: a path and a digest. An engine may deliver a
shard more than once, or kill the agent at any moment. A shard that is done is not measured again,
and one that was interrupted resumes with the launches that it has.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from corebound import clock
from corebound.errors import CoreboundError, LaunchError
from corebound.fleet.folder import RecordFile, ReportState, ShardReport
from corebound.fleet.plan import Assignment
from corebound.fleet.source import check_out
from corebound.launch import die_with_parent
from corebound.launch.environments import cache_dir
from corebound.records import atomic_write
from corebound.text import one_line

# Names the host to an agent whose engine does not: by hand, or in a container.
HOST_VARIABLE = "COREBOUND_FLEET_HOST"

# What a measurement needs of the agent's environment. Everything else stays with the engine:
# Dask's nanny sets OMP_NUM_THREADS=1 and MALLOC_TRIM_THRESHOLD_ for its children, Slurm binds
# threads, and either would change what is measured.
_PASSED = frozenset(
    {
        "HOME", "LANG", "LANGUAGE", "LD_LIBRARY_PATH", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR",
        "TZ", "USER", "http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY",
        "NO_PROXY", "REQUESTS_CA_BUNDLE", "SSL_CERT_DIR", "SSL_CERT_FILE",
    }
)  # fmt: skip
_PASSED_PREFIXES = ("COREBOUND_", "LC_", "PIP_", "XDG_")

# Another measurement on the host ends some day; the engine's time limit ends the wait.
_WAIT_FOR_HOST = "24h"
_PID_FILE = "pid"
_MOST_REASON = 500
_CHUNK_BYTES = 1 << 20


def passed_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that a measurement gets of its agent's.

    >>> passed_environment({"PATH": "/bin", "OMP_NUM_THREADS": "1", "SLURM_JOB_ID": "7"})
    {'PATH': '/bin'}
    """
    return {
        name: value
        for name, value in environment.items()
        if name in _PASSED or name.startswith(_PASSED_PREFIXES)
    }


class _ShardFolder(NamedTuple):
    """A shard's folder on its host, below that of the plan's source, which shards share."""

    shard: Path

    @property
    def host(self) -> Path:
        return self.shard.parent

    @property
    def records(self) -> Path:
        return self.shard / "records"

    @property
    def report(self) -> Path:
        return self.shard / "report.json"

    @property
    def source(self) -> Path:
        return self.host / "source"


def place(assignment: Assignment) -> Path:
    """The folder of a shard on its host.

    Hosts may share a file system, so the host is part of the path.
    """
    work = Path(assignment.work) if assignment.work else cache_dir() / "fleet"
    return work / assignment.plan / assignment.host / assignment.shard


def carry_out(
    assignment: bytes, *, host: str, bundle: bytes | None = None, again: bool = False
) -> bytes:
    """Carry out one shard; this is the function that an engine calls.

    Args:
        assignment: The assignment, as JSON.
        host: The engine's name for this host.
        bundle: The content of the bundle, where this host cannot read its path.
        again: Whether to resume although an earlier agent reported a failure.

    Returns:
        A `ShardReport`, as JSON.
    """
    task = msgspec.json.decode(assignment, type=Assignment)
    return msgspec.json.encode(carry_out_shard(task, host, bundle, again=again))


def needs_bundle(assignment: bytes) -> bool:
    """Whether this host has neither the commit nor a path to its bundle."""
    task = msgspec.json.decode(assignment, type=Assignment)
    source = _ShardFolder(place(task)).source
    return not (source.exists() or Path(task.bundle).is_file())


def carry_out_shard(
    task: Assignment, host: str, bundle: bytes | None = None, *, again: bool
) -> ShardReport:
    """Carry out one shard, as `carry_out`."""
    if host != task.host:
        reason = f"it is for {task.host}, and this host is {host}"
        return _report(task, "refused", reason, host=host)
    folder = _ShardFolder(place(task))
    try:
        atomic_write.make_folder(folder.shard)
        with _exclusive(folder.shard / "lock"):
            before = read_report(folder.report)
            if before is not None and _is_final(before, again=again):
                # Somebody may have deleted the plan, and made the same one with another key.
                signed = before.signed(task.key)
                return before if signed == before else _kept(signed, folder)
            # An agent that is killed now leaves no report, rather than an old one.
            folder.report.unlink(missing_ok=True)
            return _kept(_measure(task, folder, bundle), folder)
    except CoreboundError as error:
        return _report(task, "failed", f"{error.where}: {error.what}")
    except OSError as error:
        return _report(task, "failed", f"{error.filename or folder.shard}: {error.strerror}")


def _kept(report: ShardReport, folder: _ShardFolder) -> ShardReport:
    """The report, which is on the disk when this returns."""
    atomic_write.put_durably(folder.report, msgspec.json.encode(report))
    return report


def report_of(task: Assignment) -> ShardReport | None:
    """The report of a shard whose host shares a file system with us; None if there is none yet."""
    return read_report(_ShardFolder(place(task)).report)


def forget_failures(tasks: Iterable[Assignment]) -> None:
    """Remove reports of failures before shards are delivered again, on a shared file system."""
    for task in tasks:
        report = report_of(task)
        if report is not None and report.state != "done":
            _ShardFolder(place(task)).report.unlink(missing_ok=True)


def read_report(file: Path) -> ShardReport | None:
    """The report of a shard; None if there is none, or it is damaged."""
    try:
        return msgspec.json.decode(atomic_write.read(file), type=ShardReport)
    except (OSError, msgspec.DecodeError, ValueError, RecursionError):
        # The last two are of bytes that are not UTF-8, and of values nested thousands deep.
        return None


def _is_final(report: ShardReport, *, again: bool) -> bool:
    """Whether a shard has failed or is done, and its records are as they were reported."""
    if report.state == "failed":
        return not again
    return report.state == "done" and all(
        record == describe_records(Path(record.path)) for record in report.records
    )


def describe_records(file: Path) -> RecordFile | None:
    """The path, size and hash of a file; None if it cannot be read."""
    digest, size_bytes = hashlib.sha256(), 0
    try:
        with atomic_write.opened(file) as stream:
            while chunk := stream.read(_CHUNK_BYTES):
                digest.update(chunk)
                size_bytes += len(chunk)
    except OSError:
        return None
    return RecordFile(path=str(file), sha256=digest.hexdigest(), size_bytes=size_bytes)


def _report(
    task: Assignment,
    state: ReportState,
    reason: str = "",
    *,
    host: str | None = None,
    records: tuple[RecordFile, ...] = (),
) -> ShardReport:
    report = ShardReport(
        shard=task.shard,
        host=host or task.host,
        state=state,
        reason=one_line(reason)[:_MOST_REASON],
        records=records,
        ended_at=clock.timestamp(),
    )
    return report.signed(task.key)


@contextmanager
def _exclusive(file: Path) -> Iterator[None]:
    """Hold a shard: a second delivery waits for the first, and then returns its report."""
    with file.open("ab") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def _measure(task: Assignment, folder: _ShardFolder, bundle: bytes | None) -> ShardReport:
    _check_out(task, folder, bundle)
    suite = folder.source / task.source.folder
    log = folder.shard / "log"
    _make_environments(task, suite, log)
    completed = _corebound(_run_arguments(task, folder), suite, log)
    records = tuple(
        described
        for file in sorted(folder.records.glob("*/*.jsonl"))
        if (described := describe_records(file)) is not None
    )
    ending = _ending(completed.out)
    if ending not in {"complete", "out of time"} or not records:
        return _report(task, "failed", completed.reason(log), records=records)
    reason = "" if completed.code == 0 else completed.reason(log)
    if ending == "out of time":
        reason = "the budget ran out before every launch was made"
    return _report(task, "done", reason, records=records)


def _check_out(task: Assignment, folder: _ShardFolder, bundle: bytes | None) -> None:
    """Clone the planned commit, once for each plan and host."""
    with _exclusive(folder.host / "source.lock"):
        if folder.source.is_dir():
            return
        data = bundle if bundle is not None else _bundle(task)
        if hashlib.sha256(data).hexdigest() != task.source.sha256:
            raise LaunchError(
                what="the bundle of the commit is damaged.",
                where=task.bundle,
                fix="Plan again with `corebound fleet plan`.",
            )
        copy, fresh = folder.host / "source.bundle", folder.host / "source.new"
        copy.write_bytes(data)
        check_out(copy, task.commit, fresh)
        copy.unlink()
        fresh.replace(folder.source)


def _bundle(task: Assignment) -> bytes:
    try:
        return atomic_write.read(Path(task.bundle))
    except OSError as error:
        raise LaunchError(
            what=f"the bundle of the commit cannot be read here: {error.strerror}.",
            where=task.bundle,
            fix="Put the plan's folder on a file system that all hosts share.",
        ) from error


def _make_environments(task: Assignment, suite: Path, log: Path) -> None:
    """Make the scenario's environments; `corebound environment make` makes each only once."""
    if not any(task.scenario.environments.values()):
        return
    wheels = ("--wheelhouse", task.wheelhouse) if task.wheelhouse else ()
    arguments = ("environment", "make", "--for", task.scenario.path, *wheels)
    completed = _corebound(arguments, suite, log)
    if completed.code != 0:
        raise LaunchError(
            what=f"its environments could not be made: {completed.reason(log)}",
            where=task.scenario.path,
            fix="Make them by hand on that host.",
        )


def _run_arguments(task: Assignment, folder: _ShardFolder) -> tuple[str, ...]:
    labels = {**task.labels, "fleet-plan": task.plan, "fleet-shard": task.shard}
    return (
        "run", task.scenario.path, "--resume", "--records", str(folder.records), "--json",
        "--seed", str(task.seed), "--wait", _WAIT_FOR_HOST, "--committed",
        *(("--profile", task.profile) if task.profile else ()),
        *(word for pattern in task.only for word in ("--only", pattern)),
        *(("--launches", str(task.launches)) if task.launches else ()),
        *(("--budget", f"{task.budget_s}s") if task.budget_s else ()),
        *(word for name, value in labels.items() for word in ("--label", f"{name}={value}")),
    )  # fmt: skip


class _Completed(NamedTuple):
    code: int
    out: str
    errors: str

    def reason(self, log: Path) -> str:
        """Why it did not succeed, in one line."""
        if self.code < 0:
            return f"signal {-self.code} ended `corebound`; see {log}"
        lines = [line for line in self.errors.splitlines() if line.strip()]
        return f"exit code {self.code}: {' '.join(lines[-2:])}" if lines else f"code {self.code}"


def _corebound(arguments: tuple[str, ...], suite: Path, log: Path) -> _Completed:
    """Run corebound in a process group of its own, which ends when the agent does."""
    command = die_with_parent.wrap((sys.executable, "-P", "-m", "corebound", *arguments))
    with log.open("ab") as errors:
        began = errors.tell()
        process = subprocess.Popen(
            command,
            cwd=suite,
            env=passed_environment(os.environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,
        )
        pid_file = log.with_name(_PID_FILE)
        try:
            pid_file.write_text(str(process.pid), encoding="ascii")
            out, _ = process.communicate()
        except BaseException:
            with suppress(ProcessLookupError):
                process.terminate()
            process.wait()
            raise
        finally:
            pid_file.unlink(missing_ok=True)
    with log.open("rb") as stream:
        stream.seek(began)
        said = stream.read().decode(errors="replace")
    return _Completed(process.returncode, out.decode(errors="replace"), said)


def _ending(out: str) -> str:
    try:
        return str(json.loads(out)["ending"])
    except (ValueError, KeyError, TypeError):
        return ""


def stop(assignment: bytes) -> None:
    """End the run of a shard on this host; its agent then reports a failure.

    The run ends its workers itself, and keeps the launches that it has recorded.
    """
    file = place(msgspec.json.decode(assignment, type=Assignment)) / _PID_FILE
    with suppress(OSError, ValueError):
        pid = int(file.read_text(encoding="ascii"))
        # A file that an agent killed by force has left may name another process by now.
        if b"corebound" in Path(f"/proc/{pid}/cmdline").read_bytes():
            os.kill(pid, signal.SIGTERM)


def read_chunk(path: str, offset: int) -> bytes:
    """A piece of a file of records on this host, for collectors without its file system."""
    with atomic_write.opened(Path(path)) as stream:
        stream.seek(offset)
        return stream.read(_CHUNK_BYTES)

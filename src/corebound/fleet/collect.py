"""Merge the records of a fleet into one folder, by content.

A file may arrive twice, half copied, damaged, or from a host that claims to be another. Whatever
happens, no launch is lost and none counts twice: files only grow, so of two versions of one file
the longer one replaces the shorter one if it begins with it, and otherwise neither is touched.
"""

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

from msgspec import Struct

from corebound.errors import CoreboundError, InputError
from corebound.fleet.folder import RecordFile
from corebound.fleet.plan import Plan, Shard
from corebound.records import atomic_write, codec, jsonl
from corebound.records.run_record import Run
from corebound.text import one_line

Merge = Literal["new", "same", "longer", "shorter"]
# A run of a night is a few megabytes. A larger file is none of ours, and would fill the memory.
MOST_BYTES = 1 << 30


class RefusedError(Exception):
    """Records that may not be merged; the message says why."""


def checked(record: RecordFile, data: bytes | None, host: str) -> bytes:
    """A file, if it is what its agent reported.

    Args:
        data: The file's content; None if it cannot be reached.

    Raises:
        RefusedError: It is not: it was copied in part, or changed.
    """
    if data is None:
        raise RefusedError(f"{record.path} on {host} cannot be read from here")
    if hashlib.sha256(data).hexdigest() == record.sha256:
        return data
    name = one_line(Path(record.path).name)
    if len(data) < record.size_bytes:
        raise RefusedError(
            f"{name} is half copied: {len(data):,} of {record.size_bytes:,} bytes have arrived"
        )
    raise RefusedError(f"{name} is not the file that its agent reported: the digests differ")


def check_run(
    data: bytes,
    plan: Plan,
    shard: Shard,
    host_ids: Mapping[str, str],
    owners: Mapping[str, str],
) -> Run:
    """Check that a file holds the records of a shard, of the host that it is for.

    Args:
        host_ids: The ids that the fleet's hosts have shown before, by their names.
        owners: The host of each id, also of those that are forgotten but in this plan's records.

    Raises:
        RefusedError: It does not.
    """
    if len(data) > MOST_BYTES:
        raise RefusedError(f"the file is larger than {MOST_BYTES:,} bytes")
    try:
        run = codec.decode_run(data.partition(b"\n")[0])
    except codec.UnreadableError as error:
        raise RefusedError(f"the file does not begin with a run: {one_line(str(error))}") from None
    if run.labels.get("fleet-shard") != shard.id:
        raise RefusedError(f"its records are of another shard than {shard.id}")
    expected = host_ids.get(shard.host)
    if expected is not None and expected != run.host.id:
        raise RefusedError(
            f"{shard.host} was {expected} and now is {run.host.id}: its machine, machine-id or CPUs"
            f" have changed. To accept it, run `corebound fleet hosts forget FILE {shard.host}` and"
            " collect again"
        )
    owner = owners.get(run.host.id, shard.host)
    if owner != shard.host:
        raise RefusedError(
            f"{shard.host} claims the id {run.host.id}, which belongs to {owner}. If both were"
            " cloned from one image, give each its own /etc/machine-id and measure a new round."
            f" Then, or if {owner} was renamed, run `corebound fleet hosts forget FILE {owner}`"
        )
    _check_contents(run, plan, shard)
    return run


def _check_contents(run: Run, plan: Plan, shard: Shard) -> None:
    scenario = plan.scenario_of(shard)
    if [source.sha256 for source in run.scenarios] != [scenario.sha256]:
        raise RefusedError("its scenario is not the planned one")
    commit = None if run.commit is None else run.commit.sha
    if commit is not None and commit != plan.commit.sha:
        raise RefusedError(f"its commit is {commit[:10]}, and {plan.commit.name} was planned")
    for lock in run.environments:
        planned = scenario.environments.get(lock.name)
        if planned and planned != lock.sha256:
            raise RefusedError(f"its environment `{one_line(lock.name)}` is not the planned one")


def merge(data: bytes, run: Run, records: Path) -> tuple[Path, Merge]:
    """Merge a file into the folder of records, in one step.

    Args:
        data: The file's content, which `check_run` has accepted.

    Returns:
        The file, and how it compares with what was there.

    Raises:
        RefusedError: There is another file of that run, and neither continues the other.
        InputError: The file cannot be written; what was there remains.
    """
    file = jsonl.file_of(run, records)
    complete = data[: data.rfind(b"\n") + 1]
    try:
        present = atomic_write.read(file)
    except FileNotFoundError:
        present = None
    except OSError as error:
        raise _unwritable(file, error) from error
    if present is not None:
        kept = present[: present.rfind(b"\n") + 1]
        if kept == complete:
            return file, "same"
        if kept.startswith(complete):
            return file, "shorter"
        if not complete.startswith(kept):
            raise RefusedError(f"{file.name} is already there with other launches")
    try:
        atomic_write.put_durably(file, complete)
    except OSError as error:
        raise _unwritable(file, error) from error
    return file, "new" if present is None else "longer"


def _unwritable(file: Path, error: OSError) -> CoreboundError:
    return InputError(
        what=f"the records cannot be written: {error.strerror}.",
        where=str(file),
        fix="Free some space, then collect again. What is collected stays.",
    )


class Collected(Struct, frozen=True, kw_only=True):
    """What became of a shard's files of records.

    Attributes:
        files: The merged files, below the folder of records.
        merges: How each compares with what was there.
        host_id: The host's id; None if nothing was merged.
        problem: Why files were refused; empty if none was.
    """

    files: tuple[str, ...]
    merges: tuple[Merge, ...]
    host_id: str | None
    problem: str = ""


def collect_shard(
    plan: Plan,
    shard: Shard,
    *,
    files: tuple[RecordFile, ...],
    read: Callable[[RecordFile], bytes | None],
    records: Path,
    host_ids: Mapping[str, str],
    owners: Mapping[str, str],
) -> Collected:
    """Merge the files of one shard.

    Args:
        files: Its files, as its agent reported them.
        read: Reads one of them; None if it cannot be reached.
        host_ids: The ids that the fleet's hosts have shown before.
        owners: As of `check_run`.

    Raises:
        InputError: The folder of records cannot be written.
    """
    names: list[str] = []
    merges: list[Merge] = []
    host_id: str | None = None
    try:
        for record in files:
            data = checked(record, read(record), shard.host)
            run = check_run(data, plan, shard, host_ids, owners)
            file, how = merge(data, run, records)
            names.append(str(file.relative_to(records)))
            merges.append(how)
            host_id = run.host.id
    except RefusedError as error:
        return Collected(
            files=tuple(names), merges=tuple(merges), host_id=host_id, problem=one_line(str(error))
        )
    return Collected(files=tuple(names), merges=tuple(merges), host_id=host_id)

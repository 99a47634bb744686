"""A model file of the user's: whether it can be one, and what identifies its content."""

from __future__ import annotations

import hashlib
from pathlib import Path

from corebound.worker.workload import WorkloadError

# What a file has that Git LFS did not download.
_POINTER = b"version https://git-lfs"
_DIGITS = 12
_BLOCK = 1 << 20


def require(path: Path, *, begins: bytes, kind: str) -> None:
    """Check that a file exists, and that it begins as files of its format do.

    Args:
        begins: The first bytes of its format; empty if files of it may begin with any.
        kind: What it should be, with the ending of such files: `a model in GGUF (.gguf)`.

    Raises:
        WorkloadError: it is missing, cannot be read, or is something else.
    """
    try:
        with path.open("rb") as file:
            start = file.read(len(_POINTER))
    except OSError as error:
        raise WorkloadError(
            what=f"the model file {path} cannot be read: {error.strerror}.",
            fix="Write its path in `model`, relative to the scenario file.",
        ) from None
    if start == _POINTER:
        raise WorkloadError(
            what=f"{path} is only a pointer of Git LFS.", fix="Download it with `git lfs pull`."
        )
    if not start.startswith(begins) or not start:
        raise WorkloadError(
            what=f"{path} is not {kind}: it begins with {start[:8]!r}.",
            fix="Convert the model to this format, or name another file in `model`.",
        )


def version(path: Path) -> dict[str, str]:
    """The file as an entry among a worker's versions: its name and a digest of its content."""
    digest = hashlib.sha256()
    # Such files are larger than memory may be; file_digest needs Python 3.11.
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return {"model": f"{path.name} {digest.hexdigest()[:_DIGITS]}"}

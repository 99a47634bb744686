"""What a worker of any server reads from its environment, and the report that it writes."""

from __future__ import annotations

import argparse
import os
import platform
import tempfile
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from corebound.worker import protocol


def options(description: str | None) -> tuple[Path, int, int]:
    """The model's file, the port and the number of workers that a server's program is given."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--port-file", type=Path, required=True)
    parser.add_argument("--workers", type=int, required=True)
    given = parser.parse_args()
    return given.model, int(given.port_file.read_text(encoding="ascii")), given.workers


def requested_threads() -> int | None:
    """The number of threads that the cell requests; None leaves the framework's default."""
    threads = os.environ.get(protocol.SERVED_THREADS)
    return int(threads) if threads else None


def prepare(adapter: Any) -> None:
    """Have a framework's adapter set the requested threads, before a model is loaded."""
    adapter.prepare(seed=0, intra_op=requested_threads(), inter_op=None)


def report(
    described: Mapping[str, Any], *, work: Mapping[str, float], packages: Sequence[str] = ()
) -> None:
    """Report the worker's threads and environment in a file named by its process id.

    The runner cannot query a worker of a server, so the worker reports on its own. The file
    is written atomically.

    Args:
        described: What the framework's adapter describes; it leaves out what it does not know.
        work: The work of one request by unit.
        packages: Packages whose versions are reported, besides those of the framework and
            of the server.
    """
    folder = Path(os.environ[protocol.SERVED_REPORTS])
    versions = dict(described["versions"])
    for name in (os.environ.get(protocol.SERVED_BY, ""), *packages):
        if name:
            versions[name] = metadata.version(name)
    ready = protocol.Ready(
        threads_used=described.get("threads_used"),
        inter_op_used=described.get("inter_op_used"),
        python=platform.python_version(),
        versions=versions,
        blas=described.get("blas"),
        environment={
            name: value for name, value in os.environ.items() if name.startswith(protocol.STEERING)
        },
        work=dict(work),
        pins_threads=described.get("pins_threads", False),
    )
    with tempfile.NamedTemporaryFile(dir=folder, delete=False) as stream:
        stream.write(protocol.encode(ready))
    Path(stream.name).rename(folder / f"{os.getpid()}.json")

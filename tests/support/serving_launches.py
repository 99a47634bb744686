"""Launches of real servers, without a run around them."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import corebound
from corebound.launch.launch import LaunchResult
from corebound.launch.supervisor_client import Supervision
from corebound.runner.launcher import serving_order
from corebound.serving.launch_spec import ServingOrder
from corebound.serving.session import serve
from support.made_environments import planned

Serve = Callable[..., LaunchResult]


def an_order(
    server: str,
    scratch: Path,
    *,
    iterations: int = 40,
    timeout_s: float = 120.0,
    parameters: Mapping[str, Any],
    **settings: Any,
) -> ServingOrder:
    """What launches a server of a small network, two workers of it."""
    (scratch / "launch").mkdir()
    return serving_order(
        planned(
            server,
            workload="image-serving",
            workers=2,
            parameters={"model": "resnet18", "image": 64, **parameters},
            measure={
                "iterations": iterations,
                "warmup": {"iterations": 8},
                "timeout_s": timeout_s,
            },
            **settings,
        ),
        scratch / "library",
        scratch / "launch",
    )


def a_scratch(folder: Path) -> Path:
    """A run's folder, with the library that holds the package and nothing else."""
    library = folder / "run" / "library"
    library.mkdir(parents=True)
    (library / "corebound").symlink_to(Path(corebound.__file__).parent)
    return folder / "run"


def serving(scratch: Path, supervision: Supervision) -> Serve:
    """What launches one server; `change` may spoil its order, `tick` disturb it as it works."""

    def served(
        *,
        server: str = "torchserve",
        iterations: int = 40,
        change: Callable[[ServingOrder], ServingOrder] = lambda order: order,
        tick: Callable[[], None] = lambda: None,
        timeout_s: float = 120.0,
        parameters: Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> LaunchResult:
        order = an_order(
            server,
            scratch,
            iterations=iterations,
            timeout_s=timeout_s,
            parameters=parameters or {"concurrency": 4},
            **settings,
        )
        outcome = serve(change(order), supervision, tick)
        shutil.rmtree(scratch / "launch")
        return outcome

    return served


def words_of(pid: int) -> bytes:
    """A process's command line; empty where it is gone."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""

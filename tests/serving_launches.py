"""Launches of real servers, without a run around them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from corebound.launch.launch import Outcome
from corebound.planning.assemble import Means, Planned, assemble
from corebound.planning.expand import expand
from corebound.planning.load import load_document
from corebound.runner.serving import serving_order
from corebound.serving.order import ServingOrder
from corebound.topology import probe
from made_environments import python_of

Serve = Callable[..., Outcome]


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


def planned(server: str, **document: Any) -> Planned:
    """The only cell of a scenario that serves, on this host."""
    python = python_of(server)
    scenario = load_document(
        {
            "schema": 1,
            "name": "s",
            "title": "S",
            "question": "Q?",
            "workload": "image-serving",
            "environment": server,
            "workers": 2,
            **document,
        },
        "s.yaml",
    )
    means = Means(
        topology=probe.live(),
        tools=frozenset({"taskset", "numactl", "java"}),
        pythons={server: str(python)},
    )
    (one,) = assemble(scenario, expand(scenario, "s"), means, folder="", profile=None, seed=1)
    return one


def words_of(pid: int) -> bytes:
    """A process's command line; empty where it is gone."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""

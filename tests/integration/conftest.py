"""What launches need, whatever is launched."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import corebound
from corebound.launch.launch import Outcome
from corebound.launch.supervise import Supervision
from corebound.serving.order import ServingOrder
from corebound.serving.session import serve
from serving_launches import Serve, an_order


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    """A run's folder, with the library that holds the package and nothing else."""
    library = tmp_path / "run" / "library"
    library.mkdir(parents=True)
    (library / "corebound").symlink_to(Path(corebound.__file__).parent)
    return tmp_path / "run"


@pytest.fixture
def supervision(scratch: Path) -> Iterator[Supervision]:
    """A supervisor of that run."""
    with Supervision(scratch) as supervision:
        yield supervision


@pytest.fixture
def served(scratch: Path, supervision: Supervision) -> Serve:
    """Launch one server; `change` may spoil its order, `tick` disturb it as it works."""

    def served(
        *,
        server: str = "torchserve",
        iterations: int = 40,
        change: Callable[[ServingOrder], ServingOrder] = lambda order: order,
        tick: Callable[[], None] = lambda: None,
        timeout_s: float = 120.0,
        parameters: Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> Outcome:
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

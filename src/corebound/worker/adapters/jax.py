"""JAX adapter: sets the seed, reports XLA's threads and versions, profiles operators."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jaxlib
import numpy as np

from corebound.worker import operator_table

# The kernel keeps 15 characters of a thread's name; XLA's pool calls its threads so.
_POOL_THREAD = "tf_XLAEigen"
# An operation that occurs again gets a number: `dot.3`.
_AGAIN = re.compile(r"(\.\d+)+$")


def prepare(*, seed: int, intra_op: int | None, inter_op: int | None) -> None:
    """Seed the standard library and NumPy; a JAX workload passes its own key.

    XLA reads the size of its pool from NPROC, which the runner sets. It creates the pool when
    the first array is made, and not before.
    """
    del intra_op, inter_op
    random.seed(seed)
    np.random.seed(seed)
    jax.config.update("jax_platforms", "cpu")


def describe() -> dict[str, Any]:
    """The versions in use, and the threads that exist in XLA's pool, counted by their name."""
    names = [(task / "comm").read_text().strip() for task in Path("/proc/self/task").iterdir()]
    return {
        "threads_used": names.count(_POOL_THREAD) or None,
        "versions": {"jax": jax.__version__, "jaxlib": jaxlib.__version__},
    }


def profile(step: Callable[[], object], iterations: int, folder: str) -> operator_table.Profile:
    """Run warm steps under JAX's profiler and tabulate the self time of XLA's operations.

    Args:
        step: The function called per iteration; it must wait for the result.
        iterations: The number of iterations to tabulate; one more runs before them.
    """
    with jax.profiler.trace(folder):
        for number in range(1 + iterations):
            with jax.profiler.StepTraceAnnotation(operator_table.OWN_STEP, step_num=number):
                step()
    (file,) = Path(folder).glob("**/*.xplane.pb")
    events = list(_events(file))
    marks = sorted(
        (begin, end) for name, _, _, begin, end in events if name == operator_table.OWN_STEP
    )
    spans = [
        operator_table.Span(type=_AGAIN.sub("", name), thread=thread, begin_ns=begin, end_ns=end)
        for name, is_operation, thread, begin, end in events
        if is_operation
    ]
    steps = operator_table.steps_of(marks[1:], spans)
    trace = Path(folder) / "trace.json"
    trace.write_text(operator_table.chrome_trace(steps))
    return operator_table.tabulate(steps, str(trace))


def _events(file: Path) -> Iterator[tuple[str, bool, int, int, int]]:
    """Name, whether XLA ran it as an operation, thread, start and end (in nanoseconds)."""
    data = jax.profiler.ProfileData.from_file(str(file))
    lines = itertools.chain.from_iterable(
        plane.lines for plane in data.planes if plane.name == "/host:CPU"
    )
    for thread, line in enumerate(lines, start=1):
        for event in line.events:
            is_operation = any(name == "hlo_op" for name, _ in event.stats)
            begin_ns = round(event.start_ns)
            yield event.name, is_operation, thread, begin_ns, begin_ns + round(event.duration_ns)

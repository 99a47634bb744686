"""TensorFlow adapter: sets the seed and thread counts, reports versions, profiles operators."""

from __future__ import annotations

import importlib
import itertools
import os
import random
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

# TensorFlow reads these variables when it loads. Suppress notices, but keep warnings, such as
# low memory, in the launch's log. Two lines about oneDNN are written before TensorFlow reads
# this level, and no setting suppresses them. The level does not affect measurements, and a
# value in the scenario's `env`, which is recorded, takes precedence.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
# Keras writes its settings when it loads; keep them out of the user's home folder.
os.environ.setdefault("KERAS_HOME", tempfile.gettempdir())

import tensorflow as tf

from corebound.worker.operator_table import (
    OWN_STEP,
    Profile,
    Span,
    chrome_trace,
    steps_of,
    tabulate,
    type_in_tensorflow,
)

# Workloads import `tf` from here, so that it is never loaded without these variables.
__all__ = ["describe", "prepare", "profile", "tf"]

# Name scopes that show the phase of operators: names that a workload may use, and those that
# TensorFlow gives to gradients and Keras to its optimizers.
_SCOPES = {
    "forward": {"forward"},
    "backward": {"backward"},
    "update": {
        "update", "adadelta", "adafactor", "adagrad", "adam", "adamax", "adamw", "ftrl", "lamb",
        "lion", "loss_scale_optimizer", "muon", "nadam", "rmsprop", "sgd",
    },
    "data": {"data"},
}  # fmt: skip
_GRADIENTS = {"gradient_tape", "gradients"}
_UPDATE = re.compile(r"(Resource)?(Sparse)?Apply[A-Z]")
# A scope that is entered again gets a numeric suffix.
_AGAIN = re.compile(r"_\d+$")
# The phase of operators whose name shows none; it may be any of the others.
_UNTOLD = "untold"


def prepare(*, seed: int, intra_op: int | None, inter_op: int | None) -> None:
    """Seed the generators of TensorFlow and NumPy, and set pool sizes if requested."""
    random.seed(seed)
    np.random.seed(seed)
    tf.random.set_seed(seed)
    if intra_op is not None:
        tf.config.threading.set_intra_op_parallelism_threads(intra_op)
    if inter_op is not None:
        tf.config.threading.set_inter_op_parallelism_threads(inter_op)


def describe() -> dict[str, Any]:
    """The version in use, and the pool sizes if they were set.

    TensorFlow reports neither its default pool sizes nor its BLAS.
    """
    return {
        "threads_used": tf.config.threading.get_intra_op_parallelism_threads() or None,
        "inter_op_used": tf.config.threading.get_inter_op_parallelism_threads() or None,
        "versions": {"tensorflow": tf.__version__},
    }


def profile(step: Callable[[], object], iterations: int, folder: str) -> Profile:
    """Run warm steps under TensorFlow's profiler and tabulate the self time of operators.

    Args:
        step: The function called per iteration.
        iterations: The number of iterations to tabulate. One more runs before them, because
            the profiler's own first step is slower.
    """
    # Not imported at the top: its location varies between versions, which must not break timing.
    xplane_pb2 = importlib.import_module("tensorflow.tsl.profiler.protobuf.xplane_pb2")
    # Pass no options: TensorFlow 2.21 warns that it ignores them. By default, it traces
    # operators but no Python calls.
    tf.profiler.experimental.start(folder)
    for number in range(1 + iterations):
        with tf.profiler.experimental.Trace(OWN_STEP, step_num=number):
            step()
    tf.profiler.experimental.stop()
    (file,) = Path(folder).glob("**/*.xplane.pb")
    space = xplane_pb2.XSpace.FromString(file.read_bytes())
    events = list(_events(space))
    marks = sorted((begin_ns, end_ns) for name, *_, begin_ns, end_ns in events if name == OWN_STEP)
    phases = _phases({(name, type_) for name, type_, *_ in events if type_ is not None})
    spans = [
        Span(type=type_, thread=thread, begin_ns=begin_ns, end_ns=end_ns, phase=phases.get(name))
        for name, type_, thread, begin_ns, end_ns in events
        if type_ is not None
    ]
    steps = steps_of(marks[1:], spans)
    trace = Path(folder) / "trace.json"
    trace.write_text(chrome_trace(steps))
    return tabulate(steps, str(trace))


def _phases(operators: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The phase of each operator by name, or `untold`; empty without a gradient or update.

    In a graph, gradients and updates have their own scopes or types. Operators that share a
    scope with a differentiated operator belong to the forward pass. In eager mode there are no
    scopes, and only updates are recognized, by their type.
    """
    scopes_and_types = {name: (_scopes(name), type_) for name, type_ in operators}
    differentiated = {
        inner
        for scopes, _ in scopes_and_types.values()
        for outer, inner in itertools.pairwise(scopes[:-1])
        if outer in _GRADIENTS
    }
    phases = {
        name: _phase(scopes, type_) or ("forward" if scopes[0] in differentiated else _UNTOLD)
        for name, (scopes, type_) in scopes_and_types.items()
    }
    return phases if {"backward", "update"} & set(phases.values()) else {}


def _phase(scopes: Sequence[str], type_: str) -> str | None:
    if not _GRADIENTS.isdisjoint(scopes):
        return "backward"
    if _UPDATE.match(type_):
        return "update"
    outer_scopes = [_AGAIN.sub("", scope) for scope in scopes[:-1]]
    return next(
        (phase for phase, names in _SCOPES.items() if not names.isdisjoint(outer_scopes)), None
    )


def _scopes(name: str) -> list[str]:
    """The scopes of an operator, outermost first, followed by its own name without its type."""
    scopes = name.rpartition(":")[0].split("/")
    # A call that was not inlined precedes the scopes of the called function.
    return [scope for scope in scopes[:-1] if "PartitionedCall" not in scope] + scopes[-1:]


def _events(space: Any) -> Iterator[tuple[str, str | None, int, int, int]]:
    """Name, operator's type, thread, start and end (in nanoseconds) of all events on the host."""
    for plane in (plane for plane in space.planes if plane.name == "/host:CPU"):
        for thread, line in enumerate(plane.lines, start=1):
            for event in line.events:
                metadata = plane.event_metadata[event.metadata_id]
                begin_ns = line.timestamp_ns + event.offset_ps // 1000
                end_ns = begin_ns + event.duration_ps // 1000
                type_ = type_in_tensorflow(metadata.display_name, metadata.name)
                yield metadata.name, type_, thread, begin_ns, end_ns

"""TensorFlow: seed, threads, what is in use."""

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

# It reads these as it loads. Without its notices: a warning, such as that memory runs
# short, is for the launch's log. Two lines on oneDNN are written before TensorFlow looks
# at this, and no setting takes them away. It steers nothing that is measured, and a value
# of the scenario's `env`, which is recorded, wins.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
# Keras writes its settings at once, which is not to be in the user's home.
os.environ.setdefault("KERAS_HOME", tempfile.gettempdir())

import tensorflow as tf

from corebound.worker.operator_table import OWN_STEP, Span, chrome_trace, steps_of, tabulate
from corebound.worker.protocol import Profile

# Workloads take `tf` from here, so that nobody loads it without those variables.
__all__ = ["describe", "prepare", "profile", "tf"]

# Name scopes that tell what operators are for: what a workload may call its own, and
# those that TensorFlow gives gradients and Keras its optimizers.
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
# A scope that is entered again gets a number.
_AGAIN = re.compile(r"_\d+$")
# What no name tells; it may be any of the others.
_UNTOLD = "untold"


def prepare(*, seed: int, intra_op: int | None, inter_op: int | None) -> None:
    """Seed TensorFlow's generators, NumPy's too, and size its pools, where asked."""
    random.seed(seed)
    np.random.seed(seed)
    tf.random.set_seed(seed)
    if intra_op is not None:
        tf.config.threading.set_intra_op_parallelism_threads(intra_op)
    if inter_op is not None:
        tf.config.threading.set_inter_op_parallelism_threads(inter_op)


def describe() -> dict[str, Any]:
    """What is in use: versions, and the sizes of its pools where they were set.

    It does not say how large a pool of its own choice is, nor whose BLAS it is.
    """
    return {
        "threads_used": tf.config.threading.get_intra_op_parallelism_threads() or None,
        "inter_op_used": tf.config.threading.get_inter_op_parallelism_threads() or None,
        "versions": {"tensorflow": tf.__version__},
        "blas": None,
    }


def profile(step: Callable[[], object], iterations: int, folder: str) -> Profile:
    """Put warm steps under TensorFlow's profiler and tabulate the self time of operators.

    Args:
        step: What one iteration calls.
        iterations: How many to tabulate; one more is run before them, for the
            profiler's own first step is slower.
        folder: Where its files and the Chrome trace go.
    """
    # Not at the top: where it lies changes between versions, which measuring is not to feel.
    xplane_pb2 = importlib.import_module("tensorflow.tsl.profiler.protobuf.xplane_pb2")
    # Without options, of which TensorFlow 2.21 warns that it takes none; operators but no
    # Python calls are what it traces by itself.
    tf.profiler.experimental.start(folder)
    for number in range(1 + iterations):
        with tf.profiler.experimental.Trace(OWN_STEP, step_num=number):
            step()
    tf.profiler.experimental.stop()
    (written,) = Path(folder).glob("**/*.xplane.pb")
    space = xplane_pb2.XSpace.FromString(written.read_bytes())
    events = list(_events(space))
    marks = sorted(
        (begin_ns, end_ns) for name, _, _, begin_ns, end_ns in events if name == OWN_STEP
    )
    phases = _phases(
        {(name, type_) for name, shown, *_ in events if (type_ := _operator(name, shown))}
    )
    spans = [
        Span(type=type_, thread=thread, begin_ns=begin_ns, end_ns=end_ns, phase=phases.get(name))
        for name, shown, thread, begin_ns, end_ns in events
        if (type_ := _operator(name, shown)) is not None
    ]
    steps = steps_of(marks[1:], spans)
    trace = Path(folder) / "trace.json"
    trace.write_text(chrome_trace(steps))
    return tabulate(steps, str(trace))


def _operator(name: str, shown: str) -> str | None:
    """The type of the operator that an event is; None for whatever merely runs operators.

    In a graph an operator is named `place:Type` and shown as `Type`. Outside of one
    it is `EagerLocalExecute: Type`, as is a whole function, whose name begins with `__`.
    """
    if shown and name.endswith(f":{shown}"):
        return shown
    eager, _, type_ = name.partition("EagerLocalExecute: ")
    return type_ if not eager and type_ and not type_.startswith("__") else None


def _phases(operators: Iterable[tuple[str, str]]) -> dict[str, str]:
    """What each operator is for, as far as names tell; nothing if no gradient or update is seen.

    In a graph, gradients and updates lie in scopes or have types of their own, and what
    shares a scope with something that has gradients is of the forward pass. Outside of
    one there are no scopes, and only updates are told, by their type.

    Args:
        operators: Name and type of each event that is one.

    Returns:
        The phase by name: `untold` for those that might be of any.
    """
    placed = {name: (_scopes(name), type_) for name, type_ in operators}
    differentiated = {
        after
        for scopes, _ in placed.values()
        for before, after in itertools.pairwise(scopes[:-1])
        if before in _GRADIENTS
    }
    found = {
        name: _phase(scopes, type_) or ("forward" if scopes[0] in differentiated else _UNTOLD)
        for name, (scopes, type_) in placed.items()
    }
    return found if {"backward", "update"} & set(found.values()) else {}


def _phase(scopes: Sequence[str], type_: str) -> str | None:
    if not _GRADIENTS.isdisjoint(scopes):
        return "backward"
    if _UPDATE.match(type_):
        return "update"
    within = [_AGAIN.sub("", scope) for scope in scopes[:-1]]
    return next((phase for phase, known in _SCOPES.items() if not known.isdisjoint(within)), None)


def _scopes(name: str) -> list[str]:
    """The scopes of an operator, from the outermost, and last its own name, without its type."""
    scopes = name.rpartition(":")[0].split("/")
    # A call that was not inlined stands before the scopes of what it calls.
    return [scope for scope in scopes[:-1] if "PartitionedCall" not in scope] + scopes[-1:]


def _events(space: Any) -> Iterator[tuple[str, str, int, int, int]]:
    """Name, type, thread, begin and end in nanoseconds of all that the host did."""
    for plane in (plane for plane in space.planes if plane.name == "/host:CPU"):
        for thread, line in enumerate(plane.lines, start=1):
            for event in line.events:
                named = plane.event_metadata[event.metadata_id]
                begin_ns = line.timestamp_ns + event.offset_ps // 1000
                end_ns = begin_ns + event.duration_ps // 1000
                yield named.name, named.display_name, thread, begin_ns, end_ns

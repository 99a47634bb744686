"""llama.cpp adapter: opens models with the requested threads, reports versions, times operators.

Calls llama.cpp's C interface through ctypes, in the library that the package xllamacpp holds.
"""

from __future__ import annotations

import ctypes
import os
import random
import sys
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import xllamacpp.xllamacpp
from numpy.typing import NDArray

from corebound.worker.native_threads import PoolCounter
from corebound.worker.operator_table import Profile, Span, steps_of, tabulate
from corebound.worker.workload import WorkloadError

_LIBRARY = ctypes.CDLL(xllamacpp.xllamacpp.__file__)
# Created when this module is imported, which is before anything computes.
_POOL = PoolCounter()


class _ModelParams(ctypes.Structure):
    """`llama_model_params` of llama.h; its defaults are passed on unchanged."""

    _fields_: ClassVar[list[Any]] = [
        ("pointers", ctypes.c_void_p * 2),
        ("numbers", ctypes.c_int32 * 5),
        ("more_pointers", ctypes.c_void_p * 4),
        ("switches", ctypes.c_bool * 6),
    ]


class _ContextParams(ctypes.Structure):
    """`llama_context_params` of llama.h."""

    _fields_: ClassVar[list[Any]] = [
        ("n_ctx", ctypes.c_uint32),
        ("n_batch", ctypes.c_uint32),
        ("n_ubatch", ctypes.c_uint32),
        ("n_seq_max", ctypes.c_uint32),
        ("limits", ctypes.c_uint32 * 3),
        ("n_threads", ctypes.c_int32),
        ("n_threads_batch", ctypes.c_int32),
        ("kinds", ctypes.c_int32 * 5),
        ("of_positions", ctypes.c_float * 8),
        ("cb_eval", ctypes.c_void_p),
        ("cb_eval_user_data", ctypes.c_void_p),
        ("type_k", ctypes.c_int32),
        ("type_v", ctypes.c_int32),
        ("moe_cache_size", ctypes.c_size_t),
        ("abort", ctypes.c_void_p * 2),
        ("switches", ctypes.c_bool * 6),
        ("samplers", ctypes.c_void_p),
        ("n_samplers", ctypes.c_size_t),
        ("ctx_other", ctypes.c_void_p),
    ]


class _Batch(ctypes.Structure):
    """`llama_batch` of llama.h."""

    _fields_: ClassVar[list[Any]] = [
        ("n_tokens", ctypes.c_int32),
        ("token", ctypes.c_void_p),
        ("embd", ctypes.c_void_p),
        ("pos", ctypes.c_void_p),
        ("n_seq_id", ctypes.c_void_p),
        ("seq_id", ctypes.c_void_p),
        ("logits", ctypes.c_void_p),
    ]


# GGML_MAX_N_THREADS of ggml.h.
_MOST_THREADS = 512


class _PoolParams(ctypes.Structure):
    """`ggml_threadpool_params` of ggml.h."""

    _fields_: ClassVar[list[Any]] = [
        ("cpumask", ctypes.c_bool * _MOST_THREADS),
        ("n_threads", ctypes.c_int32),
        ("prio", ctypes.c_int32),
        ("poll", ctypes.c_uint32),
        ("strict_cpu", ctypes.c_bool),
        ("paused", ctypes.c_bool),
    ]


_Log = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)
_OnNode = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, ctypes.c_bool, ctypes.c_void_p)
_POINTER, _INTEGER = ctypes.c_void_p, ctypes.c_int32
# What each function returns, and its arguments.
_SIGNATURES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "llama_backend_init": (None, ()),
    "llama_version": (ctypes.c_char_p, ()),
    "llama_log_set": (None, (_Log, _POINTER)),
    "llama_model_default_params": (_ModelParams, ()),
    "llama_context_default_params": (_ContextParams, ()),
    "llama_model_load_from_file": (_POINTER, (ctypes.c_char_p, _ModelParams)),
    "llama_model_get_vocab": (_POINTER, (_POINTER,)),
    "llama_vocab_n_tokens": (_INTEGER, (_POINTER,)),
    "llama_init_from_model": (_POINTER, (_POINTER, _ContextParams)),
    "llama_free": (None, (_POINTER,)),
    "llama_get_memory": (_POINTER, (_POINTER,)),
    "llama_memory_seq_rm": (ctypes.c_bool, (_POINTER, _INTEGER, _INTEGER, _INTEGER)),
    "llama_decode": (_INTEGER, (_POINTER, _Batch)),
    "llama_get_logits_ith": (ctypes.POINTER(ctypes.c_float), (_POINTER, _INTEGER)),
    "llama_state_get_size": (ctypes.c_size_t, (_POINTER,)),
    "llama_state_get_data": (ctypes.c_size_t, (_POINTER, _POINTER, ctypes.c_size_t)),
    "llama_state_set_data": (ctypes.c_size_t, (_POINTER, _POINTER, ctypes.c_size_t)),
    "llama_attach_threadpool": (None, (_POINTER, _POINTER, _POINTER)),
    "ggml_threadpool_params_default": (_PoolParams, (ctypes.c_int,)),
    "ggml_threadpool_new": (_POINTER, (ctypes.POINTER(_PoolParams),)),
    "ggml_op_desc": (ctypes.c_char_p, (_POINTER,)),
}
for _name, (_returned, _arguments) in _SIGNATURES.items():
    _function = getattr(_LIBRARY, _name)
    _function.restype, _function.argtypes = _returned, list(_arguments)

# The defaults of llama.h (sizes of the context and of batches, threads, and the types of the
# cache), by which a library with other structures is noticed.
_DEFAULTS = (512, 2048, 512, 1, 4, 4, 1, 1)
# GGML_TYPE_F32 of ggml.h.
_FLOAT32 = 0
_ERROR = 4
# Nodes of a graph that compute nothing.
_VIEWS = frozenset({b"NONE", b"RESHAPE", b"VIEW", b"PERMUTE", b"TRANSPOSE"})


def _write_error(level: int, text: bytes, _data: object) -> None:
    if level == _ERROR:
        sys.stderr.write(text.decode(errors="replace"))


_log = _Log(_write_error)


class _State:
    """What the request asked for, and the models that exist so far.

    llama.cpp has no settings of the process: each context has its own.
    """

    intra_op: int | None = None
    models: ClassVar[list[Model]] = []
    pins_threads: bool = False


class Model:
    """A model that is ready to compute texts with the requested number of threads.

    Prompts and generation have the same number (`-t` and `-tb` of llama.cpp's programs). By
    default it is 4, whatever the host has.
    """

    def __init__(
        self,
        path: Path,
        *,
        context: int,
        batch: int,
        pinned: bool = False,
        float32_cache: bool = False,
    ) -> None:
        """Load a model file.

        Args:
            path: The file, in the GGUF format.
            context: The tokens of each text that its cache holds.
            batch: The number of texts.
            pinned: Bind each thread to a CPU of its own, among those that the process may use
                (`--cpu-mask` and `--cpu-strict 1`).
            float32_cache: Whether the cache has float32 numbers; else float16, as by default.

        Raises:
            WorkloadError: the library is of another version, or it refuses the file.
        """
        _LIBRARY.llama_log_set(_log, None)
        _LIBRARY.llama_backend_init()
        self._batch = batch
        self._params = _context_params()
        self._params.n_ctx = context * batch
        self._params.n_batch = max(self._params.n_batch, context * batch)
        self._params.n_seq_max = batch
        if float32_cache:
            self._params.type_k = self._params.type_v = _FLOAT32
        if _State.intra_op is not None:
            self._params.n_threads = self._params.n_threads_batch = _State.intra_op
        self._model = _LIBRARY.llama_model_load_from_file(
            os.fsencode(path), _LIBRARY.llama_model_default_params()
        )
        if self._model is None:
            raise WorkloadError(
                what=f"llama.cpp cannot load {path.name}.", fix="See the launch's log."
            )
        vocabulary = _LIBRARY.llama_model_get_vocab(self._model)
        self.vocabulary = int(_LIBRARY.llama_vocab_n_tokens(vocabulary))
        self._pool = _pinned_pool(self._params.n_threads) if pinned else None
        _State.pins_threads = _State.pins_threads or pinned
        self._context = self._opened()
        self._cached = 0
        _State.models.append(self)

    def decode(self, tokens: NDArray[np.int64], begin: int) -> NDArray[np.float32]:
        """Put new tokens after the first `begin` of each text, and forget those behind.

        Args:
            tokens: batch×new.
            begin: How many tokens of each text to keep; no more than there are.

        Returns:
            The logits after the last token, batch×vocabulary.

        Raises:
            WorkloadError: llama.cpp reports an error, such as a full cache.
        """
        batch, new = tokens.shape
        if begin < self._cached:
            memory = _LIBRARY.llama_get_memory(self._context)
            _LIBRARY.llama_memory_seq_rm(memory, -1, begin, -1)
        token = tokens.astype(np.int32).ravel()
        position = np.tile(np.arange(begin, begin + new, dtype=np.int32), batch)
        text = np.repeat(np.arange(batch, dtype=np.int32), new)
        texts = np.ones_like(text)
        text_pointers = text.ctypes.data + 4 * np.arange(text.size, dtype=np.uint64)
        wanted = np.zeros(text.size, dtype=np.int8)
        wanted[new - 1 :: new] = 1
        arrays = (position, texts, text_pointers, wanted)
        fields = _Batch(
            token.size, token.ctypes.data, None, *(array.ctypes.data for array in arrays)
        )
        if (code := _LIBRARY.llama_decode(self._context, fields)) != 0:
            raise WorkloadError(
                what=f"llama_decode ended with {code}.", fix="See the launch's log."
            )
        self._cached = begin + new
        return np.stack([self._logits((number + 1) * new - 1) for number in range(batch)])

    def start_profiling(self, on_node: Any) -> None:
        """Open the context again, with a function that is called before and after each node."""
        size = _LIBRARY.llama_state_get_size(self._context)
        state = ctypes.create_string_buffer(size)
        _LIBRARY.llama_state_get_data(self._context, state, size)
        _LIBRARY.llama_free(self._context)
        self._on_node = on_node  # llama.cpp has only its address
        self._params.cb_eval = ctypes.cast(on_node, ctypes.c_void_p)
        self._context = self._opened()
        _LIBRARY.llama_state_set_data(self._context, state, size)

    def _opened(self) -> int:
        context = _LIBRARY.llama_init_from_model(self._model, self._params)
        if context is None:
            raise WorkloadError(
                what="llama.cpp cannot create a context.", fix="See the launch's log."
            )
        if self._pool is not None:
            _LIBRARY.llama_attach_threadpool(context, self._pool, self._pool)
        return int(context)

    def _logits(self, index: int) -> NDArray[np.float32]:
        pointer = _LIBRARY.llama_get_logits_ith(self._context, index)
        if not pointer:
            raise WorkloadError(
                what="the model gives no logits, so it does not generate text.",
                fix="Name a model that generates text, not one that embeds it.",
            )
        return np.ctypeslib.as_array(pointer, (self.vocabulary,)).copy()


def _context_params() -> _ContextParams:
    """The defaults of a context."""
    params: _ContextParams = _LIBRARY.llama_context_default_params()
    sizes = (params.n_ctx, params.n_batch, params.n_ubatch, params.n_seq_max)
    if (
        *sizes,
        params.n_threads,
        params.n_threads_batch,
        params.type_k,
        params.type_v,
    ) != _DEFAULTS:
        raise WorkloadError(
            what=f"xllamacpp {_version()} has another interface of llama.cpp.",
            fix="Install the version that environments/llama-cpp.txt names.",
        )
    return params


def _pinned_pool(threads: int) -> int:
    """A pool whose threads have a CPU each, in turn, of those that the process may use."""
    params: _PoolParams = _LIBRARY.ggml_threadpool_params_default(threads)
    for cpu in os.sched_getaffinity(0):
        params.cpumask[cpu] = True
    params.strict_cpu = True
    return int(_LIBRARY.ggml_threadpool_new(ctypes.byref(params)))


def prepare(*, seed: int, intra_op: int | None, inter_op: int | None) -> None:
    """Seed NumPy's generators; models get the thread count."""
    del inter_op
    random.seed(seed)
    np.random.seed(seed)
    _State.intra_op = intra_op


def describe() -> dict[str, Any]:
    """The versions in use, and the number of threads that llama.cpp has really started."""
    return {
        "threads_used": _POOL.size,
        "versions": {"llama.cpp": _LIBRARY.llama_version().decode(), "xllamacpp": _version()},
        "pins_threads": _State.pins_threads,
    }


def _version() -> str:
    return metadata.version("xllamacpp")


def profile(step: Callable[[], object], iterations: int, folder: str) -> Profile:
    """Run warm steps and time each node of llama.cpp's graph.

    While it is observed, llama.cpp computes one node after the other and waits in between, so a
    profiled step takes longer than a timed one.

    Args:
        step: The function called per iteration.
        iterations: The number of iterations to tabulate; one more runs before them.
        folder: Not used: llama.cpp writes no trace.

    Raises:
        ValueError: not exactly one `Model` was made.
    """
    del folder
    (model,) = _State.models
    spans: list[Span] = []
    begin_ns: int | None = None

    def on_node(node: int, before: int, _data: object) -> bool:
        """Note the time before and after a node; returns whether to stop after it, or go on."""
        nonlocal begin_ns
        now_ns = time.perf_counter_ns()
        type_ = _LIBRARY.ggml_op_desc(node)
        if before:
            begin_ns = begin_ns or now_ns
            return type_ not in _VIEWS
        if begin_ns is not None:
            spans.append(Span(type=type_.decode(), thread=0, begin_ns=begin_ns, end_ns=now_ns))
        begin_ns = None
        return True

    model.start_profiling(_OnNode(on_node))
    marks = []
    for _ in range(1 + iterations):
        began_ns = time.perf_counter_ns()
        step()
        marks.append((began_ns, time.perf_counter_ns()))
    return tabulate(steps_of(marks[1:], spans), None)

"""A service that computes step after step: run with the Python of a framework's environment.

`steps.py KIND [--threads N] [--processes N] [--pause S] [--counts FOLDER]`. Each process counts
its steps in a file of its own in FOLDER, as 8 bytes.
"""

from __future__ import annotations

import argparse
import ctypes
import hashlib
import mmap
import os
import random
import struct
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any

Step = Callable[[], object]


def torch(threads: int) -> Step:
    """A small network; each layer ends at a barrier of the pool."""
    torch = import_module("torch")
    if threads:
        torch.set_num_threads(threads)
    # Activations that are worth 16 threads to PyTorch, which has a thread for each 32,768 elements.
    layers = [torch.nn.Linear(512, 512) for _ in range(2)]
    network = torch.nn.Sequential(*(one for layer in layers for one in (layer, torch.nn.Tanh())))
    batch = torch.randn(1024, 512)

    def step() -> None:
        with torch.inference_mode():
            network(batch)

    return step


def torch_serial(threads: int) -> Step:
    """A pool of threads that worked once, and one thread that does all the work in Python."""
    torch(threads)()
    return lambda: sum(range(100_000))


def torch_and_mkl(_: int) -> Step:
    """MKL with Intel's OpenMP, and PyTorch with GNU's, by turns in one process.

    MKL is used first: once GNU's is loaded, it takes that one.
    """
    library = ctypes.CDLL("libmkl_rt.so.3")  # from LD_LIBRARY_PATH
    numpy = import_module("numpy")
    size = 256
    arrays = [numpy.ones((size, size)) for _ in range(3)]
    left, right, product = (array.ctypes.data_as(ctypes.c_void_p) for array in arrays)
    one, zero, side = ctypes.c_double(1), ctypes.c_double(0), ctypes.c_int(size)
    dimensions = (101, 111, 111, side, side, side)

    def multiply() -> None:
        library.cblas_dgemm(*dimensions, one, left, side, right, side, zero, product, side)

    multiply()
    network = torch(0)

    def step() -> None:
        assert arrays
        multiply()
        network()

    return step


def numpy(threads: int) -> Step:
    """Products of matrices."""
    numpy = import_module("numpy")
    left = numpy.ones((512, 512), numpy.float32)
    if threads:
        import_module("threadpoolctl").threadpool_limits(threads)
    return lambda: left @ left


def numpy_gather(_: int) -> Step:
    """Elements of a large array in random order: a page of 4 KiB for each."""
    numpy = import_module("numpy")
    table = numpy.zeros(1 << 27)
    table[:] = 1
    rows = numpy.random.default_rng(1).integers(0, table.size, 1 << 18)
    return lambda: float(table[rows].sum())


def mapped_file(_: int) -> Step:
    """Random pages of a mapped file of 256 MiB, which a memory limit drops from the cache."""
    path = Path("mapped")
    with path.open("wb") as file:
        for _ in range(256):
            file.write(os.urandom(1 << 20))
    with path.open("rb") as file:
        pages = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    pages.madvise(mmap.MADV_RANDOM)
    numbers = random.Random(1)  # noqa: S311  # chooses pages, no secret
    return lambda: sum(pages[numbers.randrange(len(pages))] for _ in range(100))


def onnxruntime(threads: int, *, spinning: bool = True) -> Step:
    """A chain of products in ONNX Runtime."""
    numpy, runtime = import_module("numpy"), import_module("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads
    options.add_session_config_entry("session.intra_op.allow_spinning", str(int(spinning)))
    session = runtime.InferenceSession(
        _chain().SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    batch = numpy.ones((64, 512), numpy.float32)
    return lambda: session.run(None, {"x0": batch})


def onnxruntime_passive(threads: int) -> Step:
    """The same, whose threads sleep while they wait."""
    return onnxruntime(threads, spinning=False)


def openvino(threads: int) -> Step:
    """The same chain in OpenVINO."""
    numpy, core = import_module("numpy"), import_module("openvino").Core()
    Path("chain.onnx").write_bytes(_chain().SerializeToString())
    settings = {"INFERENCE_NUM_THREADS": threads} if threads else {}
    model = core.compile_model("chain.onnx", "CPU", settings)
    batch = numpy.ones((64, 512), numpy.float32)
    return lambda: model([batch])


def tensorflow(threads: int) -> Step:
    """Products in TensorFlow."""
    tensorflow = import_module("tensorflow")
    tensorflow.config.threading.set_intra_op_parallelism_threads(threads)
    left = tensorflow.random.normal((512, 512))
    return lambda: tensorflow.matmul(left, left).numpy()


def joblib(threads: int) -> Step:
    """Processes of joblib, each with a pool of `threads` for products in NumPy."""
    joblib = import_module("joblib")
    processes = 4 if threads > 1 else 2
    joblib.parallel_config("loky", inner_max_num_threads=threads)
    pool = joblib.Parallel(processes)
    return lambda: pool(joblib.delayed(_products)() for _ in range(processes))


def scikit_learn(_: int) -> Step:
    """Clusters of points, with OpenMP."""
    numpy, cluster = import_module("numpy"), import_module("sklearn.cluster")
    points = numpy.random.default_rng(1).random((20_000, 16), numpy.float32)
    return lambda: cluster.KMeans(8, n_init=1, max_iter=5, random_state=1).fit(points)


def xgboost(threads: int) -> Step:
    """A tree of XGBoost in each step."""
    numpy, xgboost = import_module("numpy"), import_module("xgboost")
    rows = numpy.random.default_rng(1).random((5_000, 16))
    settings = {"nthread": threads, "tree_method": "hist", "max_depth": 6}
    table = xgboost.DMatrix(rows, label=rows.sum(1), nthread=threads)
    return lambda: xgboost.train(settings, table, num_boost_round=1)


def lightgbm(threads: int) -> Step:
    """A tree of LightGBM in each step."""
    numpy, lightgbm = import_module("numpy"), import_module("lightgbm")
    rows = numpy.random.default_rng(1).random((5_000, 16))
    settings = {"num_threads": threads, "verbose": -1}
    table = lightgbm.Dataset(rows, rows.sum(1), params=settings)
    return lambda: lightgbm.train(settings, table, num_boost_round=1)


def spinning_threads(threads: int) -> Step:
    """Python threads that ask for work again and again."""
    work: list[int] = []

    def ask() -> None:
        while True:
            if work:
                work.pop()

    for number in range(threads):
        threading.Thread(target=ask, daemon=True, name=f"asker-{number}").start()
    return lambda: sum(range(10_000))


def waiting_threads(threads: int) -> Step:
    """The same, whose threads wait for work."""
    for number in range(threads):
        waiting = threading.Event().wait
        threading.Thread(target=waiting, daemon=True, name=f"asker-{number}").start()
    return lambda: sum(range(10_000))


def hashing_threads(threads: int) -> Step:
    """Python threads whose work holds no lock."""
    pool, block = ThreadPoolExecutor(threads), bytes(1 << 20)
    digest = hashlib.sha256
    return lambda: list(pool.map(lambda _: digest(block).digest(), range(threads)))


def locked_threads(threads: int) -> Step:
    """Python threads whose work holds the interpreter's lock, so that one runs at a time."""
    pool = ThreadPoolExecutor(threads)
    return lambda: list(pool.map(lambda _: sum(range(200_000)), range(threads)))


def hashed_table(_: int) -> Step:
    """One pass over 128 MiB of memory, without other packages."""
    table = bytearray(os.urandom(1 << 20) * 128)
    return lambda: hashlib.blake2b(table).digest()


def _chain() -> Any:
    """Eight products of 64×512 by 512×512."""
    numpy, onnx = import_module("numpy"), import_module("onnx")
    make, of_array = import_module("onnx.helper"), import_module("onnx.numpy_helper").from_array
    numbers = numpy.random.default_rng(1)
    weights = [
        of_array((numbers.random((512, 512)) / 512).astype(numpy.float32), f"w{number}")
        for number in range(8)
    ]
    nodes = [
        make.make_node("MatMul", [f"x{number}", f"w{number}"], [f"x{number + 1}"])
        for number in range(8)
    ]
    kind = onnx.TensorProto.FLOAT
    ends = [make.make_tensor_value_info(name, kind, [64, 512]) for name in ("x0", "x8")]
    graph = make.make_graph(nodes, "chain", ends[:1], ends[1:], weights)
    return make.make_model(graph, opset_imports=[make.make_opsetid("", 17)], ir_version=8)


def _products() -> None:
    numpy = import_module("numpy")
    left = numpy.ones((512, 512), numpy.float32)
    for _ in range(10):
        left @ left


KINDS: dict[str, Callable[[int], Step]] = {
    kind.__name__.replace("_", "-"): kind
    for kind in (
        *(torch, torch_serial, torch_and_mkl, numpy, numpy_gather, mapped_file, onnxruntime),
        *(onnxruntime_passive, openvino, tensorflow, joblib, scikit_learn, xgboost, lightgbm),
        *(spinning_threads, waiting_threads, hashing_threads, locked_threads),
        hashed_table,
    )
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--pause", type=float, default=0.0)
    parser.add_argument("--counts", type=Path, default=Path())
    options = parser.parse_args()
    # Before anything has threads. The first process only waits for the others.
    if options.processes > 1 and all(os.fork() for _ in range(options.processes)):
        os.wait()
        sys.exit("a process ended")
    with Path(options.counts, f"{os.getpid()}.count").open("w+b") as file:
        file.truncate(8)
        count = mmap.mmap(file.fileno(), 8)
    step, done = KINDS[options.kind](options.threads), 0
    while True:
        step()
        done += 1
        struct.pack_into("Q", count, 0, done)
        if options.pause:
            time.sleep(options.pause)


if __name__ == "__main__":
    main()

"""The runtimes of workloads, each declared once: frameworks, servers, and plain Python.

What a runtime is called, how its environment is recognised, which settings it has and how it gets
them, what it needs of a host. Its adapter is `worker/adapters/NAME.py`, its workloads are listed
in `scenario/builtin_workloads.py`, and a server's class is in `serving/servers.py`.
"""

from collections.abc import Mapping
from typing import Literal, get_args

from msgspec import Struct

# Those that a scenario can name.
NamedFramework = Literal[
    "none",
    "numpy",
    "pytorch",
    "tensorflow",
    "mindspore",
    "scikit-learn",
    "xgboost",
    "lightgbm",
    "onnxruntime",
    "openvino",
    "jax",
    "llama-cpp",
    "torchserve",
    "litserve",
    "fastapi",
    "llama-server",
]
# The last two are what a `workload` with a server, or with a running service, makes of its cells.
Framework = Literal[NamedFramework, "own-server", "running-service"]
FRAMEWORKS: tuple[NamedFramework, ...] = get_args(NamedFramework)  # the first is `none`

# The settings that some runtimes set in their own way, and others do not have.
Pool = Literal["intra_op", "inter_op"]


class Program(Struct, frozen=True, kw_only=True):
    """A program that a host needs for a runtime.

    Attributes:
        what: Why a cell cannot run without it, in a sentence.
        fix: How to get it, in a sentence.
        mode: The `mode` of a workload that needs it; None: every workload does.
    """

    name: str
    what: str
    fix: str
    mode: str | None = None


class Server(Struct, frozen=True, kw_only=True):
    """How a runtime that is a server starts its workers.

    Attributes:
        start: `script`: its own program beside the interpreter; `uvicorn`: an application on
            uvicorn; `module`: the module of the workload; `own`: the scenario's own command;
            `running`: it runs already.
        is_single_process: Whether one process answers all requests; others have any number.
        pins_workers: Whether it places its workers itself under `binding: launcher`.
        reads_archive: Whether it reads the model from an archive of its own format.
        reports_itself: Whether its workers name their distribution themselves.
    """

    start: Literal["script", "uvicorn", "module", "own", "running"]
    is_single_process: bool = False
    pins_workers: bool = False
    reads_archive: bool = False
    reports_itself: bool = False


class Runtime(Struct, frozen=True, kw_only=True):
    """What distinguishes a runtime from others.

    Attributes:
        aliases: Names under which people know it.
        packages: The modules that its cells import, each with the package that has it.
        lacks: The settings that it does not have.
        variables: The environment variable that sets a pool, where one does.
        calls: The call that sets a pool in a program, where one does; `{}` is the number.
        inter_op: `each`: every inter-op thread has an intra-op pool of its own; `shared`: they
            share one, and are as many as the CPUs by default; `pipelines`: it also has threads
            that spin in pipelines, which no pool limits.
        is_one_per_cpu: Whether it has a thread for each CPU of its process by default.
        wait_policy: Whether its idle threads wait as OMP_WAIT_POLICY says; `blas`: if its BLAS
            was built so.
        launcher: Its own launcher, which places its processes; the worker's command, interpreter
            included, is appended to it.
        server: Set if it is a server, which no function or command runs in.
        quantizes_for_memory: Whether small types are worth it without instructions for them.
        unprofiled: Why its operators cannot be profiled; empty if they can.
        start_up_s: What a launch takes before its first iteration on two cores, in seconds: the
            interpreter, imports and the set-up of a small model; launches that alternate start at
            the same time. From a quick run of the suite's scenarios.
    """

    aliases: tuple[str, ...] = ()
    packages: Mapping[str, str] = {}
    lacks: tuple[Pool, ...] = ()
    variables: Mapping[Pool, str] = {}
    calls: Mapping[Pool, str] = {}
    inter_op: Literal["each", "shared", "pipelines"] = "each"
    is_one_per_cpu: bool = False
    wait_policy: Literal["openmp", "blas"] | None = None
    launcher: tuple[str, ...] = ()
    server: Server | None = None
    programs: tuple[Program, ...] = ()
    quantizes_for_memory: bool = False
    unprofiled: str = ""
    start_up_s: float = 0.5

    @property
    def has_launcher(self) -> bool:
        """Whether `binding: launcher` leaves the binding to it."""
        return bool(self.launcher) or (self.server is not None and self.server.pins_workers)


# Adapters read the sizes of its pools by threadpoolctl.
_POOLS = {"threadpoolctl": "threadpoolctl"}
_SERVED = "a server starts its own workers; profile the model without the server."

RUNTIMES: Mapping[Framework, Runtime] = {
    "none": Runtime(
        lacks=("intra_op", "inter_op"),
        unprofiled="plain Python has no operators to profile.",
        start_up_s=0.2,
    ),
    "numpy": Runtime(
        packages={"numpy": "numpy", **_POOLS},
        lacks=("inter_op",),
        is_one_per_cpu=True,
        # Its wheels have OpenBLAS with threads of its own, conda's have MKL.
        wait_policy="blas",
        unprofiled="NumPy has no profiler of its own.",
        start_up_s=0.3,
    ),
    "pytorch": Runtime(
        aliases=("torch",),
        packages={"torch": "torch"},
        calls={
            "intra_op": "torch.set_num_threads({})",
            "inter_op": "torch.set_num_interop_threads({})",
        },
        is_one_per_cpu=True,
        wait_policy="openmp",
        launcher=("-m", "torch.backends.xeon.run_cpu", "--ninstances", "1", "--no-python"),
        programs=(
            Program(
                name="g++",
                what="`mode: compiled` needs a C++ compiler, which this host does not have.",
                fix="Install it: `apt-get install g++`.",
                mode="compiled",
            ),
        ),
        start_up_s=3.0,
    ),
    "tensorflow": Runtime(
        aliases=("tf", "keras"),
        packages={"tensorflow": "tensorflow"},
        variables={"intra_op": "TF_NUM_INTRAOP_THREADS", "inter_op": "TF_NUM_INTEROP_THREADS"},
        inter_op="shared",
        start_up_s=3.0,
    ),
    "mindspore": Runtime(
        packages={"mindspore": "mindspore"},
        inter_op="pipelines",
        wait_policy="openmp",
        start_up_s=2.5,
    ),
    "scikit-learn": Runtime(
        aliases=("sklearn",),
        packages={"sklearn": "scikit-learn", **_POOLS},
        lacks=("inter_op",),
        wait_policy="openmp",
        unprofiled="scikit-learn has no profiler of its own.",
    ),
    "xgboost": Runtime(
        aliases=("xgb",),
        packages={"xgboost": "xgboost"},
        lacks=("inter_op",),
        wait_policy="openmp",
        unprofiled="XGBoost has no profiler of its own.",
    ),
    "lightgbm": Runtime(
        aliases=("lgbm",),
        packages={"lightgbm": "lightgbm", **_POOLS},
        lacks=("inter_op",),
        wait_policy="openmp",
        unprofiled="LightGBM has no profiler of its own.",
    ),
    "onnxruntime": Runtime(
        aliases=("ort", "onnx"),
        packages={"onnxruntime": "onnxruntime"},
        lacks=("inter_op",),
    ),
    "openvino": Runtime(packages={"openvino": "openvino"}, lacks=("inter_op",)),
    "jax": Runtime(packages={"jax": "jax"}, lacks=("inter_op",), variables={"intra_op": "NPROC"}),
    "llama-cpp": Runtime(
        packages={"xllamacpp": "xllamacpp"},
        lacks=("inter_op",),
        wait_policy="openmp",
        # It quantizes to read less memory, which any processor gains from.
        quantizes_for_memory=True,
        start_up_s=4.0,
    ),
    "torchserve": Runtime(
        packages={"ts": "torchserve"},
        server=Server(start="script", pins_workers=True, reads_archive=True),
        programs=(
            Program(
                name="java",
                what="TorchServe needs Java, which this host does not have.",
                fix="Install it: `apt-get install default-jre-headless`.",
            ),
        ),
        unprofiled=_SERVED,
    ),
    "litserve": Runtime(
        packages={"litserve": "litserve"}, server=Server(start="module"), unprofiled=_SERVED
    ),
    "fastapi": Runtime(
        packages={"fastapi": "fastapi"}, server=Server(start="uvicorn"), unprofiled=_SERVED
    ),
    "llama-server": Runtime(
        packages={"xllamacpp": "xllamacpp"},
        server=Server(start="module", is_single_process=True, reports_itself=True),
        unprofiled=_SERVED,
    ),
    "own-server": Runtime(
        lacks=("intra_op", "inter_op"), server=Server(start="own"), unprofiled=_SERVED
    ),
    "running-service": Runtime(
        lacks=("intra_op", "inter_op"), server=Server(start="running"), unprofiled=_SERVED
    ),
}

ALIASES: Mapping[str, Framework] = {
    alias: name for name, runtime in RUNTIMES.items() for alias in runtime.aliases
}

# Every program that a runtime may need on the host.
RUNTIME_PROGRAMS = frozenset(
    program.name for runtime in RUNTIMES.values() for program in runtime.programs
)


def variables_of(pool: Pool) -> tuple[str, ...]:
    """The environment variables that set a pool, in any runtime."""
    return tuple(
        runtime.variables[pool] for runtime in RUNTIMES.values() if pool in runtime.variables
    )


def with_launcher() -> tuple[Framework, ...]:
    """The runtimes that `binding: launcher` applies to, by name."""
    return tuple(sorted(name for name, runtime in RUNTIMES.items() if runtime.has_launcher))


# What sets the number of threads in a program of somebody else, by a part of the name of a library
# that it has loaded: the setting, and whose it is.
LIBRARY_THREADS: Mapping[str, tuple[str, str]] = {
    "onnxruntime": ("SessionOptions.intra_op_num_threads={0}", " (ONNX Runtime)"),
    "openvino": ("INFERENCE_NUM_THREADS={0}", " (a property of OpenVINO)"),
    "tensorflow": ("TF_NUM_INTRAOP_THREADS={0}", ""),
    "libjvm": ("-XX:ActiveProcessorCount={0}", " (JVM)"),
    "lightgbm": ("num_threads={0}", " (LightGBM; without this parameter, OMP_NUM_THREADS)"),
    "xgboost": ("nthread={0}", " (XGBoost; without this parameter, OMP_NUM_THREADS)"),
    "Go runtime": ("GOMAXPROCS={0}", ""),
    "polars": ("POLARS_MAX_THREADS={0}", ""),
    "duckdb": ("SET threads TO {0}", " (DuckDB)"),
}

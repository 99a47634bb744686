"""The services: each planted fault with its cure, and services with nothing wrong."""

from __future__ import annotations

from typing import Any

from benchmarks.inspect_services.service import Service

_STEPS = ("{python}", "{programs}/steps.py")


def _steps(kind: str, *options: str) -> tuple[str, ...]:
    return (*_STEPS, kind, *options)


def _pool(mode: str, threads: int) -> tuple[str, ...]:
    return ("{pool}", mode, str(threads), "{folder}")


def _uvicorn(workers: int) -> tuple[str, ...]:
    command: tuple[str, ...] = ("{python}", "-m", "uvicorn", "app:app", "--app-dir", "{programs}")
    command += ("--host", "127.0.0.1", "--port", "{port}", "--log-level", "warning")
    return (*command, "--workers", str(workers))


def _llama_command(threads: int) -> tuple[str, ...]:
    model = "/var/tmp/inspect-services-decoder.gguf"  # noqa: S108  # made once, 80 MB
    command = ("{python}", "{programs}/llama_server.py", "--model", model, "--port", "{port}")
    return (*command, "--threads", str(threads))


def _llama(name: str, threads: int, **fields: Any) -> Service:
    return Service(
        name=name,
        environment="llama-server",
        command=_llama_command(threads),
        path="/v1/completions",
        body='{"prompt": [3], "max_tokens": 32, "ignore_eos": true}',
        **fields,
    )


_TORCHSERVE_SCRIPT = (
    "torch-model-archiver --model-name small --version 1 --handler {programs}/handler.py"
    " --export-path {folder} && printf '%s\\n' inference_address=http://127.0.0.1:{port}"
    " management_address=http://127.0.0.1:{port1} metrics_address=http://127.0.0.1:{port2}"
    " grpc_inference_port={port3} grpc_management_port={port4} initial_worker_port={port5}"
    " disable_token_authorization=true default_workers_per_model=2 disable_system_metrics=true"
    " load_models=small.mar model_store={folder} > config.properties"
    " && exec torchserve --start --foreground --ncs --ts-config config.properties"
    " --model-store {folder}"
)

_NODE_SCRIPT = (
    "require('http').createServer((request, answer) => {let sum = 0;"
    " for (let i = 0; i < 1e6; i++) sum += i; answer.end(String(sum))})"
    ".listen({port}, '127.0.0.1')"
)
_NODE = ("node", "-e", _NODE_SCRIPT)

_TOO_MANY = frozenset({"more-threads-than-cpus", "variable-exceeds-cpus"})
# What is true of any pool that is too large, beside the fault's own name.
_CROWD = _TOO_MANY | {"spinning", "more-threads-than-quota", "thread-variable-ignored"}
_WORKERS = frozenset({"processes-with-all-threads"})
_QUOTA = frozenset({"more-threads-than-quota"})


PLANTED = (
    # Pools that are larger than a quota.
    Service(
        name="torch 8 threads, quota 0.5",
        environment="pytorch",
        command=_steps("torch", "--threads", "8"),
        quota=0.5,
        expects=_QUOTA,
        also=_CROWD,
        cure={"command": _steps("torch", "--threads", "1")},
    ),
    Service(
        name="torch default pool, quota 0.5",
        environment="pytorch",
        command=_steps("torch"),
        quota=0.5,
        expects=_QUOTA,
        also=_CROWD,
        cure={"variables": {"OMP_NUM_THREADS": "1"}},
    ),
    Service(
        name="numpy default pool, quota 0.5",
        environment="numpy",
        command=_steps("numpy"),
        quota=0.5,
        expects=_QUOTA,
        also=_CROWD,
        cure={"variables": {"OPENBLAS_NUM_THREADS": "1"}},
    ),
    Service(
        name="lightgbm 16 threads, quota 0.5",
        environment="lightgbm",
        command=_steps("lightgbm", "--threads", "16"),
        quota=0.5,
        expects=_QUOTA,
        also=_CROWD,
        cure={"command": _steps("lightgbm", "--threads", "1")},
    ),
    _llama(
        "llama-server 8 threads, quota 0.5",
        8,
        quota=0.5,
        expects=_QUOTA,
        also=_CROWD,
        cure={"command": _llama_command(1)},
    ),
    Service(
        name="onnxruntime 4 threads, quota 0.5",
        environment="fastapi",
        command=_steps("onnxruntime", "--threads", "4"),
        quota=0.5,
        expects=_QUOTA,
        also=_CROWD,
        cure={"command": _steps("onnxruntime", "--threads", "1")},
    ),
    Service(
        name="torch 2 threads, quota 0.5 of the parent",
        environment="pytorch",
        command=_steps("torch", "--threads", "2"),
        parent_quota=0.5,
        expects=frozenset({"throttled-by-parent"}),
        also=_CROWD | _QUOTA,
        cure={"parent_quota": None},
    ),
    Service(
        name="torch 1 thread, quota 0.3",
        environment="pytorch",
        command=_steps("torch", "--threads", "1"),
        quota=0.3,
        expects=frozenset({"throttled"}),
        cure={"quota": 1.5},
    ),
    # Pools that are larger than the CPUs.
    Service(
        name="torch 8 threads, cpuset of one CPU",
        environment="pytorch",
        command=_steps("torch", "--threads", "8"),
        cpuset="1",
        expects=_TOO_MANY,
        also=_CROWD,
        cure={"command": _steps("torch", "--threads", "1")},
    ),
    Service(
        name="lightgbm 8 threads, taskset to one CPU",
        environment="lightgbm",
        command=_steps("lightgbm", "--threads", "8"),
        prefix=("taskset", "-c", "1"),
        expects=_TOO_MANY | {"pinned-to-one-cpu"},
        also=_CROWD,
        cure={"command": _steps("lightgbm", "--threads", "2"), "prefix": ()},
    ),
    Service(
        name="torch bound to one CPU after the start",
        environment="pytorch",
        command=_steps("torch"),
        moved_to="1",
        expects=_TOO_MANY | {"pinned-to-one-cpu"},
        also=_CROWD,
        cure={"prefix": ("taskset", "-c", "1"), "moved_to": None},
    ),
    Service(
        name="C, 16 threads spinning at a barrier",
        command=_pool("spin", 16),
        needs=("gcc",),
        expects=_TOO_MANY | {"spinning"},
        also=_CROWD,
        cure={"command": _pool("spin", 2)},
    ),
    Service(
        name="C, 4 threads pinned to one CPU",
        command=_pool("wait", 4),
        needs=("gcc",),
        prefix=("taskset", "-c", "0"),
        expects=frozenset({"pinned-to-one-cpu", "more-threads-than-cpus"}),
        cure={"command": _pool("wait", 2), "prefix": ()},
    ),
    Service(
        name="OMP_NUM_THREADS=16, scikit-learn",
        environment="scikit-learn",
        command=_steps("scikit-learn"),
        variables={"OMP_NUM_THREADS": "16"},
        expects=_TOO_MANY,
        also=_CROWD,
        cure={"variables": {"OMP_NUM_THREADS": "2"}},
    ),
    Service(
        name="OMP_NUM_THREADS=1 ignored by set_num_threads(8)",
        environment="pytorch",
        command=_steps("torch", "--threads", "8"),
        variables={"OMP_NUM_THREADS": "1"},
        expects=frozenset({"thread-variable-ignored"}),
        also=_CROWD,
        cure={"command": _steps("torch")},
    ),
    Service(
        name="OMP_NUM_THREADS=1 ignored by onnxruntime",
        environment="fastapi",
        command=_steps("onnxruntime", "--threads", "8"),
        variables={"OMP_NUM_THREADS": "1"},
        expects=frozenset({"thread-variable-ignored"}),
        also=_CROWD,
        cure={"command": _steps("onnxruntime", "--threads", "2"), "variables": {}},
    ),
    Service(
        name="xgboost 2 threads, quota 0.2",
        environment="xgboost",
        command=_steps("xgboost", "--threads", "2"),
        quota=0.2,
        expects=_QUOTA,
        also=_CROWD,
        cure={"command": _steps("xgboost", "--threads", "1")},
    ),
    Service(
        name="lightgbm 16 threads",
        environment="lightgbm",
        command=_steps("lightgbm", "--threads", "16"),
        expects=_TOO_MANY,
        also=_CROWD,
        cure={"command": _steps("lightgbm", "--threads", "2")},
    ),
    Service(
        name="onnxruntime intra_op 8, spinning",
        environment="fastapi",
        command=_steps("onnxruntime", "--threads", "8"),
        expects=_TOO_MANY | {"spinning"},
        also=_CROWD,
        cure={"command": _steps("onnxruntime", "--threads", "2")},
    ),
    _llama(
        "llama-server 8 threads",
        8,
        expects=_TOO_MANY | {"spinning"},
        also=_CROWD,
        cure={"command": _llama_command(2)},
    ),
    Service(
        name="openvino default pool, quota 0.2",
        environment="openvino",
        command=_steps("openvino"),
        quota=0.2,
        expects=_QUOTA,
        also=_CROWD,
        cure={"command": _steps("openvino", "--threads", "1")},
    ),
    Service(
        name="tensorflow 2 threads, quota 0.2",
        environment="tensorflow",
        command=_steps("tensorflow", "--threads", "2"),
        quota=0.2,
        expects=_QUOTA | {"throttled"},
        also=_CROWD,
        cure={"command": _steps("tensorflow", "--threads", "1")},
    ),
    # Several processes.
    Service(
        name="uvicorn, 4 workers with torch",
        environment="fastapi",
        command=_uvicorn(4),
        path="/predict",
        connections=8,
        expects=_WORKERS,
        also=_CROWD,
        cure={"variables": {"OMP_NUM_THREADS": "1"}},
    ),
    Service(
        name="4 training processes of torch",
        environment="pytorch",
        command=_steps("torch", "--processes", "4"),
        expects=_WORKERS,
        also=_CROWD,
        cure={"variables": {"OMP_NUM_THREADS": "1"}},
    ),
    Service(
        name="joblib 4 × BLAS 2",
        environment="scikit-learn",
        command=_steps("joblib", "--threads", "2"),
        expects=_WORKERS,
        also=_CROWD,
        cure={"command": _steps("joblib", "--threads", "1")},
    ),
    Service(
        name="torchserve, 2 workers",
        environment="torchserve",
        needs=("java",),
        command=("/bin/sh", "-c", _TORCHSERVE_SCRIPT),
        variables={"PATH": "{torchserve}/bin:/usr/bin:/bin", "VIRTUAL_ENV": "{torchserve}"},
        path="/predictions/small",
        connections=8,
        expects=_WORKERS,
        also=_CROWD,
        cure={
            "variables": {
                "PATH": "{torchserve}/bin:/usr/bin:/bin",
                "VIRTUAL_ENV": "{torchserve}",
                "OMP_NUM_THREADS": "1",
            }
        },
    ),
    Service(
        name="2 workers on the same CPU",
        environment="pytorch",
        command=_steps("torch", "--processes", "2", "--threads", "1"),
        prefix=("taskset", "-c", "1"),
        expects=frozenset({"workers-overlap"}),
        also=_WORKERS | {"pinned-to-one-cpu"},
        cure={"prefix": ()},
    ),
    Service(
        name="uvicorn, 2 workers bound to one CPU",
        environment="fastapi",
        command=_uvicorn(2),
        variables={"OMP_NUM_THREADS": "1"},
        path="/predict",
        connections=4,
        moved_to="0",
        expects=frozenset({"workers-overlap"}),
        also=_WORKERS | {"pinned-to-one-cpu"},
        cure={"moved_to": None},
    ),
    # Waiting that costs CPU time.
    Service(
        name="OMP_WAIT_POLICY=active, pauses",
        environment="pytorch",
        command=_steps("torch", "--threads", "2", "--pause", "0.02"),
        variables={"OMP_WAIT_POLICY": "active"},
        expects=frozenset({"spinning"}),
        cure={"variables": {"OMP_WAIT_POLICY": "passive"}},
    ),
    Service(
        name="KMP_BLOCKTIME=infinite, pauses",
        environment="pytorch",
        command=_steps("torch", "--threads", "2", "--pause", "0.02"),
        variables={"LD_PRELOAD": "{numpy-mkl}/lib/libiomp5.so", "KMP_BLOCKTIME": "infinite"},
        expects=frozenset({"spinning"}),
        cure={"variables": {"LD_PRELOAD": "{numpy-mkl}/lib/libiomp5.so", "KMP_BLOCKTIME": "0"}},
    ),
    Service(
        name="4 Python threads spinning",
        command=_steps("spinning-threads", "--threads", "4"),
        expects=frozenset({"interpreter-lock"}),
        cure={"command": _steps("waiting-threads", "--threads", "4")},
    ),
    Service(
        name="4 Python threads share the lock",
        command=_steps("locked-threads", "--threads", "4"),
        expects=frozenset({"interpreter-lock"}),
        cure={"command": _steps("locked-threads", "--threads", "1", "--processes", "2")},
    ),
    Service(
        name="two OpenMP runtimes, torch and MKL",
        environment="pytorch",
        command=_steps("torch-and-mkl"),
        variables={"LD_LIBRARY_PATH": "{numpy-mkl}/lib", "MKL_THREADING_LAYER": "INTEL"},
        expects=frozenset({"two-openmp-runtimes"}),
        also=_CROWD,
        cure={
            "variables": {
                "LD_LIBRARY_PATH": "{numpy-mkl}/lib",
                "LD_PRELOAD": "{numpy-mkl}/lib/libiomp5.so",
            }
        },
    ),
    Service(
        name="one thread works, the pool is idle",
        environment="pytorch",
        command=_steps("torch-serial", "--threads", "2"),
        expects=frozenset({"one-thread-works"}),
    ),
    Service(
        name="C, one of 8 threads works",
        command=_pool("serial", 8),
        needs=("gcc",),
        expects=frozenset({"one-thread-works"}),
    ),
    # Priorities and weights, beside others.
    Service(
        name="nice 19 beside others",
        environment="pytorch",
        command=_steps("torch", "--threads", "2"),
        prefix=("nice", "-n", "19"),
        neighbours=2,
        beside="group",
        expects=frozenset({"low-priority"}),
        also=frozenset({"foreign-load"}),
        cure={"prefix": ()},
    ),
    Service(
        name="SCHED_IDLE beside others",
        environment="pytorch",
        command=_steps("torch", "--threads", "2"),
        prefix=("chrt", "-i", "0"),
        neighbours=2,
        beside="group",
        expects=frozenset({"low-priority"}),
        also=frozenset({"foreign-load"}),
        cure={"prefix": ()},
    ),
    Service(
        name="weight 64 beside others",
        environment="pytorch",
        command=_steps("torch", "--threads", "2"),
        weight=64,
        neighbours=2,
        beside="groups",
        expects=frozenset({"low-cpu-weight"}),
        also=frozenset({"foreign-load"}),
        cure={"weight": None},
    ),
    Service(
        name="autogroup with nice 19 beside others",
        environment="pytorch",
        command=_steps("torch", "--threads", "2"),
        autogroup_nice=19,
        neighbours=2,
        expects=frozenset({"autogroup"}),
        also=frozenset({"foreign-load"}),
        cure={"autogroup_nice": None},
    ),
    Service(
        name="busy neighbours",
        environment="pytorch",
        command=_steps("torch", "--threads", "2"),
        neighbours=4,
        expects=frozenset({"foreign-load"}),
        also=frozenset({"autogroup"}),
        cure={"neighbours": 0},
    ),
    # Memory.
    Service(
        name="mapped file beyond the memory limit",
        command=_steps("mapped-file"),
        memory_mib=64,
        expects=frozenset({"major-faults"}),
        cure={"memory_mib": 512},
    ),
    Service(
        name="1 GiB array without huge pages",
        environment="numpy",
        command=_steps("numpy-gather"),
        prefix=("{python}", "{programs}/no_huge_pages.py"),
        expects=frozenset({"huge-pages-off"}),
        also=frozenset({"one-thread-works"}),
        cure={"prefix": ()},
    ),
)

HEALTHY = (
    Service(name="torch", environment="pytorch", command=_steps("torch")),
    Service(
        name="torch, 1 thread, quota 1.2",
        environment="pytorch",
        command=_steps("torch", "--threads", "1"),
        quota=1.2,
    ),
    Service(
        name="torch, 2 threads, quota 2",
        environment="pytorch",
        command=_steps("torch", "--threads", "2", "--pause", "0.01"),
        quota=2,
    ),
    Service(
        name="torch, idle",
        environment="pytorch",
        command=_steps("torch", "--pause", "2"),
    ),
    Service(
        name="torch, one request in 100 ms",
        environment="pytorch",
        command=_steps("torch", "--pause", "0.1"),
    ),
    Service(
        name="2 training processes of torch",
        environment="pytorch",
        command=_steps("torch", "--processes", "2", "--threads", "1"),
    ),
    Service(
        name="onnxruntime",
        environment="fastapi",
        command=_steps("onnxruntime", "--threads", "2"),
    ),
    Service(
        name="onnxruntime, passive, pauses",
        environment="fastapi",
        command=_steps("onnxruntime-passive", "--threads", "2", "--pause", "0.02"),
    ),
    Service(name="openvino", environment="openvino", command=_steps("openvino")),
    Service(
        name="tensorflow", environment="tensorflow", command=_steps("tensorflow", "--threads", "2")
    ),
    Service(
        name="joblib 2 × BLAS 1",
        environment="scikit-learn",
        command=_steps("joblib", "--threads", "1"),
    ),
    Service(name="scikit-learn", environment="scikit-learn", command=_steps("scikit-learn")),
    Service(name="xgboost", environment="xgboost", command=_steps("xgboost", "--threads", "2")),
    # These limit themselves to the CPUs.
    Service(
        name="openvino INFERENCE_NUM_THREADS=8",
        environment="openvino",
        command=_steps("openvino", "--threads", "8"),
    ),
    Service(
        name="xgboost nthread=16",
        environment="xgboost",
        command=_steps("xgboost", "--threads", "16"),
    ),
    Service(
        name="torch, OMP_NUM_THREADS=16",
        environment="pytorch",
        command=_steps("torch"),
        variables={"OMP_NUM_THREADS": "16"},
    ),
    Service(name="lightgbm", environment="lightgbm", command=_steps("lightgbm", "--threads", "2")),
    Service(name="numpy", environment="numpy", command=_steps("numpy")),
    _llama("llama-server", 2),
    _llama("llama-server, few requests", 2, pause_s=1),
    Service(
        name="uvicorn, 2 workers",
        environment="fastapi",
        command=_uvicorn(2),
        variables={"OMP_NUM_THREADS": "1"},
        path="/predict",
        connections=4,
    ),
    Service(
        name="uvicorn, 2 workers, few requests",
        environment="fastapi",
        command=_uvicorn(2),
        variables={"OMP_NUM_THREADS": "1"},
        path="/predict",
        pause_s=0.5,
    ),
    Service(
        name="Python, 4 threads share the lock, pauses",
        command=_steps("locked-threads", "--threads", "4", "--pause", "0.05"),
    ),
    Service(name="Python, 2 threads hash", command=_steps("hashing-threads", "--threads", "2")),
    Service(
        name="Python, 50 threads wait",
        command=_steps("waiting-threads", "--threads", "50", "--pause", "0.5"),
    ),
    Service(name="C, 2 threads at a barrier", command=_pool("wait", 2), needs=("gcc",)),
    Service(name="C, 64 threads sleep", command=_pool("sleep", 64), needs=("gcc",)),
    Service(name="node", command=_NODE, needs=("node",), path="/"),
    Service(name="node, few requests", command=_NODE, needs=("node",), path="/", pause_s=0.5),
    Service(
        name="redis",
        command=("redis-server", "--port", "{port}", "--save", ""),
        needs=("redis-server",),
        is_counted=False,
    ),
    Service(name="a sleeping program", command=("sleep", "1000"), is_counted=False),
    Service(name="a shell", command=("sh", "-c", "sleep 1000; true"), is_counted=False),
    Service(
        name="web server of Python",
        command=("{python}", "-m", "http.server", "{port}", "--bind", "127.0.0.1"),
        path="/",
        pause_s=0.01,
    ),
)

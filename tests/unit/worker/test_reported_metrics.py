"""The values that a command reports: found in what real tools print, or a clear failure."""

import os
from pathlib import Path
from typing import Any

import pytest

from corebound.scenario.metrics import parse_json_path
from corebound.worker.protocol import MetricSource, fields
from corebound.worker.reported_metrics import ReportedMetrics
from corebound.worker.workload import WorkloadError


def reported(
    out: str, *, json: str | None = None, samples: str | None = None, error: str = "", **keys: Any
) -> list[float]:
    """What a command that prints this reports: the value, then its samples."""
    source = MetricSource(
        name="rate",
        path=parse_json_path(json) if json else None,
        samples=parse_json_path(samples) if samples else None,
        **keys,
    )
    metrics = ReportedMetrics([fields(source)])
    metrics.clear()
    for descriptor, text in zip(metrics.descriptors, (out, error), strict=True):
        os.write(descriptor, text.encode())
    (values,) = metrics.values()
    return values


def failure(out: str, **keys: Any) -> str:
    with pytest.raises(WorkloadError) as caught:
        reported(out, **keys)
    return caught.value.what


RATE = r"rate: ([\d.]+)"
LATER = 'loading…\n{"rate": 1}\ndone\n{\n  "rate": 2\n}\nbye\n'


@pytest.mark.parametrize(
    ("out", "keys", "values"),
    [
        ("rate: 1\nrate: 2.5\n", {"regex": RATE}, [2.5]),
        # The median, and the samples.
        ("rate: 1\nrate: 4\nrate: 2\n", {"regex": RATE, "all_matches": True}, [2, 1, 4, 2]),
        ("", {"regex": RATE, "error": "rate: 3"}, [3]),
        *(
            (f"rate={number};", {"regex": "rate=(.*);"}, [1234567.5])
            for number in ("1,234,567.5", " 1234567.5 ", "1.2345675e6")
        ),
        (LATER, {"json": "rate"}, [2]),
        ('{"runs": [{"s": 3}, {"s": 1}, {"s": 2}]}', {"json": "runs[*].s"}, [2, 3, 1, 2]),
        # The tool's own repetitions, elsewhere in the document.
        (
            '[{"avg": 18.2, "all": [18.0, 18.4]}]',
            {"json": "[-1].avg", "samples": "[-1].all"},
            [18.2, 18.0, 18.4],
        ),
    ],
)
def test_the_last_match_or_document_counts_and_several_numbers_are_samples(
    out: str, keys: dict[str, Any], values: list[float]
) -> None:
    assert reported(out, **keys) == values


@pytest.mark.parametrize(
    ("out", "keys", "message"),
    [
        (
            "starting\nno luck\n",
            {"regex": "rate: (.*)"},
            "the metric `rate` has no match of its `regex`. The output ends: starting / no luck",
        ),
        (
            "rate: fast",
            {"regex": "rate: (.*)"},
            "the metric `rate` is `fast`, not a number. The output ends: rate: fast",
        ),
        (
            "rate: nan",
            {"regex": "rate: (.*)"},
            "the metric `rate` is `nan`, not a number. The output ends: rate: nan",
        ),
        (
            "rate: 0",
            {"regex": "rate: (.*)"},
            "the metric `rate` is 0, not above zero. The output ends: rate: 0",
        ),
        ('{"rate": true}', {"json": "rate"}, "`True`, not a number"),
        ('{"rate": []}', {"json": "rate"}, "is an empty list"),
        ('{"rate": 1}', {"json": "rates"}, "is not found: JSON has nothing at 'rates'"),
        ("[1]", {"json": "[3]"}, "is not found: JSON has nothing at list index out of range"),
        ("oops", {"json": "rate"}, "is not found: there is no JSON. The output ends: oops"),
        ("", {"json": "rate"}, "The output ends: nothing"),
    ],
)
def test_what_is_missing_or_no_number_above_zero_is_a_failure_that_shows_the_output(
    out: str, keys: dict[str, Any], message: str
) -> None:
    assert message in failure(out, **keys)


def test_a_file_counts_only_if_the_command_has_written_it(tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    source = fields(MetricSource(name="rate", path=("rate",), file=str(file)))
    metrics = ReportedMetrics([source])
    metrics.clear()
    with pytest.raises(WorkloadError, match="No such file"):
        metrics.values()

    file.write_text('{"rate": 5}')
    assert metrics.values() == [[5.0]]

    metrics.clear()
    with pytest.raises(WorkloadError, match="was not written"):
        metrics.values()


def test_one_run_does_not_see_the_output_of_the_run_before() -> None:
    metrics = ReportedMetrics([fields(MetricSource(name="rate", regex="rate: (.*)"))])
    os.write(metrics.descriptors[0], b"rate: 123456\n")
    metrics.clear()
    os.write(metrics.descriptors[0], b"rate: 7\n")

    assert metrics.values() == [[7.0]]


# The parts of what the tools print that matter, and how `metric:` finds the value in
# docs/how-to/own-metric.md.
TOOLS: dict[str, tuple[str, dict[str, Any], float]] = {
    "llama-bench -o json": (
        """\
ggml_vulkan: Found 1 Vulkan devices:
[
  {
    "build_commit": "043fb27d",
    "n_threads": 16,
    "n_prompt": 0,
    "n_gen": 64,
    "test_time": "2025-08-25T10:05:12Z",
    "avg_ns": 3516483516,
    "stddev_ns": 27324561,
    "avg_ts": 18.200000,
    "stddev_ts": 0.141421,
    "samples_ns": [ 3544000000, 3489000000 ],
    "samples_ts": [ 18.0587, 18.3434 ]
  }
]
""",
        {"json": "[-1].avg_ts", "samples": "[-1].samples_ts"},
        18.2,
    ),
    "benchmark_app": (
        """\
[Step 11/11] Dumping statistics report
[ INFO ] Execution Devices:['CPU']
[ INFO ] Count:            1816 iterations
[ INFO ] Duration:         15003.31 ms
[ INFO ] Latency:
[ INFO ]    Median:        32.77 ms
[ INFO ] Throughput:   121.04 FPS
""",
        {"regex": r"Throughput:\s+([\d.]+) FPS"},
        121.04,
    ),
    "vllm bench serve": (
        """\
============ Serving Benchmark Result ============
Successful requests:                     1000
Request throughput (req/s):              32.42
Output token throughput (tok/s):         6582.87
Total Token throughput (tok/s):          14029.44
---------------Time to First Token----------------
Mean TTFT (ms):                          9626.13
""",
        {"regex": r"Output token throughput \(tok/s\):\s+([\d.]+)"},
        6582.87,
    ),
    "onnxruntime_perf_test": (
        """\
Session creation time cost: 0.06094 s
Total inference time cost: 0.843236 s
Total inference requests: 10
Average inference time cost: 84.3236 ms
Total inference run time: 0.843512 s
Number of inferences per second: 11.8552
""",
        {"regex": r"inferences per second: ([\d.]+)"},
        11.8552,
    ),
    "wrk": (
        """\
Running 10s test @ http://127.0.0.1:8080/
  2 threads and 16 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   635.91us    0.89ms  12.92ms   93.69%
Requests/sec: 74886.12
Transfer/sec:      6.06MB
""",
        {"regex": r"Requests/sec:\s+([\d.]+)"},
        74886.12,
    ),
    "hey": (
        """\
Summary:
  Total:	0.0496 secs
  Slowest:	0.0153 secs
  Requests/sec:	4029.6035
""",
        {"regex": r"Requests/sec:\s+([\d.]+)"},
        4029.6035,
    ),
    "pytest-benchmark": (
        """\
{"benchmarks": [{"name": "test_sort", "stats": {"median": 0.002, "ops": 480.5,
 "data": [0.002, 0.0021]}}]}
""",
        {"json": "benchmarks[0].stats.median", "samples": "benchmarks[0].stats.data"},
        0.002,
    ),
}


@pytest.mark.parametrize("tool", TOOLS)
def test_recorded_output_of_a_tool_has_the_metric(tool: str) -> None:
    text, keys, value = TOOLS[tool]

    assert reported(text, **keys)[0] == value

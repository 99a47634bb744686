"""Commands that report metrics: own programs and real tools, bound, compared and failing."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from support import needs
from support.commands import corebound

HEAD = "schema: 1\nname: bench\ntitle: A benchmark\nquestion: How fast?\n"
MEASURE = (
    "measure: {iterations: 2, launches: {min: 2, max: 2}, relaunch_disturbed: 0,"
    " alternate: never}\n"
)
# Prints what it was told, and what it found.
PROGRAM = """\
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

int main(int count, char **words) {
    cpu_set_t cpus;
    sched_getaffinity(0, sizeof cpus, &cpus);
    fprintf(stderr, "warming up\\n");
    for (int run = 1; run <= 3; run++)
        printf("run %d: %d op/s on %d CPUs\\n", run, run * atoi(words[1]), CPU_COUNT(&cpus));
    printf("port %s cpus %s\\n", words[2], words[3]);
    return 0;
}
"""


def scenario(folder: Path, text: str) -> str:
    folder.mkdir(exist_ok=True)
    (folder / "bench.yaml").write_text(HEAD + text + MEASURE)
    return f"{folder.name}/bench.yaml"


@pytest.mark.quick
@needs.compiler
def test_a_program_of_ones_own_is_bound_and_compared_by_what_it_prints(tmp_path: Path) -> None:
    source = tmp_path / "bench.c"
    source.write_text("#define _GNU_SOURCE\n" + PROGRAM)
    (tmp_path / "suite").mkdir()
    subprocess.run(["cc", "-o", tmp_path / "suite" / "bench", source], check=True)
    file = scenario(
        tmp_path / "suite",
        'workload: {command: [./bench, "{scale}", "{port}", "{cpus}"]}\n'
        "metric:\n"
        "  - {name: rate, unit: op/s, better: higher, regex: '(\\d+) op/s', samples: all}\n"
        "  - {name: port, better: higher, regex: 'port (\\d+)'}\n"
        "  - {name: CPUs, better: lower, regex: 'on (\\d+) CPUs'}\n"
        "matrix: {binding: [one-cpu], parameters: {scale: [10, 20]}}\n",
    )

    document = json.loads(corebound(tmp_path, "run", file, "--json").out)

    assert document["launches"] == {"ok": 4}
    slow, fast = document["cells"]
    assert [cell["metrics"][0]["value"] for cell in (slow, fast)] == pytest.approx([20, 40])
    assert [metric["name"] for metric in slow["metrics"]] == ["rate", "port", "CPUs"]
    assert 1024 < slow["metrics"][1]["value"] < 65536
    # What it finds is what it was bound to.
    assert slow["metrics"][2]["value"] == pytest.approx(1)
    assert fast["speedup_ratio"] == pytest.approx(2)
    text = corebound(tmp_path, "show", document["records"]).out
    assert "40.0 op/s" in text
    assert "2.00× more" in text


@pytest.mark.quick
def test_a_launch_without_its_metric_fails_with_the_end_of_the_output(tmp_path: Path) -> None:
    file = scenario(
        tmp_path / "suite",
        "workload: {command: [echo, no luck today]}\n"
        "metric: {name: rate, unit: op/s, better: higher, regex: 'rate: ([0-9]+)'}\n",
    )

    completed = corebound(tmp_path, "run", file)

    assert completed.code != 0
    assert "the metric `rate` has no match of its `regex`" in completed.err
    assert "The output ends: no luck today" in " ".join(completed.err.split())


def test_sqlite_is_measured_through_a_file_that_it_writes(tmp_path: Path) -> None:
    (tmp_path / "suite").mkdir()
    (tmp_path / "suite" / "speed.py").write_text(
        "import json, sqlite3, sys, time\n"
        "base = sqlite3.connect(':memory:')\n"
        "base.execute('CREATE TABLE t (x)')\n"
        "began = time.perf_counter()\n"
        "base.executemany('INSERT INTO t VALUES (?)', ((n,) for n in range(1000)))\n"
        "rate = 1000 / (time.perf_counter() - began)\n"
        "json.dump({'rows': [{'rate': rate}]}, open(sys.argv[1], 'w'))\n"
    )
    file = scenario(
        tmp_path / "suite",
        f"workload: {{command: [{sys.executable}, speed.py, result.json]}}\n"
        "files: [speed.py]\n"
        "metric: {name: rows, unit: rows/s, better: higher, json: 'rows[-1].rate',"
        " file: result.json}\n",
    )

    document = json.loads(corebound(tmp_path, "run", file, "--json").out)

    assert document["launches"] == {"ok": 2}
    assert document["cells"][0]["metrics"][0]["unit"] == "rows/s"

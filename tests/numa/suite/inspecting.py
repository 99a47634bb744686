"""Inside the machine: start services, inspect each, and print what was found of each as JSON.

CPUs 0-3 are node 0, with the cores (0,1) and (2,3); CPUs 4-7 are node 1.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import corebound

# Processes that compute, and wait for nothing else.
_WORKERS = """
import os
for _ in range({0}):
    if os.fork() == 0:
        while True:
            pass
print("ready", flush=True)
os.wait()
"""
_TABLE = """
import os, hashlib
table = bytearray(os.urandom(1 << 20) * 64)
print("ready", flush=True)
while True:
    hashlib.blake2b(table).digest()
"""
SERVICES = {
    "two workers on siblings": (("taskset", "-c", "0,1"), _WORKERS.format(2)),
    "two workers on cores": (("taskset", "-c", "0,2"), _WORKERS.format(2)),
    "six workers on one node": (("taskset", "-c", "0-3"), _WORKERS.format(6)),
    "memory on the other node": (("numactl", "--cpunodebind=0", "--membind=1"), _TABLE),
    "memory on its node": (("numactl", "--cpunodebind=0", "--membind=0"), _TABLE),
}


def main() -> None:
    """Inspect each service while it runs alone."""
    found = {}
    for name, (prefix, code) in SERVICES.items():
        command = [*prefix, sys.executable, "-c", code]
        with subprocess.Popen(command, process_group=0, stdout=subprocess.PIPE) as service:
            assert service.stdout is not None
            service.stdout.readline()
            found[name] = corebound.inspect(service.pid, seconds=3).document
            os.killpg(service.pid, signal.SIGKILL)
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()

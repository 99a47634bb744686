"""A client that sends one request after the other on each of its connections, and counts answers.

`client.py PORT PATH [--connections N] [--pause S] [--body FILE] [--counts FOLDER]`.
"""

from __future__ import annotations

import argparse
import http.client
import itertools
import mmap
import os
import struct
import threading
import time
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("port", type=int)
    parser.add_argument("path")
    parser.add_argument("--connections", type=int, default=2)
    parser.add_argument("--pause", type=float, default=0.0)
    parser.add_argument("--body", default="")
    parser.add_argument("--counts", type=Path, default=Path())
    options = parser.parse_args()
    with Path(options.counts, f"{os.getpid()}.count").open("w+b") as file:
        file.truncate(8)
        count = mmap.mmap(file.fileno(), 8)
    numbers = itertools.count(1)

    def send() -> None:
        while True:
            connection = http.client.HTTPConnection("127.0.0.1", options.port, timeout=60)
            try:
                # Another connection may reach another worker.
                for _ in range(20):
                    method = "POST" if options.body else "GET"
                    kind = {"Content-Type": "application/json"} if options.body else {}
                    connection.request(method, options.path, options.body or None, kind)
                    answer = connection.getresponse()
                    answer.read()
                    if answer.status == http.HTTPStatus.OK:
                        struct.pack_into("Q", count, 0, next(numbers))
                    time.sleep(options.pause if answer.status == http.HTTPStatus.OK else 0.2)
            except (OSError, http.client.HTTPException):
                time.sleep(0.2)
            finally:
                connection.close()

    for _ in range(options.connections - 1):
        threading.Thread(target=send, daemon=True).start()
    send()


if __name__ == "__main__":
    main()

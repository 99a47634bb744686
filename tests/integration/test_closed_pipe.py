"""What a command says where nobody reads on, as in `corebound ... | head`."""

from __future__ import annotations

import os
import subprocess
import sys


def test_a_pipe_that_is_closed_is_no_regression() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    told = subprocess.run(
        (sys.executable, "-m", "corebound", "schema"),
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writing)

    assert (told.returncode, told.stderr) == (141, "")

"""The Java that a server would be started with."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path


def java(variables: Mapping[str, str] = os.environ) -> str | None:
    """Where it is: of JAVA_HOME where that is set, which TorchServe heeds, else on the PATH.

    None where there is none that can be executed.
    """
    home = variables.get("JAVA_HOME")
    named = str(Path(home) / "bin" / "java") if home else "java"
    return shutil.which(named, path=variables.get("PATH", os.defpath))

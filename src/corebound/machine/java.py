"""Find the Java that starts a server."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path


def java(variables: Mapping[str, str] = os.environ) -> str | None:
    """The path of `java`: from JAVA_HOME, which TorchServe uses, if it is set; else from PATH.

    None if there is no executable.
    """
    home = variables.get("JAVA_HOME")
    named = str(Path(home) / "bin" / "java") if home else "java"
    return shutil.which(named, path=variables.get("PATH", os.defpath))

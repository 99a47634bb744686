"""Where a step runs: its Python interpreter, the packages of the tools, and its threads."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

from msgspec import Struct

import corebound
from corebound.launch import environments

ROOT = Path(__file__).parents[2]
# What pyperf and asv need in the environment of the step.
_PACKAGES = ("pyperf", "asv_runner")
# The folder that `link_corebound` makes.
_LINK_FOLDER = "packages"


class Step(Struct, frozen=True, kw_only=True):
    """A step that tools measure.

    Attributes:
        module: The file in `steps/` that has it.
        function: Its function there.
        environment: The environment of corebound that it runs in.
        threads: The number of threads; None for a step that has no thread pool.
    """

    module: str
    function: str
    environment: str
    threads: int | None


STEPS: Mapping[str, Step] = {
    "python": Step(
        module="python_steps", function="loop", environment=environments.HOST, threads=None
    ),
    "convolutions": Step(
        module="pytorch_steps", function="convolutions", environment="pytorch", threads=2
    ),
    "resnet50": Step(module="pytorch_steps", function="resnet50", environment="pytorch", threads=2),
    "numpy": Step(module="numpy_steps", function="matmul", environment="numpy", threads=2),
}


class Runtime(Struct, frozen=True, kw_only=True):
    """Where a step runs.

    Attributes:
        step: The step.
        python: The interpreter of its environment.
        packages: A folder with the packages of the tools; None if the environment has them.
    """

    step: Step
    python: Path
    packages: Path | None

    def variables(self, folder: Path) -> dict[str, str]:
        """The environment variables for programs that run the step from `folder`."""
        paths = [folder, folder / _LINK_FOLDER, *([self.packages] if self.packages else [])]
        variables = {**base_variables(folder), "PYTHONPATH": os.pathsep.join(map(str, paths))}
        # Without this, asv removes PYTHONPATH when its process for benchmarks has started.
        variables["ASV_PYTHONPATH"] = variables["PYTHONPATH"]
        if self.step.threads:
            variables |= dict.fromkeys(self.thread_variables, str(self.step.threads))
        return variables

    @property
    def thread_variables(self) -> tuple[str, ...]:
        """The variables that set the number of threads of PyTorch and of NumPy's BLAS."""
        return ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS") if self.step.threads else ()

    def run(self, folder: Path, *arguments: str) -> str:
        """Run the environment's Python in the folder; returns its output.

        Raises:
            subprocess.CalledProcessError: It failed.
        """
        return output_of((str(self.python), *arguments), folder, self.variables(folder))

    def startup_s(self, folder: Path) -> float:
        """How long a process takes to start, to set up the step and to run it once."""
        started_s = time.monotonic()
        self.run(folder, "-c", "import work; work.prepare(0)()")
        return time.monotonic() - started_s


def base_variables(folder: Path) -> dict[str, str]:
    """Environment variables that keep the files of tools in `folder`, but use the known cache."""
    return {
        **os.environ,
        "HOME": str(folder),
        "PYTHONPATH": "",
        "COREBOUND_CACHE": str(environments.cache_dir()),
    }


def output_of(
    command: tuple[str, ...],
    folder: Path,
    variables: Mapping[str, str],
    accepted_codes: tuple[int, ...] = (0,),
) -> str:
    """The output of a command.

    Raises:
        subprocess.CalledProcessError: Its exit code is not accepted; its output was printed.
    """
    completed = subprocess.run(
        command, cwd=folder, env=variables, capture_output=True, text=True, check=False
    )
    if completed.returncode not in accepted_codes:
        print(completed.stdout, completed.stderr, file=sys.stderr)
        completed.check_returncode()
    return completed.stdout


def make_runtime(step: Step) -> Runtime:
    """Make the environment of a step and install the packages of the tools, if missing.

    The packages have the versions that are installed here. They go into a folder of their own
    in corebound's cache, because the environment is shared with scenarios.

    Raises:
        CoreboundError: The environment cannot be made.
        subprocess.CalledProcessError: The packages cannot be installed.
    """

    def report(message: str) -> None:
        print(f"{step.environment}: {message}", file=sys.stderr)

    environment = environments.make(step.environment, ROOT, report)
    if step.environment == environments.HOST:
        return Runtime(step=step, python=environment.python, packages=None)
    requirements = [f"{name}=={metadata.version(name)}" for name in _PACKAGES]
    name = "-".join((environment.python.parents[1].name, *requirements))
    packages = environments.cache_dir() / "peers" / name
    if not packages.is_dir():
        packages.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=packages.parent) as scratch:
            target = Path(scratch) / "packages"
            pip = (str(environment.python), "-m", "pip", "install", "--quiet", "--target")
            subprocess.run((*pip, str(target), *requirements), check=True, stdout=sys.stderr)
            shutil.move(target, packages)
    return Runtime(step=step, python=environment.python, packages=packages)


def link_corebound(folder: Path) -> None:
    """Make a folder for PYTHONPATH that holds the package `corebound` and no other.

    It is not `folder` itself: `python -m corebound` there would take the link for a checkout.
    """
    packages = folder / _LINK_FOLDER
    packages.mkdir()
    (packages / "corebound").symlink_to(Path(corebound.__file__).parent)

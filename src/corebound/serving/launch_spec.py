"""Defines what one launch of a server needs, and prepares the model that it serves."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import corebound
from corebound.launch.launch import AnyLaunchSpec
from corebound.machine.topology import CpuId
from corebound.planning.models import Command
from corebound.scenario.traffic import Traffic
from corebound.serving.server import ServedModel, Server, ServerError

MAKER = "corebound.worker.workloads.served_model"
HANDLER = "served_classifier_torchserve.py"
# The sources that, with the packages of the environment, determine the files that are made.
_SOURCES = ("served_model.py", "served_classifier.py", HANDLER)
# Weights are random, so that nothing is downloaded, and the same in every run.
SEED = 20_210

Execute = Callable[[Sequence[str], Path], int]


def served_model(
    cache: Path, *, model: str, image: int, python: Path, archived: bool, execute: Execute
) -> ServedModel:
    """Find the served model in the cache, or create it.

    Args:
        cache: The folder that stores models.
        model: The model's name in torchvision.
        image: The width and height of the network's input.
        python: The interpreter of the server's environment.
        archived: Whether to create an archive for TorchServe too.
        execute: Runs a command in a folder and returns its exit code.

    Raises:
        ServerError: the model could not be created.
    """
    folder = cache / _key(model, image, python, archived=archived)
    if not folder.is_dir():
        fresh = folder.with_name(f"{folder.name}.new")
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(parents=True)
        for words in _steps(model, image, python, fresh, archived=archived):
            if (code := execute(words, fresh)) != 0:
                raise ServerError(
                    what=f"the model {model} could not be made: exit code {code}.",
                    where=words[0],
                    fix="The launch's log holds what was said.",
                )
        fresh.rename(folder)
    return ServedModel(folder=folder)


def _steps(
    model: str, image: int, python: Path, folder: Path, *, archived: bool
) -> tuple[tuple[str, ...], ...]:
    make = (
        *(str(python), "-m", MAKER, "--model", model, "--image", str(image)),
        *("--seed", str(SEED), "--out", str(folder)),
    )
    if not archived:
        return (make,)
    served = ServedModel(folder=folder)
    pack = (
        *(str(python.with_name("torch-model-archiver")), "--version", "1.0"),
        *("--model-name", served.archive.stem, "--serialized-file", str(served.file)),
        *("--handler", str(_workloads() / HANDLER), "--export-path", str(folder)),
    )
    return make, pack


def _key(model: str, image: int, python: Path, *, archived: bool) -> str:
    """A folder name that changes with everything that affects the files."""
    digest = hashlib.sha256(f"{model} {image} {SEED} {python} {archived}".encode())
    for name in _SOURCES:
        digest.update((_workloads() / name).read_bytes())
    return f"{model}-{image}-{digest.hexdigest()[:12]}"


def _workloads() -> Path:
    return Path(corebound.__file__).parent / "worker" / "workloads"


class ServingOrder(AnyLaunchSpec, frozen=True, kw_only=True):
    """Everything that one launch of a server and its load generator needs.

    Attributes:
        command: The command that starts the server.
        model: Finds or creates the served model, given a function that executes commands.
        server: Creates the server, given the model and the folder for the workers' reports.
        traffic: The requests to send.
        generator: The interpreter of the load generator.
        generator_cpus: The CPUs that the load generator may use.
    """

    command: Command
    model: Callable[[Execute], ServedModel]
    server: Callable[[ServedModel, Path], Server]
    traffic: Traffic
    generator: Path
    generator_cpus: tuple[CpuId, ...]

"""Creates the model that a server serves, with a request and its expected answer, in the cache."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct

import corebound
from corebound.errors import CoreboundError

MAKER = "corebound.worker.workloads.served_model"
HANDLER = "served_classifier_torchserve.py"
# The sources that, with the packages of the environment, determine the files that are made.
_SOURCES = ("served_model.py", "served_classifier.py", HANDLER)
# Weights are random, so that nothing is downloaded, and the same in every run.
SEED = 20_210

Execute = Callable[[Sequence[str], Path], int]


class ServerError(CoreboundError):
    """A server does not work; the reason is in the launch's record."""

    exit_code = 4


class ServedModel(Struct, frozen=True, kw_only=True):
    """The files of a served model: the network, a request body and the expected answer."""

    folder: Path

    @property
    def file(self) -> Path:
        """The network in TorchScript."""
        return self.folder / "model.pt"

    @property
    def archive(self) -> Path:
        """The network packed for TorchServe."""
        return self.folder / "classifier.mar"

    @property
    def jpeg(self) -> Path:
        """The body of every request: a JPEG image."""
        return self.folder / "image.jpg"

    @property
    def json(self) -> Path:
        """The request body for a server that accepts only JSON: the JPEG image in base64."""
        return self.folder / "image.json"

    @property
    def expected(self) -> Path:
        """The right answer, as JSON: [class, probability] pairs."""
        return self.folder / "expected.json"


def served_model(
    cache: Path, *, model: str, image: int, python: Path, archived: bool, execute: Execute
) -> ServedModel:
    """Find the served model in the cache, or create it; only one process creates it at a time.

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
    cache.mkdir(parents=True, exist_ok=True)
    with folder.with_name(f"{folder.name}.lock").open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        if not folder.is_dir():
            fresh = folder.with_name(f"{folder.name}.new")
            shutil.rmtree(fresh, ignore_errors=True)
            fresh.mkdir()
            for argv in _steps(model, image, python, fresh, archived=archived):
                if (code := execute(argv, fresh)) != 0:
                    raise ServerError(
                        what=f"the model {model} could not be created: exit code {code}.",
                        where=argv[0],
                        fix="See its output in the launch's log.",
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

"""Creates the model that a server serves, with a request and its expected answer, in the cache."""

import fcntl
import hashlib
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct

import corebound
from corebound.errors import CoreboundError
from corebound.scenario.cell import Cell

HANDLER = "served_classifier_torchserve.py"
# Weights are random, so that nothing is downloaded, and the same in every run.
SEED = 20_210

Execute = Callable[[Sequence[str], Path], int]


class ServerError(CoreboundError):
    """A server does not work; the reason is in the launch's record."""

    exit_code = 4


class ModelRecipe(Struct, frozen=True, kw_only=True):
    """How the files of a served model are made.

    Attributes:
        name: What the model is called in messages, and in the cache.
        maker: The module that makes them, run in the server's environment.
        arguments: Its arguments, without `--out`.
        sources: The files beside it that, with the packages of the environment, determine what
            is made.
        archived: Whether to pack an archive for TorchServe too.
    """

    name: str
    maker: str
    arguments: tuple[str, ...]
    sources: tuple[str, ...]
    archived: bool = False


def recipe_of(cell: Cell) -> ModelRecipe:
    """The recipe of the model that a cell's server serves."""
    parameters = dict(cell.parameters)
    if "context" in parameters:
        context, dtype = parameters["context"], parameters.get("dtype", "float32")
        return ModelRecipe(
            name=f"decoder-{context}-{dtype}",
            maker="corebound.worker.workloads.served_text",
            arguments=(
                *("--context", str(context), "--dtype", str(dtype)),
                *("--framework", cell.framework),
            ),
            sources=(
                *("served_text.py", "decoder_pytorch.py"),
                *("shared/decoder.py", "shared/decoder_gguf.py"),
            ),
        )
    model, image = parameters["model"], parameters["image"]
    return ModelRecipe(
        name=f"{model}-{image}",
        maker="corebound.worker.workloads.served_model",
        arguments=(
            *("--model", str(model), "--image", str(image), "--seed", str(SEED)),
            *(("--onnx",) if parameters.get("runtime") == "onnxruntime" else ()),
        ),
        sources=("served_model.py", "served_classifier.py", HANDLER),
        archived=cell.runtime.server is not None and cell.runtime.server.reads_archive,
    )


def _named(name: str) -> property:
    return property(lambda model: model.folder / name)


class ServedModel(Struct, frozen=True, kw_only=True):
    """The files of a served model in their folder.

    Attributes:
        file, onnx, gguf: The network in TorchScript, in ONNX, or in llama.cpp's format.
        jpeg, json: The body of every request: an image; in base64 for a server that accepts JSON.
        text_request: The request to a language model whose answer is known.
        expected: The right answer, as JSON: [class, probability] pairs, or a text.
    """

    folder: Path
    file, onnx, gguf = map(_named, ("model.pt", "model.onnx", "model.gguf"))
    archive = _named("classifier.mar")
    jpeg, json, text_request = map(_named, ("image.jpg", "image.json", "request.json"))
    expected = _named("expected.json")


def served_model(
    cache: Path, recipe: ModelRecipe, *, python: Path, execute: Execute
) -> ServedModel:
    """Find the served model in the cache, or create it; only one process creates it at a time.

    Args:
        recipe: How it is made.
        execute: Runs a command in a folder and returns its exit code.

    Raises:
        ServerError: the model could not be created.
    """
    folder = cache / _key(recipe, python)
    cache.mkdir(parents=True, exist_ok=True)
    with folder.with_name(f"{folder.name}.lock").open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        if not folder.is_dir():
            fresh = folder.with_name(f"{folder.name}.new")
            shutil.rmtree(fresh, ignore_errors=True)
            fresh.mkdir()
            for argv in _steps(recipe, python, fresh):
                if (code := execute(argv, fresh)) != 0:
                    raise ServerError(
                        what=f"the model {recipe.name} could not be created: exit code {code}.",
                        where=argv[0],
                        fix="See its output in the launch's log.",
                    )
            fresh.rename(folder)
    return ServedModel(folder=folder)


def _steps(recipe: ModelRecipe, python: Path, folder: Path) -> tuple[tuple[str, ...], ...]:
    make = (str(python), "-m", recipe.maker, *recipe.arguments, "--out", str(folder))
    if not recipe.archived:
        return (make,)
    served = ServedModel(folder=folder)
    pack = (
        *(str(python.with_name("torch-model-archiver")), "--version", "1.0"),
        *("--model-name", served.archive.stem, "--serialized-file", str(served.file)),
        *("--handler", str(_workloads() / HANDLER), "--export-path", str(folder)),
    )
    return make, pack


def _key(recipe: ModelRecipe, python: Path) -> str:
    """A folder name that changes with everything that affects the files."""
    digest = hashlib.sha256(f"{recipe.arguments} {python} {recipe.archived}".encode())
    for name in recipe.sources:
        digest.update((_workloads() / name).read_bytes())
    return f"{recipe.name}-{digest.hexdigest()[:12]}"


def _workloads() -> Path:
    return Path(corebound.__file__).parent / "worker" / "workloads"

"""An image classifier as servers use it: a file of weights, JPEG in, classes out."""

from __future__ import annotations

import importlib
import io
import os
import platform
import tempfile
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from corebound.worker import protocol
from corebound.worker.adapters import pytorch

# Means and deviations of ImageNet's channels, which most serving handlers normalise by.
MEANS = np.array((0.485, 0.456, 0.406), dtype=np.float32)
DEVIATIONS = np.array((0.229, 0.224, 0.225), dtype=np.float32)
# How many classes an answer names.
TOP = 5


def set_threads() -> None:
    """Size the pool as the cell asks, before a model is loaded; else leave it alone."""
    if asked := os.environ.get(protocol.SERVED_THREADS):
        torch.set_num_threads(int(asked))


def prepare(jpeg: bytes) -> torch.Tensor:
    """Decode one JPEG, of any size, to 1×3×side×side normalised numbers."""
    side = int(os.environ[protocol.SERVED_IMAGE])
    with Image.open(io.BytesIO(jpeg)) as picture:
        pixels = np.asarray(picture.convert("RGB").resize((side, side)), dtype=np.float32)
    scaled = (pixels / 255 - MEANS) / DEVIATIONS
    return torch.from_numpy(np.ascontiguousarray(scaled.transpose(2, 0, 1)))[None]


def top(logits: torch.Tensor) -> list[list[float]]:
    """The likeliest classes of one image: [class, probability], likeliest first."""
    found = torch.softmax(logits[0], dim=0).topk(TOP)
    pairs = zip(found.indices.tolist(), found.values.tolist(), strict=True)
    return [[index, probability] for index, probability in pairs]


def report() -> None:
    """Tell what this worker really got, in a file named by its process.

    The runner cannot ask a worker of a server, so the worker says unasked how many
    threads it has and which variables reached it. Whole or not at all.
    """
    folder = Path(os.environ[protocol.SERVED_REPORTS])
    described = pytorch.describe()
    server = os.environ.get(protocol.SERVED_BY, "")
    versions = dict(described["versions"])
    if server:
        versions[server] = importlib.import_module("importlib.metadata").version(server)
    ready = protocol.Ready(
        threads_used=described["threads_used"],
        inter_op_used=described["inter_op_used"],
        python=platform.python_version(),
        versions=versions,
        blas=described["blas"],
        environment={
            name: value for name, value in os.environ.items() if name.startswith(protocol.STEERING)
        },
        work={"images": 1.0},
    )
    with tempfile.NamedTemporaryFile(dir=folder, delete=False) as stream:
        stream.write(protocol.encode(ready))
    Path(stream.name).rename(folder / f"{os.getpid()}.json")

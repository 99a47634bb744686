"""An image classifier as servers use it: a file of weights, JPEG in, classes out."""

from __future__ import annotations

import io
import os
import platform
import tempfile
from importlib import metadata
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from corebound.worker import protocol
from corebound.worker.adapters import pytorch

# Means and deviations of ImageNet's channels, which most serving handlers normalise by.
CHANNEL_MEANS = np.array((0.485, 0.456, 0.406), dtype=np.float32)
CHANNEL_DEVIATIONS = np.array((0.229, 0.224, 0.225), dtype=np.float32)
# Number of classes in an answer.
TOP = 5


def set_threads() -> None:
    """Set the pool size that the cell requests, before a model is loaded."""
    if threads := os.environ.get(protocol.SERVED_THREADS):
        torch.set_num_threads(int(threads))


def prepare(jpeg: bytes) -> torch.Tensor:
    """Decode one JPEG, of any size, to 1×3×side×side normalised numbers."""
    side = int(os.environ[protocol.SERVED_IMAGE])
    with Image.open(io.BytesIO(jpeg)) as picture:
        pixels = np.asarray(picture.convert("RGB").resize((side, side)), dtype=np.float32)
    scaled = (pixels / 255 - CHANNEL_MEANS) / CHANNEL_DEVIATIONS
    return torch.from_numpy(np.ascontiguousarray(scaled.transpose(2, 0, 1)))[None]


def top(logits: torch.Tensor) -> list[list[float]]:
    """The most likely classes of one image, as [class, probability], most likely first."""
    likeliest = torch.softmax(logits[0], dim=0).topk(TOP)
    pairs = zip(likeliest.indices.tolist(), likeliest.values.tolist(), strict=True)
    return [[index, probability] for index, probability in pairs]


def report(*packages: str) -> None:
    """Report the worker's threads and environment in a file named by its process id.

    Its versions include those of the server and of other `packages`.

    The runner cannot query a worker of a server, so the worker reports on its own. The file
    is written atomically.
    """
    folder = Path(os.environ[protocol.SERVED_REPORTS])
    described = pytorch.describe()
    versions = dict(described["versions"])
    for name in (os.environ.get(protocol.SERVED_BY, ""), *packages):
        if name:
            versions[name] = metadata.version(name)
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

"""An image classifier as servers use it: a file of weights, JPEG in, classes out."""

from __future__ import annotations

import io
import os

import numpy as np
import torch
from PIL import Image

from corebound.worker import protocol
from corebound.worker.adapters import pytorch
from corebound.worker.workloads.shared import served_worker

# Means and deviations of ImageNet's channels, which most serving handlers normalise by.
CHANNEL_MEANS = np.array((0.485, 0.456, 0.406), dtype=np.float32)
CHANNEL_DEVIATIONS = np.array((0.229, 0.224, 0.225), dtype=np.float32)
# Number of classes in an answer.
TOP = 5


def set_threads() -> None:
    """Set the pool size that the cell requests, before a model is loaded."""
    if threads := served_worker.requested_threads():
        torch.set_num_threads(threads)


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
    """Report the worker's threads, environment and versions, also those of other `packages`."""
    served_worker.report(pytorch.describe(), work={"images": 1.0}, packages=packages)

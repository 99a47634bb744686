"""An image classifier as servers use it: JPEG in, classes out. Uses only NumPy and Pillow."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from corebound.worker import protocol
from corebound.worker.workloads.shared import served_worker

# Means and deviations of ImageNet's channels, which most serving handlers normalise by.
CHANNEL_MEANS = np.array((0.485, 0.456, 0.406), dtype=np.float32)
CHANNEL_DEVIATIONS = np.array((0.229, 0.224, 0.225), dtype=np.float32)
# Number of classes in an answer.
TOP = 5


def prepare(jpeg: bytes) -> NDArray[np.float32]:
    """Decode one JPEG, of any size, to 1×3×side×side normalised numbers."""
    side = int(os.environ[protocol.SERVED_IMAGE])
    with Image.open(io.BytesIO(jpeg)) as picture:
        pixels = np.asarray(picture.convert("RGB").resize((side, side)), dtype=np.float32)
    scaled = (pixels / 255 - CHANNEL_MEANS) / CHANNEL_DEVIATIONS
    return np.ascontiguousarray(scaled.transpose(2, 0, 1), dtype=np.float32)[None]


def top(logits: NDArray[np.float32]) -> list[list[float]]:
    """The most likely classes of one image, as [class, probability], most likely first.

    Args:
        logits: 1×classes.
    """
    powers = np.exp(logits[0] - logits[0].max())
    shares = powers / powers.sum()
    likeliest = np.argsort(-shares)[:TOP]
    return [[int(index), float(shares[index])] for index in likeliest]


def report(described: Mapping[str, Any], *packages: str) -> None:
    """Report a worker, as `served_worker.report` does; a request is an image."""
    served_worker.report(described, work={"images": 1.0}, packages=packages)

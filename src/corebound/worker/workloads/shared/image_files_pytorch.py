"""Seeded JPEG images in memory, with light or heavy preprocessing."""

from __future__ import annotations

import importlib
import io
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from PIL import Image

from corebound.worker.adapters import pytorch

# Width and height of the encoded images: a thumbnail, and a photograph of 0.8 megapixels.
LIGHT = (96, 72)
HEAVY = (1024, 768)
# Means and deviations of ImageNet's channels, which most training scripts normalise by.
CHANNEL_MEANS = (0.485, 0.456, 0.406)
CHANNEL_DEVIATIONS = (0.229, 0.224, 0.225)


@dataclass(frozen=True, slots=True, kw_only=True)
class Photographs:
    """Encoded images; each is decoded and prepared on every access."""

    files: tuple[bytes, ...]
    labels: tuple[int, ...]
    prepare: Callable[[Image.Image], torch.Tensor]

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        with Image.open(io.BytesIO(self.files[index])) as image:
            return self.prepare(image.convert("RGB")), self.labels[index]


def photographs(*, count: int, classes: int, preprocessing: str, side: int) -> Photographs:
    """Make `count` JPEGs in memory, with the transform to 3×side×side numbers.

    Args:
        count: The number of images.
        classes: The number of classes, of which each image has one at random.
        preprocessing: `light` decodes 96×72 pixels, resizes and normalises;
            `heavy` decodes 1024×768, crops and flips at random, changes colours
            and blurs as contrastive training does.
        side: Side of the result, in pixels.

    Source: Chen et al., A simple framework for contrastive learning (2020),
    appendix A, for the heavy one.
    """
    numbers = np.random.default_rng(torch.initial_seed() % 2**63)
    size = LIGHT if preprocessing == "light" else HEAVY
    return Photographs(
        files=tuple(_jpeg(numbers, size) for _ in range(count)),
        labels=tuple(int(label) for label in numbers.integers(classes, size=count)),
        prepare=_light(side) if preprocessing == "light" else _heavy(side),
    )


def _jpeg(numbers: np.random.Generator, size: tuple[int, int]) -> bytes:
    """Smooth random colours; noise in each pixel would not compress like a photograph."""
    width, height = size
    coarse = numbers.integers(256, size=(height // 8, width // 8, 3), dtype=np.uint8)
    image = Image.fromarray(coarse).resize(size, Image.Resampling.BICUBIC)
    stream = io.BytesIO()
    image.save(stream, "JPEG", quality=90)
    return stream.getvalue()


def _light(side: int) -> Callable[[Image.Image], torch.Tensor]:
    pytorch.torchvision()
    v2 = importlib.import_module("torchvision.transforms.v2")
    steps = (v2.Resize((side, side)), *_numbers())
    transform: Callable[[Image.Image], torch.Tensor] = v2.Compose(steps)
    return transform


def _heavy(side: int) -> Callable[[Image.Image], torch.Tensor]:
    pytorch.torchvision()
    v2 = importlib.import_module("torchvision.transforms.v2")
    colours = v2.ColorJitter(brightness=0.8, contrast=0.8, saturation=0.8, hue=0.2)
    steps = (
        v2.RandomResizedCrop(side),
        v2.RandomHorizontalFlip(),
        v2.RandomApply([colours], p=0.8),
        v2.RandomGrayscale(p=0.2),
        # A kernel of a tenth of the side, as in the paper; it must be odd.
        v2.GaussianBlur(side // 20 * 2 + 1, sigma=(0.1, 2.0)),
        *_numbers(),
    )
    transform: Callable[[Image.Image], torch.Tensor] = v2.Compose(steps)
    return transform


def _numbers() -> tuple[Callable[..., object], ...]:
    v2 = importlib.import_module("torchvision.transforms.v2")
    return (
        v2.ToImage(),
        v2.ToDtype(torch.float32, scale=True),
        v2.Normalize(mean=CHANNEL_MEANS, std=CHANNEL_DEVIATIONS),
    )

"""A MindSpore data pipeline that crops, flips and scales images, and batches them."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import mindspore.dataset as ds
import numpy as np
from mindspore.dataset import vision

from corebound.worker.workloads.shared.result_checks import wrong_result

IMAGES = 512
SOURCE_PIXELS = 64
# How many batches pass between two tuning decisions; by default, tuning acts once per epoch.
TUNING_INTERVAL = 20


class Batches(Protocol):
    """MindSpore's iterator over a data set."""

    def __next__(self) -> Any: ...

    def stop(self) -> None:
        """End the threads that prepare batches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """Batches without end, prepared ahead by the pipeline's own threads.

    Attributes:
        source: MindSpore's iterator; it hands out images and labels.
        batches: How many a step takes.
        expected: The shape of a batch of images: batch×3×image×image.
        folder: Where tuning leaves what it found.
    """

    source: Batches
    batches: int
    expected: tuple[int, ...]
    folder: Path

    def step(self) -> Any:
        """Take the next batches; returns the images of the last."""
        for _ in range(self.batches):
            images, _labels = next(self.source)
        return images

    def work(self) -> dict[str, float]:
        """What a step does: so many batches of images."""
        return {"images": float(self.batches * self.expected[0])}

    def check(self, images: Any) -> None:
        """Images of the right shape, between 0 and 1, and not all of one colour.

        Raises:
            WorkloadError: they are not.
        """
        good = images.shape == self.expected and images.min() >= 0 and images.max() <= 1
        if not good or images.std() < 0.05:
            raise wrong_result(
                f"the data set returned {images.shape} images; expected {self.expected} in 0 to 1.",
                check="the build of MindSpore",
            )

    def teardown(self) -> None:
        """Stop the pipeline and take away what tuning wrote."""
        self.source.stop()
        shutil.rmtree(self.folder)


def pipeline(
    *, batch: int = 32, image: int = 96, batches: int = 20, loaders: int = 1, autotune: bool = False
) -> Pipeline:
    """Set up random images of 64×64 that are enlarged to 3×image×image.

    Args:
        image: Height and width that crops are enlarged to.
        batches: Batches per step; tuning needs hundreds of them to converge.
        loaders: The initial number of threads for each operation.
        autotune: Let MindSpore change thread counts and queue lengths at run time.
    """
    folder = Path(tempfile.mkdtemp())
    if autotune:
        ds.config.set_enable_autotune(True, str(folder / "tuned"))
        ds.config.set_autotune_interval(TUNING_INTERVAL)
    pixels = np.random.randint(256, size=(IMAGES, SOURCE_PIXELS, SOURCE_PIXELS, 3))
    columns = (pixels.astype(np.uint8), np.arange(IMAGES, dtype=np.int32))
    images = ds.NumpySlicesDataset(columns, ["image", "label"], num_parallel_workers=1)
    operations = [
        vision.RandomResizedCrop(image),
        vision.RandomHorizontalFlip(),
        vision.Rescale(1 / 255, 0.0),
        vision.HWC2CHW(),
    ]
    mapped = images.map(operations, ["image"], num_parallel_workers=loaders)
    batched = mapped.batch(batch, drop_remainder=True, num_parallel_workers=loaders).repeat()
    return Pipeline(
        source=batched.create_tuple_iterator(num_epochs=1, output_numpy=True),
        batches=batches,
        expected=(batch, 3, image, image),
        folder=folder,
    )

"""Networks for every runtime: the same numbers in each environment, of the published sizes."""

import hashlib
import math

import numpy as np
import pytest

from corebound.worker.workloads.shared import encoder, resnet50
from corebound.worker.workloads.shared.seeded_numbers import SeededNumbers


def test_numbers_depend_on_nothing_but_the_seed() -> None:
    numbers = SeededNumbers(1)
    first, words = numbers.uniform((5,), -1.0, 1.0), numbers.below(10, (3,))

    # PCG64's own output for seed 1, whose stream no version of NumPy changes: its halves, the low
    # one first, as shares of 2**32.
    raw = np.random.PCG64(1).random_raw(5)
    halves = [half / 2**32 for value in raw.tolist() for half in (value % 2**32, value >> 32)]
    assert first.dtype == np.float32
    assert first.tolist() == pytest.approx([2 * half - 1 for half in halves[:5]], abs=1e-6)
    # A half is never split between calls.
    assert words.tolist() == [int(10 * half) for half in halves[6:9]]
    assert hashlib.sha256(raw.tobytes()).hexdigest()[:8] == "d1378977"


def test_numbers_fill_their_range() -> None:
    numbers = SeededNumbers().uniform((10_000,), 2.0, 4.0)

    assert 2.0 <= numbers.min() < 2.01
    assert 3.99 < numbers.max() < 4.0
    assert numbers.mean() == pytest.approx(3.0, abs=0.03)  # 5 deviations: 5·(2/√12)/100


def test_resnet50_has_as_many_parameters_as_published() -> None:
    trained = {
        name: values for name, values in resnet50.weights().items() if ".running_" not in name
    }

    # torchvision's documentation: 25,557,032 parameters.
    assert sum(values.size for values in trained.values()) == 25_557_032


def test_the_encoder_has_as_many_parameters_as_its_sizes_give() -> None:
    width, inner = encoder.WIDTH, encoder.INNER_WIDTH
    layer = 4 * width * width + 4 * width + 2 * width * inner + inner + width + 4 * width
    embedding = (encoder.VOCABULARY + encoder.POSITIONS) * width + 2 * width

    weights = encoder.weights(2)

    assert sum(math.prod(values.shape) for values in weights.values()) == embedding + 2 * layer


def test_inputs_are_the_same_each_time_and_differ_by_shape() -> None:
    assert np.array_equal(resnet50.images(1, 32), resnet50.images(1, 32))
    assert not np.array_equal(resnet50.images(2, 32)[0], resnet50.images(1, 32)[0])
    assert encoder.words(1, 8).max() < encoder.VOCABULARY

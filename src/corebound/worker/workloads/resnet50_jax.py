"""Inference with ResNet-50 in JAX, with the weights that every runtime has."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from corebound.worker.workloads.shared import inference_jax, resnet50
from corebound.worker.workloads.shared.inference import Inference
from corebound.worker.workloads.shared.inference_jax import Weights


def inference(
    *, batch: int = 1, image: int = 224, dtype: str = "float32", mode: str = "usual"
) -> Inference:
    """Set up the forward pass of batch×image×image×3 pixels to batch×1000 logits.

    Channels are the last dimension, as usual in JAX.
    """
    del mode
    weights = {
        name: values.transpose(2, 3, 1, 0) if values.ndim == 4 else values
        for name, values in resnet50.weights().items()
    }
    return inference_jax.inference(
        _forward,
        name="ResNet-50",
        weights=weights,
        inputs=resnet50.images(batch, image).transpose(0, 2, 3, 1),
        types=(dtype, dtype),
        shape=(batch, resnet50.CLASSES),
        unit="images",
    )


def _forward(weights: Weights, images: Any) -> Any:
    maps = jax.nn.relu(_convolve(weights, resnet50.STEM, images))
    maps = lax.reduce_window(
        maps,
        -jnp.inf,
        lax.max,
        window_dimensions=(1, 3, 3, 1),
        window_strides=(1, 2, 2, 1),
        padding=((0, 0), (1, 1), (1, 1), (0, 0)),
    )
    for block in resnet50.blocks():
        first, second, third = block.path
        path = jax.nn.relu(_convolve(weights, first, maps))
        path = jax.nn.relu(_convolve(weights, second, path))
        path = _convolve(weights, third, path)
        skip = maps if block.projection is None else _convolve(weights, block.projection, maps)
        maps = jax.nn.relu(path + skip)
    return maps.mean(axis=(1, 2)) @ weights["fc.weight"].T + weights["fc.bias"]


def _convolve(weights: Weights, convolution: resnet50.Convolution, maps: Any) -> Any:
    convolved = lax.conv_general_dilated(
        maps,
        weights[f"{convolution.name}.weight"],
        window_strides=(convolution.stride,) * 2,
        padding=((convolution.padding,) * 2,) * 2,
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )
    norm = {
        part: weights[f"{convolution.norm}.{part}"]
        for part in ("weight", "bias", "running_mean", "running_var")
    }
    scale = norm["weight"] * lax.rsqrt(norm["running_var"] + resnet50.EPSILON)
    return (convolved - norm["running_mean"]) * scale + norm["bias"]

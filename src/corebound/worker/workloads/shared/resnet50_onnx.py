"""ResNet-50 as an ONNX graph, with the weights that every runtime has."""

from __future__ import annotations

from corebound.worker.workloads.shared import resnet50
from corebound.worker.workloads.shared.inference import OnnxModel
from corebound.worker.workloads.shared.onnx_graph import GraphBuilder


def model(*, batch: int, image: int) -> OnnxModel:
    """Build the graph for images of batch×3×image×image."""
    graph = GraphBuilder()
    for name, values in resnet50.weights().items():
        graph.constant(name, values)
    maps = graph.add("Relu", _convolve(graph, resnet50.STEM, "images"))
    maps = graph.add("MaxPool", maps, kernel_shape=(3, 3), strides=(2, 2), pads=(1, 1, 1, 1))
    for block in resnet50.blocks():
        first, second, third = block.path
        path = graph.add("Relu", _convolve(graph, first, maps))
        path = graph.add("Relu", _convolve(graph, second, path))
        path = _convolve(graph, third, path)
        skip = maps if block.projection is None else _convolve(graph, block.projection, maps)
        maps = graph.add("Relu", graph.add("Add", path, skip))
    features = graph.add("Flatten", graph.add("GlobalAveragePool", maps))
    logits = graph.add("Gemm", features, "fc.weight", "fc.bias", transB=1)
    inputs = {"images": resnet50.images(batch, image)}
    shape = (batch, resnet50.CLASSES)
    return OnnxModel(
        name="ResNet-50",
        graph=graph.model(name="resnet50", inputs=inputs, output=logits, shape=shape),
        inputs=inputs,
        fixed_ranges=("Conv", "Gemm", "Add", "MaxPool", "GlobalAveragePool"),
        shape=shape,
        unit="images",
        count=batch,
    )


def _convolve(graph: GraphBuilder, convolution: resnet50.Convolution, maps: str) -> str:
    convolved = graph.add(
        "Conv",
        maps,
        f"{convolution.name}.weight",
        kernel_shape=(convolution.side,) * 2,
        strides=(convolution.stride,) * 2,
        pads=(convolution.padding,) * 4,
    )
    norm = (f"{convolution.norm}.{part}" for part in ("weight", "bias", "running_mean"))
    return graph.add(
        "BatchNormalization",
        convolved,
        *norm,
        f"{convolution.norm}.running_var",
        epsilon=resnet50.EPSILON,
    )

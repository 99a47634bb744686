"""The Transformer encoder as an ONNX graph, with the weights that every runtime has."""

from __future__ import annotations

import math

import numpy as np

from corebound.worker.workloads.shared import encoder
from corebound.worker.workloads.shared.inference import OnnxModel
from corebound.worker.workloads.shared.onnx_graph import GraphBuilder


def model(*, batch: int, sequence: int, layers: int) -> OnnxModel:
    """Build the graph for batch×sequence words."""
    graph = GraphBuilder()
    for name, values in encoder.weights(layers).items():
        if name == "_positions.weight":
            graph.constant(name, values[:sequence])
        elif values.ndim == 2 and name != "_tokens.weight":
            graph.constant(name, values.T)  # MatMul takes inputs×outputs
        else:
            graph.constant(name, values)
    graph.constant("scale", np.array(1 / math.sqrt(encoder.HEAD_WIDTH), np.float32))
    words = graph.add("Gather", "_tokens.weight", "words")
    hidden = _norm(graph, "_norm", graph.add("Add", words, "_positions.weight"))
    for layer in range(layers):
        hidden = _layer(graph, encoder.prefix_of(layer), hidden, batch, sequence)
    inputs = {"words": encoder.words(batch, sequence)}
    shape = (batch, sequence, encoder.WIDTH)
    return OnnxModel(
        name="the encoder",
        graph=graph.model(name="encoder", inputs=inputs, output=hidden, shape=shape),
        inputs=inputs,
        shape=shape,
        unit="sequences",
        count=batch,
    )


def _layer(graph: GraphBuilder, prefix: str, hidden: str, batch: int, sequence: int) -> str:
    attention = f"{prefix}self_attn."
    joined = _product(graph, hidden, f"{attention}in_proj_weight", f"{attention}in_proj_bias")
    by_head = graph.integers(batch, sequence, encoder.HEADS, encoder.HEAD_WIDTH)
    query, key, value = (
        graph.add("Reshape", part, by_head)
        for part in graph.add_several("Split", joined, outputs=3, axis=2, num_outputs=3)
    )
    query, value = (graph.add("Transpose", part, perm=(0, 2, 1, 3)) for part in (query, value))
    key = graph.add("Transpose", key, perm=(0, 2, 3, 1))
    scores = graph.add("Mul", graph.add("MatMul", query, key), "scale")
    mixed = graph.add("MatMul", graph.add("Softmax", scores, axis=3), value)
    mixed = graph.add("Transpose", mixed, perm=(0, 2, 1, 3))
    mixed = graph.add("Reshape", mixed, graph.integers(batch, sequence, encoder.WIDTH))
    mixed = _product(graph, mixed, f"{attention}out_proj.weight", f"{attention}out_proj.bias")
    hidden = _norm(graph, f"{prefix}norm1", graph.add("Add", hidden, mixed))
    inner = _product(graph, hidden, f"{prefix}linear1.weight", f"{prefix}linear1.bias")
    inner = graph.add("Gelu", inner)
    outer = _product(graph, inner, f"{prefix}linear2.weight", f"{prefix}linear2.bias")
    return _norm(graph, f"{prefix}norm2", graph.add("Add", hidden, outer))


def _product(graph: GraphBuilder, numbers: str, weight: str, bias: str) -> str:
    return graph.add("Add", graph.add("MatMul", numbers, weight), bias)


def _norm(graph: GraphBuilder, name: str, numbers: str) -> str:
    return graph.add(
        "LayerNormalization", numbers, f"{name}.weight", f"{name}.bias", epsilon=encoder.EPSILON
    )

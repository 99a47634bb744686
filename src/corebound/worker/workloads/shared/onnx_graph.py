"""Builds graphs in the ONNX format, for every runtime that reads it; nothing is downloaded."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

# Opset 20 has Gelu; its IR version is the one that ONNX 1.15 introduced it with.
OPSET = 20
IR_VERSION = 9


class GraphBuilder:
    """Collects the nodes and the constants of a graph; a value is known by its name."""

    def __init__(self) -> None:
        self._nodes: list[Any] = []
        self._constants: dict[str, NDArray[Any]] = {}

    def constant(self, name: str, values: NDArray[Any]) -> str:
        """Store an array under a name, which nodes can then use."""
        self._constants[name] = np.ascontiguousarray(values)
        return name

    def integers(self, *values: int) -> str:
        """Store whole numbers, such as a shape."""
        return self.constant(f"integers_{'_'.join(map(str, values))}", np.array(values, np.int64))

    def add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """Add an operator with one output; returns the output's name."""
        (output,) = self.add_several(operator, *inputs, outputs=1, **attributes)
        return output

    def add_several(
        self, operator: str, *inputs: str, outputs: int, **attributes: Any
    ) -> tuple[str, ...]:
        """Add an operator with several outputs; returns their names."""
        node = f"{operator}_{len(self._nodes)}"
        names = tuple(f"{node}_{index}" for index in range(outputs))
        self._nodes.append(helper.make_node(operator, inputs, names, name=node, **attributes))
        return names

    def model(
        self,
        *,
        name: str,
        inputs: dict[str, NDArray[Any]],
        output: str,
        shape: tuple[int, ...],
    ) -> bytes:
        """Serialise the graph.

        Args:
            inputs: Examples of its inputs by name: their types and shapes.
            output: The name of its only output, of float32.
            shape: The output's shape.
        """
        graph = helper.make_graph(
            self._nodes,
            name,
            [
                helper.make_tensor_value_info(
                    key, helper.np_dtype_to_tensor_dtype(example.dtype), example.shape
                )
                for key, example in inputs.items()
            ],
            [helper.make_tensor_value_info(output, TensorProto.FLOAT, shape)],
            [numpy_helper.from_array(values, key) for key, values in self._constants.items()],
        )
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION
        )
        serialised: bytes = model.SerializeToString()
        return serialised

"""The small network's numbers and counts, which every framework starts from."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corebound.worker.workload import WorkloadError
from corebound.worker.workloads.shared.small_network import (
    Shape,
    initial_numbers,
    refuse_parameters,
)
from support.examples import examples

SHAPES = st.builds(
    Shape, batch=st.integers(1, 4), width=st.integers(1, 8), layers=st.integers(1, 3)
)


@given(shape=SHAPES)
@examples(25)
def test_there_are_as_many_numbers_as_parameters(shape: Shape) -> None:
    made = initial_numbers(shape)

    trainable = (*made.weights, *made.biases, *made.scales, made.head)
    assert sum(map(len, trainable)) == shape.parameter_count
    assert len(made.inputs) == len(made.targets) == shape.batch * shape.width


@given(shape=SHAPES)
@examples(25)
def test_a_shape_always_has_the_same_initial_values(shape: Shape) -> None:
    assert initial_numbers(shape) == initial_numbers(shape)


def test_a_step_has_three_products_a_layer_but_for_the_inputs_gradient() -> None:
    # Two layers and the head: 3 forward, 3 for weights, 2 for inputs; each 2·4·8·8.
    assert Shape(batch=4, width=8, layers=2).matmul_flops == 8 * 512


def test_only_parameters_that_are_set_are_rejected() -> None:
    refuse_parameters(framework="Other", dispatch_threads=0, blocking=False, mode="")

    with pytest.raises(WorkloadError, match="Other has no `blocking`"):
        refuse_parameters(framework="Other", dispatch_threads=0, blocking=True)

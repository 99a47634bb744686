"""From spans to a table of operators: nothing counted twice, nothing lost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corebound.worker.operator_table import Operator, Profile, Span, Step, tabulate
from support.known import known


def a_span(
    type_: str | None, begin_ns: int, end_ns: int, *, thread: int = 1, phase: str | None = None
) -> Span:
    return Span(type=type_, thread=thread, begin_ns=begin_ns, end_ns=end_ns, phase=phase)


def a_step(*spans: Span, begin_ns: int = 0, end_ns: int = 100) -> Step:
    return Step(begin_ns=begin_ns, end_ns=end_ns, spans=spans)


def table(*steps: Step) -> Profile:
    return tabulate(steps, None)


def times(profile: Profile) -> dict[str, int]:
    return {operator.type: operator.total_ns for operator in profile.operators}


@pytest.mark.parametrize(
    ("spans", "expected", "outside_ns"),
    [
        # An operator's time excludes the operators within it.
        ([a_span("conv", 10, 90), a_span("gemm", 20, 70)], {"gemm": 50, "conv": 30}, 20),
        # What threads share is divided among them: alone for 60, together for 40.
        ([a_span("a", 0, 100), a_span("b", 40, 80, thread=2)], {"a": 80, "b": 20}, 0),
        # A span that only contains operators is not one.
        ([a_span(None, 0, 100), a_span("a", 10, 30)], {"a": 20}, 80),
        # Only the part within the step counts.
        ([a_span("a", 90, 150)], {"a": 10}, 90),
        # An end beyond its parent is a rounding error.
        ([a_span("outer", 0, 50), a_span("inner", 10, 51)], {"inner": 40, "outer": 10}, 50),
    ],
)
def test_the_time_of_a_step_is_divided_among_its_operators(
    spans: list[Span], expected: dict[str, int], outside_ns: int
) -> None:
    profile = table(a_step(*spans))

    assert times(profile) == expected
    assert profile.outside_ns == outside_ns


def test_operators_of_a_type_are_counted_and_added_up() -> None:
    profile = table(a_step(a_span("add", 0, 10), a_span("add", 20, 50)))

    assert profile.operators == [
        Operator(type="add", calls=2, total_ns=40, quiet_ns=40, min_ns=10, max_ns=30)
    ]
    assert profile.operators[0].mean_ns == 20


def test_a_disturbed_step_does_not_count() -> None:
    quiet = [a_step(a_span("a", 0, 60)) for _ in range(6)]
    noisy = [a_step(a_span("a", 0, 9_000), end_ns=10_000) for _ in range(2)]

    profile = table(*quiet, *noisy)

    assert (profile.step_ns, times(profile), profile.iterations) == (100, {"a": 60}, 8)
    assert profile.operators[0].max_ns == 9_000


def test_the_quiet_time_takes_each_call_at_its_shortest_in_steps_of_as_many_calls() -> None:
    usual = a_step(a_span("a", 0, 10), a_span("a", 10, 60))
    other, fewer = a_step(a_span("a", 0, 40), a_span("a", 40, 60)), a_step(a_span("a", 0, 1))

    # The first call took 10 at best, the second 20.
    assert table(usual, other).operators[0].quiet_ns == 30
    assert table(usual, usual, fewer).operators[0].quiet_ns == 60


def test_phases_hold_the_operators_within_them_and_the_rest_is_forward() -> None:
    profile = table(
        a_step(
            a_span("conv", 0, 30),
            a_span("autograd", 40, 80, phase="backward"),
            a_span("conv", 45, 75),
            a_span(None, 80, 95, phase="update"),
            a_span("add", 85, 90),
        )
    )

    assert profile.phases == {"forward": 30, "backward": 40, "update": 5}
    # Without a mark there are none.
    assert table(a_step(a_span("conv", 0, 30))).phases == {}


@st.composite
def steps(draw: st.DrawFn) -> Step:
    """Steps of up to three threads, whose spans nest as calls do."""
    end_ns = draw(st.integers(1, 1000))
    spans: list[Span] = []

    def fill(thread: int, low_ns: int, high_ns: int, depth: int) -> None:
        at_ns = low_ns
        while depth and at_ns < high_ns and draw(st.booleans()):
            begin_ns = draw(st.integers(at_ns, high_ns))
            until_ns = draw(st.integers(begin_ns, high_ns))
            type_ = draw(st.sampled_from(["a", "b", "c", None]))
            spans.append(a_span(type_, begin_ns, until_ns, thread=thread))
            fill(thread, begin_ns, until_ns, depth - 1)
            at_ns = until_ns

    for thread in range(draw(st.integers(0, 3))):
        fill(thread, 0, end_ns, 3)
    return a_step(*draw(st.permutations(spans)), end_ns=end_ns)


@given(st.lists(steps(), min_size=1, max_size=6))
def test_the_table_adds_up_to_the_step(made: list[Step]) -> None:
    profile = table(*made)

    total_ns = sum(times(profile).values()) + profile.outside_ns
    # Each figure is rounded by itself.
    assert total_ns == pytest.approx(profile.step_ns, abs=1 + len(profile.operators))
    assert profile.outside_ns >= 0
    for operator in profile.operators:
        assert 0 <= known(operator.min_ns) <= known(operator.max_ns)
        # Half a nanosecond may be lost in each.
        assert (
            known(operator.quiet_ns)
            <= known(operator.max_ns) * max(1.0, _most_calls(made, operator.type)) + 1
        )


def _most_calls(made: list[Step], type_: str) -> float:
    return max(sum(span.type == type_ for span in step.spans) for step in made)

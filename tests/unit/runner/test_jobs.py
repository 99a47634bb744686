"""Specifies the order, the ids and the first launches of a run's jobs."""

from corebound.records.launch_record import Launch
from support.runs import MODES, a_disturbed_outcome, a_runner, a_task, an_outcome, launched


def test_the_order_within_blocks_is_the_seeds() -> None:
    def order(seed: int) -> list[tuple[int, str]]:
        kept: list[Launch] = []
        a_runner(kept, a_task(bindings=MODES), seed=seed).run()
        return launched(kept)

    assert order(1) == order(1)
    assert order(1) != order(2)


def test_the_name_of_a_launch_that_is_made_again_is_that_of_the_first_whatever_it_is() -> None:
    kept: list[Launch] = []
    first = iter([a_disturbed_outcome()])

    a_runner(
        kept, a_task(name="is-it-again-slow"), launch=lambda _job: next(first, None) or an_outcome()
    ).run()

    assert kept[2].id == f"{kept[0].id}-again-1"

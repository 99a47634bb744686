"""What a launch of a server has of its own in each block, and which launches start at once."""

import sys
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path

import pytest
from msgspec.structs import replace

from corebound.launch.perf import CounterSupport
from corebound.runner import Job
from corebound.runner.launcher import Launcher, traffic_in_block
from support.build import a_traffic
from support.runs import a_task


def test_searches_for_a_rate_have_other_arrivals_in_each_block() -> None:
    traffic = a_traffic(shape="rate-search", seed=5)

    seeds = [traffic_in_block(traffic, block).seed for block in range(50)]

    assert seeds[0] == 5
    # A search takes the next seed when it tries a rate again.
    assert min(later - earlier for earlier, later in pairwise(seeds)) > 100


def test_other_traffic_is_the_same_in_each_block() -> None:
    traffic = a_traffic(shape="poisson", seed=5)

    assert traffic_in_block(traffic, 3) == traffic


@pytest.mark.parametrize(
    ("largest_bytes", "parts"),
    [
        (0, [["a", "b", "c", "d"]]),
        (25, [["a", "b", "c", "d"]]),
        (30, [["a", "b", "c"], ["d"]]),
        # Those that alternate stay together.
        (50, [["a", "b"], ["c", "d"]]),
        (200, [["a", "b"], ["c"], ["d"]]),
    ],
)
def test_as_many_start_at_once_as_the_largest_so_far_fits_into_the_memory(
    monkeypatch: pytest.MonkeyPatch, largest_bytes: int, parts: list[list[str]]
) -> None:
    # The package has a function of the module's name.
    module = sys.modules["corebound.runner.launcher"]
    monkeypatch.setattr(module, "available_memory_bytes", lambda _files: 100)
    job = Job(name="a", kind="measure", block=0, position=0, planned=a_task().planned[0])
    jobs = [
        replace(job, name=name, turn=turn) for name, turn in zip("abcd", (0, 0, 1, 2), strict=True)
    ]
    launcher = Launcher(
        scratch=Path(), traces_folder=Path(), tick=lambda: None, gpus=0,
        on_cpus=CounterSupport(), on_gpus=CounterSupport(), supervisions=[], stack=ExitStack(),
        peak_bytes={"a-scenario": largest_bytes},
    )  # fmt: skip

    assert [[one.name for one in part] for part in launcher._parts(jobs)] == parts

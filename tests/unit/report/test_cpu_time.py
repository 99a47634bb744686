"""The area of a picture of CPU × time is CPU time, whatever the number of threads."""

import itertools
import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from corebound.report.charts.cpu_time import INKS, CpuStay, CpuTime, Track, cpu_time_svg
from support.drawings import area, blocks

# The launches below consist of this many moments.
MOMENTS = 400


def a_launch(*tracks: Track, cpus: int = 2) -> CpuTime:
    return CpuTime(cpus=cpus, tracks=tracks, alt_text="CPU by time")


def a_track(ink: int, *stays: tuple[int, float, float], share: float = 1.0) -> Track:
    return Track(
        ink=ink,
        name=f"process {ink}",
        stays=tuple(CpuStay(cpu=cpu, begin=begin, end=end) for cpu, begin, end in stays),
        share=share,
    )


def filled(svg: str, rows: int) -> list[float]:
    """The share of each row that is filled."""
    shares = [0.0] * rows
    for ink in range(INKS):
        for _, top, width, height in blocks(svg, f"h{ink}"):
            # The middle is always in the rectangle's own row.
            shares[int((top + height / 2) * rows)] += width * height * rows
    return shares


def used(drawn: CpuTime, cpu: int) -> float:
    """The share of time for which a CPU was used, counted moment by moment.

    It is the CPU time of its threads, but no more than the time at which any was seen.
    """
    ran, seen = 0.0, set[int]()
    for track in drawn.tracks:
        for stay in track.stays:
            # A thread without CPU time fills nothing.
            if stay.cpu == cpu and track.share:
                moments = range(round(stay.begin * MOMENTS), round(stay.end * MOMENTS))
                seen.update(moments)
                ran += len(moments) * track.share
    return min(ran, len(seen)) / MOMENTS


def _moments(noise: random.Random, number: int) -> list[float]:
    return [at / MOMENTS for at in sorted(noise.sample(range(1, MOMENTS), number))]


@st.composite
def launches(draw: st.DrawFn) -> CpuTime:
    """Up to 384 threads that move between CPUs."""
    cpus, number = draw(st.sampled_from([1, 2, 16])), draw(st.sampled_from([1, 2, 16, 384]))
    # Drawn as a seed: thousands of single draws take minutes.
    noise = random.Random(draw(st.integers(0, 2**32)))  # no secret
    most = draw(st.floats(0.05, 4.0))
    tracks = []
    for at in range(number):
        cuts = _moments(noise, noise.randrange(2, 6))
        stays = [(noise.randrange(cpus), begin, end) for begin, end in itertools.pairwise(cuts)]
        share = min(1.0, noise.random() * most * cpus / number)
        tracks.append(a_track(at % INKS, *stays, share=share))
    return a_launch(*tracks, cpus=cpus)


@settings(max_examples=20)
@given(drawn=launches())
def test_the_filled_share_of_a_row_is_the_share_of_time_its_cpu_was_used(drawn: CpuTime) -> None:
    shares = filled(cpu_time_svg(drawn), drawn.cpus)

    assert shares == pytest.approx([used(drawn, cpu) for cpu in range(drawn.cpus)], abs=0.01)


@pytest.mark.parametrize("cpus", [16, 384])
def test_each_process_fills_its_share_of_the_time_of_all_cpus_at_384_threads(cpus: int) -> None:
    cuts = list(itertools.pairwise([0, *_moments(random.Random(cpus), 30), 1]))  # no secret
    # 12 processes of 32 threads that move at once; the later ones get more CPU time.
    tracks = [
        a_track(
            at // 32,
            *(((at + 7 * step) % cpus, *ends) for step, ends in enumerate(cuts)),
            share=(1 + at // 32) / 12 * cpus / 384,
        )
        for at in range(384)
    ]
    drawn = a_launch(*tracks, cpus=cpus)

    svg = cpu_time_svg(drawn)

    areas = [area(svg, f"h{ink}") for ink in range(12)]
    whole = sum(used(drawn, cpu) for cpu in range(cpus)) / cpus
    assert sum(areas) == pytest.approx(whole, abs=0.01)
    ran = [(1 + ink) / 78 * whole for ink in range(12)]
    assert areas == pytest.approx(ran, abs=0.005)


def test_threads_that_share_a_cpu_take_turns_in_proportion_to_their_cpu_time() -> None:
    svg = cpu_time_svg(
        a_launch(a_track(0, (0, 0, 1), share=0.75), a_track(1, (0, 0, 1), share=0.25), cpus=1)
    )

    assert area(svg, "h0") == pytest.approx(0.75, abs=0.01)
    assert area(svg, "h1") == pytest.approx(0.25, abs=0.01)
    at = Counter(x for kind in ("h0", "h1") for x, *_ in blocks(svg, kind))
    assert max(at.values()) == 1


def test_a_launch_that_ends_early_fills_its_part_of_the_time_scale() -> None:
    svg = cpu_time_svg(replace(a_launch(a_track(0, (0, 0, 1)), cpus=1), until=0.25))

    assert area(svg, "h0") == pytest.approx(0.25, abs=0.001)


def test_waiting_threads_have_the_area_of_a_cpu_each_on_the_same_scale() -> None:
    waits = replace(a_track(0, (0, 0, 1)), waiting=3.0)
    drawn = replace(a_launch(waits, cpus=2), per_waiting=1 / 2)

    svg = cpu_time_svg(drawn)

    # Five rows: two CPUs, of which one is used, and three threads that wait.
    assert area(svg, "h0") == pytest.approx(1 / 5, abs=0.001)
    assert area(svg, "wait h0") == pytest.approx(3 / 5, abs=0.001)
    assert drawn.most_waiting == pytest.approx(3)


def test_the_waiting_that_a_quota_causes_is_told_apart() -> None:
    waits = replace(a_track(0, (0, 0, 1)), waiting=2.0)
    svg = cpu_time_svg(replace(a_launch(waits, cpus=2), per_waiting=1 / 2, throttled=0.75))

    assert area(svg, "throttled") == pytest.approx(3 * area(svg, "wait h0"), abs=0.001)


def test_stolen_time_lies_above_used_time_and_never_over_it() -> None:
    stolen = a_track(0, (0, 0, 1), share=0.5)
    for share, left in ((0.25, 0.5), (0.75, 0.25)):
        launch = a_launch(a_track(0, (0, 0, 1), share=share), cpus=1)
        svg = cpu_time_svg(replace(launch, stolen=(stolen,)))

        assert area(svg, "h0") == pytest.approx(share, abs=0.01)
        assert area(svg, "stolen") == pytest.approx(left, abs=0.01)


@pytest.mark.parametrize("cpus", [16, 384])
def test_thousands_of_short_stays_are_a_small_drawing(cpus: int) -> None:
    tracks = [
        a_track(
            at % INKS,
            *((at * step % cpus, step / 1_000, (step + 1) / 1_000) for step in range(100)),
        )
        for at in range(384)
    ]

    assert len(cpu_time_svg(a_launch(*tracks, cpus=cpus))) < 40_000


def test_a_threads_name_cannot_break_out_of_the_drawing() -> None:
    track = replace(a_track(0, (0, 0, 1)), name="</title><script>")

    assert "<script" not in cpu_time_svg(a_launch(track))

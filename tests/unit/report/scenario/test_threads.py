"""Thread activity and warm-up: what is drawn of a launch, and the tables behind the charts."""

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from corebound.analysis.selection import latest_results
from corebound.machine.topology import CpuId
from corebound.records.launch_record import Launch, Stay, ThreadEvidence, TimeSlice
from corebound.records.telemetry import GpuUse, QuotaUse
from corebound.report.charts.cpu_time import INKS
from corebound.report.elements import Content
from corebound.report.scenario.launches import typical_launches
from corebound.report.scenario.threads import cpu_shares, thread_activity
from corebound.scenario.matrix import expand
from corebound.scenario.traffic import SampledRequest
from support.build import (
    a_host,
    a_host_over_time,
    a_launch,
    a_machine,
    a_run,
    a_scenario,
    a_served,
    a_thread,
    a_window,
    a_worker,
    an_answered,
)
from support.drawings import area


def activity_of(*launches: Launch, cores: int = 2) -> Content:
    """What is drawn of the baseline's launch and of others, in the order of their cells."""
    cells = expand(a_scenario(), "s.yaml")
    own = tuple(replace(launch, cell=cells[at]) for at, launch in enumerate(launches))
    run = replace(a_run(), host=a_machine(topology=a_host(cores_per_node=cores)))
    (result,) = latest_results([(run, own)])
    found = thread_activity(result, typical_launches(result))
    assert found is not None
    return found


def processes(number: int, threads: int) -> Launch:
    """Processes of many threads, each of which uses 30 ms of a second and waits for 500."""
    return a_launch(
        workers=tuple(
            replace(a_worker(slot=slot, threads=of_process(slot, threads)), threads_used=threads)
            for slot in range(number)
        )
    )


def of_process(pid: int, threads: int) -> tuple[ThreadEvidence, ...]:
    return tuple(
        replace(
            a_thread(
                tid=100 * pid + at,
                stays=((at % 16, 0, 1000),),
                run_ns=30_000_000,
                wait_ns=500_000_000,
            ),
            pid=pid,
        )
        for at in range(threads)
    )


def inks(found: Content, panel: int = 0) -> set[int]:
    return {track.ink for track in found.panels[panel].drawn.tracks}


def values(found: Content, panel: int = 0) -> dict[str, str]:
    return {fact.says: fact.value for fact in found.panels[panel].values}


def test_each_of_12_processes_of_32_threads_has_one_colour_and_one_row_in_the_table() -> None:
    found = activity_of(processes(12, 32), cores=16)

    assert found.noun == "process"
    assert inks(found) == set(range(12))
    assert [name for name, _ in found.panels[0].cpu_shares] == [f"process {at}" for at in range(12)]
    assert len(found.panels[0].drawn.tracks) == 384


def test_threads_of_one_process_have_a_colour_each_until_there_are_too_many() -> None:
    assert inks(activity_of(processes(1, 6), cores=16)) == set(range(6))
    assert inks(activity_of(processes(1, 32), cores=16)) == set(range(INKS))
    assert inks(activity_of(processes(1, 33), cores=16)) == {0}


def test_a_process_that_hardly_runs_does_not_hide_the_threads_of_the_other() -> None:
    worker = replace(a_worker(), threads=of_process(1, 4))
    helper = replace(a_thread(tid=9, run_ns=100_000), pid=9)

    found = activity_of(a_launch(workers=(replace(worker, threads=(*worker.threads, helper)),)))

    assert found.noun == "thread"


def test_the_values_say_how_many_cpus_are_in_use_and_how_many_threads_wait() -> None:
    said = values(activity_of(processes(12, 32), cores=16))

    assert said["CPUs in use, on average"] == "11.5"
    assert said["threads waiting for a CPU, on average"] == "192"


def test_both_launches_have_one_time_scale() -> None:
    slow = a_launch(workers=(a_worker(threads=(a_thread(stays=((0, 0, 4000),)),)),))
    fast = a_launch(workers=(a_worker(threads=(a_thread(stays=((0, 0, 1000),)),)),))

    found = activity_of(slow, fast)

    assert [panel.drawn.until for panel in found.panels] == [1.0, 0.25]
    assert found.panels[0].times == found.panels[1].times
    assert [bool(panel.done) for panel in found.panels] == [False, True]


def test_time_in_which_a_launch_was_paused_is_left_out() -> None:
    worker = a_worker(
        # The first iteration is before the start signal.
        wall_ns=(10**9, *(250_000_000,) * 4),
        threads=(a_thread(stays=((0, 0, 500), (1, 2500, 3000)), run_ns=10**9),),
    )
    slices = (TimeSlice(iterations=2, began_us=0), TimeSlice(iterations=2, began_us=2_500_000))
    launch = replace(a_launch(workers=(replace(worker, time_slices=slices),)), alternated=("a-1",))

    found = activity_of(launch)

    assert values(found)["CPUs in use, on average"] == "1.00"
    (track,) = found.panels[0].drawn.tracks
    assert [(stay.cpu, stay.begin, stay.end) for stay in track.stays] == [(0, 0, 0.5), (1, 0.5, 1)]


@pytest.mark.parametrize(("throttled_ns", "share"), [(None, 0.0), (125_000_000, 0.25)])
def test_a_quota_explains_its_part_of_the_waiting(throttled_ns: int | None, share: float) -> None:
    quota = QuotaUse(
        cpus=1.0, period_us=100_000, periods=9, throttled_periods=9, throttled_ns=throttled_ns
    )

    found = activity_of(replace(processes(1, 1), quota=quota), cores=16)

    assert found.panels[0].drawn.throttled == pytest.approx(share)
    assert ("throttled" in _kinds(found.key)) == bool(share)


def test_stolen_time_is_drawn_evenly_on_the_launchs_cpus_while_it_was_stolen() -> None:
    host = a_host_over_time(
        a_window(from_ms=0, to_ms=500, steal_ms=0),
        a_window(from_ms=500, to_ms=1000, steal_ms=100),
        cpus=(0, 1),
    )
    launch = a_launch(workers=(a_worker(threads=(a_thread(stays=((0, 0, 500), (1, 500, 1000))),)),))

    found = activity_of(replace(launch, host=host))

    (window,) = found.panels[0].drawn.stolen
    assert window.share == pytest.approx(0.1)
    assert [(stay.cpu, stay.begin) for stay in window.stays] == [(0, 0.5), (1, 0.5)]
    assert "stolen" in _kinds(found.key)


def served(*sampled: SampledRequest, workers: int = 1) -> Launch:
    """A server whose workers each used half of 10 s; requests came from the second second on."""
    answered = an_answered(latencies_ns=(10**6,) * 1000, sampled=sampled)
    thread = a_thread(stays=((0, 0, 10_000),), run_ns=5 * 10**9, wait_ns=10**9)
    return replace(
        a_launch(workers=tuple(a_worker(slot=slot, threads=(thread,)) for slot in range(workers))),
        served=replace(a_served(answered=answered), began_us=1_000_000),
    )


def of_two_connections() -> tuple[SampledRequest, ...]:
    """Each takes 200 ms; the last one arrives after a second."""
    return tuple(
        SampledRequest(begin_ms * 1000, (begin_ms + 200) * 1000, None, True)
        for begin_ms in range(0, 1001, 200)
        for _ in range(2)
    )


def test_a_server_is_drawn_for_as_long_as_its_sampled_requests_came() -> None:
    found = activity_of(served(*of_two_connections()))

    (panel,) = found.panels
    ((drawing, _, _),) = panel.above
    assert panel.caption.startswith("the first 12 requests in 1.00 s")
    assert "2.00 requests in flight, on average" in drawing
    # Half of a CPU is in use over the whole launch, so in its second second, too.
    assert values(found)["CPUs in use, on average"] == "0.500"
    (track,) = panel.drawn.tracks
    assert (track.share, [(stay.begin, stay.end) for stay in track.stays]) == (0.5, [(0, 1)])


def test_requests_of_older_records_are_not_drawn() -> None:
    launch = served(*of_two_connections())

    assert launch.served is not None
    old = replace(launch, served=replace(launch.served, began_us=None))
    assert activity_of(old).panels[0].above == ()


def test_the_busy_share_of_a_gpu_is_above_the_cpus_from_its_first_reading_of_the_launch_alone() -> (
    None
):
    shares = (0.9, 0.9, 0.9, 0.9, 0.1, 0.3, 0.2, 0.2)
    windows = (
        a_window(
            from_ms=500 * at,
            to_ms=500 * (at + 1),
            gpus=(
                GpuUse(id="0", busy_share=0.0, memory_bytes=1),
                GpuUse(id="1", busy_share=share, memory_bytes=1),
            ),
        )
        for at, share in enumerate(shares)
    )
    worker = a_worker(threads=(a_thread(stays=((0, 0, 4000),)),))
    launch = replace(a_launch(workers=(worker,)), host=a_host_over_time(*windows))

    found = activity_of(launch)

    ((drawing, _, rows),) = found.panels[0].above
    assert [row.text for row in rows] == ["GPU 1"]
    # The reading at 2 s covers the second before it; the four after it are 20 % on average.
    assert values(found)["of the time GPU 1 is busy (10 % to 90 %)"] == "34 %"
    # Of the whole width: 0.34 of the 2.5 s from 1.5 s on.
    assert area(drawing, f"h{INKS - 1}") == pytest.approx(0.34 * 2.5 / 4, abs=0.01)


def _kinds(key: Sequence[tuple[str, str]]) -> set[str]:
    return {kind for kind, _ in key}


def a_stay(cpu: int, from_ms: int, to_ms: int) -> Stay:
    return Stay(cpu=CpuId(cpu), from_ms=from_ms, to_ms=to_ms)


def test_a_strip_is_summarised_as_shares_of_time_per_cpu() -> None:
    # Before 0 the worker had not been told to go.
    stays = (a_stay(0, -50, 25), a_stay(1, 25, 100))

    assert cpu_shares([("thread 0: python", stays)]) == (
        ("thread 0: python", "CPU 1 75 %, CPU 0 25 %"),
    )


def test_a_thread_without_sampled_time_has_no_cpus() -> None:
    assert cpu_shares([("thread 0", (a_stay(0, 5, 5),))]) == (("thread 0", ""),)

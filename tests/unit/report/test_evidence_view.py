"""The line of figures beneath a strip: what was seen, and what could not be."""

from collections.abc import Iterable

from msgspec.structs import replace

from corebound.analysis.launch_facts import counter_facts, cpu_of, host_state, migration_facts
from corebound.analysis.scenario_result import CellResult, analyse_scenario
from corebound.records.telemetry import Counters, Disturbance, GpuUse, HostWindow
from corebound.scenario.matrix import expand
from support.build import (
    a_host,
    a_host_over_time,
    a_launch,
    a_quota_use,
    a_run,
    a_scenario,
    a_thread,
    a_window,
    a_worker,
)


def told(figures: Iterable[tuple[str, str]]) -> dict[str, str]:
    return {says: value for value, says in figures}


def test_figures_are_shares_of_the_time_that_was_watched() -> None:
    # 25 of 500 ms on two CPUs, and of the host's time.
    window = a_window(
        steal_ms=25,
        foreign_ms=50,
        throttled_ms=5,
        cpu_pressure_ns=25_000_000,
        frequency_hz=2_100_000_000,
    )
    fast = a_window(from_ms=500, to_ms=1000, throttled_ms=0, cpu_pressure_ns=25_000_000)
    host = a_host_over_time(window, replace(fast, frequency_hz=3_400_000_000), cpus=(0, 1))

    assert told(host_state(replace(a_launch(), host=host))) == {
        "CPU time stolen by the hypervisor": "1.2 %",
        "CPU time used by other programs": "2.5 %",
        "CPU pressure on the host": "5.0 %",
        "memory pressure on the host": "unavailable",
        "I/O pressure on the host": "unavailable",
        "throttled by a quota": "0.5 %",
        "clock": "2.10 to 3.40 GHz",
    }


def test_what_the_host_does_not_tell_is_unavailable_and_never_zero() -> None:
    host = a_host_over_time(a_window(steal_ms=None, foreign_ms=None, throttled_ms=None))

    assert set(told(host_state(replace(a_launch(), host=host))).values()) == {"unavailable"}
    without = replace(host, unavailable={"throttling": "no cgroup above it rations CPU time"})
    assert told(host_state(replace(a_launch(), host=without)))["throttled by a quota"] == "no quota"


def test_what_a_quota_did_is_told_in_periods() -> None:
    quota = a_quota_use(cpus=1.5, periods=1_200, throttled=900)
    launch = replace(a_launch(), host=a_host_over_time(a_window()), quota=quota)

    facts = told(host_state(launch))
    assert facts["CPU quota"] == "1.5 CPUs"
    assert facts["periods throttled by it"] == "900 of 1,200"
    assert facts["CPU time throttled"] == "36.0 s"


def test_memory_faults_and_what_the_kernel_took_are_told_where_they_were_seen() -> None:
    early = a_window(user_ns=90, system_ns=10, rss_bytes=3 << 30, minor_faults=700, major_faults=0)
    late = a_window(user_ns=60, system_ns=40, rss_bytes=1 << 30, minor_faults=300, major_faults=2)

    figures = told(host_state(replace(a_launch(), host=a_host_over_time(early, late))))

    assert figures["CPU time in the kernel"] == "25 %"
    assert figures["peak memory"] == "3.0 GiB"
    assert figures["minor and major page faults"] == "1,000 and 2"


def test_the_busiest_gpu_is_told_over_the_whole_launch() -> None:
    def busy(*shares: float | None) -> HostWindow:
        uses = (
            GpuUse(id=str(at), busy_share=value, memory_bytes=1) for at, value in enumerate(shares)
        )
        return a_window(to_ms=2_500, gpus=tuple(uses))

    def gpu(*windows: HostWindow) -> str | None:
        figures = told(host_state(replace(a_launch(), host=a_host_over_time(*windows))))
        return figures.get("time a GPU was busy")

    assert gpu(busy(0.1, 0.9), busy(0.5, 0.2)) == "70 %"
    assert gpu(busy(None)) == "unavailable"
    # A reading before that may be of the time before the launch, in which no kernel ran.
    assert gpu(replace(busy(0.0), to_ms=500), replace(busy(0.0), to_ms=1_900)) == "unavailable"
    assert gpu(replace(busy(0.0), to_ms=500), busy(0.8)) == "80 %"
    assert gpu(a_window()) is None


def test_moves_that_were_seen_are_told_by_how_far_they_went() -> None:
    # CPUs 0 and 1 are a core's, 0 to 3 a node's.
    stays = ((0, 0, 10), (1, 10, 20), (2, 20, 30), (4, 30, 40), (4, 60, 70), (0, 70, 80))
    launch = a_launch(workers=(a_worker(threads=(a_thread(stays=stays),)),))
    host = a_host(nodes=2, cores_per_node=2, cpus_per_core=2)

    assert told(migration_facts(launch, host)) == {
        "of the sampled migrations": "1 within a core, 1 across cores, 2 across nodes"
    }


def test_a_launch_that_was_disturbed_says_so_first() -> None:
    found = Disturbance(share=0.75, by=("steal", "foreign load"), evidence=())
    launch = replace(a_launch(), host=a_host_over_time(a_window()), disturbance=found)

    first = host_state(launch)[0]

    assert (first.value, first.says) == ("75 %", "disturbed by steal and foreign load")


def test_records_of_a_corebound_that_did_not_look_have_no_such_figures() -> None:
    assert host_state(a_launch()) == counter_facts(a_launch()) == ()


def test_counters_that_a_host_has_not_are_unavailable() -> None:
    plain = replace(a_launch(), counters=Counters(source="proc", task_clock_ns=1))
    some = replace(a_launch(), counters=Counters(source="perf", cycles=10, instructions=25))

    assert told(counter_facts(plain)) == {"hardware counters": "unavailable"}
    assert told(counter_facts(some)) == {
        "instructions per cycle": "2.50",
        "pipeline slots core bound and memory bound": "unavailable",
    }


def of_iterations(wall_ns: int, cpu_ns: int) -> CellResult:
    """A cell of one launch, whose iterations take so long and so much CPU time."""
    scenario = a_scenario()
    (cell, *_) = expand(scenario, "s.yaml")
    worker = a_worker(wall_ns=(wall_ns,) * 30, cpu_ns=(cpu_ns,) * 30)
    run = a_run(scenarios=(scenario,))
    return analyse_scenario(run, run.scenarios[0], [a_launch(cell=cell, workers=(worker,))]).cells[
        0
    ]


def test_cpu_time_is_left_out_where_reading_its_clock_takes_some_of_it() -> None:
    assert told(cpu_of(of_iterations(7_594, 9_457))) == {
        "CPU time: an iteration is too short for the CPU clock": "–"
    }
    assert told(cpu_of(of_iterations(1_000_000, 1_500_000))) == {
        "CPU time per iteration (1.5 CPUs busy)": "1.50 ms"
    }

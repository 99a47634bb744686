"""Rules on the host and its counters, on launches put together; real loads are in
tests/integration/test_disturbance.py."""

import pytest
from msgspec.structs import replace

from corebound.diagnosis.evidence import CellEvidence, spin_share
from corebound.launch import perf
from corebound.records.telemetry import Counters, HostOverTime
from corebound.scenario.runtimes import Framework
from corebound.stats.interference import disturbance, disturbed_ranges
from support.build import a_host, a_host_over_time, a_quota_use, a_window
from support.findings import cell_evidence, cell_keys, findings_in, measured_cell
from support.paths import DATA

TWO_NODES = a_host(nodes=2, cores_per_node=2)


def on(host: HostOverTime, *, refused: int = 0, framework: Framework = "none") -> CellEvidence:
    """A cell of four launches of 100 ms iterations over that host."""
    launches = []
    measured = measured_cell(100.0, axes=(("threads", "1"),), framework=framework)
    for place, launch in enumerate(measured.launches):
        workers = tuple(
            replace(finding_of_cell, disturbed=disturbed_ranges(finding_of_cell, host))
            for finding_of_cell in launch.workers
        )
        finding = disturbance(workers, host)
        is_refused = finding is not None and place < refused
        if finding is not None:
            finding = replace(finding, refused=is_refused)
        launches.append(
            replace(
                launch,
                workers=workers,
                host=host,
                disturbance=finding,
                status="invalid" if is_refused else "ok",
            )
        )
    return cell_evidence(launches)


def windows(*, bad: int = 6, **figures: int) -> HostOverTime:
    """Three seconds, of which so many halves had these figures."""
    return a_host_over_time(
        *(
            a_window(from_ms=500 * at, to_ms=500 * at + 500, **(figures if at < bad else {}))
            for at in range(6)
        )
    )


@pytest.mark.parametrize(
    ("figures", "rule", "says", "fixes"),
    [
        ({"foreign_ms": 250, "waited_ms": 250}, "foreign-load", "foreign load", "corebound doctor"),
        ({"steal_ms": 250}, "steal", "steal", "dedicated CPUs"),
        ({"throttled_ms": 250}, "throttled", "throttling", "quota"),
    ],
)
def test_a_cause_that_disturbed_most_of_a_launch_is_reported_with_its_fix(
    figures: dict[str, int], rule: str, says: str, fixes: str
) -> None:
    finding = findings_in(on(windows(**figures)))

    assert list(finding) == [rule]
    assert cell_keys(finding[rule]) == ["threads=1"]
    assert any(says in line and "50 % of" in line for line in finding[rule].evidence)
    assert fixes in finding[rule].fix
    assert finding[rule].times_ratio == 2.0


@pytest.mark.parametrize(
    ("faults", "system_ms", "is_found"),
    [
        (20_000, 100, True),
        # The kernel is busy with something else: 5 ms for each fault.
        (20, 100, False),
        # Page faults, but a twentieth of the time.
        (20_000, 25, False),
    ],
)
def test_memory_that_is_returned_and_taken_again_is_reported(
    faults: int, system_ms: int, is_found: bool
) -> None:
    host = windows(
        minor_faults=faults, system_ns=system_ms * 1_000_000, user_ns=(500 - system_ms) * 1_000_000
    )

    findings = findings_in(on(host, framework="pytorch"))

    assert ("memory-returned" in findings) == is_found
    if is_found:
        # 6 windows, 29 iterations after the first.
        assert "20 %" in findings["memory-returned"].what
        assert "4,138 page faults per iteration" in findings["memory-returned"].what
    assert "memory-returned" not in findings_in(on(host))


def limited(
    ms: float, *, cpus: float | None, used: int, threads: str, throttled: int = 80
) -> CellEvidence:
    """A cell with a quota of half a CPU, of its own unless `cpus` is None; of 100 periods."""
    axes = (("threads", threads),)
    launches = [
        replace(
            launch,
            cell=replace(launch.cell, cpu_quota=cpus),
            quota=a_quota_use(throttled=throttled),
        )
        for launch in measured_cell(ms, axes=axes, used=used).launches
    ]
    return cell_evidence(launches)


def test_more_threads_than_a_quota_allows_are_named_with_their_number() -> None:
    host, quota = (
        limited(80.0, cpus=0.5, used=2, threads="host-cores"),
        limited(50.0, cpus=0.5, used=1, threads="quota", throttled=5),
    )

    finding = findings_in(host, quota)["more-threads-than-quota"]

    assert cell_keys(finding) == ["threads=host-cores"]
    assert finding.tone == "bad"
    assert finding.what == (
        "Throttled by its CPU quota of 0.5 CPUs: 80 % of periods; an iteration is 1.60× slower"
        " than with `threads: quota`."
    )
    assert finding.evidence[:2] == (
        "80 of 100 periods throttled, for 3.20 s of CPU time",
        "2 threads for 0.5 CPUs",
    )
    assert "OMP_NUM_THREADS=1" in finding.fix
    assert finding.times_ratio == pytest.approx(1.6)


def test_a_quota_from_outside_is_diagnosed_too() -> None:
    cell = limited(80.0, cpus=None, used=2, threads="default")

    finding = findings_in(cell)["more-threads-than-quota"]

    assert finding.tone == "bad"
    assert "threads: quota" in finding.fix
    assert "--cpus" in finding.fix


def test_one_thread_that_needs_more_than_its_quota_is_no_fault_of_its_threads() -> None:
    finding = findings_in(limited(80.0, cpus=0.5, used=1, threads="quota"))["throttled"]

    assert finding.tone == "warn"
    assert "OMP_NUM_THREADS" not in finding.fix


def test_iterations_shorter_than_a_period_say_that_their_median_hides_the_stops() -> None:
    walls_ms = (5.0,) * 9 + (60.0,)
    cell = limited(5.0, cpus=0.5, used=1, threads="quota")
    short = measured_cell(5.0, axes=(("threads", "quota"),), walls_ms=walls_ms * 3)
    launches = [
        replace(launch, workers=of_short.workers)
        for launch, of_short in zip(cell.launches, short.launches, strict=True)
    ]

    finding = findings_in(cell_evidence(launches))["throttled"]

    assert any("mean" in line and "median" in line for line in finding.evidence)


def test_a_quota_that_hardly_stops_threads_is_not_reported() -> None:
    assert findings_in(limited(80.0, cpus=1.5, used=1, threads="quota", throttled=3)) == {}


def test_discarded_and_kept_launches_are_counted_separately() -> None:
    finding = findings_in(on(windows(steal_ms=250), refused=2))["steal"]

    assert finding.evidence[-2:] == ("2 launches kept and marked", "2 launches without results")


def test_a_second_cause_that_took_almost_nothing_is_not_reported() -> None:
    stolen = a_window(from_ms=3000, to_ms=3500, steal_ms=150, foreign_ms=400, waited_ms=400)
    host = windows(foreign_ms=400, waited_ms=400)

    finding = findings_in(on(replace(host, windows=(*host.windows, stolen))))

    # 150 ms of 3.5 s on one CPU: 0.04 of it.
    assert list(finding) == ["foreign-load"]


@pytest.mark.parametrize(
    "host",
    [
        windows(),
        windows(bad=2, steal_ms=250),  # a third of the iterations: the median is of others
        windows(foreign_ms=400, waited_ms=10),  # on CPUs that it left idle
        windows(foreign_ms=20, waited_ms=20, steal_ms=10),
    ],
)
def test_a_quiet_launch_is_not_reported(host: HostOverTime) -> None:
    assert findings_in(on(host)) == {}


def counting(counters: Counters | None) -> CellEvidence:
    finding_of_cell = measured_cell(10.0, slots=((0, 1),))
    return cell_evidence(
        [replace(launch, counters=counters) for launch in finding_of_cell.launches]
    )


def slots(memory: float, core: float) -> Counters:
    backend = memory + core
    return Counters(
        source="perf",
        cycles=100,
        instructions=80,
        slots={
            "retiring": 0.9 - backend,
            "bad_speculation": 0.05,
            "frontend_bound": 0.05,
            "backend_bound": backend,
            "memory_bound": memory,
            "core_bound": core,
        },
    )


PERF = DATA / "perf"


@pytest.mark.parametrize(
    ("name", "slots_printed", "rules"),
    [
        ("topdown-waits-for-memory", (0.305, 0.227), ["memory-bound"]),
        ("topdown-waits-for-units", (0.127, 0.190), ["core-bound"]),
        ("topdown-waits-little", (0.172, 0.160), []),
    ],
)
def test_counters_of_real_processors_are_classified(
    name: str, slots_printed: tuple[float, float], rules: list[str]
) -> None:
    counts = perf.parse((PERF / f"{name}.csv").read_text(encoding="utf-8"))
    counters = Counters(source="perf", **perf.counter_fields(counts))

    # As perf itself printed them beside the counts.
    shares = (counters.slots["memory_bound"], counters.slots["core_bound"])
    assert shares == pytest.approx(slots_printed, abs=0.001)
    assert list(findings_in(counting(counters))) == rules


def test_slots_that_wait_for_memory_are_memory_bound() -> None:
    finding = findings_in(counting(slots(0.5, 0.1)))

    assert list(finding) == ["memory-bound"]
    assert "50 % of its pipeline slots" in finding["memory-bound"].what
    assert finding["memory-bound"].evidence[0] == "instructions per cycle: 0.80"


def test_slots_that_wait_for_units_are_core_bound() -> None:
    plain = findings_in(counting(slots(0.1, 0.4)))
    smt = findings_in(counting(slots(0.1, 0.4)), topology=a_host(cores_per_node=1, cpus_per_core=2))

    assert list(plain) == list(smt) == ["core-bound"]
    assert "bfloat16" in plain["core-bound"].fix
    assert "physical-cores" in smt["core-bound"].fix


@pytest.mark.parametrize(
    "counters", [slots(0.05, 0.1), Counters(source="perf"), Counters(source="proc"), None]
)
def test_a_pipeline_that_seldom_waits_or_was_not_counted_is_not_reported(
    counters: Counters | None,
) -> None:
    assert findings_in(counting(counters)) == {}


def test_loads_from_another_node_are_reported() -> None:
    far = Counters(source="perf", llc_misses=1000, remote_loads=400)
    near = replace(far, remote_loads=20)

    finding = findings_in(counting(far), topology=TWO_NODES)

    assert "40 % of the loads" in finding["remote-loads"].what
    assert findings_in(counting(near), topology=TWO_NODES) == {}
    assert findings_in(counting(far)) == {}


def test_spinning_is_bounded_by_the_least_cpu_time_of_the_same_work() -> None:
    # 1 - 10/40; another batch is other work.
    spins = measured_cell(10.0, cpu_ms=40.0, axes=(("threads", "4"), ("batch", "1")))
    best = measured_cell(10.0, cpu_ms=10.0, axes=(("threads", "1"), ("batch", "1")))
    other = measured_cell(10.0, cpu_ms=1.0, axes=(("threads", "1"), ("batch", "8")))
    among = [finding_of_cell.summary for finding_of_cell in (spins, best, other)]

    assert spin_share(spins.summary, among) == pytest.approx(0.75)
    assert spin_share(best.summary, among) == 0.0
    assert spin_share(other.summary, among) is None

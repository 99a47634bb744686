"""A host's page: the doctor's results over time, and the noise floor."""

from msgspec.structs import replace

from corebound.analysis.host_records import group_by_host
from corebound.machine.doctor.result import HostCheck, State
from corebound.records.run_record import Run
from corebound.report.downloads import host_json
from corebound.report.elements import Content
from corebound.report.pages.hosts import host_page
from support.build import a_host_check, a_run
from support.machine_trees import check_results, pid_stat, proc_stat
from support.report_sample import NOW


def looked(day: int, state: State) -> tuple[Run, tuple[()]]:
    """A run of a day, whose doctor saw one thing."""
    check = a_host_check(
        check="governor",
        state=state,
        value=f"seen {day}",
        why="clocks differ",
        fix="cpupower frequency-set -g performance",
    )
    run = a_run(run_id=f"r{day}", started_at=f"2026-03-{day:02}T02:00:00Z")
    return replace(run, preflight=(check,)), ()


def check(*states: State) -> Content:
    (result,) = group_by_host([looked(day, state) for day, state in enumerate(states, 1)])
    checks: tuple[Content, ...] = host_page(result, now=NOW).checks
    (row,) = checks
    return row


def test_a_check_shows_how_it_was_run_by_run() -> None:
    row = check("ok", "ok", "warning", "unavailable", "warning")

    assert row.recent_states == (("ok", 2), ("warning", 1), ("unavailable", 1), ("warning", 1))
    assert (row.warned, row.runs) == (2, 5)
    assert row.since.started_at == "2026-03-05T02:00:00Z"


BUSY = check_results(
    {"proc/200/stat": pid_stat("a (b) c", 100)},
    later={
        # 50 ticks went by on each of two CPUs: 40 of them are 80 % of one, 15 are 30 %.
        "proc/stat": proc_stat(user=55, idle=10_045),
        "proc/200/stat": pid_stat("a (b) c", 140),
        "proc/202/stat": pid_stat("x (12) 3", 15, started=999),
    },
)["busy processes"].recorded


def a_checked_run(*check: HostCheck) -> Run:
    return replace(a_run(run_id="r1", started_at="2026-03-01T02:00:00Z"), preflight=check)


def test_processes_of_then_have_no_ids_on_a_hosts_page() -> None:
    (result,) = group_by_host([(a_checked_run(BUSY), ())])

    (row,) = host_page(result, now=NOW).checks
    assert row.latest.value == "110 % of a CPU: a (b) c 80 %, x (12) 3 30 %"
    assert row.latest.fix == "measure when these processes have ended"
    assert "kill" not in host_json(result)
    assert "(200)" not in host_json(result)

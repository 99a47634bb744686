"""The page that lists the hosts, where there are several."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from corebound.analysis.host_records import HostRecords
from corebound.analysis.wording import count, day, rich
from corebound.records.run_record import Run
from corebound.report.elements import Head, Hero
from corebound.report.scenario.provenance import topology_text
from corebound.report.urls import host_file


class HostRow(Struct, frozen=True, kw_only=True):
    """A host, as its latest run saw it.

    Attributes:
        address: Its page.
        topology: Its sockets, cores and CPUs in words.
        latest: Its latest run.
        runs: The number of its runs.
    """

    address: str
    topology: str
    latest: Run
    runs: int


class HostsPage(Struct, frozen=True, kw_only=True):
    """Every host, the one with the latest run first."""

    head: Head
    hero: Hero
    rows: tuple[HostRow, ...]


def hosts_page(hosts: Sequence[HostRecords], *, now: str) -> HostsPage:
    """Build the page.

    Args:
        hosts: The hosts, at least one.
        now: ISO timestamp of the page.
    """
    latest_first = sorted(hosts, key=lambda host: host.runs[-1].started_at, reverse=True)
    latest = latest_first[0].runs[-1]
    return HostsPage(
        head=Head(
            title="Corebound: hosts",
            description="Every host with recorded runs.",
            root="",
            made=f"Page made {day(now)}.",
        ),
        hero=Hero(
            title="Hosts",
            question="",
            context="",
            verdict=rich(f"{count(len(hosts), 'host')}, {_runs(hosts)}."),
            support=rich(f"Latest run: {day(latest.started_at)} on {latest.host.name}."),
            flags=(),
        ),
        rows=tuple(
            HostRow(
                address=host_file(host.runs[-1].host.id),
                topology=topology_text(host.runs[-1].host.topology),
                latest=host.runs[-1],
                runs=len(host.runs),
            )
            for host in latest_first
        ),
    )


def _runs(hosts: Sequence[HostRecords]) -> str:
    return count(sum(len(host.runs) for host in hosts), "run")

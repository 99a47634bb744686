"""The site of a generated fleet: an outlier host, classes that differ, and a shared regression."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.fleet import StubFleet, write_fleet

from corebound.analysis.host_comparison import compare_hosts
from corebound.records import jsonl
from corebound.stats.history.pooled import pooled_series
from corebound.stats.history.series import joined, series_of_run
from corebound.workflow.hosts import read_hosts

_FLEET = StubFleet(
    hosts=24, nights=14, cells=2, slow_host=8, gains={"arm-1s": 0.8}, regression=(8, 1.1)
)


def fleet_inputs() -> dict[str, Any]:
    """What the site of the fleet is made of: its series, and the runs of the last night."""
    with TemporaryDirectory() as folder:
        records = Path(folder)
        write_fleet(_FLEET, records)
        runs = [jsonl.read(file) for file in jsonl.files(records)]
        hosts = compare_hosts([*read_hosts(records, [])])
    series = joined(each for stored in runs for each in series_of_run(stored.run, stored.launches))
    last = max(stored.run.started_at for stored in runs)
    return {
        "records": [
            (stored.run, stored.launches) for stored in runs if stored.run.started_at == last
        ],
        "series": (*series, *pooled_series(series, {})),
        "hosts": hosts,
    }

"""Runs ApacheBench in the generator's place, on its CPUs and as its child."""

from __future__ import annotations

import resource
import subprocess
import tempfile
from pathlib import Path

from corebound.errors import HostError
from corebound.model.traffic import Answered, GeneratorOrder, Warmed
from corebound.serving import ab
from corebound.serving.generator.clock import clock_ns


class Apache:
    """One order's ab, started once for the warm-up and once to measure."""

    def __init__(self, order: GeneratorOrder) -> None:
        """Nothing is started yet."""
        self._order = order

    def warm_up(self) -> Warmed:
        """Send the warm-up requests, if any are asked for.

        Raises:
            CoreboundError: ab is missing, or has given up.
        """
        requests = self._order.traffic.warmup_requests
        if not requests:
            return Warmed(ok=0, errors={})
        output, _, _ = self._run(requests)
        return ab.warmed(output, requests=requests)

    def measure(self) -> Answered:
        """Send what is measured.

        Raises:
            CoreboundError: ab is missing, or has given up.
        """
        began_ns, cpu_ns = clock_ns(), _children_cpu_ns()
        output, percentiles, times = self._run(self._order.traffic.requests)
        return ab.answered(
            output,
            percentiles,
            times,
            order=self._order,
            began_ns=began_ns,
            cpu_ns=_children_cpu_ns() - cpu_ns,
            wall_ns=clock_ns() - began_ns,
        )

    def _run(self, requests: int) -> tuple[str, str, str]:
        """What it printed, its percentiles, its times."""
        with tempfile.TemporaryDirectory(prefix="ab-") as folder:
            percentiles, times = Path(folder, "percentiles.csv"), Path(folder, "times.tsv")
            words = ab.argv(
                self._order, requests=requests, percentiles=str(percentiles), times=str(times)
            )
            try:
                done = subprocess.run(words, capture_output=True, check=False, text=True)
            except FileNotFoundError as error:
                raise HostError(
                    what="ApacheBench is not installed.", where="ab", mend=ab.MISSING_MEND
                ) from error
            if done.returncode or not percentiles.exists() or not times.exists():
                raise ab.gave_up(done.returncode, done.stderr)
            return done.stdout, percentiles.read_text(), times.read_text()


def _children_cpu_ns() -> int:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return round((used.ru_utime + used.ru_stime) * 1e9)

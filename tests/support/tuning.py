"""Runs of `corebound tune` whose launches take planted times."""

import random
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from corebound.analysis.tuning import TuneResult, analyse_tuning, race_state, raced_cells
from corebound.analysis.tuning_checks import ArtefactProof, launched_proof
from corebound.planning.artefacts import artefacts
from corebound.present.tune import provenance
from corebound.records.launch_record import Launch
from corebound.records.race import NotTried, RaceRule, RaceSetup
from corebound.records.run_record import Run
from corebound.scenario.cell import Cell
from corebound.scenario.matrix import expand
from corebound.scenario.models import Scenario
from corebound.stats.launch_summary import LaunchSummary, summarise_launch
from support.build import a_launch, a_placement, a_run, a_scenario, a_worker

DEFAULT = "binding=none,threads=default"
ONE_THREAD = "binding=none,threads=1"
BOUND = "binding=physical-cores,threads=per-core"
ONE_CPU = "binding=one-cpu,threads=1"


TUNE_PAGE = "tune/a-host-0123456789ab-a-scenario-latency.html"


def a_tuning() -> tuple[TuneResult, tuple[ArtefactProof, ...]]:
    """A race that the physical cores win, with the files that set them."""
    times_ms = {DEFAULT: 10.0, ONE_THREAD: 14.0, BOUND: 8.0, ONE_CPU: 15.0}
    cpu_ms = {DEFAULT: 20.0, ONE_THREAD: 14.0, BOUND: 16.0, ONE_CPU: 15.0}
    result = analyse_tuning(*a_tuned_run(times_ms, cpu_ms=cpu_ms))
    example = result.examples[BOUND]
    assert example.placement is not None
    about = provenance(result, "records/tunes/r1.jsonl")
    written = artefacts(example.cell, example.placement, example.commands, about=about)
    proofs = tuple(launched_proof(artefact, (), warmup="auto", margin=0.02) for artefact in written)
    return result, proofs


def a_tuned_scenario() -> Scenario:
    """A scenario whose matrix is four candidates, of which the first is the default."""
    entries = [
        {"binding": "none", "threads": "default"},
        {"binding": "none", "threads": 1},
        {"binding": "physical-cores", "threads": "per-core"},
        {"binding": "one-cpu", "threads": 1},
    ]
    return a_scenario(
        workload="steps:short", matrix={"include": entries}, baseline=entries[0], title="Parsing"
    )


def a_tuned_run(
    times_ms: Mapping[str, float | Sequence[float]],
    *,
    tuning: RaceSetup | None = None,
    cpu_ms: Mapping[str, float] | None = None,
    failing: str | None = None,
    most: int | None = None,
    seed: int = 1,
) -> tuple[Run, tuple[Launch, ...]]:
    """A run whose launches take these times, with a noise of 0.5 %.

    Args:
        times_ms: The time of an iteration, by cell; several: of one block after the other, again
            and again.
        tuning: What it races for; default: latency.
        cpu_ms: The CPU time of an iteration, by cell; default: the time.
        failing: A cell whose launches fail.
        most: End after this many launches, as if it had been killed.
        seed: Of the noise.
    """
    scenario = a_tuned_scenario()
    rule = RaceRule(max_blocks=30, confirm_blocks=6)
    not_tried = (NotTried(name="One node", reason="beyond `--max-candidates 4`"),)
    tuning = tuning or RaceSetup(objective="latency", rule=rule, not_tried=not_tried)
    run = replace(
        a_run(scenarios=(scenario,)),
        argv=("corebound", "tune", "scenarios/a-scenario.yaml"),
        tuning=tuning,
    )
    cells = expand(scenario, run.scenarios[0].path)
    of = raced_cells(scenario, cells, cells)
    noise = random.Random(seed)
    by_block: dict[str, dict[int, Launch]] = {}
    made: list[Launch] = []

    def summarise(launch: Launch) -> LaunchSummary:
        return summarise_launch(launch, "auto")

    block = 0
    while keys := race_state(of, by_block, tuning, summarise).keys(block, rule.confirm_blocks):
        for position, cell in enumerate(cells):
            if cell.key in keys:
                factor = noise.gauss(1, 0.005)
                wall_ms = factor * _in_block(times_ms[cell.key], block)
                cpu = factor * cpu_ms[cell.key] if cpu_ms else wall_ms
                launch = _launch(cell, block, position, wall_ms, cpu, fails=cell.key == failing)
                by_block.setdefault(cell.key, {})[block] = launch
                made.append(launch)
        block += 1
    return run, tuple(made[:most])


def _in_block(times_ms: float | Sequence[float], block: int) -> float:
    if isinstance(times_ms, Sequence):
        return times_ms[block % len(times_ms)]
    return times_ms


def _launch(
    cell: Cell, block: int, position: int, wall_ms: float, cpu_ms: float, *, fails: bool
) -> Launch:
    cpus = (0,) if cell.binding.mode == "one-cpu" else (0, 1)
    placement = a_placement(cpus=cpus, bound=cell.binding.mode != "none")
    if fails:
        return a_launch(
            cell=cell,
            block=block,
            position=position,
            status="failed",
            reason="it crashed",
            placement=placement,
            workers=(),
        )
    worker = a_worker(wall_ns=(round(wall_ms * 1e6),) * 20, cpu_ns=(round(cpu_ms * 1e6),) * 20)
    return a_launch(
        cell=cell, block=block, position=position, placement=placement, workers=(worker,)
    )

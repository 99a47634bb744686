"""Findings of the diagnosis in recorded runs and in cells that a test builds."""

from collections.abc import Sequence

from msgspec.structs import replace

from corebound.analysis.scenario_result import analyse_scenario, findings
from corebound.diagnosis.diagnose import diagnose
from corebound.diagnosis.evidence import CellEvidence, Evidence, Finding
from corebound.machine.topology import CpuId, Topology
from corebound.planning.models import Placement, Slot
from corebound.records import jsonl
from corebound.records.launch_record import Launch, ThreadEvidence
from corebound.scenario.cell import Cell, Scalar
from corebound.scenario.runtimes import Framework
from corebound.stats.launch_summary import summarise
from support.build import a_cell, a_host, a_launch, a_placement, a_thread, a_worker
from support.paths import DATA

RECORDED = DATA / "diagnosis"


def findings_of_record(name: str) -> dict[str, Finding]:
    """The findings in a recorded run of one scenario, by rule."""
    stored = jsonl.read(RECORDED / f"{name}.jsonl")
    assert not stored.faults
    (source,) = stored.run.scenarios
    assert stored.launches
    found = findings(analyse_scenario(stored.run, source, stored.launches))
    return {one.rule: one for one in found}


def cell_keys(finding: Finding) -> list[str]:
    """The cells of a finding."""
    return [cell.key for cell in finding.cells]


def findings_in(*cells: CellEvidence, topology: Topology | None = None) -> dict[str, Finding]:
    """The findings in cells of one scenario, by rule; on two cores unless said."""
    evidence = Evidence(cells=cells, topology=topology or a_host(), margin=0.02, adaptive=False)
    return {one.rule: one for one in diagnose(evidence, most=99)}


def cell_evidence(launches: Sequence[Launch]) -> CellEvidence:
    """What is known of the cell of these launches; the one that profiled tells operators."""
    timed = tuple(launch for launch in launches if launch.kind == "measure")
    profiles = [launch.workers[0].profile for launch in launches if launch.kind == "profile"]
    cell = launches[0].cell
    return CellEvidence(
        cell=cell,
        launches=timed,
        summary=summarise(cell, timed, "auto"),
        profile=profiles[0] if profiles else None,
    )


def measured_cell(
    ms: float,
    *,
    cpu_ms: float | None = None,
    axes: tuple[tuple[str, str], ...] = (),
    parameters: tuple[tuple[str, Scalar], ...] = (),
    framework: Framework = "none",
    slots: tuple[tuple[int, ...], ...] = ((0, 1),),
    used: int | None = None,
    threads: tuple[ThreadEvidence, ...] | None = None,
    node_bytes: dict[int, int] | None = None,
    blas: str | None = None,
    allowed: tuple[tuple[int, ...], ...] | None = None,
    walls_ms: tuple[float, ...] | None = None,
) -> CellEvidence:
    """A cell of four launches of thirty iterations, a few per mille apart from one another."""
    cell: Cell = replace(
        a_cell(axes=axes, workers=len(slots)), parameters=parameters, framework=framework
    )
    launches = []
    for block in range(4):
        each_ms = tuple(one * (1 + block / 1000) for one in walls_ms or (ms,) * 30)
        wall_ns = tuple(round(wall_ms * 1e6) for wall_ms in each_ms)
        cpu_ns = wall_ns if cpu_ms is None else (round(cpu_ms * 1e6),) * len(wall_ns)
        workers = []
        for slot in range(len(slots)):
            kept = allowed[slot] if allowed else slots[slot]
            seen = threads or (a_thread(allowed=kept, stays=((kept[0], 0, 1000),)),)
            worker = a_worker(
                slot=slot, wall_ns=wall_ns, cpu_ns=cpu_ns, threads=seen, threads_used=used
            )
            workers.append(replace(worker, node_bytes=node_bytes or {}, blas=blas))
        launches.append(
            a_launch(cell=cell, block=block, placement=_placed(slots), workers=tuple(workers))
        )
    return cell_evidence(launches)


def _placed(slots: tuple[tuple[int, ...], ...]) -> Placement:
    given = tuple(Slot(cpus=tuple(CpuId(cpu) for cpu in cpus)) for cpus in slots)
    return replace(a_placement(), slots=given)

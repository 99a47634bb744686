"""Read the recorded runs of `corebound tune`, and the launches through their files."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from corebound.analysis.tuning import TuneResult, analyse_tuning
from corebound.analysis.tuning_checks import ArtefactProof, launched_proof
from corebound.analysis.tuning_loads import LoadsResult, loads_result
from corebound.errors import Fault, collect_fault
from corebound.planning.artefacts import artefacts
from corebound.planning.plan import own_program
from corebound.present.tune import provenance
from corebound.records import documents, jsonl
from corebound.records.jsonl import StoredRun
from corebound.records.launch_record import Launch
from corebound.scenario.loader import load_document


def latest_tunings(records: Path, faults: list[Fault]) -> tuple[StoredRun, ...]:
    """The latest race of each host, scenario, objective and load.

    Args:
        faults: Receives each file that cannot be read.
    """
    latest: dict[tuple[object, ...], StoredRun] = {}
    for stored in jsonl.runs(documents.tunes_folder(records), faults):
        run, tuning = stored.run, stored.run.tuning
        if tuning is None or tuning.verifies is not None or len(run.scenarios) != 1:
            continue
        key = run.host.id, str(run.scenarios[0].document.get("name")), tuning.objective, tuning.load
        latest[key] = stored
    return tuple(latest.values())


def tuning_results(
    records: Path, faults: list[Fault]
) -> Iterator[tuple[TuneResult, Sequence[ArtefactProof]]]:
    """The results of the latest races, each with the files that set its recommendation."""
    for stored in latest_tunings(records, faults):
        found = None
        with collect_fault(stored.file, faults):
            result = analyse_tuning(stored.run, jsonl.read(stored.file).launches)
            found = result, _proofs(result, stored.file, records, faults)
        if found is not None:
            yield found


def stored_checks(
    records: Path, results: Sequence[TuneResult], faults: list[Fault]
) -> dict[str, list[TuneResult]]:
    """Later launches of some cells of these races, by the id of the race's run, latest last."""
    ids = {result.run.id for result in results}
    checks: dict[str, list[TuneResult]] = {}
    for file, run in jsonl.runs(documents.tunes_folder(records), faults):
        of = run.tuning.verifies if run.tuning is not None else None
        if of is None or of not in ids:
            continue
        with collect_fault(file, faults):
            check = analyse_tuning(run, jsonl.read(file).launches)
            checks.setdefault(of, []).append(check)
    return checks


def loads_of(
    results: Sequence[TuneResult], checks: Mapping[str, Sequence[TuneResult]]
) -> tuple[LoadsResult, ...]:
    """The races that differ only in their loads, together.

    Args:
        checks: Later launches of their cells, from `stored_checks`.
    """
    groups: dict[tuple[str, str, str], list[TuneResult]] = {}
    for result in results:
        if result.tuning.load:
            name = str(result.source.document["name"])
            key = result.run.host.id, name, result.tuning.objective
            groups.setdefault(key, []).append(result)
    return tuple(loads_result(group, checks) for group in groups.values() if len(group) > 1)


def _proofs(
    result: TuneResult, file: Path, records: Path, faults: list[Fault]
) -> tuple[ArtefactProof, ...]:
    recommended = result.to_set
    example = result.examples.get(recommended.key) if recommended is not None else None
    if recommended is None or example is None or example.placement is None:
        return ()
    scenario = load_document(result.source.document, result.source.path)
    measure = scenario.measure
    proofs = [
        file
        for file, run in jsonl.runs(documents.proofs_folder(records), faults)
        if run.tuning is not None and run.tuning.verifies == result.run.id
    ]
    launches: Sequence[Launch] = jsonl.read(proofs[-1]).launches if proofs else ()
    return tuple(
        launched_proof(artefact, launches, warmup=measure.warmup, margin=measure.margin)
        for artefact in artefacts(
            recommended,
            example.placement,
            example.commands,
            program=own_program(scenario.workload, recommended, example.placement),
            about=provenance(result, str(file)),
        )
    )

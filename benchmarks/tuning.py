"""Compare `corebound tune` with launching everything: `python -m benchmarks.tuning FILE …`.

The race's own candidates are launched again, equally often, in random order, whatever the race
decided. The row shows what the recommended configuration costs more than the one that is best
there. Options after the file are those of `corebound tune`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import yaml

from corebound.analysis.scenario_result import analyse_scenario
from corebound.analysis.tuning import TuneResult, analyse_tuning, objective_summary
from corebound.present.tune import names
from corebound.records import jsonl
from corebound.records.jsonl import Stored
from corebound.scenario.loader import load_document
from corebound.stats.comparison import compare_expected
from corebound.stats.launch_summary import CellSummary, combine_launches, summarise_launch
from corebound.units import percent

_COREBOUND = (sys.executable, "-m", "corebound")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--launches", type=int, default=6, help="of each, when all are launched")
    arguments, options = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as folder:
        begin_s = time.monotonic()
        said = _tuned(arguments.file, options, Path(folder))
        race_s = time.monotonic() - begin_s
        stored = jsonl.read(Path(said["records"]))
        result = analyse_tuning(stored.run, stored.launches)
        everything = _everything(result, arguments.file, arguments.launches, Path(folder))
    all_s = time.monotonic() - begin_s - race_s
    print(_row(result, stored, everything), f"{race_s:.0f} s and {all_s:.0f} s", sep="; ")


def _tuned(file: Path, options: list[str], folder: Path) -> dict[str, Any]:
    command = [*_COREBOUND, "tune", str(file), "--json", "--records", str(folder / "race")]
    said = subprocess.run([*command, *options], stdout=subprocess.PIPE, text=True, check=False)
    document: dict[str, Any] = json.loads(said.stdout)
    return document


def _everything(result: TuneResult, file: Path, launches: int, folder: Path) -> Stored:
    """Launch all candidates equally often."""
    document = dict(result.source.document)
    document["measure"] = {
        **document["measure"],
        "launches": {"min": launches, "max": launches},
    }
    # A workload of the user's is beside its scenario.
    copy = file.with_name(f".{file.stem}-everything.yaml")
    copy.write_text(yaml.safe_dump(document, sort_keys=False))
    try:
        command = [*_COREBOUND, "run", str(copy), "--records", str(folder / "all")]
        subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
    finally:
        copy.unlink()
    (stored,) = jsonl.files(folder / "all")
    return jsonl.read(stored)


def _row(result: TuneResult, race: Stored, everything: Stored) -> str:
    scenario = load_document(result.source.document, result.source.path)
    (source,) = everything.run.scenarios
    judged: dict[str, CellSummary] = {}
    for one in analyse_scenario(everything.run, source, everything.launches).cells:
        summaries = [
            objective_summary(
                summarise_launch(launch, scenario.measure.warmup), one.cell, result.tuning.objective
            )
            for launch in everything.launches
            if launch.cell.key == one.cell.key
            and launch.kind == "measure"
            and launch.status == "ok"
        ]
        launches = [summary for summary in summaries if summary is not None]
        if launches:
            judged[one.cell.key] = combine_launches(one.cell, launches, ())
    best = min(judged, key=lambda key: judged[key].median_ns or float("inf"))
    raced = sum(launch.status != "skipped" for launch in race.launches)
    text = f"{len(result.raced.cells)} candidates; {raced} launches of the race and"
    text += f" {len(everything.launches)} of all; {result.advice}"
    if result.recommended is None:
        return text
    known, key = names(result), result.recommended.key
    text += f" ({result.race_state.race.ending}); winner: {known[key]}"
    # Until it is decided, a user keeps the default.
    if result.advice == "inconclusive" and result.raced.default is not None:
        key = result.raced.default
    text += f"; to set: {known[key]}; best: {known[best]}"
    loss = compare_expected(judged[best], judged[key], margin=result.tuning.rule.margin)
    if key == best or loss is None:
        return f"{text}; the same"
    interval = loss.interval
    bounds = f" ({percent(interval.low - 1)} to {percent(interval.high - 1)})" if interval else ""
    return f"{text}; it costs {percent(loss.speedup_ratio - 1)} more{bounds}"


if __name__ == "__main__":
    main()

"""What `corebound run` prints: verdicts corrected for the whole run, and the noise floor."""

import io
import random
from pathlib import Path

from msgspec.structs import replace

from corebound.api.notebook import results_html
from corebound.cli.commands import run
from corebound.cli.output.console import Console
from corebound.records import documents
from corebound.records.launch_record import Launch
from corebound.records.telemetry import Disturbance
from corebound.scenario.matrix import expand
from corebound.stats.noise_floor import lock_digest
from corebound.workflow.execute import RunResult
from support.build import a_calibration, a_launch, a_placement, a_run, a_scenario, a_worker
from support.report_sample import a_sample_of_two_modes

# Six pairs: Student's t(5) of 3 is p = 0.03, of 12 is p = 0.00007.
PAIRS = 6


def told(shifts: dict[str, float]) -> RunResult:
    """A scenario each, of a baseline and a cell that takes so many standard errors less time."""
    scenarios = tuple(a_scenario(name=name) for name in shifts)
    launches: list[Launch] = []
    for scenario in scenarios:
        # Differences within pairs of mean 0 and standard deviation 1 %.
        wobble = [0.01 * z / 1.0526 for z in (-1.4, 1.2, -0.9, 0.9, 0.6, -0.4)]
        for block in range(PAIRS):
            for position, cell in enumerate(expand(scenario, "s.yaml")):
                factor = 1.0
                if position:
                    factor = 1 - shifts[scenario.name] * 0.01 / PAIRS**0.5 + wobble[block]
                wall_ns = (round(1e8 * factor),) * 30
                launches.append(
                    a_launch(
                        cell=cell,
                        block=block,
                        position=position,
                        placement=a_placement(cpus=(position,)),
                        workers=(a_worker(wall_ns=wall_ns),),
                    )
                )
    random.Random(1).shuffle(launches)
    run = a_run(scenarios=scenarios)
    return RunResult(run=run, file=Path("f.jsonl"), launches=tuple(launches), ending="complete")


def shown(one: RunResult) -> str:
    stream = io.StringIO()
    run.print_run(one, Console(file=stream, width=160))
    return stream.getvalue()


def test_a_cell_that_is_not_significant_after_correction_says_so() -> None:
    one = told({"perhaps": 5.0, **{f"equal-{n}": 0.0 for n in range(19)}})

    said = shown(one)

    assert said.count("▲ faster (not significant") == 1
    verdicts = [(cell["verdict"], cell["is_significant"]) for cell in one.document["cells"]]
    assert verdicts.count(("faster", False)) == 1
    assert all(not finding for _, finding in verdicts)


def calibrated(one: RunResult, folder: Path) -> RunResult:
    """The same in a folder of records that holds a calibration of its first scenario."""
    source = one.run.scenarios[0]
    documents.CALIBRATIONS.keep(
        a_calibration(
            host=one.run.host.id,
            scenario=source.document["name"],
            sha256=source.sha256,
            lock=lock_digest(one.run.environments, "host"),
        ),
        folder,
    )
    return replace(one, file=folder / one.run.host.id / "f.jsonl")


def test_the_noise_floor_is_below_the_table_and_in_json(tmp_path: Path) -> None:
    one = calibrated(told({"plain": 20.0}), tmp_path)

    said = " ".join(shown(one).split())

    assert "±2.1 %" in said
    assert "corebound calibrate" not in said
    noise = [cell["noise"] for cell in one.document["cells"]]
    assert noise[0] is None
    assert noise[1].floor_ratio == 0.021


def test_an_interval_that_barely_excludes_one_is_not_rounded_to_one() -> None:
    assert "(1.0004–1.03)  ▲ faster" in shown(told({"alone": 2.9}))


def test_disturbed_launches_are_named_in_their_row_and_in_json() -> None:
    one = told({"alone": 5.0})
    found = Disturbance(share=1.0, by=("foreign load",), evidence=("so it was",))
    hit = {launch.id for launch in one.launches if launch.block == 0 and launch.position}
    launches = tuple(
        replace(launch, disturbance=found) if launch.id in hit else launch
        for launch in one.launches
    )
    one = replace(one, launches=launches)

    (row,) = [line for line in shown(one).splitlines() if "1 of 6 launches discarded" in line]
    assert "faster" in row
    cells = one.document["cells"]
    assert [set(cell["left_out_launches"]) for cell in cells] == [set(), hit]
    assert [cell["disturbed_launches"] for cell in cells] == [[], []]

    every = replace(
        one, launches=tuple(replace(launch, disturbance=found) for launch in one.launches)
    )
    assert shown(every).count("6 of 6 launches disturbed") == 2
    assert [len(cell["disturbed_launches"]) for cell in every.document["cells"]] == [6, 6]


def test_a_configuration_without_a_result_says_how_its_launches_ended_as_a_notebook_does() -> None:
    one = told({"alone": 5.0})
    launches = tuple(
        replace(launch, status="failed", reason="it broke") if launch.position else launch
        for launch in one.launches
    )
    one = replace(one, launches=launches)

    (row,) = [line for line in shown(one).splitlines() if "! no valid launch (failed)" in line]
    assert row.split()[1] == "–"
    page = results_html(one.scenario_results())
    assert "! no valid launch" in page
    assert "<small>failed</small>" in page


def test_launches_of_two_modes_are_compared_within_a_mode_and_over_both() -> None:
    run_, launches = a_sample_of_two_modes()
    one = RunResult(run=run_, file=Path("f.jsonl"), launches=launches, ending="complete")

    said = " ".join(shown(one).split())

    assert "▼ slower" in said
    assert "2.9 % slower" in said
    assert "5 of 14" in said
    modes = one.document["cells"][1]["modes"]
    assert modes["decides"] == "same mode"
    assert (modes["cell_fast"]["fast"], modes["baseline_fast"]["launches"]) == (5, 14)
    assert modes["blocks"][1] == {"block": 1, "cell": "slow", "baseline": "fast"}

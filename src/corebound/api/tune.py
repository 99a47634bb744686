"""Find the configuration to use on this host, from a script or a notebook."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from html import escape
from os import PathLike
from typing import Annotated, Any, ClassVar

from msgspec.structs import asdict
from pydantic import Field

from corebound.analysis.compared import ComparedRow
from corebound.analysis.tuning_loads import common_cell
from corebound.api import comparison as compared
from corebound.api.arguments import Budget, in_python
from corebound.api.reporter import CallReporter
from corebound.api.results import Results, of_files
from corebound.planning.artefacts import ArtefactKind
from corebound.present.compare import rows_table
from corebound.present.shown import Shown
from corebound.present.tune import common_sentence, headline, load_text
from corebound.records.jsonl import RECORDS
from corebound.scenario.models import ProfileName
from corebound.scenario.objectives import Objective
from corebound.workflow.options import request_of
from corebound.workflow.projects import CONFIG
from corebound.workflow.tune import LoadsOutcome, TuneOutcome, tune_loads, tune_scenario
from corebound.workflow.tune_checks import VerifyResult, verify_recommendations
from corebound.workflow.tune_request import TuneRequest


class Tuning(Shown, frozen=True, kw_only=True):
    """The configuration to use on this host.

    Attributes:
        scenario: The scenario.
        cell: The recommended configuration, such as `binding=node,threads=2`; None without one.
            With `each`, the one that does best for all loads together.
        axes: The same by axis; values are text. Empty without one.
        default: The configuration of a program that sets nothing; None if it did not take part.
        headline: The recommendation in one sentence; with `each`, whether one does for all loads.
        rows: The recommended configuration compared with each other finalist, from fresh launches
            alone; the row's `cell` is that finalist, and above 1 the recommended one is better.
            Empty with `each`.
        loads: The recommendation for each load, by its values, such as `batch=1`; empty without
            `each`.
        results: The race and the fresh launches.
        document: The same as plain data, as `corebound tune --json` prints it. `files` has those
            of `emit`, each with the proof that it does what it should.
    """

    scenario: str
    cell: str | None
    axes: Mapping[str, str]
    default: str | None
    headline: str
    rows: tuple[ComparedRow, ...]
    results: Results
    document: Mapping[str, Any]
    loads: Mapping[str, Tuning] = {}

    def __str__(self) -> str:
        """The headline, a line for each finalist, and the same for each load."""
        loads = (f"{load}: {tuning}" for load, tuning in self.loads.items())
        return "\n".join((self.headline, *(f"  {row}" for row in self.rows), *loads))

    def _repr_html_(self) -> str:
        from corebound.api import notebook

        parts = [("", self), *self.loads.items()]
        return notebook.compared_html(
            *(
                (_head(load, tuning), rows_table(tuning.rows, "finalist, recommended"))
                for load, tuning in parts
            )
        )


def _head(load: str, tuning: Tuning) -> str:
    """A recommendation as HTML, below its load if it has one."""
    axes = ", ".join(f"{name}: {value}" for name, value in tuning.axes.items())
    above = f"<h4>{escape(load)}</h4>" if load else ""
    return f"{above}<p><b>{escape(tuning.headline)}</b><br/>{escape(axes)}</p>"


class VerifiedTuning(Shown, VerifyResult, frozen=True, kw_only=True):
    """Whether a recommendation still holds.

    Attributes:
        differences: What changed on the host and in the environment since.
        rows: The configurations compared as in `Tuning.rows`, from the new launches.
        results: The new launches.
    """

    shown: ClassVar = ("title", "answer", "text", "differences")

    rows: tuple[ComparedRow, ...]
    results: Results


def tune(
    file: str | PathLike[str],
    *,
    objective: Objective | None = None,
    bound_ms: Annotated[float, Field(gt=0)] | None = None,
    only: Sequence[str] = (),
    vary: Sequence[str] = (),
    each: Sequence[str] = (),
    max_candidates: int = 16,
    profile: ProfileName | None = None,
    budget_s: Budget | None = None,
    seed: int | None = None,
    resume: bool = False,
    emit: Sequence[ArtefactKind] = (),
    out: str | PathLike[str] = "tuned",
    config: str | PathLike[str] = CONFIG,
    project_python: str | PathLike[str] | None = None,
    records: str | PathLike[str] = RECORDS,
    unlocked: bool = False,
    wait_s: float = 60.0,
    notify: Callable[[str], object] | None = None,
) -> Tuning:
    """Race the configurations of a scenario on this host, as `corebound tune` does.

    Args:
        file: A scenario file.
        objective: What to compare: `latency`, the time of an iteration; `throughput` of all
            workers; `rate` of a server's requests within `bound_ms`; `cost`, the CPU time; or
            `metric`, the first that a command reports. None is `metric` if there is one, else
            `latency`.
        bound_ms: The latency that 99 % of requests may take, in milliseconds; `rate` needs it.
        only: The cells to race; bindings, threads and wait policies are added.
        vary: Parameters of the workload that may change, because they do not change its work.
        each: Parameters to tune for each value of, and for all together; see `Tuning.loads`.
        max_candidates: How many configurations take part, at most.
        profile: `quick` or `nightly`; None uses the scenario's own numbers.
        budget_s: The time for all launches, in seconds; None is no limit.
        seed: The seed of the order and of random data; None picks one.
        resume: Whether to continue an interrupted race of the same configurations.
        emit: The files to write that set the winner, such as `shell`, `systemd` or `docker`.
        out: The folder to write them to; with `each`, to a folder in it for each load.
        config: The asv.conf.json of the project under test.
        project_python: An interpreter in which the project under test is installed already.
        records: The folder of records, where the run is kept.
        unlocked: Whether to measure even if another run is active.
        wait_s: How long to wait for another run on this host, in seconds.
        notify: Called with each line about the progress; `print` shows them.

    Raises:
        InputError: The file has several scenarios, `bound_ms` does not fit the objective, or the
            scenario does not vary a parameter of `each`.
        CoreboundError: The scenario or the host does not allow it.
    """
    request = request_of(TuneRequest, locals(), files=(file,), emit=tuple(dict.fromkeys(emit)))
    reporter = CallReporter(notify)
    if each:
        return _of_loads(tune_loads(request, reporter))
    return _of_race(tune_scenario(request, reporter))


def _of_race(outcome: TuneOutcome) -> Tuning:
    recommended = outcome.result.recommended
    return Tuning(
        scenario=str(outcome.result.source.document["name"]),
        cell=recommended.key if recommended is not None else None,
        axes=dict(recommended.axes) if recommended is not None else {},
        default=outcome.result.raced.default,
        headline=in_python(headline(outcome.result), inspect.signature(tune)),
        rows=compared.of_finalists(outcome.result),
        results=of_files([outcome.records]),
        document=outcome.document,
    )


def _of_loads(tuned: LoadsOutcome) -> Tuning:
    first, common = _of_race(tuned.outcomes[0]), common_cell(tuned.loads)
    return Tuning(
        scenario=first.scenario,
        cell=common.key if common is not None else None,
        axes=dict(common.axes) if common is not None else {},
        default=first.default,
        headline=in_python(common_sentence(tuned.loads), inspect.signature(tune)),
        rows=(),
        loads={load_text(outcome.result.tuning): _of_race(outcome) for outcome in tuned.outcomes},
        results=of_files([outcome.records for outcome in tuned.outcomes]),
        document=tuned.document,
    )


def verify_tuning(
    *files: str | PathLike[str],
    objective: Objective | None = None,
    only: Sequence[str] = (),
    profile: ProfileName | None = None,
    seed: int | None = None,
    config: str | PathLike[str] = CONFIG,
    project_python: str | PathLike[str] | None = None,
    records: str | PathLike[str] = RECORDS,
    unlocked: bool = False,
    wait_s: float = 60.0,
    notify: Callable[[str], object] | None = None,
) -> tuple[VerifiedTuning, ...]:
    """Check the latest recommendations with new launches, as `corebound tune --verify` does.

    Args:
        files: Scenario files, or folders of them.
        objective: Which races to verify; None is those of each objective.
        only: The cells whose loads to verify.
        profile: `quick` or `nightly`; None uses the scenarios' own numbers.
        seed: The seed of the order and of random data; None picks one.
        config: The asv.conf.json of the project under test.
        project_python: An interpreter in which the project under test is installed already.
        records: The folder of records, with the races.
        unlocked: Whether to measure even if another run is active.
        wait_s: How long to wait for another run on this host, in seconds.
        notify: Called with each line about the progress; `print` shows them.

    Returns:
        One for each scenario, objective and load with a recommendation; at least one.

    Raises:
        InputError: This host has no recommendation for these scenarios.
        CoreboundError: The host does not allow the runs.
    """
    request = request_of(TuneRequest, locals(), verify=True)
    verified = verify_recommendations(request, CallReporter(notify))
    return tuple(
        VerifiedTuning(
            **asdict(result),
            rows=compared.of_finalists(result.verification.now),
            results=of_files([result.records]),
        )
        for result in verified
    )

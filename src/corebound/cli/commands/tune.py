"""`corebound tune`: find the configuration to use on this host."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NoReturn, cast

import typer
from rich.table import Table
from rich.text import Text

from corebound import units
from corebound.analysis.tuning import TuneResult
from corebound.analysis.tuning_loads import (
    LoadsResult,
    common_sentence,
    load_rows,
    load_text,
)
from corebound.analysis.tuning_proofs import Proof
from corebound.analysis.tuning_text import certainty, headline, names, not_tried, times
from corebound.analysis.tuning_verification import Answer
from corebound.analysis.wording import count
from corebound.cli.options import (
    Budget,
    Config,
    Json,
    Only,
    Profile,
    ProjectPython,
    Quiet,
    Records,
    Seed,
    Unlocked,
    Wait,
    budget_seconds,
    typed_command,
    wait_seconds,
)
from corebound.cli.output.console import Console, print_table
from corebound.cli.output.json import print_json
from corebound.cli.output.progress import TerminalReporter
from corebound.errors import NO_ANSWER, REGRESSION, InputError
from corebound.planning.artefacts import KINDS, ArtefactKind
from corebound.records.jsonl import RECORDS
from corebound.records.tuning import Objective
from corebound.workflow import projects
from corebound.workflow.prepare import RunRequest
from corebound.workflow.tune import TuneOutcome, TuneRequest, tune_scenario
from corebound.workflow.tune_loads import tune_loads
from corebound.workflow.tune_verify import VerifyResult, verify_recommendations

_MOST_CANDIDATES = 256


def tune(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE", help="Scenario file; with --verify also several, or folders."
        ),
    ],
    *,
    objective: Annotated[
        Objective | None,
        typer.Option(
            "--objective",
            help="latency, the default: time of an iteration; throughput: of all workers; rate: of"
            " a server's requests within --bound; cost: CPU time.",
        ),
    ] = None,
    bound: Annotated[
        str | None,
        typer.Option("--bound", help="Latency bound of --objective rate, such as p99=50ms."),
    ] = None,
    profile: Profile = None,
    only: Only = None,
    vary: Annotated[
        list[str] | None,
        typer.Option("--vary", help="Parameter that may change, since it keeps the work equal."),
    ] = None,
    each: Annotated[
        list[str] | None,
        typer.Option("--each", help="Parameter to tune for each value of, and for all together."),
    ] = None,
    max_candidates: Annotated[
        int,
        typer.Option(
            "--max-candidates", min=2, max=_MOST_CANDIDATES, help="Configurations to race, at most."
        ),
    ] = 16,
    budget: Budget = None,
    seed: Seed = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue an interrupted race.")] = False,
    emit: Annotated[
        str | None,
        typer.Option("--emit", help=f"Files to write: {','.join(KINDS)}."),
    ] = None,
    out: Annotated[Path, typer.Option("--out", help="Folder for the files of --emit.")] = Path(
        "tuned"
    ),
    verify: Annotated[
        bool,
        typer.Option("--verify", help="Check the latest recommendations with new launches."),
    ] = False,
    unlocked: Unlocked = False,
    wait: Wait = None,
    config: Config = projects.CONFIG,
    project_python: ProjectPython = None,
    records: Records = RECORDS,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Find the configuration to use on this host.

    Bindings, threads and wait policies race. The slower ones are dropped, and fresh launches
    confirm the winner against the default.

    Examples:
        corebound tune resnet50.yaml --budget 15m
        corebound tune hashing.yaml --objective throughput
        corebound tune server.yaml --objective rate --bound p99=50ms
        corebound tune resnet50.yaml --each batch --budget 1h
        corebound tune hashing.yaml --emit shell,systemd
        corebound tune hashing.yaml --verify
        corebound tune scenarios --verify
    """
    run = RunRequest(
        files=tuple(files),
        profile=profile,
        only=tuple(only or ()),
        seed=seed,
        config=config,
        python=project_python,
        records=records,
    )
    if verify:
        _verify(
            run,
            objective,
            unlocked=unlocked,
            wait_s=wait_seconds(wait),
            quiet=quiet,
            as_json=as_json,
        )
    if len(files) > 1:
        raise InputError(
            what="several files.",
            where=" ".join(map(str, files)),
            fix="Name one scenario file. Only --verify accepts several.",
        )
    request = TuneRequest(
        run=run,
        objective=objective or "latency",
        bound_ms=None if bound is None else _bound_ms(bound),
        vary=tuple(vary or ()),
        max_candidates=max_candidates,
        budget_s=budget_seconds(budget),
        resume=resume,
        # `TuneRequest` checks them.
        emit=tuple(
            dict.fromkeys(cast("ArtefactKind", kind) for kind in (emit or "").split(",") if kind)
        ),
        out=out,
    )
    command = typed_command()
    reporter = TerminalReporter(
        Console(stderr=True, quiet=quiet),
        resume_command=command if resume else f"{command} --resume",
    )
    if each:
        _tune_loads(
            request,
            each,
            reporter,
            unlocked=unlocked,
            wait_s=wait_seconds(wait),
            as_json=as_json,
        )
    outcome = tune_scenario(request, reporter, unlocked=unlocked, wait_s=wait_seconds(wait))
    if as_json:
        print_json(outcome.document)
    else:
        _print_outcome(outcome, Console())
    raise typer.Exit(0 if outcome.result.recommended is not None else NO_ANSWER)


def _print_outcome(outcome: TuneOutcome, console: Console) -> None:
    print_result(outcome.result, outcome.records, console)
    for proof in outcome.proofs:
        console.print(Text(_proof_text(proof)), soft_wrap=True)


def _tune_loads(
    request: TuneRequest,
    each: Sequence[str],
    reporter: TerminalReporter,
    *,
    unlocked: bool,
    wait_s: float,
    as_json: bool,
) -> NoReturn:
    """Tune for each load, print what they say together and then each race, and exit."""
    tuned = tune_loads(request, each, reporter, unlocked=unlocked, wait_s=wait_s)
    if as_json:
        print_json(tuned.document)
    else:
        console = Console()
        print_loads(tuned.loads, console)
        for outcome in tuned.outcomes:
            console.print(Text(f"\n{load_text(outcome.result.tuning)}", style="bold"))
            _print_outcome(outcome, console)
    answers = [outcome.result.recommended is not None for outcome in tuned.outcomes]
    raise typer.Exit(0 if all(answers) else NO_ANSWER)


def print_loads(loads: LoadsResult, console: Console) -> None:
    """Print whether one configuration does for all loads, and a line for each load."""
    console.print(Text(common_sentence(loads), style="bold"))
    table = Table(title="Loads", title_justify="left", box=None, padding=(0, 1))
    for heading in ("load", "winner", "against the default", "against the common one"):
        table.add_column(heading, overflow="fold")
    for row in load_rows(loads):
        table.add_row(row.load, row.winner, row.gain, row.against_common)
    print_table(table, console)


def _bound_ms(bound: str) -> float:
    """The bound in milliseconds.

    Raises:
        InputError: It is no bound of the 99th percentile.
    """
    match = re.fullmatch(r"p99=(\d+(?:\.\d+)?)(ms|s)", bound)
    if match is None or float(match[1]) <= 0:
        raise InputError(
            what=f"`{bound}` is not a bound of the 99th percentile.",
            where="--bound",
            fix="Write it like `p99=50ms` or `p99=1.5s`.",
        )
    return float(match[1]) * (1000 if match[2] == "s" else 1)


def _verify(
    request: RunRequest,
    objective: Objective | None,
    *,
    unlocked: bool,
    wait_s: float,
    quiet: bool,
    as_json: bool,
) -> NoReturn:
    """Check the latest recommendations, print the answers and exit."""
    reporter = TerminalReporter(Console(stderr=True, quiet=quiet))
    verified = verify_recommendations(
        request, objective, reporter, unlocked=unlocked, wait_s=wait_s
    )
    if as_json:
        print_json({"recommendations": [each.document for each in verified]})
    else:
        _print_verifications(verified, Console())
    codes = {_VERIFY_CODES[each.verification.answer] for each in verified}
    raise typer.Exit(next((code for code in (REGRESSION, NO_ANSWER) if code in codes), 0))


_VERIFY_CODES: dict[Answer, int] = {"holds": 0, "lost": REGRESSION, "inconclusive": NO_ANSWER}


def _print_verifications(verified: Sequence[VerifyResult], console: Console) -> None:
    for number, each in enumerate(verified):
        if number:
            console.print()
        if len(verified) > 1:
            console.print(Text(each.title, style="bold"))
        print_verification(each, console)


def print_verification(verified: VerifyResult, console: Console) -> None:
    """Print whether a recommendation holds, what changed, and the new launches."""
    now = verified.verification.now
    console.print(Text(verified.verification.text, style="bold"))
    for difference in verified.differences:
        console.print(Text(f"Changed since the race: {difference}"))
    if now.confirmed:
        print_table(_finalists_table(now), console)
    console.print(Text(f"Records: {verified.records}"), soft_wrap=True)


def _proof_text(proof: Proof) -> str:
    sign = {"launched": "✓", "differs": "✗", "wrong": "✗"}.get(proof.state, "–")
    text = f"{sign} {proof.artefact.title}, {proof.artefact.file}: {proof.evidence}"
    return f"{text} {proof.artefact.note}".rstrip()


def print_result(result: TuneResult, records: Path, console: Console) -> None:
    """Print the recommendation, the fresh launches, the race, and what was not tried."""
    console.print(Text(headline(result), style="bold"))
    for sentence in certainty(result):
        console.print(Text(sentence))
    if result.confirmed and result.advice != "unfinished":
        print_table(_finalists_table(result), console)
    print_table(_race_table(result), console)
    for name, reason in not_tried(result):
        console.print(Text(f"Not tried: {name}: {reason}", style="dim"))
    if result.duplicates:
        same = count(len(result.duplicates), "configuration")
        console.print(
            Text(
                f"Not launched separately: {same} that equal others on this host.",
                style="dim",
            )
        )
    console.print(Text(f"Records: {records}"), soft_wrap=True)


def _finalists_table(result: TuneResult) -> Table:
    table = Table(title="Fresh launches", title_justify="left", box=None, padding=(0, 1))
    table.add_column("configuration", overflow="fold")
    for heading in ("value", "the winner compared with it"):
        table.add_column(heading, justify="right")
    known = names(result)
    winner, *others = result.confirmed
    rows = [
        (winner, "winner"),
        *((other, times(other.comparison, result.tuning.objective)) for other in others),
    ]
    for one, compared in rows:
        value_ns = one.summary.median_ns
        value = "–" if value_ns is None else units.duration(value_ns)
        table.add_row(known[one.cell.key], value, compared)
    return table


def _race_table(result: TuneResult) -> Table:
    table = Table(title="Race", title_justify="left", box=None, padding=(0, 1))
    table.add_column("configuration", overflow="fold")
    table.add_column("value", justify="right")
    table.add_column("blocks", justify="right")
    table.add_column("outcome", overflow="fold")
    known, race = names(result), result.standing.race
    dropped = {one.key: one for one in race.dropped}
    for key in (*race.remaining, *(one.key for one in reversed(race.dropped))):
        value_ns = result.summaries[key].median_ns
        left = dropped.get(key)
        if left is None:
            blocks, outcome = race.blocks, "stayed"
        else:
            blocks = left.block + 1
            by = known.get(left.by or "", "")
            outcome = left.reason or f"dropped: {units.ratio((left.ratio or (1, 1))[0])} of {by}"
        table.add_row(
            known[key], "–" if value_ns is None else units.duration(value_ns), str(blocks), outcome
        )
    return table

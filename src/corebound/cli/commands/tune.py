"""`corebound tune`: find the configuration to use on this host."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NoReturn, cast

import typer
from rich.text import Text

from corebound.analysis.tuning_checks import Answer
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
from corebound.cli.output.console import Console
from corebound.cli.output.json import print_json
from corebound.cli.output.progress import TerminalReporter
from corebound.cli.output.sections import print_sections
from corebound.errors import NO_ANSWER, REGRESSION, InputError
from corebound.planning.artefacts import KINDS, ArtefactKind
from corebound.present.tune import (
    load_text,
    loads_sections,
    tune_sections,
    verification_sections,
)
from corebound.records.jsonl import RECORDS
from corebound.scenario.objectives import Objective, objectives_help
from corebound.workflow import projects
from corebound.workflow.prepare import RunRequest
from corebound.workflow.tune import TuneOutcome, TuneRequest, tune_loads, tune_scenario
from corebound.workflow.tune_checks import VerifyResult, verify_recommendations

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
            help=objectives_help(),
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
    records = str(outcome.records)
    print_sections(tune_sections(outcome.result, records=records, proofs=outcome.proofs), console)


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
        print_sections(loads_sections(tuned.loads), console)
        for outcome in tuned.outcomes:
            console.print(Text(f"\n{load_text(outcome.result.tuning)}", style="bold"))
            _print_outcome(outcome, console)
    answers = [outcome.result.recommended is not None for outcome in tuned.outcomes]
    raise typer.Exit(0 if all(answers) else NO_ANSWER)


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
        records = str(each.records)
        sections = verification_sections(each.verification, each.differences, records=records)
        print_sections(sections, console)

"""`corebound tune`: find the configuration to use on this host."""

from collections.abc import Sequence
from functools import partial

from rich.text import Text

from corebound.analysis.tuning_checks import Answer
from corebound.cli.options import Output, typed_command
from corebound.cli.output.console import Console
from corebound.cli.output.progress import TerminalReporter
from corebound.cli.output.sections import print_sections
from corebound.errors import NO_ANSWER, REGRESSION, InputError
from corebound.present.tune import load_text, loads_sections, tune_sections, verification_sections
from corebound.workflow.tune import LoadsOutcome, TuneOutcome, tune_loads, tune_scenario
from corebound.workflow.tune_checks import VerifyResult, verify_recommendations
from corebound.workflow.tune_request import TuneRequest


def tune(request: TuneRequest, console: Console) -> Output:
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
    if request.verify:
        verified = verify_recommendations(request, TerminalReporter(console))
        document = {"recommendations": [each.document for each in verified]}
        codes = {_VERIFY_CODES[each.verification.answer] for each in verified}
        code = next((code for code in (REGRESSION, NO_ANSWER) if code in codes), 0)
        return Output(document, partial(_print_verifications, verified, Console()), code)
    if len(request.files) > 1:
        raise InputError(
            what="several files.",
            where=" ".join(map(str, request.files)),
            fix="Name one scenario file. Only --verify accepts several.",
        )
    command = typed_command(*() if request.resume else ("--resume",))
    reporter = TerminalReporter(console, resume_command=command)
    if request.each:
        tuned = tune_loads(request, reporter)
        return Output(tuned, partial(_print_loads, tuned, Console()), tuned.exit_code)
    outcome = tune_scenario(request, reporter)
    return Output(outcome, partial(_print_outcome, outcome, Console()), outcome.exit_code)


def _print_outcome(outcome: TuneOutcome, console: Console) -> None:
    records = str(outcome.records)
    print_sections(tune_sections(outcome.result, records=records, proofs=outcome.proofs), console)


def _print_loads(tuned: LoadsOutcome, console: Console) -> None:
    """Print what the loads say together, and then each race."""
    print_sections(loads_sections(tuned.loads), console)
    for outcome in tuned.outcomes:
        console.print(Text(f"\n{load_text(outcome.result.tuning)}", style="bold"))
        _print_outcome(outcome, console)


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

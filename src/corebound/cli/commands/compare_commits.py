"""`corebound compare-commits`: measure two commits, versions or parameter values interleaved."""

from functools import partial

import typer
from msgspec.structs import replace

from corebound.analysis.commit_comparison import CellAtCommits, InterleavedComparison
from corebound.analysis.json_documents import compare_document
from corebound.cli.options import Format, Output, typed_command
from corebound.cli.output.console import Console
from corebound.cli.output.junit import TestCase, TestFailure, junit_xml
from corebound.cli.output.progress import TerminalReporter
from corebound.cli.output.sections import print_text_or_markdown
from corebound.present.compare import compare_sections
from corebound.workflow import compare_commits as workflow
from corebound.workflow.compare_commits import CompareCommitsRequest


def compare_commits(
    request: CompareCommitsRequest, *, form: Format = "text", console: Console
) -> Output:
    """Build two commits, measure them interleaved, and judge.

    Instead of commits, compare two values of a key, two files of environments/, or two versions
    of a package. Exits with 1 if a cell became slower.

    Examples:
        corebound compare-commits main HEAD
        corebound compare-commits threads=1 threads=2 hashing.yaml
        corebound compare-commits torch==2.12.0 torch==2.13.0
    """
    command = typed_command(*() if request.resume else ("--resume",))
    reporter = TerminalReporter(console, resume_command=command)
    comparison = workflow.compare_commits(request, reporter)

    def show() -> None:
        if form == "junit":
            typer.echo(junit(comparison))
        else:
            print_text_or_markdown(compare_sections(comparison), is_markdown=form == "md")

    return Output(partial(compare_document, comparison), show, comparison.exit_code)


def junit(comparison: InterleavedComparison) -> str:
    """A test case for each cell; a regression is a failure, a missing result an error."""
    cases = [_test_case(cell) for cell in comparison.cells]
    return junit_xml("corebound compare-commits", cases, notes=comparison.noise)


def _test_case(cell: CellAtCommits) -> TestCase:
    case = TestCase(classname=cell.scenario, name=cell.cell)
    if cell.missing:
        reason = "\n".join(cell.missing)
        error = TestFailure(type="no result", message=reason.partition("\n")[0], details=reason)
        return replace(case, errors=(error,))
    if cell.is_regression:
        failure = TestFailure(type="regression", message=cell.change, details=cell.change)
        return replace(case, failure=failure)
    return replace(case, output=cell.summary)

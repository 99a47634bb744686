"""`corebound doctor`: find, explain and fix host conditions that would disturb measurements."""

import textwrap
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Annotated

import typer

from corebound.analysis.wording import capital, count
from corebound.cli.options import Json, Output
from corebound.cli.output.console import Console
from corebound.errors import HostError, InputError
from corebound.machine.doctor.host_settings import SettingResult
from corebound.machine.doctor.result import CheckResult, HostCheck, State
from corebound.workflow import host_checks as workflow
from corebound.workflow.host_checks import LIVE, HostChecks
from corebound.workflow.options import Files, Option

_WIDTH = 80
_LEAST_VALUE_WIDTH = 24
_SIGNS: dict[State, str] = {"ok": "✓", "warning": "!", "unavailable": "–"}
_NAME_WIDTH = len("perf_event_paranoid") + 1
_STATE_WIDTH = len("unavailable") + 1


def doctor(
    files: Files = (),
    *,
    as_json: Json = False,
    tune: Annotated[bool, Option("As root, change the settings that cause warnings.")] = False,
    restore: Annotated[bool, Option("Restore the settings that --tune has changed.")] = False,
    root: Annotated[Path, Option("Check another machine: a folder with proc/ and sys/.")] = LIVE,
) -> Output:
    """Check this host for what disturbs measurements.

    Missing tools and environments are warnings if scenarios need them: those of FILES, or of the
    folder `scenarios` and the current folder.

    Each warning comes with the command that fixes it. Nothing is changed without --tune. Exits
    with 0 even if there are warnings, and with 3 if --tune could change nothing or --restore
    could not restore everything.

    Examples:
        corebound doctor
        sudo corebound doctor --tune
        sudo corebound doctor --restore
    """
    if tune and restore:
        raise InputError(
            what="--tune and --restore exclude each other.",
            where="corebound doctor",
            fix="Pass one of them.",
        )
    say: Callable[[str], None] = (lambda _text: None) if as_json else typer.echo
    if restore:
        results, error = workflow.restore_settings(root)
        if not results:
            say("Nothing to restore: --tune has changed no settings.")
        if error is not None:
            _of_settings(results).print(as_json=as_json)
            raise error
        return _of_settings(results)
    host = workflow.doctor(*files, root=root)
    return _tune(host.results, root, say) if tune else Output(host, partial(_show, host))


def _show(host: HostChecks) -> None:
    typer.echo(describe(host.checks, width=min(Console().width, _WIDTH)))
    if any(check.changes for check in host.results):
        typer.echo(
            "\nThe commands require root. `corebound doctor --tune` runs those that change"
            " settings."
        )
    if host.tuned:
        typer.echo(
            f"\n--tune has changed {count(len(host.tuned), 'setting')}. To restore:"
            " `corebound doctor --restore`."
        )


def _tune(checks: Sequence[CheckResult], root: Path, say: Callable[[str], None]) -> Output:
    changed = [check.host_check for check in checks if check.changes]
    if not changed:
        say("Nothing to change: no warning can be fixed by a setting.")
        return _of_settings(())
    say("Changing these settings, which disturb measurements:")
    for check in changed:
        say(f"  {check.check}: {check.value}\n    {check.fix}")
    results = workflow.change_settings(checks, root)
    if all(result.fault is not None for result in results):
        return _of_settings(results, exit_code=HostError.exit_code)
    return _of_settings(results, "To restore: `corebound doctor --restore`.")


def _of_settings(results: Sequence[SettingResult], *more: str, exit_code: int = 0) -> Output:
    lines = [*setting_lines(results), *more]
    show = partial(typer.echo, "\n".join(lines), nl=bool(lines))
    return Output({"settings": results}, show, exit_code)


def describe(checks: Sequence[HostCheck], *, width: int = _WIDTH) -> str:
    """Render all checks. Commands are never wrapped, so that users can copy them."""
    lines = [_headline(checks)]
    for group, grouped in groupby(checks, key=lambda check: check.group):
        lines += ["", capital(group)]
        for check in grouped:
            lines += _check_lines(check, width)
    return "\n".join(lines)


def setting_lines(results: Sequence[SettingResult]) -> Iterator[str]:
    """The outcome for each setting, one line each, and another line for a failure."""
    for result in results:
        if result.fault is not None:
            outcome = "failed"
        elif result.before == result.after:
            outcome = f"already {result.after}"
        else:
            outcome = f"{result.before} → {result.after}"
        yield f"  /{result.path}: {outcome}"
        if result.fault is not None:
            yield f"    {result.fault}"
        if result.meanwhile is not None:
            yield f"    It had been changed to {result.meanwhile} since --tune."


def _headline(checks: Sequence[HostCheck]) -> str:
    states = [check.state for check in checks]
    return (
        f"{count(states.count('warning'), 'warning')}, {states.count('ok')} ok, "
        f"{states.count('unavailable')} unavailable"
    )


def _check_lines(check: HostCheck, width: int) -> Iterator[str]:
    state = f"{_SIGNS[check.state]} {check.state:{_STATE_WIDTH}}"
    head = f"  {check.check:{_NAME_WIDTH}}{state}"
    if width < len(head) + _LEAST_VALUE_WIDTH:
        yield f"  {check.check}: {state}".rstrip()
        head = "    "
    yield from textwrap.wrap(
        check.value,
        width=width,
        initial_indent=head,
        subsequent_indent=" " * len(head),
        drop_whitespace=True,
        break_long_words=False,
        break_on_hyphens=False,
    )
    if check.state != "warning":
        return
    yield from textwrap.wrap(
        check.why, width=width, initial_indent="    ", subsequent_indent="    "
    )
    if check.fix is not None:
        yield f"    fix: {check.fix}"
    if check.undo is not None:
        yield f"    undo: {check.undo}"

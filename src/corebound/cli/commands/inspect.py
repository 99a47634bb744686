"""`corebound inspect`: what is wrong with a service that is running now."""

from functools import partial
from typing import Annotated, NoReturn

import typer
from msgspec.structs import replace

from corebound import clock
from corebound.cli.options import Json, Output
from corebound.cli.output.console import Console
from corebound.cli.output.json import print_json_line
from corebound.cli.output.sections import print_sections
from corebound.errors import InputError
from corebound.present.inspect import inspect_sections, watch_line
from corebound.workflow.inspect import Inspection, InspectRequest, inspect_service
from corebound.workflow.options import Option, seconds

Every = Annotated[
    float | None,
    Option(
        "Look again and again, this long each, and print a line: 10s, 1m. With --json, JSON Lines.",
        parse=partial(seconds, option="--every"),
    ),
]


def inspect(request: InspectRequest, *, every: Every = None, as_json: Json = False) -> Output:
    """Find out what is wrong with a service that is running.

    It watches processes from outside: threads against CPUs, quota and affinity, waiting, spinning,
    throttling, memory, priority. It only reads /proc and cgroups. Run it as root to see all of
    another user's processes.

    Exits with 0 without findings, with 1 with findings, with 2 if there is no such service, and
    with 3 if it cannot be seen.

    Examples:
        corebound inspect 4711
        corebound inspect --port 8000 --seconds 10
        corebound inspect --name 'uvicorn*' --every 10s
        corebound inspect --cgroup system.slice/app.service --json
        corebound inspect --port 8000 --save service.yaml
    """
    if every is not None:
        _watch(replace(request, seconds=every), as_json=as_json)
    inspection = inspect_service(request)
    return Output(inspection, partial(_show, inspection), inspection.exit_code)


def _show(inspection: Inspection) -> None:
    print_sections(inspect_sections(inspection.document), Console())
    if inspection.saved is not None:
        typer.echo(f"Wrote {inspection.saved}. `corebound check {inspection.saved}` checks it.")


def _watch(request: InspectRequest, *, as_json: bool) -> NoReturn:
    """Print a line for each interval until the service ends or the user interrupts."""
    if request.save is not None:
        raise InputError(
            what="a watch saves nothing.", where="--save", fix="Leave out `--every`, or `--save`."
        )
    while True:
        inspection = inspect_service(request)
        if as_json:
            print_json_line(inspection.document)
        else:
            typer.echo(watch_line(inspection.document, clock.timestamp()[11:19]))

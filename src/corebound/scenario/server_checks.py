"""Check what a scenario says of a server of the user's own, or of a running service."""

from collections.abc import Iterator
from urllib.parse import urlsplit

from corebound.scenario.fault_wording import join_words, printable
from corebound.scenario.files import FileFinder
from corebound.scenario.matrix import Point
from corebound.scenario.placeholders import PROVIDED, fill, placeholders_in
from corebound.scenario.server_workload import ExpectedAnswer, ServerWorkload
from corebound.scenario.settings import Settings
from corebound.scenario.yaml_reader import Flaw

_URL = ("workload", "requests", "url")
_PORT_IN_URL = "Write it in both: `{port}` is a free port that each launch chooses."


def check_server(workload: ServerWorkload) -> Iterator[Flaw]:
    """Check the parts that do not depend on cells, except the words of the command."""
    requests, server = workload.requests, workload.server
    # Any number in place of a placeholder shows whether it is an address.
    addresses = {_URL: requests.url}
    if server is not None and server.ready is not None:
        addresses["workload", "server", "ready"] = server.ready
    for path, address in addresses.items():
        try:
            _ = urlsplit(fill(address, dict.fromkeys(placeholders_in(address), "1"))).port
        except ValueError as error:
            yield path, f"`{printable(address)}` is not an address: {error}.", "Correct it."
    if not requests.streams and requests.model is not None:
        what = "`model` is for the protocols `openai-chat` and `openai-completions`."
        yield ("workload", "requests", "model"), what, "Remove it, or write `protocol:`."
    if requests.method in {"GET", "HEAD"} and (requests.body is not None or requests.streams):
        what = f"`method: {requests.method}` sends no body."
        yield ("workload", "requests", "method"), what, "Write `method: POST`, or remove it."


def check_ports(workload: ServerWorkload, point: Point) -> Iterator[Flaw]:
    """Check that the requests of a cell go where its server listens."""
    server, is_in_url = workload.server, "port" in placeholders_in(workload.requests.url)
    if server is None:
        if is_in_url:
            what = "`{port}` is the port of a server that corebound starts, and there is none."
            yield _URL, what, "Write the port of the running service, or add `server:`."
        return
    variables = (str(variable.value) for variable in point.env.values())
    is_given = "port" in placeholders_in(" ".join((*server.command, *variables)))
    if is_in_url and not is_given:
        yield _URL, "`{port}` is in `url`, but not in `command` or `env`.", _PORT_IN_URL
    elif is_given and not is_in_url:
        yield _URL, "`{port}` is in `command` or `env`, but not in `url`.", _PORT_IN_URL


def check_server_point(workload: ServerWorkload, point: Point) -> Iterator[Flaw]:
    """Check one point of the matrix."""
    yield from check_ports(workload, point)
    if point.settings["framework"].value is not None:
        what = "`framework` does not apply to a server of your own."
        yield point.settings["framework"].path, what, "Remove it."
    known = {*PROVIDED, *point.parameters}
    for unknown in sorted(placeholders_in(workload.requests.url) - known):
        fix = f"Write `{unknown}:` under `parameters`, or one of {join_words(list(PROVIDED))}."
        yield _URL, f"`{{{printable(unknown)}}}` in `url` has no value.", fix
    if workload.requests.streams and workload.requests.body is None:
        for name in ("prompt", "output"):
            if name not in point.parameters:
                what = f"`protocol: {workload.requests.protocol}` without a `body` needs `{name}`."
                yield ("parameters",), what, f"Write `{name}:`, a number of tokens, there."
    client = point.parameters.get("client")
    if client is not None and client.value == "ab" and not _can_ab(workload):
        what = "`client: ab` cannot check answers, read streams or send several bodies."
        yield client.path, what, "Write `client: corebound`, or remove `expect`."
    if workload.server is None:
        for name, setting in point.settings.items():
            if setting.value != Settings.model_fields[name].default:
                what = f"`{name}: {setting.text}` does not apply to a service that runs already."
                yield setting.path, what, "Remove it, or add `server:` with its command."


def _can_ab(workload: ServerWorkload) -> bool:
    """Whether ApacheBench can send what corebound's own generator would."""
    requests = workload.requests
    is_one = "*" not in (requests.body_files or "")
    return is_one and not requests.streams and requests.expect == ExpectedAnswer()


def check_bodies(workload: ServerWorkload, exists: FileFinder) -> Iterator[Flaw]:
    """Check that there are files with bodies."""
    pattern = workload.requests.body_files
    if pattern is not None and not exists(pattern):
        fix = "Paths are relative to this file. A text has blanks, braces, quotes or `=`."
        path = ("workload", "requests", "body")
        yield path, f"there is no file `{printable(pattern)}`.", fix

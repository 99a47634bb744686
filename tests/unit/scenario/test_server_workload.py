"""Servers of the user's own in scenario files: what is a fault, and what a cell gets."""

import pytest

from corebound.errors import ScenarioFaults
from corebound.scenario.loader import load, load_document
from corebound.scenario.matrix import expand
from corebound.scenario.models import Scenario
from corebound.scenario.server_workload import Requests, ServerWorkload

HEAD = "schema: 1\nname: a\ntitle: T\nquestion: Q?\nparameters: {concurrency: 2}\n"
COMMAND = 'server: {command: [node, server.js, "{port}"]}'
URL = 'url: "http://127.0.0.1:{port}/"'


def a_file(server: str = COMMAND, requests: str = URL, more: str = "") -> str:
    return f"{HEAD}workload:\n  {server}\n  requests: {{{requests}}}\n{more}"


def loaded(text: str, existing: tuple[str, ...] = ()) -> Scenario:
    return load(text.encode(), "f.yaml", None, existing.__contains__)


def faults(text: str, existing: tuple[str, ...] = ()) -> str:
    with pytest.raises(ScenarioFaults) as caught:
        loaded(text, existing)
    return str(caught.value)


def test_a_server_of_ones_own_needs_no_environment_and_is_a_runtime_of_its_own() -> None:
    (cell,) = expand(loaded(a_file()), "f.yaml")

    assert (cell.framework, cell.environment) == ("own-server", "host")


def test_requests_alone_are_for_a_running_service() -> None:
    (cell,) = expand(loaded(a_file("", 'url: "http://10.0.0.5:8000/"')), "f.yaml")

    assert cell.framework == "running-service"


def test_a_record_of_the_scenario_can_be_read_again() -> None:
    scenario = loaded(a_file(requests=f"{URL}, headers: {{A: b}}"))

    assert load_document(scenario.document(), "f.yaml").workload == scenario.workload
    assert isinstance(scenario.workload, ServerWorkload)
    assert hash(scenario.workload) == hash(scenario.workload.model_copy())


@pytest.mark.parametrize(
    ("body", "is_files"),
    [
        ("requests/*.json", True),
        ("image.jpg", True),
        ('{"x": 1}', False),
        ("a=1&b=c.d", False),
        ("two words.txt", False),
        ("3.14", False),
        ("hello", False),
    ],
)
def test_a_body_is_files_if_it_looks_like_a_path(body: str, is_files: bool) -> None:
    requests = Requests.model_validate({"url": "http://a/", "body": body})

    assert (requests.body_files is not None) == is_files


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (a_file(requests='url: "http://127.0.0.1:8000/"'), "`{port}` is in `command` or `env`"),
        (a_file("server: {command: [node, server.js]}"), "not in `command` or `env`"),
        (a_file("", URL), "there is none"),
        (a_file(requests='url: "https://a:{port}/"'), "no HTTPS"),
        (a_file(requests='url: "http://a:{port}x/"'), "is not an address"),
        (a_file(requests=f"{URL}, method: FETCH"), "is not a method"),
        (a_file(requests=f'{URL}, method: GET, body: "x y"'), "sends no body"),
        (a_file(requests=f"{URL}, model: gpt"), "`model` is for the protocols"),
        (a_file(requests=f"{URL}, protocol: openai-chat"), "needs `prompt`"),
        (a_file(requests='url: "http://a:{port}/{size}"'), "`{size}` in `url` has no value"),
        (a_file(requests=f"{URL}, body: requests/*.json"), "there is no file `requests/*.json`"),
        (a_file(requests=f"{URL}, boddy: x"), "Did you mean `body`"),
        (a_file(requests=f"{URL}, expect: {{status: 700}}"), "is not a status"),
        (a_file("server: {command: node server.js}"), "is not a list of words"),
        (a_file("server: {command: [./serve, '{port}']}"), "there is no program `./serve`"),
        (a_file("server: {command: [a, '{port}', '{sise}']}"), "`{sise}` has no value"),
        (a_file("", 'url: "http://a/"', "binding: node\n"), "does not apply to a service"),
        (a_file("", 'url: "http://a/"', "matrix: {workers: [1, 2]}\n"), "does not apply"),
        (a_file(more="framework: pytorch\n"), "`framework` does not apply"),
        (a_file(more="intra_op: 2\n"), "`intra_op: 2` does not apply"),
        (a_file(more="matrix: {parameters: {size: [1]}}\n"), "no command has `{size}`"),
        (a_file(more="matrix: {parameters: {rate: [1.0]}}\n"), "`rate` does not apply"),
        (
            a_file(
                requests=f"{URL}, expect: {{text: a}}", more="matrix: {parameters: {client: [ab]}}"
            ),
            "`client: ab` cannot",
        ),
    ],
)
def test_what_cannot_work_is_a_fault(text: str, message: str) -> None:
    assert message in faults(text)


def test_the_port_may_be_in_a_variable_instead_of_the_command() -> None:
    text = a_file("server: {command: [node, server.js]}", more='env: {PORT: "{port}"}\n')

    assert loaded(text).env == {"PORT": "{port}"}

"""Specifies what `corebound inspect` says of a service, and the scenario that it writes."""

import json
from pathlib import Path

import msgspec
import pytest

from corebound.errors import InputError
from corebound.present.inspect import inspect_sections
from corebound.present.sections import Facts, Sentence, Table, text_of
from corebound.records.service_use import Hidden, ServiceUse
from corebound.workflow.inspect import (
    Inspection,
    InspectRequest,
    inspect_service,
    judge,
    scenario_text,
)
from corebound.workflow.plan import check
from support.build import a_host
from support.services import a_group_use, a_pool, a_process_use, a_service_use, a_thread_use

CROWDED = a_service_use(
    a_process_use(
        *a_pool(100, 8, run=0.25, wait=0.75),
        command=("server", "--port", "8000", "{x}"),
        libraries=("libgomp.so.1",),
        variables={"OMP_NUM_THREADS": "8", "MALLOC_ARENA_MAX": "2"},
    ),
    quotas=(a_group_use(1.5),),
)
HIDDEN = (Hidden(what="of process 100: its variables", fix="Run it as root."),)


def inspection(use: ServiceUse) -> Inspection:
    """What is said of a service on a host with two CPUs."""
    return judge(use, a_host(), target="100")


@pytest.mark.parametrize(
    ("use", "state", "code"),
    [
        (a_service_use(), "healthy", 0),
        (a_service_use(a_process_use(a_thread_use(run=0))), "idle", 0),
        (CROWDED, "findings", 1),
        (msgspec.structs.replace(CROWDED, hidden=HIDDEN), "findings", 1),
        (a_service_use(hidden=HIDDEN), "unseen", 3),
    ],
)
def test_a_state_has_its_exit_code(use: ServiceUse, state: str, code: int) -> None:
    result = inspection(use)

    assert (result.state, result.exit_code) == (state, code)


def test_the_document_is_json_with_every_finding_and_what_to_set() -> None:
    document = json.loads(msgspec.json.encode(inspection(CROWDED).document))

    found = {one["rule"]: one for one in document["findings"]}
    assert found["variable-exceeds-cpus"]["set"] == "OMP_NUM_THREADS=1"
    assert document["limits"]["quota_cpus"] == 1.5
    assert document["processes"][0]["computing"] == 8


def test_names_of_processes_and_threads_cannot_write_to_the_terminal() -> None:
    hostile = "\x1b[2Jname\n▼ forged"
    use = a_service_use(
        a_process_use(a_thread_use(name=hostile), name=hostile, command=(hostile, "\u202ex"))
    )
    result = inspection(use)

    texts = list(_texts(result))

    assert any("forged" in text for text in texts)
    assert all(text.isprintable() for text in texts)


def _texts(result: Inspection) -> list[str]:
    texts = []
    for section in inspect_sections(result.document):
        match section:
            case Sentence():
                texts.append(section.text)
            case Facts():
                texts += [fact.value for fact in section.rows]
            case Table():
                texts += [text_of(value) for row in section.rows for value in row]
    return texts


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("serve --api-key abc --token=abc --port 80", "serve --api-key *** --token=*** --port 80"),
        ("env HF_TOKEN=abc app --accessToken abc", "env HF_TOKEN=*** app --accessToken ***"),
        ("psql postgres://me:abc@host/db", "psql postgres://***@host/db"),
        ("call {'apiKey':'abc'} Authorization:abc", "call {'apiKey':*** Authorization:***"),
        (
            "vllm --tokenizer m --max-tokens 512 --keys=2",
            "vllm --tokenizer m --max-tokens 512 --keys=2",
        ),
    ],
)
def test_what_may_be_secret_in_a_command_line_is_neither_shown_nor_written(
    command: str, shown: str
) -> None:
    process = a_process_use(command=tuple(command.split()))
    result = inspection(a_service_use(process))

    text = scenario_text(result, process, ())

    assert " ".join(result.document["processes"][0]["command"]) == shown
    assert "abc" not in text
    assert ("secret" in text) == (command != shown)


@pytest.mark.parametrize(
    ("use", "ports"),
    [*((CROWDED, ports) for ports in ((), (8000,), (9000,))), (a_service_use(), ())],
)
def test_the_scenario_of_a_service_is_valid(
    tmp_path: Path, use: ServiceUse, ports: tuple[int, ...]
) -> None:
    file = tmp_path / "service.yaml"

    file.write_text(scenario_text(inspection(use), use.processes[0], ports), "utf-8")

    (checked,) = check(file)
    assert checked.cells == 2  # as it runs, and with what is set


@pytest.mark.parametrize(
    ("program", "command"), [("/usr/sbin/nginx", "/usr/sbin/nginx"), (None, "the-app")]
)
def test_a_title_in_place_of_a_command_line_is_no_command(
    program: str | None, command: str
) -> None:
    process = a_process_use(name="the app", command=("nginx: master process \x1b[2J",))

    text = scenario_text(inspection(a_service_use(process)), process, (), program=program)

    assert msgspec.yaml.decode(text)["workload"] == {"command": [command]}
    assert "cannot be one" in text


def test_the_scenario_of_a_service_on_one_cpu_compares_it_with_all_and_names_its_folder() -> None:
    process = a_process_use(*a_pool(100, 4, run=0.25, wait=0.75, cpus=(0,)), command=("serve",))

    found = inspection(a_service_use(process))

    text = scenario_text(found, process, (), folder="/srv/app")

    assert msgspec.yaml.decode(text)["matrix"]["binding"] == ["one-cpu", "none"]
    assert "/srv/app" in text
    assert "corebound run" in found.document["findings"][0]["prove"]


def test_the_scenario_varies_what_findings_set_and_keeps_other_variables() -> None:
    text = scenario_text(inspection(CROWDED), CROWDED.processes[0], (8000,))

    document = msgspec.yaml.decode(text)
    assert document["matrix"] == {"omp": [8, 1], "cpu_quota": [1.5]}
    assert document["env"] == {"MALLOC_ARENA_MAX": "2"}
    assert document["workload"]["server"]["command"] == ["server", "--port", "{port}", "{{x}}"]


@pytest.mark.parametrize(
    "request_",
    [
        InspectRequest(),
        InspectRequest(pids=(1,), port=80),
        InspectRequest(pids=(1,), seconds=float("nan")),
        InspectRequest(pids=(2**40,)),
        InspectRequest(cgroup="../../etc"),
        InspectRequest(name=""),
    ],
)
def test_a_request_that_names_no_service_is_an_error(request_: InspectRequest) -> None:
    with pytest.raises(InputError):
        inspect_service(request_)

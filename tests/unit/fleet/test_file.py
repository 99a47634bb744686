"""fleet.yaml: what it may hold, and that every fault has its line and its fix."""

import contextlib

import jsonschema
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from corebound.errors import ScenarioFaults
from corebound.fleet.file import EXPECTED, FLEET, FleetFile, duration_s, load_fleet, schema
from support.known import known
from support.paths import ROOT

WHOLE = """\
schema: 1
name: lab
engine: slurm
hosts:
  - n1
  - {name: n2, labels: {rack: a7}}
  - {partition: genoa, features: avx512, count: 4, labels: {class: genoa}}
scenarios: [scenarios/]
profile: quick
only: ["threads=1"]
launches: 2
budget: 1h30m
commit: v1.2
labels: {site: north}
wheelhouse: /shared/wheels
work: /scratch/corebound
slurm: {partition: all, account: bench, qos: high, constraint: avx512, time_limit: 2h}
"""
LEAST = "schema: 1\nname: lab\nengine: dask\nhosts: [n1]\nscenarios: [a.yaml]\n"
KUBERNETES = (
    LEAST.replace("dask", "kubernetes")
    + "kubernetes:\n  image: i\n  claim: bench\n  mount: /fleet\n"
)
DASK = LEAST + "dask: {scheduler: tcp://h:8786}\n"


def faults(text: str) -> list[str]:
    with pytest.raises(ScenarioFaults) as error:
        load_fleet(text.encode(), "fleet.yaml")
    return str(error.value).splitlines()


def test_a_fleet_file_is_read_with_all_its_keys() -> None:
    fleet = load_fleet(WHOLE.encode(), "fleet.yaml")

    assert [entry.name for entry in fleet.entries()] == ["n1", "n2", None]
    assert fleet.document() == yaml.safe_load(WHOLE)


def test_a_toleration_of_any_value_is_read() -> None:
    text = KUBERNETES + "  memory: 1.5Gi\n  tolerations: [{key: a, operator: Exists}]\n"
    section = known(load_fleet(text.encode(), "fleet.yaml").kubernetes)

    assert (section.memory, section.tolerations[0].operator) == ("1.5Gi", "Exists")


def test_every_fault_is_reported_at_once_with_its_line() -> None:
    text = WHOLE.replace("engine", "engin").replace("launches: 2", "launches: 0")

    assert [line.partition(" ")[0] for line in faults(text)] == ["fleet.yaml:3:", "fleet.yaml:11:"]
    assert "Did you mean `engine`?" in faults(text)[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (LEAST, "`dask` must have exactly one of"),
        (DASK.replace("[n1]", "[n1, n1]"), "`n1` is listed twice"),
        (DASK.replace("[n1]", "[{partition: p}]"), "the engine dask has no `partition`"),
        (DASK.replace("[n1]", "[{labels: {a: b}}]"), "a host must have either `name`"),
        (DASK.replace("[n1]", "[{name: n1, count: 2}]"), "`count` applies to a selection"),
        (DASK + "slurm: {partition: p}\n", "an engine that is not used"),
        (DASK + "labels: {fleet-shard: a}\n", "a label that corebound sets"),
        (DASK + "labels: {a b: c}\n", "is not the name of a label"),
        (DASK + "labels: {rack: 7}\n", "is not a label. Write text, in quotes"),
        (DASK + "budget: 3 days\n", "is not a duration"),
        (LEAST.replace("dask", "kubernetes"), "`kubernetes` is missing"),
        (LEAST.replace("dask", "slurmm"), "Did you mean `slurm`?"),
        (DASK + "partition: p\n", "Write it under `hosts`"),
        (KUBERNETES + "  memory: 4 GB\n", "is not an amount of memory"),
        (KUBERNETES + "  namespace: My_Lab\n", "is not the name of a namespace"),
        (KUBERNETES.replace("bench", "Bench"), "is not the name of a PersistentVolumeClaim"),
        (
            KUBERNETES + "  tolerations: [{key: a, operator: Exists, value: b}]\n",
            "with `operator: Exists` has no value",
        ),
        ("- a list", "this is not a fleet file"),
    ],
)
def test_what_contradicts_itself_is_refused(text: str, message: str) -> None:
    assert any(message in line for line in faults(text)), faults(text)


def test_every_key_has_words_for_its_faults() -> None:
    keys = {key for section in FLEET.sections for key in FLEET.known_keys(section)}

    assert keys == set(EXPECTED)


@given(st.binary(max_size=300) | st.text(max_size=300).map(str.encode))
def test_any_bytes_give_a_fleet_or_faults(data: bytes) -> None:
    with contextlib.suppress(ScenarioFaults):
        assert isinstance(load_fleet(data, "fleet.yaml"), FleetFile)


@given(st.sampled_from(WHOLE.splitlines()), st.text("[]{}:-#\"' ab1\n", max_size=12))
def test_a_damaged_line_gives_faults_that_name_lines_of_the_file(line: str, damage: str) -> None:
    text = WHOLE.replace(line, line[: len(line) // 2] + damage + line[len(line) // 2 :])
    try:
        load_fleet(text.encode(), "fleet.yaml")
    except ScenarioFaults as error:
        lines = {fault.line for fault in error.faults}
        assert lines <= {*range(1, text.count("\n") + 2)}


def test_the_schema_accepts_what_is_valid_and_rejects_unknown_keys() -> None:
    validator = jsonschema.Draft202012Validator(schema())

    assert validator.is_valid(yaml.safe_load(WHOLE))
    assert not validator.is_valid({**yaml.safe_load(WHOLE), "engin": "dask"})


def test_the_schema_in_docs_is_the_generated_one() -> None:
    written = yaml.safe_load((ROOT / "docs" / "fleet.schema.json").read_text())

    assert written == schema()


def test_a_duration_has_hours_minutes_and_seconds() -> None:
    assert duration_s("1h2m3s") == 3723

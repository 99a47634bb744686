"""The format of fleet.yaml: its keys and their words, and the reader that reports every fault."""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, StrictBool, StrictInt, StrictStr, Tag

from corebound.records.run_record import LABEL_NAME
from corebound.scenario.fault_wording import BOOLEAN, Expected, one_of, printable, whole_number
from corebound.scenario.json_schema import schema_of
from corebound.scenario.loader import load_file
from corebound.scenario.models import ProfileName
from corebound.scenario.settings import Revision, StrictModel, mapping_or_plain
from corebound.scenario.validation import FileFormat
from corebound.scenario.yaml_reader import Flaw, Node, Path

EngineName = Literal["dask", "slurm", "kubernetes"]
ENGINES: tuple[EngineName, ...] = ("dask", "slurm", "kubernetes")

# A host's name in DNS, Slurm and Kubernetes; it also names a folder.
HOST_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,252}$"
HostName = Annotated[StrictStr, Field(pattern=HOST_NAME)]
Words = Annotated[StrictStr, Field(min_length=1, max_length=1000, pattern=r"^[^\n\r\x00]+$")]
# As Kubernetes names its objects (RFC 1123), and writes amounts.
ObjectName = Annotated[StrictStr, Field(pattern=r"^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$")]
Memory = Annotated[StrictStr, Field(pattern=r"^[0-9]{1,15}([.][0-9]{1,9})?([KMGTP]i|[kMGTP])?$")]
Labels = Mapping[StrictStr, Words]
Duration = Annotated[
    StrictStr, Field(min_length=2, pattern=r"^([0-9]{1,4}h)?([0-9]{1,5}m)?([0-9]{1,6}s)?$")
]
# Labels that the agent sets, by which records find their shard.
RESERVED_LABELS = ("fleet-plan", "fleet-shard")


class HostEntry(StrictModel):
    """Hosts that share labels: one by name, or all that the engine has of a kind."""

    name: HostName | None = Field(None, description="one host, by the engine's name for it")
    partition: Words | None = Field(None, description="all nodes of a Slurm partition")
    features: Words | None = Field(
        None, description="all Slurm nodes with these features: avx512&genoa"
    )
    nodes: Labels | None = Field(None, description="all Kubernetes nodes with these labels")
    count: Annotated[StrictInt, Field(ge=1, le=10_000)] | None = Field(
        None, description="at most this many of them"
    )
    labels: Labels = Field({}, description="labels of these hosts' records")


class Dask(StrictModel):
    """Where the Dask scheduler is, or how to start one."""

    scheduler: Words | None = Field(None, description="address of a running scheduler: tcp://…")
    ssh: StrictBool | None = Field(None, description="true: start a cluster over SSH on the hosts")
    local: StrictBool | None = Field(
        None, description="true: start one worker for each host on this machine, to try a plan"
    )
    tls: Words | None = Field(
        None, description="folder with ca.pem, cert.pem and key.pem of the scheduler"
    )


class Slurm(StrictModel):
    """Options of the jobs."""

    partition: Words | None = Field(None, description="partition to submit to")
    account: Words | None = Field(None, description="account to charge")
    qos: Words | None = Field(None, description="quality of service")
    constraint: Words | None = Field(None, description="features that a node must have")
    time_limit: Duration = Field("1h", description="time limit of one shard")


class Toleration(StrictModel):
    """A taint that the pods tolerate."""

    key: Words
    operator: Literal["Equal", "Exists"] = "Equal"
    value: StrictStr | None = None
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None


class Kubernetes(StrictModel):
    """The Job that measures: its image, volume and nodes."""

    image: Words = Field(description="image with corebound and git")
    claim: ObjectName = Field(description="PersistentVolumeClaim that all pods and you can write")
    mount: Annotated[StrictStr, Field(pattern=r"^/[^\n\r\x00]{0,1000}$")] = Field(
        description="where the pods, and you, have the volume; the plans must be below it"
    )
    namespace: ObjectName = Field("default", description="namespace of the Job")
    cpus: Annotated[StrictInt, Field(ge=1, le=65_536)] = Field(
        1, description="CPUs of each pod: requests and limits, so that it has exclusive ones"
    )
    memory: Memory = Field("4Gi", description="memory of each pod")
    tolerations: tuple[Toleration, ...] = Field((), max_length=64)


class FleetFile(StrictModel):
    """Which hosts measure which scenarios, and through which engine."""

    schema_version: Annotated[StrictInt, Field(ge=1, le=1)] = Field(
        alias="schema", description="the version of this format: 1"
    )
    name: Annotated[StrictStr, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,62}$")] = Field(
        description="names the folder of its plans"
    )
    engine: EngineName = Field(description="what starts an agent on each host")
    hosts: Annotated[
        tuple[
            Annotated[
                Annotated[HostName, Tag("plain")] | Annotated[HostEntry, Tag("keys")],
                Discriminator(mapping_or_plain),
            ],
            ...,
        ],
        Field(min_length=1, max_length=10_000),
    ] = Field(description="the hosts to measure")
    scenarios: Annotated[tuple[Words, ...], Field(min_length=1, max_length=10_000)] = Field(
        description="scenario files or folders, from this file's folder"
    )
    profile: ProfileName | None = Field(None, description="as `corebound run --profile`")
    only: tuple[Words, ...] = Field((), max_length=256, description="as `corebound run --only`")
    launches: Annotated[StrictInt, Field(ge=1, le=1000)] | None = Field(
        None, description="launches of each cell in each shard; default: the scenario's own"
    )
    budget: Duration | None = Field(None, description="time limit of one shard's measurement")
    commit: Revision = Field("HEAD", description="revision of this file's repository")
    labels: Labels = Field({}, description="labels of all records")
    wheelhouse: Words | None = Field(
        None, description="folder of wheels on each host, for hosts without a package index"
    )
    work: Words | None = Field(
        None, description="working folder on each host; default: in corebound's cache there"
    )
    dask: Dask | None = Field(None, description="options of the engine dask")
    slurm: Slurm | None = Field(None, description="options of the engine slurm")
    kubernetes: Kubernetes | None = Field(None, description="options of the engine kubernetes")

    def entries(self) -> tuple[HostEntry, ...]:
        """The hosts, each as a mapping."""
        return tuple(HostEntry(name=host) if isinstance(host, str) else host for host in self.hosts)

    def document(self) -> dict[str, Any]:
        """The file as plain JSON data, without defaults."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True)


_TEXT = Expected("one line of text", "Write text, in quotes if it looks like a number.")
_LABELS = Expected("a mapping of labels", "Write labels as `rack: a7`, one on each line.")
_LABEL = Expected("a label", 'Write text, in quotes if it looks like a number: rack: "7".')
_DURATION = Expected("a duration", "Write it like 90s, 10m or 1h30m.")
_OBJECT_FIX = "Write lower-case letters, digits, `.` and `-`, a letter or digit first and last."
_HOST = Expected(
    "a host",
    "Write a name of letters, digits, `.`, `_` and `-`, or a mapping such as {partition: genoa}.",
)

EXPECTED: dict[str, Expected] = {
    "schema": Expected("a version of this format", "Write `schema: 1`."),
    "name": Expected(
        "a name",
        "Write up to 63 lower-case letters, digits, `.`, `_` or `-`, a letter or digit first.",
    ),
    "engine": one_of("an engine", ENGINES),
    "hosts": Expected("a list of hosts", "Write names: `hosts: [n1, n2]`."),
    "scenarios": Expected("a list of scenario files", "Write `scenarios: [scenarios/gemm.yaml]`."),
    "profile": one_of("a profile", ("quick", "nightly")),
    "only": Expected("a list of selections", 'Write `only: ["threads=1"]`.'),
    "launches": whole_number("a number of launches", 1, 1000),
    "budget": _DURATION,
    "time_limit": _DURATION,
    "commit": Expected("a revision", "Write a commit, a tag or a branch."),
    "labels": _LABELS,
    "nodes": _LABELS,
    "wheelhouse": _TEXT,
    "work": _TEXT,
    "dask": Expected(
        "a mapping", "Write `scheduler: tcp://…`, `ssh: true` or `local: true` under it."
    ),
    "slurm": Expected("a mapping", "Write keys such as `partition: genoa` under it."),
    "kubernetes": Expected("a mapping", "Write `image`, `claim` and `mount` under it."),
    "partition": _TEXT,
    "features": _TEXT,
    "count": whole_number("a number of hosts", 1, 10_000),
    "scheduler": Expected("an address", "Write it as tcp://HOST:PORT or tls://HOST:PORT."),
    "ssh": BOOLEAN,
    "local": BOOLEAN,
    "tls": _TEXT,
    "account": _TEXT,
    "qos": _TEXT,
    "constraint": _TEXT,
    "image": Expected("an image", "Write an image that contains corebound and git."),
    "claim": Expected("the name of a PersistentVolumeClaim", _OBJECT_FIX),
    "mount": Expected("an absolute path", "Write the folder of the volume: /fleet."),
    "namespace": Expected("the name of a namespace", _OBJECT_FIX),
    "cpus": whole_number("a number of CPUs", 1, 65_536),
    "memory": Expected("an amount of memory", "Write it as Kubernetes does: 4Gi."),
    "tolerations": Expected(
        "a list of tolerations", "Write each as `- {key: dedicated, value: bench}`."
    ),
    "key": _TEXT,
    "operator": one_of("an operator", ("Equal", "Exists")),
    "value": _TEXT,
    "effect": one_of("an effect", ("NoSchedule", "PreferNoSchedule", "NoExecute")),
}
_ITEMS = {
    "hosts": _HOST,
    "scenarios": _TEXT,
    "only": _TEXT,
    "tolerations": Expected("a toleration", "Write `key` and `value` under the `-`."),
}


def _expected_at(path: Path, _node: Node) -> Expected:
    keys = [part for part in path if isinstance(part, str)]
    if isinstance(path[-1], int):
        return _ITEMS.get(keys[-1], _TEXT)
    if len(keys) > 1 and keys[-2] in {"labels", "nodes"}:
        return _LABEL
    return _HOST if keys[0] == "hosts" and keys[-1] == "name" else EXPECTED[keys[-1]]


FLEET = FileFormat(
    noun="a fleet file",
    example="`engine: slurm`",
    model=FleetFile,
    sections={
        "": FleetFile,
        "hosts": HostEntry,
        "dask": Dask,
        "slurm": Slurm,
        "kubernetes": Kubernetes,
        "tolerations": Toleration,
    },
    homes=("", "hosts", "dask", "slurm", "kubernetes"),
    placeholders={"schema": 1, "name": "x", "engine": "dask", "hosts": ["x"], "scenarios": ["x"]},
    expected=_expected_at,
    missing=EXPECTED.__getitem__,
    is_nullable=lambda _path: False,
)


def load_fleet(data: bytes, file: str) -> FleetFile:
    """Read a fleet file.

    Args:
        data: The file's bytes; any content is accepted.
        file: The file's name, for faults.

    Raises:
        ScenarioFaults: every fault in syntax, keys, values and their combinations, each with
            its line.
    """
    return load_file(data, file, FLEET, _check_meaning)


def _check_meaning(fleet: FleetFile, removed: tuple[Path, ...]) -> Iterator[Flaw]:
    """Check how keys combine; nothing follows from an invalid part."""
    invalid = {part for path in removed for part in path[:1]}
    if "engine" not in invalid:
        yield from _check_sections(fleet, invalid)
    if "hosts" not in invalid:
        yield from _check_hosts(fleet, engine_is_valid="engine" not in invalid)
    if "labels" not in invalid:
        yield from _check_labels(("labels",), fleet.labels)
    for number, entry in enumerate(fleet.entries()):
        yield from _check_labels(("hosts", number, "labels"), entry.labels)


def _check_labels(path: Path, labels: Mapping[str, str]) -> Iterator[Flaw]:
    for name in labels:
        if name in RESERVED_LABELS:
            yield (*path, name), f"`{name}` is a label that corebound sets.", "Rename it."
        elif not LABEL_NAME.fullmatch(name):
            yield (
                (*path, name),
                f"`{printable(name)}` is not the name of a label.",
                "Use up to 63 letters, digits, `.`, `_` or `-`, a letter or digit first.",
            )


def _check_sections(fleet: FleetFile, invalid: set[str | int]) -> Iterator[Flaw]:
    for engine in ENGINES:
        if engine != fleet.engine and getattr(fleet, engine) is not None:
            what = f"`{engine}` has options of an engine that is not used."
            yield (engine,), what, f"Remove it, or write `engine: {engine}`."
    if fleet.engine == "dask" and "dask" not in invalid:
        section = fleet.dask or Dask()
        ways = [section.scheduler is not None, bool(section.ssh), bool(section.local)]
        if sum(ways) != 1:
            what = "`dask` must have exactly one of `scheduler`, `ssh` and `local`."
            yield ("dask",), what, "Write `dask: {scheduler: tcp://HOST:8786}`."
    if fleet.engine == "kubernetes" and fleet.kubernetes is None and "kubernetes" not in invalid:
        yield ("engine",), "`kubernetes` is missing.", EXPECTED["kubernetes"].fix
    if fleet.kubernetes is not None and "kubernetes" not in invalid:
        for number, toleration in enumerate(fleet.kubernetes.tolerations):
            if toleration.operator == "Exists" and toleration.value:
                path = ("kubernetes", "tolerations", number, "value")
                what = "a toleration with `operator: Exists` has no value."
                yield path, what, "Remove it, or write `operator: Equal`."


# The keys of a host that only one engine understands.
_SELECTORS: Mapping[str, EngineName] = {
    "partition": "slurm", "features": "slurm", "nodes": "kubernetes",
}  # fmt: skip


def _check_hosts(fleet: FleetFile, *, engine_is_valid: bool) -> Iterator[Flaw]:
    first: dict[str, int] = {}
    for number, entry in enumerate(fleet.entries()):
        path: Path = ("hosts", number)
        used = [key for key in ("name", *_SELECTORS) if getattr(entry, key) is not None]
        if not used or ("name" in used and len(used) > 1):
            what = "a host must have either `name`, or `partition`, `features` or `nodes`."
            yield path, what, "Keep one of them."
            continue
        for key in used:
            if engine_is_valid and _SELECTORS.get(key, fleet.engine) != fleet.engine:
                yield (
                    (*path, key),
                    f"the engine {fleet.engine} has no `{key}`.",
                    "Name each host: `name: n1`.",
                )
        if entry.name is None:
            continue
        if entry.count is not None:
            yield (*path, "count"), "`count` applies to a selection, not to one host.", "Remove it."
        if first.setdefault(entry.name, number) != number:
            yield path, f"`{entry.name}` is listed twice.", "Keep one of them."


_DURATION_PARTS = re.compile(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?", re.ASCII)


def duration_s(text: str) -> int:
    """The seconds of a duration of the file.

    >>> duration_s("1h30m"), duration_s("45s")
    (5400, 45)
    """
    match = _DURATION_PARTS.fullmatch(text)
    if match is None:
        raise ValueError(f"{text} is not a duration")
    hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return hours * 3600 + minutes * 60 + seconds


def schema() -> dict[str, Any]:
    """The JSON Schema of a fleet file: keys, types and allowed words, not how they combine."""
    return schema_of(FleetFile, title="A corebound fleet")

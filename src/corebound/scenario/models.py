"""The data model of a scenario file: its keys, types, defaults and limits."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol, Self, get_args

from pydantic import (
    Discriminator,
    Field,
    ModelWrapValidatorHandler,
    PrivateAttr,
    SerializerFunctionWrapHandler,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    Tag,
    ValidationInfo,
    create_model,
    model_serializer,
    model_validator,
)

from corebound.scenario.cell import Importance
from corebound.scenario.fault_wording import BOOLEAN, COUNT, Expected, one_of, whole_number
from corebound.scenario.metrics import Better, Metric
from corebound.scenario.placeholders import fill, placeholders_in
from corebound.scenario.server_workload import ServerWorkload
from corebound.scenario.settings import Count, Settings, StrictModel, axis_fields, mapping_or_plain


class OrderedModel(StrictModel):
    """A part that keeps the file's order of keys, which names and orders the cells."""

    _written: tuple[str, ...] = PrivateAttr(())

    @property
    def written(self) -> tuple[str, ...]:
        """The keys that were written, in the order of the file."""
        return self._written

    @model_validator(mode="wrap")
    @classmethod
    def _remember(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        model: Self = handler(data)
        # A model has its fields in the order of the class; only `data` has the file's order.
        if isinstance(data, Mapping):
            model._written = tuple(data)
        return model

    @model_serializer(mode="wrap")
    def _in_order(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields: dict[str, Any] = handler(self)
        return {key: fields[key] for key in (*self._written, *fields) if key in fields}


ProfileName = Literal["quick", "nightly"]
# None is the scenario as it is without a profile.
PROFILES: tuple[ProfileName | None, ...] = (None, "quick", "nightly")
Iterations = Annotated[StrictInt, Field(ge=1, le=10_000_000)]
# The requests that a server gets if the scenario does not say how many.
DEFAULT_REQUESTS = 100
Profiled = Annotated[StrictInt, Field(ge=1, le=1000)]
Url = Annotated[StrictStr, Field(pattern=r"^https://\S+$", max_length=500)]
LaunchCount = Annotated[
    StrictInt, Field(ge=2, le=1000), whole_number("a number of launches", 2, 1000)
]
Seconds = Annotated[float, Field(strict=True, gt=0, le=7 * 24 * 3600)]
Share = Annotated[
    float,
    Field(strict=True, gt=0, lt=1),
    Expected("a share", "Write a number between 0 and 1, such as 0.02 for 2 %."),
]
Alternating = Literal["auto", "always", "never"]
Duplicates = Literal["once", "each"]
Relaunches = Annotated[StrictInt, Field(ge=0, le=100)]


def _warmup_form(value: Any) -> str:
    if isinstance(value, WarmupSeconds) or (
        isinstance(value, Mapping) and "seconds" in value and "iterations" not in value
    ):
        return "seconds"
    return "iterations" if mapping_or_plain(value) == "keys" else "plain"


class WarmupIterations(StrictModel):
    """Drop this many iterations of every launch."""

    iterations: Annotated[
        StrictInt,
        Field(ge=0, le=10_000_000),
        whole_number("a number of iterations", 0, 10_000_000),
    ]


class WarmupSeconds(StrictModel):
    """Drop the iterations that start in the first seconds of every launch."""

    seconds: Annotated[
        float,
        Field(strict=True, ge=0, le=24 * 3600),
        Expected("a number of seconds", "Write a number from 0 to 86,400."),
    ]


Warmup = Annotated[
    Annotated[Literal["auto"], Tag("plain")]
    | Annotated[WarmupIterations, Tag("iterations")]
    | Annotated[WarmupSeconds, Tag("seconds")],
    Discriminator(_warmup_form),
]


class Launches(StrictModel):
    """How often each cell is launched: the launch is the unit of replication."""

    min: LaunchCount = 6
    max: LaunchCount = 30
    until_relative_ci: Share = Field(
        0.02, description="stop when the half-width of the ratio's interval is at most this"
    )

    @property
    def follow_spread(self) -> bool:
        """Whether launches continue until the interval is narrow enough.

        Stopping that way makes narrow intervals too frequent; `stats.comparison` corrects
        for it.
        """
        return self.max > self.min


class Measure(StrictModel):
    """How a cell is measured."""

    warmup: Annotated[
        Warmup,
        Expected("a warm-up", "Write auto, {iterations: 10} or {seconds: 5}.", ("auto",)),
    ] = Field("auto", description="auto: detected afterwards, for each launch")
    iterations: Annotated[
        Literal["auto"] | Iterations,
        one_of("a number of iterations", ("auto",), "a whole number to 10,000,000"),
    ] = Field(
        "auto",
        description="timed in every launch, warm-up included; for a server, its requests; auto:"
        " up to 100, for two seconds, then as many as the launches so far show to be worth their"
        " time",
    )
    launches: Annotated[
        Launches, Expected("a mapping of launches", "Write it as in `{min: 6, max: 30}`.")
    ] = Launches()
    timeout_s: Annotated[
        Seconds,
        Expected("a number of seconds", "Write a number above 0, at most 604,800 (a week)."),
    ] = Field(600.0, description="time limit of one launch, including setup")
    margin: Share = Field(
        0.02, description="a difference of at most this share counts as equivalent"
    )
    operators: Annotated[Profiled | None, whole_number("a number of iterations", 1, 1000)] = Field(
        None, description="iterations of an additional launch under the framework's profiler"
    )
    # A host that disturbs three launches in a row is likely to disturb the next one too. The
    # results are then kept and marked: a page without results is less useful, and paired
    # launches share much of the disturbance.
    relaunch_disturbed: Annotated[Relaunches, whole_number("a number of launches", 0, 100)] = Field(
        2,
        description="launches of a cell that are refused and made again if something outside"
        " disturbed them; 0 keeps every one, marked",
    )
    alternate: Annotated[
        Alternating, one_of("whether launches alternate", get_args(Alternating))
    ] = Field(
        "auto",
        description="whether the launches of a block iterate by turns; auto: those that"
        " keep the same CPUs busy as their baseline, but no servers, GPUs or CPU quotas;"
        " never: each also starts by itself",
    )
    duplicates: Annotated[
        Duplicates, one_of("how often duplicates are measured", get_args(Duplicates))
    ] = Field(
        "once",
        description="cells that are the same on a host, in CPUs, threads, memory and variables:"
        " once measures one of them, each measures all",
    )

    @property
    def requests(self) -> int:
        """How many requests a server gets in every launch."""
        return DEFAULT_REQUESTS if self.iterations == "auto" else self.iterations


class Change(StrictModel):
    """What a profile changes in `measure`; absent keys keep their values."""

    warmup: Warmup | None = None
    iterations: Literal["auto"] | Iterations | None = None
    launches: Launches | None = None
    timeout_s: Seconds | None = None
    margin: Share | None = None
    operators: Profiled | None = None
    relaunch_disturbed: Relaunches | None = None
    alternate: Alternating | None = None
    duplicates: Duplicates | None = None


# Defaults of `--profile quick` for scenarios that do not define it: enough launches for an
# interval, few enough for a short wait.
QUICK_ITERATIONS = 20
QUICK_LAUNCHES = 4


class HasMeasure(Protocol):
    """Anything with `measure` and `profiles`, such as a scenario."""

    @property
    def measure(self) -> Measure:
        """How it is measured without a profile."""
        ...

    @property
    def profiles(self) -> Mapping[ProfileName, Any]:
        """What each profile changes."""
        ...


def measure_for(scenario: HasMeasure, profile: ProfileName | None) -> Measure:
    """The scenario's `measure` with the profile applied; the default `quick` only reduces it."""
    measure = scenario.measure
    if profile is None:
        return measure
    change = scenario.profiles.get(profile)
    if change is None:
        return _quick(measure) if profile == "quick" else measure
    changed_keys = change.model_fields_set & Measure.model_fields.keys()
    update = {name: getattr(change, name) for name in changed_keys}
    if change.launches is not None:
        launches = {
            name: getattr(change.launches, name) for name in change.launches.model_fields_set
        }
        update["launches"] = measure.launches.model_copy(update=launches)
    return measure.model_copy(update=update)


def _quick(measure: Measure) -> Measure:
    dropped = measure.warmup.iterations if isinstance(measure.warmup, WarmupIterations) else 0
    launches = {
        "min": min(measure.launches.min, QUICK_LAUNCHES),
        "max": min(measure.launches.max, QUICK_LAUNCHES),
    }
    update: dict[str, Any] = {"launches": measure.launches.model_copy(update=launches)}
    if measure.iterations != "auto":
        update["iterations"] = min(measure.iterations, dropped + QUICK_ITERATIONS)
    return measure.model_copy(update=update)


# A value of a parameter.
Value = StrictBool | StrictInt | StrictFloat | StrictStr
Text = Annotated[StrictStr, Field(min_length=1, pattern=r"\S")]


Words = Annotated[tuple[StrictStr, ...], Field(min_length=1)] | Text


_COMMAND = Expected(
    "a list of words", "Write the program and each argument as an item: [sort, -r, file]."
)


class CommandWorkload(StrictModel):
    """A command timed whole, from start to exit; in a shell only with `shell: true`."""

    command: Annotated[Words, _COMMAND] = Field(
        description="the words of the command; {NAME} stands for the parameter NAME, or for the"
        " cell's threads, cpus, workers, gpus or port"
    )
    prepare: Annotated[Words | None, _COMMAND] = Field(
        None, description="a command that runs before each iteration and is not timed"
    )
    cleanup: Annotated[Words | None, _COMMAND] = Field(
        None, description="a command that runs once, after all iterations of a launch"
    )
    shell: Annotated[StrictBool, BOOLEAN] = Field(
        default=False, description="true: each command is one text, for `/bin/sh -c`"
    )

    def commands(self) -> Mapping[str, Words]:
        """The commands by their keys."""
        named = {"command": self.command, "prepare": self.prepare, "cleanup": self.cleanup}
        return {key: words for key, words in named.items() if words is not None}

    def placeholders(self) -> frozenset[str]:
        """The names in braces in any of its commands, parameters or not."""
        texts = (
            " ".join((words,) if isinstance(words, str) else words)
            for words in self.commands().values()
        )
        return placeholders_in(" ".join(texts))

    def arguments(self, values: Mapping[str, str]) -> Mapping[str, tuple[str, ...]]:
        """Each command by its key, as arguments to execute with `{name}` filled in from values.

        Other text in braces stays as it is. In a shell, values are quoted.
        """
        return {
            key: ("/bin/sh", "-c", fill(words, values, shlex.quote))
            if isinstance(words, str)
            else tuple(fill(word, values) for word in words)
            for key, words in self.commands().items()
        }


class MetricSource(StrictModel):
    """A value that the command reports, compared instead of its time."""

    name: Annotated[Text, Expected("a name", "Write what the value is, such as `throughput`.")]
    unit: Annotated[StrictStr, Expected("a unit", 'Write it as in `unit: "tokens/s"`.')] = Field(
        "", max_length=40, description="its unit, as it is shown"
    )
    better: Annotated[Better, one_of("a direction", get_args(Better))] = Field(
        description="whether higher or lower values are better"
    )
    json_path: Annotated[
        Text | None, Expected("a path into JSON", 'Write it as in `json: "[-1].avg_ts"`.')
    ] = Field(
        None,
        alias="json",
        description="its path in JSON output: keys, [index] and [*] for every item of a list;"
        " several numbers are samples, whose median is the value",
    )
    regex: Annotated[
        Text | None, Expected("a regular expression", "Write one with a group: 'rate: ([\\d.]+)'.")
    ] = Field(
        None,
        description="what precedes and follows it in the output, with one group for the number;"
        " the last match counts",
    )
    file: Annotated[Text | None, Expected("a file", "Write its path in the working directory.")] = (
        Field(
            None,
            description="the file that contains it, instead of the output; may have placeholders",
        )
    )
    samples: Annotated[
        Text | None,
        Expected("where samples are", "Write `all` with `regex`, or a path into JSON with `json`."),
    ] = Field(
        None,
        description="the tool's own repetitions: their path in JSON; with regex, `all`: every"
        " match is a sample, and their median the value",
    )

    @property
    def metric(self) -> Metric:
        """What the value is."""
        return Metric(name=self.name, unit=self.unit, better=self.better)


def _metric_form(value: Any) -> str:
    return "list" if isinstance(value, list | tuple) else "one"


def _workload_form(value: Any) -> str:
    is_server = isinstance(value, ServerWorkload) or (
        isinstance(value, Mapping) and bool(value.keys() & ServerWorkload.model_fields.keys())
    )
    return "served" if is_server else mapping_or_plain(value)


class MatrixEntry(Settings, OrderedModel):
    """A point, or part of one, of the matrix: what include and exclude match."""

    parameters: Mapping[str, Value] = Field({}, description="the workload's parameters, by name")
    env: Mapping[str, StrictStr | None] = Field(
        {}, description="environment variables, by name; null: the variable is not set"
    )


_ENTRY = Expected("a mapping of settings", "Write it as in `{binding: none, threads: 2}`.")
Entries = Annotated[
    tuple[MatrixEntry, ...],
    Expected(
        "a list of at most 256 matrix entries",
        "Write each as `- {binding: none, threads: 2}`.",
        item=_ENTRY,
    ),
]


if TYPE_CHECKING:

    class Axes(OrderedModel):
        """One list of values for each setting, under the setting's name."""

else:
    Axes = create_model("Axes", __base__=OrderedModel, **axis_fields())


class Matrix(Axes):
    """Axes, multiplied out; include and exclude work as in GitHub Actions."""

    parameters: Mapping[str, Annotated[tuple[Value, ...], Field(min_length=1)]] = Field(
        {}, description="axes over the workload's parameters"
    )
    env: Mapping[str, Annotated[tuple[StrictStr | None, ...], Field(min_length=1)]] = Field(
        {}, description="axes over environment variables; null: the variable is not set"
    )
    include: Entries = Field(
        (), max_length=256, description="cells to add, or keys to add to existing cells"
    )
    exclude: Entries = Field((), max_length=256, description="cells to remove")


class Needs(StrictModel):
    """What a claim needs of the host before it can be judged."""

    smt: StrictBool | None = Field(
        None, description="true: cores with more than one CPU; false: only cores with one CPU"
    )
    nodes: Annotated[Count | None, COUNT] = Field(
        None, description="minimum number of nodes with CPUs"
    )
    cores: Annotated[Count | None, COUNT] = Field(
        None, description="minimum number of physical cores"
    )
    gpu: Annotated[StrictBool | None, BOOLEAN] = Field(
        None, description="true: at least one GPU; false: no GPU"
    )
    npu: Annotated[StrictBool | None, BOOLEAN] = None


class Claim(StrictModel):
    """What the source published; the report says if it reproduces here."""

    says: Annotated[Text, Expected("text", "Write the claim as the source states it.")]
    faster: Annotated[MatrixEntry, _ENTRY]
    than: Annotated[MatrixEntry, _ENTRY]
    published_ratio: Annotated[
        Annotated[float, Field(strict=True, gt=0)] | None,
        Expected("a ratio", "Write how many times as fast it was: 1.39 for 23 s against 32 s."),
    ] = Field(None, description="how many times as fast `faster` was")
    needs: Annotated[
        Needs,
        Expected("a mapping of needs", "Write the host's required features, as in {smt: true}."),
    ] = Needs()


class Profile(Change):
    """What a profile changes; what it does not name stays as it is."""

    parameters: Mapping[str, Value] = Field(
        {}, description="parameters of the workload that no axis varies, by name"
    )
    only: Entries = Field(
        (), max_length=256, description="measure only the cells that match one of these"
    )


class Scenario(Settings):
    """One YAML file: one question, a workload, a matrix, how it is measured."""

    schema_version: Annotated[
        StrictInt, Field(ge=1, le=1), Expected("a version of this format", "Write `schema: 1`.")
    ] = Field(alias="schema", description="the version of this format: 1")
    name: Annotated[
        StrictStr,
        Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,79}$"),
        Expected(
            "a name",
            "Write up to 80 lower-case letters, digits, `.`, `_` or `-`, a letter or digit first.",
        ),
    ] = Field(description="unique in a suite; records are kept under it")
    title: Annotated[Text, Expected("a title", "Write the heading of its page.")] = Field(
        description="the heading of its page"
    )
    question: Annotated[
        Text, Expected("a question", "Write the question that the scenario answers.")
    ] = Field(description="the question that the scenario answers")
    source: Annotated[
        Text | None, Expected("a source", "Write the title of the repeated study.")
    ] = Field(None, description="the study that the scenario repeats")
    source_url: Annotated[
        Url | None,
        Expected(
            "an address that begins with https://", "Write the address of the repeated study."
        ),
    ] = Field(None, description="the address of that study, which pages link")
    importance: Annotated[Importance, one_of("an importance", get_args(Importance))] = Field(
        "primary",
        description="secondary: its changes are listed after others, and neither set a headline"
        " nor fail `corebound regressions`",
    )
    workload: Annotated[
        Annotated[Text, Tag("plain")]
        | Annotated[CommandWorkload, Tag("keys")]
        | Annotated[ServerWorkload, Tag("served")],
        Discriminator(_workload_form),
        Expected(
            "a workload",
            "Write a built-in's name, module:function, {command: [program, word, …]}, or"
            " {server: …, requests: …}.",
        ),
    ] = Field(
        description="a built-in, module:function next to this file, {command: [...]}, or"
        " {server: {...}, requests: {...}}"
    )
    metric: Annotated[
        Annotated[MetricSource | None, Tag("one")]
        | Annotated[tuple[MetricSource, ...], Field(min_length=1, max_length=16), Tag("list")],
        Discriminator(_metric_form),
        Expected(
            "a metric",
            "Write `{name: …, unit: …, better: higher, json: …}`, or a list of these.",
        ),
    ] = Field(
        None,
        description="values that the command reports, compared instead of its time; of several,"
        " the first decides",
    )
    is_async: Annotated[StrictBool, BOOLEAN] = Field(
        False, alias="async", description="await the result of each step"
    )
    parameters: Annotated[
        Mapping[str, Value],
        Expected("a mapping of parameters", "Write them as `name: value`, one on each line."),
    ] = Field({}, description="parameters of the workload, by name")
    env: Annotated[
        Mapping[str, StrictStr],
        Expected(
            "a mapping of environment variables",
            'Write them as `NAME: "value"`; in a matrix, as `NAME: ["1", "2"]`.',
        ),
    ] = Field({}, description="environment variables to set")
    pass_env: Annotated[
        tuple[Text, ...],
        Expected("a list of names of variables", "Write it as in `pass_env: [HF_HOME]`."),
    ] = Field(
        (), max_length=64, description="variables to pass on from the environment of corebound"
    )
    files: Annotated[
        tuple[Text, ...],
        Expected("a list of files and folders", "Write it as in `files: [data/, config.json]`."),
    ] = Field(
        (),
        max_length=256,
        description="files and folders, relative to this file, that are linked in the working"
        " directory",
    )
    working_directory: Annotated[
        Literal["empty", "scenario"], one_of("a working directory", ("empty", "scenario"))
    ] = Field(
        "empty",
        description="empty: a new folder for each launch; scenario: this file's folder, the"
        " default of a server of your own without `files`",
    )
    matrix: Annotated[
        Matrix, Expected("a mapping of axes", "Write axes as `threads: [1, 2]`, one on each line.")
    ] = Matrix()
    measure: Annotated[
        Measure,
        Expected("a mapping of how to measure", "Write keys such as `iterations: 100` under it."),
    ] = Measure()
    profiles: Annotated[
        Mapping[ProfileName, Profile],
        Expected("a mapping of profiles", "Write quick: {…} or nightly: {…}."),
    ] = Field({}, description="what `--profile` changes")
    baseline: Annotated[MatrixEntry | None, _ENTRY] = Field(
        None, description="the cell that others are compared with; default: the first"
    )
    claims: Annotated[
        tuple[Claim, ...],
        Expected(
            "a list of at most 64 claims",
            "Write each with `says`, `faster` and `than`, after a `-`.",
            item=Expected("a claim", "Write `says`, `faster` and `than` under the `-`."),
        ),
    ] = Field((), max_length=64, description="published claims to check")
    _line: int | None = PrivateAttr(None)

    @property
    def metrics(self) -> tuple[MetricSource, ...]:
        """The values that its command reports; the first is compared."""
        if self.metric is None or isinstance(self.metric, tuple):
            return self.metric or ()
        return (self.metric,)

    @property
    def line(self) -> int | None:
        """The line on which the matrix begins; None if the scenario is not from a file."""
        return self._line

    @model_validator(mode="after")
    def _locate(self, info: ValidationInfo) -> Self:
        if isinstance(info.context, Mapping):
            self._line = info.context.get("line")
        return self

    def document(self) -> dict[str, Any]:
        """The scenario as plain JSON data, without defaults, so that its hash is stable."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True)

"""Page models: everything a page says, ready to be written, and nothing else.

Templates only arrange these; they compute nothing and choose no words.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from corebound.report.charts.axis import Axis
from corebound.report.charts.interval import IntervalPlot
from corebound.report.charts.strip import Strip

if TYPE_CHECKING:
    from corebound.report.view.findings import FindingRow
    from corebound.report.view.launch_dots import LaunchDots
    from corebound.report.view.operators import Operators
    from corebound.report.view.placed import Placed
    from corebound.report.view.scaling import Scaling
    from corebound.report.view.scenario_history import ScenarioHistory
    from corebound.report.view.serving import Serving
    from corebound.report.view.warmup import Warmup

Tone = Literal["good", "bad", "warn", "plain"]


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of text with one accent."""

    text: str
    kind: Literal["plain", "strong", "good", "bad", "code"]


Text = tuple[Piece, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """What every page has about it.

    Attributes:
        title, description: Of the document.
        root: Relative path to the site's top, empty or ending in a slash.
        crumbs: (text, address) from the top; the last is this page, address empty.
        made: When and by what the page was made.
    """

    title: str
    description: str
    root: str
    crumbs: tuple[tuple[str, str], ...]
    made: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """A cell's name: coloured by binding mode, with the rest of its axes."""

    mode: str
    name: str
    more: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictWord:
    """A verdict as tone, sign and word together."""

    tone: Tone
    sign: str
    word: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """One thing to know before the figures are believed; `link` is an address or empty."""

    tone: Tone
    sign: str
    title: str
    detail: str
    link: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """A label at a place in per cent; `minor` ones go where there is no room."""

    at: float
    text: str
    minor: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A number and what it counts."""

    value: str
    says: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Hero:
    """The top of a page: what was asked, the verdict, what it rests on, what to mind."""

    title: str
    question: str
    context: str
    verdict: Text
    support: Text
    flags: tuple[Flag, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalRow:
    """One cell against its baseline; the table row is the chart."""

    label: Label
    plot: IntervalPlot
    speedup: str
    interval: str
    verdict: VerdictWord
    note: str
    best: bool
    baseline: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Unmeasured:
    """A cell without figures, and why."""

    label: Label
    status: str
    reason: str
    mend: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalTable:
    """How each setting compares; `unmeasured` are listed beneath."""

    title: str
    lead: str
    axis: Axis
    ticks: tuple[Tick, ...]
    rows: tuple[IntervalRow, ...]
    unmeasured: tuple[Unmeasured, ...]
    absent: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StripPanel:
    """CPU × time of one launch, with the figures that say the same."""

    label: Label
    caption: str
    strip: Strip
    rows: tuple[Tick, ...]
    nodes: tuple[Tick, ...]
    times: tuple[Tick, ...]
    height_px: int
    figures: tuple[Figure, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """One figure of every panel, in their order; a dash where a launch has none."""

    says: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """Where the threads ran; `key` pairs a colour's number with its thread.

    `meanwhile` holds what the host and its counters told of the same launches.
    """

    title: str
    lead: str
    key: tuple[tuple[int, str], ...]
    panels: tuple[StripPanel, ...]
    meanwhile: tuple[Beside, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CellRow:
    """One cell's figures; absent ones are a dash."""

    mode: str
    axes: tuple[str, ...]
    median: str
    interval: str
    p99: str
    cpu: str
    spread: str
    launches: str
    others: str
    whole: str
    threads: str
    switches: str
    migrations: str
    speedup: str
    verdict: VerdictWord
    note: str
    baseline: bool
    command: str
    throughput: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CellTable:
    """All cells.

    Attributes:
        figure: What they are judged by; it and all other times are in `unit`.
        throughput: Whether any cell has one.
    """

    lead: str
    figure: str
    axes: tuple[str, ...]
    unit: str
    throughput: bool
    rows: tuple[CellRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRow:
    """A published claim beside what was measured here."""

    says: str
    pair: str
    published: str
    measured: str
    interval: str
    verdict: VerdictWord
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchRow:
    """One launch, whatever became of it."""

    id: str
    cell: str
    tone: Tone
    status: str
    reason: str
    mend: str
    evidence: tuple[str, ...]
    median: str
    steady: str
    log: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A fairness check and the evidence; `passed` is None where nothing could be checked."""

    passed: bool | None
    says: str
    evidence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A line of the environment; `more` is folded away."""

    term: str
    value: str
    code: bool = False
    more: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """How to get this result again, and what it was got on."""

    command: str
    comment: str
    facts: tuple[Fact, ...]
    checks: tuple[Check, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioPage:
    """Everything on a scenario's page; sections without evidence are None or empty."""

    head: Head
    name: str
    run: str
    host: str
    hero: Hero
    intervals: IntervalTable | None
    findings: tuple[FindingRow, ...]
    serving: Serving | None
    why: Why | None
    history: ScenarioHistory | None
    operators: Operators | None
    scaling: Scaling | None
    placed: tuple[Placed, ...]
    dots: LaunchDots | None
    warmup: Warmup | None
    cells: CellTable
    claims: tuple[ClaimRow, ...]
    launches: tuple[LaunchRow, ...]
    launches_summary: str
    provenance: Provenance

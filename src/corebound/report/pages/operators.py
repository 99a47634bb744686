"""The page of all operator profiles: imported ones, and links to those of scenarios."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from corebound.analysis.commands import CommandLine, import_command
from corebound.analysis.scenario_result import ScenarioResult
from corebound.analysis.wording import Label, Text, TextSpan, count, day, rich, strong
from corebound.records.launch_record import ImportedProfile
from corebound.report.elements import Head, Hero
from corebound.report.scenario.operators import (
    Column,
    OperatorTable,
    basis_ns,
    operator_table,
    operators,
)
from corebound.units import duration

# More columns cannot be compared at a glance or distinguished by colour.
_MOST_COLUMNS = 6
_COLOURS = ("m-physical-cores", "m-one-cpu", "m-node", "m-smt-siblings", "m-logical-cpus", "m-none")


class SourceRow(Struct, frozen=True, kw_only=True):
    """The source of an imported profile; missing values are a dash.

    `command` imports it again.
    """

    label: Label
    source: str
    device: str
    iterations: str
    step: str
    operators: str
    files: tuple[str, ...]
    command: CommandLine


class ScenarioLink(Struct, frozen=True, kw_only=True):
    """A link to the operators of a scenario, on its own page."""

    title: str
    address: str
    says: str


class OperatorsPage(Struct, frozen=True, kw_only=True):
    """The content of the page; sections without content are empty."""

    head: Head
    hero: Hero
    lead: str
    tables: tuple[OperatorTable, ...]
    sources: tuple[SourceRow, ...]
    scenarios: tuple[ScenarioLink, ...]


def operators_page(
    studies: Sequence[ScenarioResult], profiles: Sequence[ImportedProfile], *, now: str
) -> OperatorsPage | None:
    """Build the page; None if there are no profiles.

    Args:
        studies: One result per scenario.
        profiles: Imported profiles, in display order.
        now: ISO timestamp of the page.
    """
    links = tuple(link for study in studies if (link := _link(study)) is not None)
    if not links and not profiles:
        return None
    return OperatorsPage(
        head=Head(
            title="Corebound: operators",
            description="Where the time of a step goes, operator by operator.",
            root="",
            here="Operators",
            made=f"Page made {day(now)}.",
        ),
        hero=Hero(
            title="Operators",
            question="Where does the time of a step go?",
            context="",
            verdict=_verdict(profiles, links),
            support=_support(profiles),
            flags=(),
        ),
        lead=_lead(profiles),
        tables=_tables(profiles),
        sources=tuple(_source(profile, place) for place, profile in enumerate(profiles)),
        scenarios=links,
    )


def _link(study: ScenarioResult) -> ScenarioLink | None:
    made = operators(study, traces={})
    if made is None or not made.tables:
        return None
    return ScenarioLink(
        title=study.scenario.title,
        address=f"scenario/{study.scenario.name}.html#operators",
        says=made.title,
    )


def _verdict(profiles: Sequence[ImportedProfile], links: Sequence[ScenarioLink]) -> Text:
    if not profiles:
        return rich("Operators were profiled in ", strong(count(len(links), "scenario")), ".")
    elsewhere = f"{count(len(profiles), 'profile')} made elsewhere"
    if len(profiles) > 1:
        return rich(strong(elsewhere), ", side by side.")
    return rich(strong(elsewhere), ".")


def _support(profiles: Sequence[ImportedProfile]) -> Text:
    if not profiles:
        return rich(
            "Profiles made elsewhere can stand beside them: ",
            TextSpan("corebound import profile", "code"),
            ".",
        )
    return rich(
        "They were not made under corebound: how the machine was bound, and what else it did,"
        " is not known."
    )


def _lead(profiles: Sequence[ImportedProfile]) -> str:
    """The explanation of the values that these profiles need."""
    parts = [
        "Self time of each type of operator and its share of the step.",
        "A profile is of one run, and so has no interval; what single calls took stands beneath.",
        "A command reads it again in the folder that its profiler wrote.",
    ]
    if any(profile.profile.step_ns is None for profile in profiles):
        parts.append(
            "Where how long a step took is not told, shares are of all operators together."
        )
    if any(profile.profile.iterations is None for profile in profiles):
        parts.append("Where iterations are not told, figures are of all that was profiled.")
    return " ".join(parts)


def _tables(profiles: Sequence[ImportedProfile]) -> tuple[OperatorTable, ...]:
    columns = [
        Column(
            label=_label(profile, place),
            name=profile.name,
            profile=profile.profile,
            kind=profile.source,
        )
        for place, profile in enumerate(profiles)
    ]
    parts = [
        columns[start : start + _MOST_COLUMNS] for start in range(0, len(columns), _MOST_COLUMNS)
    ]
    commands = [import_command(profile) for profile in profiles]
    return tuple(
        operator_table(
            part,
            commands=commands[(number - 1) * _MOST_COLUMNS : number * _MOST_COLUMNS],
            title=f"Part {number} of {len(parts)}" if len(parts) > 1 else "",
            measured=False,
        )
        for number, part in enumerate(parts, start=1)
    )


def _label(profile: ImportedProfile, place: int) -> Label:
    iterations = profile.profile.iterations
    return Label(
        mode=_COLOURS[place % len(_COLOURS)],
        name=profile.name,
        more="all that was profiled" if iterations is None else count(iterations, "iteration"),
    )


def _source(imported: ImportedProfile, place: int) -> SourceRow:
    profile = imported.profile
    together_ns = sum(operator.total_ns for operator in profile.operators)
    return SourceRow(
        label=Label(mode=_label(imported, place).mode, name=imported.name, more=""),
        source=imported.source,
        device=imported.device or "",
        iterations="–" if profile.iterations is None else f"{profile.iterations:,}",
        step="–"
        if profile.step_ns is None or profile.iterations is None
        else duration(basis_ns(profile)),
        operators=duration(together_ns),
        files=imported.files,
        command=import_command(imported),
    )

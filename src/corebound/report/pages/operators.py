"""The page of all operator profiles: imported ones, and links to those of scenarios."""

from collections.abc import Sequence

from corebound.analysis.scenario_result import ScenarioResult
from corebound.analysis.suggested_commands import import_command
from corebound.analysis.wording import Label, Text, TextSpan, count, day, rich, strong
from corebound.records.launch_record import ImportedProfile
from corebound.report.elements import Content, Head, Hero, Page
from corebound.report.scenario.operators import ProfileColumn, operator_table, operators

# More columns cannot be compared at a glance or distinguished by colour.
_MOST_COLUMNS = 6
_COLOURS = ("m-physical-cores", "m-one-cpu", "m-node", "m-smt-siblings", "m-logical-cpus", "m-none")


def operators_page(
    results: Sequence[ScenarioResult], profiles: Sequence[ImportedProfile], *, now: str
) -> Page | None:
    """Build the page; None if there are no profiles.

    Args:
        profiles: Imported profiles, in display order.
        now: ISO timestamp of the page.
    """
    profiled = tuple(
        (result, section)
        for result in results
        if (section := operators(result, traces={})) is not None and section.tables
    )
    if not profiled and not profiles:
        return None
    return Page(
        head=Head(
            title="Corebound: operators",
            description="Where the time of a step goes, operator by operator.",
            made=f"Page made {day(now)}.",
        ),
        hero=Hero(
            title="Operators",
            question="Where does the time of a step go?",
            verdict=_verdict(profiles, scenarios=len(profiled)),
            support=_support(profiles),
        ),
        tables=_tables(profiles),
        sources=tuple((profile, _colour(place)) for place, profile in enumerate(profiles)),
        scenarios=profiled,
    )


def _verdict(profiles: Sequence[ImportedProfile], *, scenarios: int) -> Text:
    if not profiles:
        return rich("Operators were profiled in ", strong(count(scenarios, "scenario")), ".")
    elsewhere = f"{count(len(profiles), 'profile')} of other tools"
    if len(profiles) > 1:
        return rich(strong(elsewhere), ", side by side.")
    return rich(strong(elsewhere), ".")


def _support(profiles: Sequence[ImportedProfile]) -> Text:
    if not profiles:
        return rich(
            "To show profiles of other tools beside them, use ",
            TextSpan("corebound import profile", "code"),
            ".",
        )
    return rich(
        "Corebound did not measure them: their binding and the load of their machine are unknown."
    )


def _tables(profiles: Sequence[ImportedProfile]) -> tuple[Content, ...]:
    columns = [
        ProfileColumn(
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
        )
        for number, part in enumerate(parts, start=1)
    )


def _label(profile: ImportedProfile, place: int) -> Label:
    iterations = profile.profile.iterations
    return Label(
        mode=_colour(place),
        name=profile.name,
        more="all that was profiled" if iterations is None else count(iterations, "iteration"),
    )


def _colour(place: int) -> str:
    return _COLOURS[place % len(_COLOURS)]

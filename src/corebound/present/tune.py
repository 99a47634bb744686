"""What a race of `corebound tune` says: its recommendation, how sure that is, and its tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from corebound.analysis.advice import RaceDecision
from corebound.analysis.effects import beside_others
from corebound.analysis.json_documents import attributes, metric_columns
from corebound.analysis.suggested_commands import CommandLine, original_command
from corebound.analysis.tuning import Confirmed, RacedCells, RaceState, TuneResult
from corebound.analysis.tuning_checks import ArtefactProof, Verification
from corebound.analysis.tuning_loads import LoadsResult, common_cell
from corebound.analysis.wording import (
    axis_value,
    binding_name,
    capital,
    change_text,
    count,
    day,
    times,
    value_span,
)
from corebound.present.sections import (
    Change,
    Column,
    Duration,
    Fact,
    Facts,
    Lane,
    Named,
    Section,
    Sentence,
    Table,
    Value,
)
from corebound.records.race import RaceSetup
from corebound.scenario.cell import Cell, cell_identity
from corebound.scenario.objectives import OBJECTIVES
from corebound.stats.comparison import Comparison
from corebound.stats.launch_summary import CellSummary
from corebound.stats.racing import Dropped
from corebound.stats.screening import HOPELESS
from corebound.units import percent

DEFAULT = "the default"


def tune_sections(
    result: TuneResult, *, records: str, proofs: Sequence[ArtefactProof] = ()
) -> tuple[Section, ...]:
    """What a terminal prints of a race."""
    sections: list[Section] = [Sentence(headline(result), "lead")]
    sections += map(Sentence, certainty(result))
    if result.confirmed and result.advice != "unfinished":
        sections.append(fresh_table(result))
    screened = screened_table(result)
    sections += [race_table(result), *((screened,) if screened.rows else ())]
    sections.append(Facts(not_tried(result), title="Not tried"))
    if result.duplicates:
        same = count(len(result.duplicates), "configuration")
        text = f"Not launched separately: {same} that equal others on this host."
        sections.append(Sentence(text, "note"))
    sections += [_records(records), Facts(tuple(map(_proof, proofs)))]
    return tuple(sections)


def loads_sections(loads: LoadsResult) -> tuple[Section, ...]:
    """Whether one configuration does for all loads, and a row for each load."""
    return Sentence(common_sentence(loads), "lead"), loads_table(loads)


def verification_sections(
    verified: Verification, differences: Sequence[str], *, records: str
) -> tuple[Section, ...]:
    """Whether a recommendation holds, what changed since the race, and the new launches."""
    changed = (Fact(term="Changed since the race", value=text) for text in differences)
    return (
        Sentence(verification_text(verified), "lead"),
        Facts(tuple(changed)),
        *((fresh_table(verified.now),) if verified.now.confirmed else ()),
        _records(records),
    )


def _records(file: str) -> Facts:
    return Facts((Fact(term="Records", value=file),))


def _proof(proof: ArtefactProof) -> Fact:
    sign = {"launched": "✓", "differs": "✗", "wrong": "✗"}.get(proof.state, "–")
    artefact = proof.artefact
    return Fact(
        term=f"{sign} {artefact.title}, {artefact.file}",
        value=f"{proof.evidence} {artefact.note}".rstrip(),
    )


def race_table(result: TuneResult) -> Table:
    """How each configuration left the race, and how it compares; the recommended one first."""
    race, known = result.race_state.race, names(result)
    dropped = {left.key: left for left in race.dropped}
    screened = {left.key for left in result.race_state.screening.out}
    fresh = {finalist.cell.key: finalist.summary.attempts for finalist in result.confirmed}
    rows: list[tuple[Value, ...]] = []
    for key in result.ranked:
        if key in screened:
            continue
        left, comparison = dropped.get(key), result.compared_with_default(key)
        summary = result.summary(key)
        change = "" if comparison is None else _change(result, comparison)
        lane = Lane(
            blocks=race.blocks if left is None else left.block + 1,
            fresh=fresh.get(key, 0),
            dropped=left is not None,
            total=race.blocks + max(fresh.values(), default=0),
            race_blocks=race.blocks,
        )
        outcome = "stayed"
        if left is not None:
            outcome = left.reason or f"dropped after block {left.block + 1}"
        rows.append(
            (
                Named(capital(known[key]), _roles(result, key)),
                lane,
                outcome,
                change,
                change,
                _value(result, summary),
                Duration(result.summaries[key].cpu_median_ns),
            )
        )
    return Table(
        title="Race",
        columns=(
            Column("configuration", "long"),
            Column("blocks", "drawing"),
            Column("outcome"),
            Column("interval plot", "effects"),
            Column("compared with the default"),
            Column(value_name(result), "number"),
            Column("CPU time", "number", page_only=True),
        ),
        rows=tuple(rows),
    )


def screened_table(result: TuneResult) -> Table:
    """What short launches kept out of the race, the best first."""
    known = names(result)
    out = {left.key: left for left in result.race_state.screening.out}
    return Table(
        title="Screened out",
        columns=(
            Column("configuration", "long"),
            Column("compared with the best"),
            Column(value_name(result), "number"),
            Column("CPU time", "number", page_only=True),
        ),
        rows=tuple(
            (
                Named(capital(known[key]), _roles(result, key)),
                _screened_text(out[key], _words(result)[1]),
                _value(result, result.summary(key)),
                Duration(result.summaries[key].cpu_median_ns),
            )
            for key in result.ranked
            if key in out
        ),
    )


def _screened_text(left: Dropped, worse: str) -> str:
    """Why a configuration did not race; its few iterations give no interval."""
    if left.reason is not None:
        bound = f"at least {times(left.ratio[1])} slower; " if left.ratio else ""
        return f"{bound}{left.reason}"
    if left.ratio is None:
        return ""
    if left.ratio[0] >= HOPELESS:
        return f"at least {HOPELESS:.0f}× {worse}"
    return f"{times(left.ratio[0])} {worse}"


def stages(result: TuneResult) -> tuple[tuple[str, int], ...]:
    """How many configurations each stage had, from all candidates to those confirmed.

    A stage as large as the one before is left out.
    """
    race = result.race_state.race
    counts = (
        ("candidates", result.candidates),
        ("launched", len(result.raced.cells)),
        ("raced", len(race.remaining) + len(race.dropped)),
        ("confirmed with fresh launches", len(result.confirmed)),
    )
    return tuple(
        stage
        for before, stage in zip((("", 0), *counts), counts, strict=False)
        if stage[1] != before[1]
    )


def _change(result: TuneResult, comparison: Comparison | None) -> Change:
    return Change(comparison, _words(result), result.tuning.rule.margin)


def value_name(result: TuneResult) -> str:
    """What is compared."""
    objective = OBJECTIVES[result.tuning.objective]
    return objective.value_of(result.raced.cells[0]) if result.raced.cells else objective.value


def _words(result: TuneResult) -> tuple[str, str]:
    objective = OBJECTIVES[result.tuning.objective]
    return objective.words_of(result.raced.cells[0]) if result.raced.cells else objective.words


def _value(result: TuneResult, summary: CellSummary) -> Duration:
    """What is compared, of one configuration."""
    cell = OBJECTIVES[result.tuning.objective].shown(summary.cell)
    return Duration(summary.median_ns, summary.interval, cell)


def _roles(result: TuneResult, key: str) -> tuple[str, ...]:
    """The roles of a configuration in a race; that of the default is its name."""
    finalists = result.race_state.finalists
    ties = finalists.ties if finalists is not None and len(finalists.ties) > 1 else ()
    best = "winner" if result.advice == "inconclusive" else "recommended"
    roles = {
        best: result.recommended is not None and result.recommended.key == key,
        "launcher": result.raced.launcher == key,
        "tie": key in ties,
    }
    return tuple(name for name, holds in roles.items() if holds)


def fresh_table(result: TuneResult) -> Table:
    """The winner of a race compared with each other finalist, by fresh launches."""
    known = names(result)
    winner, *others = result.confirmed
    compared: list[tuple[Confirmed, Value]] = [(winner, "winner")]
    compared += [(finalist, _change(result, finalist.comparison)) for finalist in others]
    return Table(
        title="Fresh launches",
        columns=(
            Column("configuration", "long"),
            Column(value_name(result), "number"),
            Column("the winner compared with it"),
        ),
        rows=tuple(
            (
                capital(known[finalist.cell.key]),
                _value(result, finalist.summary),
                change,
            )
            for finalist, change in compared
        ),
    )


def loads_table(loads: LoadsResult, address: Callable[[TuneResult], str] | None = None) -> Table:
    """The winner of each load's race, compared with the default and with the common one."""
    rows: list[tuple[Value, ...]] = []
    for index, result in enumerate(loads.results):
        best = result.recommended
        name = Named(load_text(result.tuning), link=address(result) if address else "")
        if best is None:
            rows.append((name, headline(result), "", ""))
            continue
        is_default = best.key == result.raced.default
        common: Value = ""
        if loads.common is not None:
            is_common = best.key == loads.common.key
            common = "the same" if is_common else _change(result, loads.common.costs[index])
        default = result.compared_with_default(best.key)
        rows.append(
            (
                name,
                capital(names(result)[best.key]),
                "the same" if is_default else _change(result, default),
                common,
            )
        )
    return Table(
        title="Loads",
        columns=(
            Column("load"),
            Column("winner"),
            Column("compared with the default"),
            Column("compared with the common one"),
        ),
        rows=tuple(rows),
    )


def verification_text(verified: Verification) -> str:
    """Whether a recommendation holds, in a sentence or two."""
    known = names(verified.now)
    name = known[verified.recommended.key]
    if verified.answer == "holds":
        return f"The recommendation holds: {name}."
    if verified.now.advice == "unfinished":
        return f"Inconclusive: too few launches of {name} or of what it is compared with."
    if verified.answer == "inconclusive":
        return f"Inconclusive: {name} was not clearly better than the default this time."
    better = f" {capital(known[verified.better.key])} is better now." if verified.better else ""
    return f"{capital(name)} is no longer recommended.{better} Run `corebound tune` again."


def name_of(cell: Cell, default: Cell | None) -> str:
    """A configuration by its binding and by what else differs from the default.

    `the default` for the default itself.
    """
    if default is not None and cell.key == default.key:
        return DEFAULT
    values = dict(default.axes) if default is not None else {}
    others = [
        axis_value(cell, axis)
        for axis, value in cell.axes
        if axis != "binding" and values.get(axis) != value
    ]
    return ", ".join([binding_name(cell), *others])


def names(result: TuneResult) -> dict[str, str]:
    """The names of all configurations of a result, by key."""
    default = result.cells.get(result.raced.default or "")
    cells = [
        *result.raced.cells,
        *(cell for cell, _ in result.skipped),
        *(cell for cell, _ in result.duplicates),
    ]
    return {cell.key: name_of(cell, default) for cell in cells}


def how_compared(comparison: Comparison | None, result: TuneResult) -> str:
    """How a configuration compares: `1.30× faster (95 % CI 1.21–1.39)`."""
    return change_text(comparison, _words(result))


def headline(result: TuneResult, *, bounds: bool = True) -> str:
    """What to do, in a sentence; if `bounds`, with the gain and its interval."""
    known, recommended = names(result), result.recommended
    tried, candidates = len(result.raced.cells), result.candidates
    part = f"{tried} of {candidates} tried" if tried < candidates else ""
    of = f" ({part})" if part else ""
    if result.advice == "unfinished":
        leading = _leading(result) if bounds else ""
        return f"The race is not complete{of}.{leading} Continue it with `--resume`."
    if recommended is None:
        return "No configuration works on this host."
    name, default = known[recommended.key], result.against(result.raced.default)
    if result.advice == "keep the default":
        return f"Keep the default: no configuration tried is clearly better{of}."
    if result.raced.default is None or default is None:
        return f"Use {name}; the default gives no result on this host."
    if result.advice == "inconclusive":
        return (
            f"Keep the default for now{of}{f': {inconclusive_winner(result)}' if bounds else '.'}"
        )
    compared = how_compared(default, result)
    if not bounds:
        compared = compared.partition(" (")[0]
    best = f" (best of {part})" if part else ""
    condition = beside_others(result.summary(result.raced.default))
    return f"Use {name}: {f'{condition}, ' if condition else ''}{compared} than the default{best}."


def _leading(result: TuneResult) -> str:
    """What leads a race that has not ended, if it is something else than the default."""
    first = next(iter(result.ranked), None)
    comparison = None if first is None else result.compared_with_default(first)
    if first is None or comparison is None:
        return ""
    compared = how_compared(comparison, result)
    return f" {capital(names(result)[first])} leads so far, against the default: {compared}."


def provenance(result: TuneResult, record: str) -> tuple[str, ...]:
    """What a file that sets a recommendation says of itself, by its file of records."""
    run = result.run
    return (
        f"Scenario: {result.source.path} ({result.source.document['name']})",
        f"Host: {run.host.name} ({run.host.id})",
        f"Date: {day(run.started_at)}",
        f"Gain: {headline(result)}",
        f"Record: {record}, run {run.id}",
        f"The race again: {original_command(run).line}",
        f"Whether it still holds: {verify_command(result).line}",
    )


def verify_command(result: TuneResult) -> CommandLine:
    """The command that checks a recommendation with new launches."""
    words = ["corebound", "tune", result.source.path]
    if result.tuning.load:
        words += ["--only", ",".join(f"{name}={value}" for name, value in result.tuning.load)]
    if result.tuning.objective != "latency":
        words += ["--objective", result.tuning.objective]
    return CommandLine.of(*words, "--verify")


def inconclusive_winner(result: TuneResult) -> str:
    """That fresh launches do not decide between the winner and the default; else empty."""
    default = result.against(result.raced.default)
    if result.advice != "inconclusive" or result.recommended is None or default is None:
        return ""
    return (
        f"{names(result)[result.recommended.key]} won the race, but its fresh launches do not"
        f" clearly beat the default: {how_compared(default, result)}."
    )


def _certainty_of_race(result: TuneResult) -> list[str]:
    """What a race that has ended shows of the configurations that took part."""
    race = result.race_state.race
    sure = percent(1 - result.tuning.rule.error, 0)
    failed = sum(left.ratio is None for left in race.dropped)
    raced = len(race.remaining) + len(race.dropped) - failed
    screened = result.race_state.screening.out
    sentences, those = [], "that it compared" if failed else "tried"
    if screened:
        those = "that raced"
        sentences.append(
            f"Short launches of {count(raced + len(screened), 'configuration')} chose the {raced}"
            " that raced; a few launches each can miss one that is a little better."
        )
    if race.ending == "decided":
        sentences.append(
            f"With {sure} confidence, none of the {count(raced, 'configuration')} {those} is more"
            f" than {percent(result.tuning.rule.margin, 0)} better than the winner of the race."
        )
    elif 0 < race.faster_at_most < 1:
        limit = {"blocks": "the maximum number of blocks", "time": "its share of the budget"}
        sentences.append(
            f"The race ended after {limit.get(race.ending or '', 'its launches')}. With {sure}"
            f" confidence, no configuration {those} is more than"
            f" {percent(race.faster_at_most)} better than the winner."
        )
    else:
        sentences.append(
            "The race ended too early to say how much better another configuration may be: use a"
            " larger `--budget`."
        )
    if failed:
        sentences.append(
            f"{count(failed, 'configuration')} left the race because a launch failed, and may be"
            " better."
        )
    return sentences


def certainty(result: TuneResult) -> tuple[str, ...]:
    """How sure the recommendation is, a sentence each."""
    race, finalists = result.race_state.race, result.race_state.finalists
    if race.ending is None or finalists is None:
        return ()
    sentences = _certainty_of_race(result)
    fresh = min((finalist.summary.attempts for finalist in result.confirmed), default=0)
    made = (
        f"The ratios come from {count(fresh, 'fresh launch', 'fresh launches')} of each finalist,"
    )
    sentences.append(
        f"{made} made after the race, so that selecting the winner does not bias them."
        if fresh
        else "The ratios come from the race itself, whose selection favours the winner."
    )
    if result.advice == "inconclusive" and (ranges := _ranges(result)):
        sentences.append(ranges)
    disturbed = max((len(finalist.summary.left_out) for finalist in result.confirmed), default=0)
    if disturbed:
        sentences.append(
            f"Other programs disturbed up to {disturbed} of a finalist's launches, which do not"
            " count."
        )
    most = max((finalist.summary.attempts for finalist in result.confirmed), default=0)
    if most > fresh >= result.tuning.rule.confirm_blocks:
        sentences.append(f"Winner and default were tied after {fresh}, so each got {most}.")
    if fresh < result.tuning.rule.confirm_blocks:
        sentences.append(
            f"The budget ended before all {result.tuning.rule.confirm_blocks} fresh launches of"
            " each were made; `--resume` makes the others."
        )
    if len(finalists.ties) > 1:
        known = names(result)
        tied = "; ".join(known[key] for key in finalists.ties)
        sentences.append(
            f"Ties: {tied}. Of these, the one with the least CPU time, then the fewest CPUs, is"
            " recommended."
        )
    return tuple(sentences)


def _ranges(result: TuneResult) -> str:
    """The fastest and the slowest fresh launch of the winner and of the default; empty if alike."""
    default = result.raced.default
    by_key = {
        finalist.cell.key: [launch.median_ns for launch in finalist.summary.launches]
        for finalist in result.confirmed
    }
    winner, other = by_key.get(result.confirmed[0].cell.key), by_key.get(default or "")
    if not winner or not other or all(max(each) / min(each) < _WIDE for each in (winner, other)):
        return ""
    cell = result.confirmed[0].summary.cell
    spans = [value_span((min(each), max(each)), cell) for each in (winner, other)]
    verb = "reported" if cell.metric else "took"
    return f"Launches of the winner {verb} {spans[0]}, those of the default {spans[1]}."


# Launches that differ by this factor differ for a reason.
_WIDE = 1.2


def not_tried(result: TuneResult) -> tuple[Fact, ...]:
    """What took no part in the race, each with the reason."""
    known = names(result)
    return (
        *(Fact(term=capital(known[cell.key]), value=reason) for cell, reason in result.skipped),
        *(Fact(term=choice.name, value=choice.reason) for choice in result.tuning.not_tried),
    )


def same_as_others(result: TuneResult) -> tuple[Fact, ...]:
    """What is the same as another configuration on this host, each with that one."""
    known = names(result)
    return tuple(
        Fact(term=capital(known[cell.key]), value=f"the same as {known[other.key]} on this host")
        for cell, other in result.duplicates
    )


def race_line(before: RaceState, now: RaceState, raced: RacedCells) -> str:
    """A line about the block that ended: `Block 3: 5 of 12 remain. Leader: physical cores.`

    Args:
        before: The state before the block.
        now: The state after it.
        raced: Who takes part.
    """
    default = next((cell for cell in raced.cells if cell.key == raced.default), None)
    known = {cell.key: name_of(cell, default) for cell in raced.cells}
    race, screening = now.race, now.screening
    if before.screening.launching:
        remain, candidates = len(screening.remaining), len(raced.cells)
        if screening.launching or not remain:
            return f"Screening, block {screening.blocks}: {remain} of {candidates} remain."
        best = known[screening.remaining[0]]
        return f"Screening: {remain} of {candidates} go on to the race. Best so far: {best}."
    dropped = [known[left.key] for left in race.dropped if left.block == race.blocks - 1]
    begun = len(race.remaining) + len(race.dropped)
    text = f"Block {race.blocks}: {len(race.remaining)} of {begun} remain"
    if race.leader is not None:
        text += f". Leader: {known[race.leader]}"
    if dropped:
        text += f". Dropped: {'; '.join(dropped)}"
    if now.finalists is not None:
        text += f". Confirming with fresh launches of {len(now.finalists.keys)}"
    return f"{text}."


def races(results: Iterable[TuneResult]) -> dict[tuple[str, str], RaceDecision]:
    """What races for latency decided, by the scenario's name and the host's id.

    A scenario with several loads has a race for each; none of them is about all of it.

    Args:
        results: The latest races that still hold.
    """
    return {
        (str(result.source.document["name"]), result.run.host.id): RaceDecision(
            says=headline(result, bounds=False),
            basis=f"A race of {count(len(result.raced.cells), 'configuration')} decided this on"
            f" {result.run.started_at[:10]}; it overrides the comparison of this run.",
        )
        for result in results
        if result.tuning.objective == "latency"
        and not result.tuning.load
        and result.recommended is not None
        and result.advice != "inconclusive"
    }


def load_text(tuning: RaceSetup) -> str:
    """A load in words: `batch=1, sequence=128`."""
    return ", ".join(f"{name}={value}" for name, value in tuning.load)


def common_sentence(loads: LoadsResult) -> str:
    """Whether one configuration does for all loads, in a sentence."""
    common, first = loads.common, loads.results[0]
    if common is None:
        return "There is no common configuration yet: not every load has a recommendation."
    name, margin = names(first)[common.key], percent(first.tuning.rule.margin, 0)
    pairs = [
        (load_text(result.tuning), cost)
        for result, cost in zip(loads.results, common.costs, strict=True)
        if cost is not None
    ]
    if common.state == "unchecked":
        return f"Whether {name} does for all loads is not checked. Continue with `--resume`."
    if not pairs:
        return f"Use {name} for all loads: it is the best for each."
    load, worst = max(pairs, key=lambda pair: pair[1].speedup_ratio)
    compared = how_compared(worst, first)
    if common.state == "one":
        return f"Use {name} for all loads: none has a configuration that is over {margin} better."
    if common.state == "several":
        return (
            f"One configuration for all loads costs more than {margin}. The best common one is"
            f" {name}; for {load}, the recommended one is {compared}."
        )
    return (
        f"Inconclusive: {name} may cost more than {margin}. For {load}, the winner compared with it"
        f" is {compared}."
    )


def tune_document(result: TuneResult, files: Sequence[ArtefactProof]) -> dict[str, Any]:
    """Everything that the terminal and the page show of a race, for scripts."""
    race, finalists = result.race_state.race, result.race_state.finalists
    recommended = result.recommended
    return {
        "run": result.run.id,
        "objective": result.tuning.objective,
        "load": dict(result.tuning.load),
        "advice": result.advice,
        "recommended": recommended.key if recommended is not None else None,
        "default": result.raced.default,
        "settings": dict(recommended.axes) if recommended is not None else None,
        "headline": headline(result),
        "margin": result.tuning.rule.margin,
        "confidence": 1 - result.tuning.rule.error,
        "race": {
            **attributes(race, "ending", "blocks"),
            "faster_at_most": race.faster_at_most if math.isfinite(race.faster_at_most) else None,
            "remaining": race.remaining,
            "dropped": [_dropped(result, left) for left in race.dropped],
            "screened": [_dropped(result, left) for left in result.race_state.screening.out],
        },
        "tried": len(result.raced.cells),
        "candidates": result.candidates,
        "ties": finalists.ties if finalists else (),
        "finalists": finalists_document(result),
        "not_tried": [
            {"name": fact.term, "reason": fact.value}
            for fact in (*not_tried(result), *same_as_others(result))
        ],
        "files": [
            attributes(proof.artefact, "kind", "file", "text", "note")
            | attributes(proof, "state", "evidence")
            | attributes(proof.comparison, "speedup_ratio")
            for proof in files
        ],
    }


def _dropped(result: TuneResult, left: Dropped) -> dict[str, Any]:
    return {
        **cell_identity(str(result.source.document["name"]), left.key),
        "block": left.block,
        "by": left.by,
        "ratio": left.ratio[0] if left.ratio and left.reason is None else None,
        # A screening has no bound.
        "least_ratio": left.ratio[1] or None if left.ratio else None,
        "reason": left.reason,
    }


def finalists_document(result: TuneResult) -> list[dict[str, Any]]:
    """The finalists with their fresh launches, the winner first."""
    known = names(result)
    return [
        {
            **cell_identity(finalist.cell.scenario, finalist.cell.key),
            "name": known[finalist.cell.key],
            "attempts": finalist.summary.attempts,
            "launches": len(finalist.summary.launches),
            "value_ns": None if finalist.summary.cell.metric else finalist.summary.median_ns,
            **metric_columns(finalist.summary),
            **_speedup("winner", finalist.comparison),
            **attributes(finalist.comparison, "verdict"),
        }
        for finalist in result.confirmed
    ]


def _speedup(of: str, comparison: Comparison | None) -> dict[str, Any]:
    values = attributes(comparison, "speedup_ratio", "speedup_interval")
    return {f"{of}_{name}": value for name, value in values.items()}


def common_document(loads: LoadsResult) -> dict[str, Any]:
    """The common configuration as plain data."""
    common, cell = loads.common, common_cell(loads)
    return {
        "sentence": common_sentence(loads),
        "state": common.state if common is not None else None,
        "cell": common.key if common is not None else None,
        "name": capital(names(loads.results[0])[common.key]) if common is not None else None,
        "settings": dict(cell.axes) if cell is not None else None,
        "costs": [
            {"load": dict(result.tuning.load), **_speedup("recommended", cost)}
            for result, cost in zip(
                loads.results, common.costs if common is not None else (), strict=common is not None
            )
        ],
    }

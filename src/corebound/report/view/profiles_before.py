"""Profiles of the same cells in earlier runs that were alike in all that may change them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from corebound.model.run import Run
from corebound.report.view.study import Study
from corebound.stats.profiles import Profiles

# With the study's own they are six, whose least and most bound a median with 95 %:
# 1 - 2/2**6 = 0.969 (Le Boudec, Performance Evaluation (2010), theorem 2.1).
_MOST_RUNS = 5


def with_profiles_before(
    studies: Iterable[Study], runs: Iterable[Run], profiles: Mapping[str, Profiles]
) -> tuple[Study, ...]:
    """The studies, each with the profiles of its cells in the latest earlier runs like its own.

    Alike: of the same host, kernel, commit, scenario, profile of it, and environments.

    Args:
        studies: One a scenario.
        runs: All there are, in any order.
        profiles: Those of each run by its id; of runs that it does not name none are known.
    """
    latest_first = sorted(
        (run for run in runs if profiles.get(run.id)),
        key=lambda run: (run.started_at, run.id),
        reverse=True,
    )
    return tuple(
        replace(one, profiles_before=_before(one, latest_first, profiles)) for one in studies
    )


def _before(study: Study, runs: Sequence[Run], profiles: Mapping[str, Profiles]) -> Profiles:
    if not study.profiles:
        return ()
    own = {launch.cell.id for launch in study.profiles}
    alike = [run for run in runs if _is_before(run, study)][:_MOST_RUNS]
    return tuple(found for run in alike for found in profiles[run.id] if found[0] in own)


def _is_before(run: Run, study: Study) -> bool:
    """Whether a run is an earlier one in which nothing differs that may change a profile."""
    own, source = study.run, run.source_of(study.scenario.name)
    environments = {launch.cell.environment for launch in study.profiles}
    return (
        source is not None
        and (run.started_at, run.id) < (own.started_at, own.id)
        and source.sha256 == study.source.sha256
        and (run.profile, run.commit) == (own.profile, own.commit)
        and not (run.commit and run.commit.dirty)
        and (run.host.id, run.host.kernel) == (own.host.id, own.host.kernel)
        and run.host.topology.allowed == own.host.topology.allowed
        and all(run.lock_of(name) == own.lock_of(name) for name in environments)
    )

"""`report --only`: what was asked for by name, and nothing else."""

from __future__ import annotations

import pytest

from build import a_series
from corebound.cli.site_only import Known, narrowed
from corebound.errors import InputError
from report_sample import a_sample, a_serving_sample, sample_imports

EVERY = Known(
    records=(a_sample(), a_serving_sample()),
    series=tuple(a_series([1.0], scenario=name) for name in ("torchserve", "bench")),
    profiles=sample_imports(),
)


def test_without_names_all_is_kept() -> None:
    assert narrowed(EVERY, ()) is EVERY


def test_a_name_takes_the_runs_and_the_histories_of_it_and_no_imported_profile() -> None:
    kept = narrowed(EVERY, ["torch*"])

    assert [run.id for run, _ in kept.records] == ["served"]
    assert [one.scenario for one in kept.series] == ["torchserve"]
    assert kept.profiles == ()


def test_an_imported_profile_is_asked_for_by_its_own_name() -> None:
    kept = narrowed(EVERY, ["NPU"])

    assert [one.name for one in kept.profiles] == ["NPU"]
    assert kept.records == ()


def test_a_name_that_nothing_has_is_bad_input() -> None:
    with pytest.raises(InputError, match="has such a name"):
        narrowed(EVERY, ["nothing*"])

"""Operator profiles for machines: a line a type, times of one iteration in nanoseconds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from corebound.model.profile import ImportedProfile, OperatorProfile
from corebound.model.wire import Operator
from corebound.report.view.export_lines import lines_csv
from corebound.report.view.operator_notes import OUTSIDE
from corebound.report.view.operator_times import outside_ns, span_ns, together_ns
from corebound.report.view.operators import Profiled, profiled
from corebound.report.view.study import Study


def operators_csv(study: Study) -> str:
    """The operators of every profiled cell as CSV, one line a type; empty without any.

    As on the page a time is of the latest launch, its ends the least and the most of all
    profiles like it.
    """
    found = profiled(study)
    if not found:
        return ""
    axes = tuple(dict.fromkeys(axis for one in found for axis, _ in one.cell.axes))
    lines = [
        {**{f"axis_{axis}": dict(one.cell.axes).get(axis, "") for axis in axes}, **figures}
        for one in found
        for figures in profile_data(one)["operators"]
    ]
    return lines_csv(lines)


def profile_data(one: Profiled) -> dict[str, Any]:
    """A cell's profile; times are of one iteration, but for those of a call."""
    profile = one.profile
    return {
        "axes": dict(one.cell.axes),
        "launch": one.launch.id,
        "iterations": profile.iterations,
        "step_ns": profile.step_ns,
        "phases_ns": profile.phases,
        "disturbed": one.disturbed,
        "others_like_it": len(one.others),
        "operators": _lines(profile, one.others),
    }


def imported_csv(profiles: Sequence[ImportedProfile]) -> str:
    """The operators of imported profiles as CSV, one line a type; empty without any."""
    lines = [
        {"profile": one.name, "source": one.source, "device": one.device, **figures}
        for one in profiles
        for figures in _lines(one.profile)
    ]
    return lines_csv(lines) if lines else ""


def _lines(
    profile: OperatorProfile, others: Sequence[OperatorProfile] = ()
) -> list[dict[str, Any]]:
    """A line a type, then what is outside of operators where that is known."""
    alike = (profile, *others)
    lines = [
        _operator(profile, each.type, partial(together_ns, types=(each.type,)), each, alike)
        for each in profile.operators
    ]
    if profile.outside_ns is not None:
        lines.append(_operator(profile, OUTSIDE, outside_ns, None, alike))
    return lines


def _operator(
    profile: OperatorProfile,
    name: str,
    of: Callable[[OperatorProfile], float | None],
    one: Operator | None,
    alike: Sequence[OperatorProfile],
) -> dict[str, Any]:
    """A line of a profile; what is outside operators is called by nobody."""
    # What has a line took time, if none worth telling.
    total_ns, ends_ns = of(profile) or 0, span_ns(alike, of)
    return {
        "operator": name,
        "calls": one.calls if one else None,
        "total_ns": total_ns,
        "total_low_ns": ends_ns[0] if ends_ns else None,
        "total_high_ns": ends_ns[1] if ends_ns else None,
        "share_ratio": total_ns / profile.step_ns if profile.step_ns else None,
        "quiet_ns": one.quiet_ns if one else None,
        "call_mean_ns": one.mean_ns if one else None,
        "call_min_ns": one.min_ns if one else None,
        "call_max_ns": one.max_ns if one else None,
    }

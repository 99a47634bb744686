"""Prints what was named right, missed or invented, and what the cures gained."""

from __future__ import annotations

from pathlib import Path

import msgspec

from benchmarks.inspect_services.inspector import Observation
from corebound.units import ratio


def print_tables(results: Path) -> None:
    """Print the tables of a file of results; a later observation replaces an earlier one."""
    seen = {
        (one.name, one.variant): one
        for line in results.read_bytes().splitlines()
        if (one := msgspec.json.decode(line, type=Observation))
    }
    planted = [one for one in seen.values() if one.variant == "planted"]
    healthy = [one for one in seen.values() if one.variant in {"quiet", "loaded"}]
    print(f"\n{'planted fault':52}{'verdict':8}  found")
    for one in planted:
        verdict = "skipped" if one.problem else "named" if one.is_named else "missed"
        print(f"{one.name:52}{verdict:8}  {_found(one)}")
    print(f"\n{'nothing wrong':52}{'verdict':8}  found")
    for one in healthy:
        verdict = "skipped" if one.problem else "ill" if one.false else "healthy"
        print(f"{one.name + ', ' + one.variant:52}{verdict:8}  {_found(one)}")
    _print_gains(seen)
    _print_counts(planted, healthy)


def _found(one: Observation) -> str:
    if one.problem:
        return " ".join(one.problem.split())[:90]
    false = [f"[{rule}]" if rule in one.false else rule for rule in one.rules]
    return " ".join(false) or "-"


def _print_gains(seen: dict[tuple[str, str], Observation]) -> None:
    print(f"\n{'cure of':52}{'rate':>8}{'CPU per step':>14}  finding gone, left")
    for (name, variant), after in seen.items():
        before = seen.get((name, "planted"))
        if variant != "cured" or before is None or after.problem or not before.rate:
            continue
        rate = ratio((after.rate or 0) / before.rate)
        cpu = "-"
        if before.cpu_per_step_s and after.cpu_per_step_s:
            cpu = ratio(after.cpu_per_step_s / before.cpu_per_step_s)
        gone = "no" if after.is_named else "yes"
        print(f"{name:52}{rate:>8}{cpu:>14}  {gone:12}  {_found(after)}")


def _print_counts(planted: list[Observation], healthy: list[Observation]) -> None:
    faulty = [one for one in planted if not one.problem]
    sound = [one for one in healthy if not one.problem]
    named, ill = sum(one.is_named for one in faulty), [one for one in sound if one.false]
    beside = [one for one in faulty if one.false]
    print(f"\nnamed: {named} of {len(faulty)} planted faults")
    print(f"called ill: {len(ill)} of {len(sound)} observations of services with nothing wrong")
    print(f"planted faults with a false finding beside: {len(beside)} of {len(faulty)}")
    skipped = [one for one in (*planted, *healthy) if one.problem]
    print(f"not started: {len(skipped)}")

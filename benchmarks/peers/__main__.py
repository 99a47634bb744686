"""False alarms and slow-downs found, each tool at equal time, on this machine.

Run from the root of the repository, with `.[dev]` installed:

    python -m benchmarks.peers --seconds 8 --trials 10 [--shares 0 0.02 0.03 0.05]

Every trial is of one planted share; in it each tool measures the same pair of scripts, in
random order, and trials of all shares come in random order. What a tool is given follows from
how long it took before, so that all take as long in the mean (last column). 0 is an A/A
pair, of which whatever is told as slower or faster is a false alarm. Of the others `slower`
is right.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from msgspec import Struct
from msgspec.structs import asdict

from benchmarks.peers.tools import Said, Tool, present
from benchmarks.peers.workload import pair
from benchmarks.simulation.histories import rate

SHARES = (0.0, 0.02, 0.03, 0.05)
# By half of what it was off, for a busy machine is slower now and then; and no tool without
# any time at all.
_PACE, _LEAST = 0.5, 0.2


class Answer(Struct, frozen=True, kw_only=True):
    """What a rule said of a pair of which the second does `share` more work."""

    rule: str
    share: float
    said: Said
    took_s: float


def main() -> int:
    """Measure, then print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=8.0, help="of each tool for each pair")
    parser.add_argument("--trials", type=int, default=10, help="of each share")
    parser.add_argument("--shares", type=float, nargs="+", default=SHARES)
    parser.add_argument("--tools", nargs="+", help="of those that are here; else all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="every single answer")
    asked = parser.parse_args()
    here = present()
    chosen = {name: tool for name, tool in here.items() if name in (asked.tools or here)}
    order = trials(asked.shares, asked.trials, tuple(chosen), seed=asked.seed)
    total_s = len(order) * len(chosen) * asked.seconds
    missing = {"corebound", "asv", "pyperf", "hyperfine"} - here.keys()
    said = f"{len(order)} trials of {', '.join(chosen)}: about {total_s / 60:.0f} minutes."
    print(said + (f" Not here: {', '.join(sorted(missing))}." if missing else ""), file=sys.stderr)
    answers = list(_measured(order, chosen, asked.seconds))
    if asked.json:
        print(json.dumps([asdict(answer) for answer in answers], indent=1))
    else:
        print("\n".join(table(answers)))
    return 0


def trials(
    shares: Iterable[float], count: int, tools: Sequence[str], *, seed: int
) -> tuple[tuple[float, tuple[str, ...]], ...]:
    """Every share so many times, in random order, each with the tools in random order."""
    chance = np.random.default_rng(seed)
    order = chance.permutation([share for share in shares for _ in range(count)])
    return tuple(
        (float(share), tuple(str(name) for name in chance.permutation(tools))) for share in order
    )


def _measured(
    order: Sequence[tuple[float, tuple[str, ...]]], tools: dict[str, Tool], seconds: float
) -> Iterator[Answer]:
    # One pair of each that does not count, to see how long they take.
    given_s = {name: _given(name, tool, seconds) for name, tool in tools.items()}
    for number, (share, names) in enumerate(order, start=1):
        for name in names:
            told, took_s = _asked(name, tools[name], share, given_s[name])
            given_s[name] = paced(given_s[name], took_s=took_s, wanted_s=seconds)
            for rule, said in told.items():
                yield Answer(rule=rule, share=share, said=said, took_s=took_s)
            words = ", ".join(f"{rule}: {said}" for rule, said in told.items())
            print(f"{number}/{len(order)} {share:.0%} {took_s:.1f} s  {words}", file=sys.stderr)


def _given(name: str, tool: Tool, seconds: float) -> float:
    _, took_s = _asked(name, tool, 0.0, seconds)
    return paced(seconds, took_s=took_s, wanted_s=seconds)


def _asked(name: str, tool: Tool, share: float, seconds: float) -> tuple[Mapping[str, Said], float]:
    """What a tool says of a fresh pair, and how long that took."""
    with tempfile.TemporaryDirectory() as scratch:
        made = pair(Path(scratch) / name, slower=share, seconds=seconds)
        started_s = time.monotonic()
        told = tool(made)
        return told, time.monotonic() - started_s


def paced(given_s: float, *, took_s: float, wanted_s: float) -> float:
    """What to give a tool the next time, so that all take as long in the mean.

    None keeps to what it is given: what it takes to start and to end is not in it.
    """
    return max(given_s + _PACE * (wanted_s - took_s), wanted_s * _LEAST)


def table(answers: Sequence[Answer]) -> list[str]:
    """For each rule: false alarms, slow-downs found, called faster, and the time it took.

    In brackets where a rate lies, 95 % (Wilson).
    """
    shares = sorted({answer.share for answer in answers})
    heads = ("alarms, A/A" if not share else f"{share:.0%} slower" for share in shares)
    lines = [
        f"{'':<28}" + "".join(f"{head:>24}" for head in heads) + f"{'called faster':>15}{'s':>7}"
    ]
    for rule in dict.fromkeys(answer.rule for answer in answers):
        own = [answer for answer in answers if answer.rule == rule]
        cells = [rate(_hit(one) for one in own if one.share == share) for share in shares]
        wrong = sum(one.said == "faster" for one in own if one.share)
        took_s = sum(one.took_s for one in own) / len(own)
        lines.append(
            f"{rule:<28}" + "".join(f"{cell:>24}" for cell in cells) + f"{wrong:>15}{took_s:>7.1f}"
        )
    return lines


def _hit(answer: Answer) -> bool:
    """Whether it told a difference where there is none, or found the one that there is."""
    return answer.said == "slower" if answer.share else answer.said != "same"


if __name__ == "__main__":
    sys.exit(main())

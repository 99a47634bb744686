"""What `corebound tune` and `corebound.tune` are asked."""

import re
from pathlib import Path
from typing import Annotated, ClassVar

from corebound.errors import InputError
from corebound.planning.artefacts import KINDS, ArtefactKind
from corebound.scenario.objectives import Objective, objectives_help
from corebound.workflow.options import Argument, Option
from corebound.workflow.prepare import RunRequest

# A matrix has room for so many includes.
MOST_CANDIDATES = 256


def _bound_ms(bound: str) -> float:
    """The bound in milliseconds."""
    match = re.fullmatch(r"p99=(\d+(?:\.\d+)?)(ms|s)", bound)
    if match is None or float(match[1]) <= 0:
        raise InputError(
            what=f"`{bound}` is not a bound of the 99th percentile.",
            where="--bound",
            fix="Write it like `p99=50ms` or `p99=1.5s`.",
        )
    return float(match[1]) * (1000 if match[2] == "s" else 1)


def _kinds(text: str) -> tuple[str, ...]:
    """The kinds of files, each once; the request checks them."""
    return tuple(dict.fromkeys(filter(None, text.split(","))))


class TuneRequest(RunRequest, frozen=True, kw_only=True):
    """What `corebound tune` races, or verifies.

    `load` has axes of the scenario, each with the value that its cells must have.
    """

    options: ClassVar = (
        "files", "objective", "bound_ms", "profile", "only", "vary", "each", "max_candidates",
        "budget_s", "seed", "resume", "emit", "out", "verify", "unlocked", "wait_s", "config",
        "project_python", "records",
    )  # fmt: skip

    files: Annotated[
        tuple[Path, ...],
        Argument("Scenario file; with --verify also several, or folders.", metavar="FILE"),
    ]
    objective: Annotated[Objective | None, Option(objectives_help())] = None
    bound_ms: Annotated[
        float | None,
        Option("Latency bound of --objective rate, such as p99=50ms.", parse=_bound_ms),
    ] = None
    vary: Annotated[
        tuple[str, ...], Option("Parameter that may change, since it keeps the work equal.")
    ] = ()
    each: Annotated[
        tuple[str, ...], Option("Parameter to tune for each value of, and for all together.")
    ] = ()
    max_candidates: Annotated[
        int, Option("Configurations to race, at most.", min=2, max=MOST_CANDIDATES)
    ] = 16
    resume: Annotated[bool, Option("Continue an interrupted race.")] = False
    emit: Annotated[
        tuple[ArtefactKind, ...], Option(f"Files to write: {','.join(KINDS)}.", parse=_kinds)
    ] = ()
    out: Annotated[Path, Option("Folder for the files of --emit.")] = Path("tuned")
    verify: Annotated[bool, Option("Check the latest recommendations with new launches.")] = False
    load: tuple[tuple[str, str], ...] = ()

    @property
    def aim(self) -> Objective:
        """What to compare, unless the scenario has a metric; a request to verify may have none."""
        return self.objective or "latency"

    def __post_init__(self) -> None:
        """Check that the options fit together.

        Raises:
            InputError: A rate has no bound, another objective has one, or a file to write is of no
                known kind.
        """
        super().__post_init__()
        if self.aim == "rate" and self.bound_ms is None and not self.verify:
            raise InputError(
                what="a rate needs a bound of the latency.",
                where="--objective rate",
                fix="Add one, such as 50 ms: `--bound p99=50ms`.",
            )
        if self.aim != "rate" and self.bound_ms is not None and not self.verify:
            raise InputError(
                what=f"the objective `{self.aim}` has no bound.",
                where="--bound",
                fix="Add `--objective rate`.",
            )
        for kind in self.emit:
            if kind not in KINDS:
                raise InputError(
                    what=f"`{kind}` cannot be written.",
                    where="--emit",
                    fix=f"Name some of: {', '.join(KINDS)}.",
                )

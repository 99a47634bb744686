"""The steps of a nightly run, as command lines that a user could type."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from corebound.errors import NO_ANSWER, CoreboundError, InputError, LaunchError
from corebound.records import jsonl
from corebound.scenario.models import ProfileName
from corebound.workflow.nightly.journal import Journal
from corebound.workflow.nightly.night import Step

SCENARIOS = Path("scenarios")
SITE = Path("reports/site")
PUBLIC = Path("reports/public")
_FINE_RUN = frozenset({0, LaunchError.exit_code, NO_ANSWER})


class Asked(Struct, frozen=True, kw_only=True):
    """The request for a nightly run; the fields are the options of `corebound nightly`."""

    files: tuple[Path, ...]
    profile: ProfileName
    budget_s: float
    wait_s: float
    update: bool
    to: Path | None
    branch: str | None
    push: str | None
    squash: bool
    site_url: str | None
    config: Path
    records: Path

    @property
    def words(self) -> tuple[str, ...]:
        """The values that identify a nightly run; other values mean another nightly run."""
        return (
            *map(str, self.files), self.profile, f"{self.budget_s:g}", str(self.update),
            str(self.to), str(self.branch), str(self.push), str(self.config), str(self.records),
        )  # fmt: skip

    def check(self) -> None:
        """Reject, before the run starts, requests that would fail hours later.

        Raises:
            InputError: A file does not exist, or there are two places to publish to.
        """
        missing = next((file for file in self.files if not file.exists()), None)
        if missing is not None:
            raise InputError(
                what="there is no such file or folder.",
                where=str(missing),
                fix="Name scenario files, or a folder of them.",
            )
        if self.to is not None and self.branch is not None:
            raise InputError(
                what="--to and --branch are two places.",
                where="corebound nightly",
                fix="Pass one of them.",
            )
        if self.branch is None and (self.push is not None or self.squash):
            raise InputError(
                what="--push and --squash are for a branch.",
                where="corebound nightly",
                fix="Pass --branch as well, or leave them out.",
            )


def steps(asked: Asked, journal: Journal, host: str) -> tuple[Step, ...]:
    """Build all steps of a nightly run.

    Args:
        asked: The request.
        journal: When the nightly run began, and which steps have ended.
        host: This host's id.
    """
    files = tuple(map(str, asked.files))
    records = ("--records", str(asked.records))
    config = ("--config", str(asked.config))
    waiting = ("--wait", f"{asked.wait_s:.0f}s") if asked.wait_s else ()
    tonight = _tonight(asked.records, host, journal.stamp)
    left_s = max(1.0, asked.budget_s - sum(map(_spent_s, tonight)))
    run = _corebound(
        "run", *files, "--profile", asked.profile, "--budget", f"{left_s:.0f}s",
        "--favour-doubtful", "--json", *config, *records, *waiting,
        *(("--resume",) if tonight else ()),
    )  # fmt: skip
    links = ("--site", asked.site_url or str(_place(asked)))
    regressions = _corebound(
        "regressions", "--confirm", "--json", *config, *records, *waiting, *links
    )
    updating = (Step(name="update", command=_corebound("update", *config), once=True),)
    return (
        *(updating if asked.update else ()),
        Step(name="environments", command=_corebound("environment", "make", *_for(files))),
        Step(name="doctor", command=_corebound("doctor", "--json")),
        # The summary reports failed launches and an exhausted budget. The results so far are
        # published all the same.
        Step(name="run", command=run, fine=_FINE_RUN, once=True),
        # 5: some series could not be analysed; the summary names them.
        Step(name="regressions", command=regressions, fine=frozenset({0, 1, NO_ANSWER})),
        Step(name="report", command=_corebound("report", "--out", str(SITE), *records)),
        Step(name="publish", command=_publish(asked)),
    )


def _corebound(*words: str) -> tuple[str, ...]:
    """A command for this corebound; -P, because the current folder may contain any module."""
    return (sys.executable, "-P", "-m", "corebound", *words)


def _for(files: tuple[str, ...]) -> Iterator[str]:
    for file in files:
        yield from ("--for", file)


def _place(asked: Asked) -> Path:
    return SITE if asked.to is None else asked.to


def _publish(asked: Asked) -> tuple[str, ...]:
    words = ["publish", "--site", str(SITE)]
    if asked.to is not None:
        words += ["--to", str(asked.to)]
    if asked.branch is not None:
        words += ["--branch", asked.branch]
    if asked.push is not None:
        words += ["--push", asked.push]
    if asked.squash:
        words.append("--squash")
    return _corebound(*words)


def _tonight(records: Path, host: str, stamp: str) -> list[Path]:
    """The record files of this host's runs since the nightly run began."""
    return [file for file in sorted((records / host).glob("*.jsonl")) if file.name >= stamp]


def _spent_s(file: Path) -> float:
    """The total duration of a run's launches in seconds."""
    try:
        launches = jsonl.read(file).launches
    except CoreboundError:
        return 0.0  # killed before its first line was complete
    return sum(launch.duration_ns for launch in launches) / 1e9

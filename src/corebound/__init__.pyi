from corebound.api.calibrate import Calibrations as Calibrations
from corebound.api.calibrate import calibrate as calibrate
from corebound.api.commits import Bisection as Bisection
from corebound.api.commits import bisect as bisect
from corebound.api.commits import compare_commits as compare_commits
from corebound.api.comparison import ComparedRow as ComparedRow
from corebound.api.comparison import Comparison as Comparison
from corebound.api.doctor import HostChecks as HostChecks
from corebound.api.doctor import doctor as doctor
from corebound.api.fleet import Fleet as Fleet
from corebound.api.measure import Measurement as Measurement
from corebound.api.measure import measure as measure
from corebound.api.measure import run as run
from corebound.api.nightly import NightlyRun as NightlyRun
from corebound.api.nightly import nightly as nightly
from corebound.api.plan import PlannedConfiguration as PlannedConfiguration
from corebound.api.plan import RunPlan as RunPlan
from corebound.api.plan import plan as plan
from corebound.api.regressions import HistoryChange as HistoryChange
from corebound.api.regressions import Regressions as Regressions
from corebound.api.reproduce import Reproduction as Reproduction
from corebound.api.reproduce import reproduce as reproduce
from corebound.api.results import Results as Results
from corebound.api.results import load as load
from corebound.api.tune import Tuning as Tuning
from corebound.api.tune import tune as tune
from corebound.errors import CoreboundError as CoreboundError

__version__: str
__all__ = [
    "Bisection",
    "Calibrations",
    "ComparedRow",
    "Comparison",
    "CoreboundError",
    "Fleet",
    "HistoryChange",
    "HostChecks",
    "Measurement",
    "NightlyRun",
    "PlannedConfiguration",
    "Regressions",
    "Reproduction",
    "Results",
    "RunPlan",
    "Tuning",
    "__version__",
    "bisect",
    "calibrate",
    "compare_commits",
    "doctor",
    "load",
    "measure",
    "nightly",
    "plan",
    "reproduce",
    "run",
    "tune",
]

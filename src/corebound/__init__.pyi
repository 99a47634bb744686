from corebound.api.commits import Bisection as Bisection
from corebound.api.commits import bisect as bisect
from corebound.api.commits import compare_commits as compare_commits
from corebound.api.comparison import ComparedRow as ComparedRow
from corebound.api.comparison import Comparison as Comparison
from corebound.api.measure import Measurement as Measurement
from corebound.api.measure import measure as measure
from corebound.api.measure import run as run
from corebound.api.regressions import HistoryChange as HistoryChange
from corebound.api.regressions import Regressions as Regressions
from corebound.api.results import Results as Results
from corebound.api.results import load as load
from corebound.api.tune import Tuning as Tuning
from corebound.api.tune import tune as tune
from corebound.errors import CoreboundError as CoreboundError

__version__: str
__all__ = [
    "Bisection",
    "ComparedRow",
    "Comparison",
    "CoreboundError",
    "HistoryChange",
    "Measurement",
    "Regressions",
    "Results",
    "Tuning",
    "__version__",
    "bisect",
    "compare_commits",
    "load",
    "measure",
    "run",
    "tune",
]

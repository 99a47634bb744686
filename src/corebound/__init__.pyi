from corebound.api.comparison import ComparedRow as ComparedRow
from corebound.api.comparison import Comparison as Comparison
from corebound.api.measure import measure as measure
from corebound.api.measure import run as run
from corebound.api.results import Results as Results
from corebound.api.results import load as load
from corebound.errors import CoreboundError as CoreboundError

__version__: str
__all__ = [
    "ComparedRow",
    "Comparison",
    "CoreboundError",
    "Results",
    "__version__",
    "load",
    "measure",
    "run",
]

"""Corebound, a CPU benchmark suite: which cores, how many threads, and is the result reliable?

The names below are the Python API; docs/reference/python-api.md describes them. Each is imported
when it is first used: the worker starts under another environment's Python and must load only its
own code.
"""

__version__ = "0.2.0"

# `__init__.pyi` has the same names, for type checkers.
_API = {
    "Bisection": "corebound.api.commits",
    "Calibrations": "corebound.api.calibrate",
    "ComparedRow": "corebound.api.comparison",
    "Comparison": "corebound.api.comparison",
    "CoreboundError": "corebound.errors",
    "Fleet": "corebound.api.fleet",
    "HistoryChange": "corebound.api.regressions",
    "HostChecks": "corebound.api.doctor",
    "Measurement": "corebound.api.measure",
    "NightlyRun": "corebound.api.nightly",
    "PlannedConfiguration": "corebound.api.plan",
    "Regressions": "corebound.api.regressions",
    "Reproduction": "corebound.api.reproduce",
    "Results": "corebound.api.results",
    "RunPlan": "corebound.api.plan",
    "Tuning": "corebound.api.tune",
    "bisect": "corebound.api.commits",
    "calibrate": "corebound.api.calibrate",
    "compare_commits": "corebound.api.commits",
    "doctor": "corebound.api.doctor",
    "load": "corebound.api.results",
    "measure": "corebound.api.measure",
    "nightly": "corebound.api.nightly",
    "plan": "corebound.api.plan",
    "reproduce": "corebound.api.reproduce",
    "run": "corebound.api.measure",
    "tune": "corebound.api.tune",
}

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


def __getattr__(name: str) -> object:
    if name not in _API:
        message = f"module 'corebound' has no attribute {name!r}"
        raise AttributeError(message)
    import importlib  # noqa: PLC0415  # see above

    value = getattr(importlib.import_module(_API[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_API})

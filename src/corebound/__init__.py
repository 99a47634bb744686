"""Corebound, a CPU benchmark suite: which cores, how many threads, and is the result reliable?

The names below are the Python API; docs/reference/python-api.md describes them. Each is imported
when it is first used: the worker starts under another environment's Python and must load only its
own code.
"""

__version__ = "0.2.0"

# `__init__.pyi` has the same names, for type checkers.
_API = {
    "Bisection": "corebound.api.commits",
    "Comparison": "corebound.api.comparison",
    "ComparedRow": "corebound.api.comparison",
    "CoreboundError": "corebound.errors",
    "HistoryChange": "corebound.api.regressions",
    "Measurement": "corebound.api.measure",
    "Regressions": "corebound.api.regressions",
    "Results": "corebound.api.results",
    "Tuning": "corebound.api.tune",
    "bisect": "corebound.api.commits",
    "compare_commits": "corebound.api.commits",
    "load": "corebound.api.results",
    "measure": "corebound.api.measure",
    "run": "corebound.api.measure",
    "tune": "corebound.api.tune",
}

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

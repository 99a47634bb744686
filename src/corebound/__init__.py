"""Corebound, a CPU benchmark suite: which cores, how many threads, and is the result reliable?

The names below are the Python API; docs/reference/python-api.md describes them. Each is imported
when it is first used: the worker starts under another environment's Python and must load only its
own code.
"""

__version__ = "0.2.0"

# `__init__.pyi` has the same names, for type checkers.
_API = {
    "Comparison": "corebound.api.comparison",
    "ComparedRow": "corebound.api.comparison",
    "CoreboundError": "corebound.errors",
    "Results": "corebound.api.results",
    "load": "corebound.api.results",
    "measure": "corebound.api.measure",
    "run": "corebound.api.measure",
}

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

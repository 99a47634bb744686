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
    "CheckedScenario": "corebound.workflow.plan",
    "ComparedRow": "corebound.api.comparison",
    "Comparison": "corebound.api.comparison",
    "CoreboundError": "corebound.errors",
    "EnvironmentStatus": "corebound.launch.environments",
    "Example": "corebound.workflow.examples",
    "Export": "corebound.workflow.export",
    "Fleet": "corebound.api.fleet",
    "HistoryChange": "corebound.api.regressions",
    "HostChecks": "corebound.api.doctor",
    "HostResults": "corebound.api.hosts",
    "ImportedProject": "corebound.workflow.import_history",
    "ImportedResults": "corebound.workflow.import_results",
    "InitResult": "corebound.workflow.init",
    "LaunchLog": "corebound.workflow.recorded_runs",
    "MadeEnvironment": "corebound.workflow.environments",
    "Measurement": "corebound.api.measure",
    "NightlyRun": "corebound.api.nightly",
    "PlannedConfiguration": "corebound.api.plan",
    "Publication": "corebound.workflow.publish",
    "Regressions": "corebound.api.regressions",
    "RemovedEnvironment": "corebound.workflow.environments",
    "Reproduction": "corebound.api.reproduce",
    "Results": "corebound.api.results",
    "RunPlan": "corebound.api.plan",
    "SettingResult": "corebound.machine.doctor.tuning",
    "StoredProfile": "corebound.workflow.import_profile",
    "Topology": "corebound.machine.topology",
    "Tuning": "corebound.api.tune",
    "UpdatedProject": "corebound.workflow.projects",
    "VerifiedTuning": "corebound.api.tune",
    "WrittenExamples": "corebound.workflow.examples",
    "WrittenSite": "corebound.workflow.report",
    "bisect": "corebound.api.commits",
    "calibrate": "corebound.api.calibrate",
    "check": "corebound.api.plan",
    "compare_commits": "corebound.api.commits",
    "doctor": "corebound.api.doctor",
    "environments": "corebound.api.environments",
    "examples": "corebound.api.init",
    "export": "corebound.api.export",
    "import_asv": "corebound.api.imports",
    "import_profiles": "corebound.api.imports",
    "import_results": "corebound.api.imports",
    "init": "corebound.api.init",
    "load": "corebound.api.results",
    "make_environments": "corebound.api.environments",
    "measure": "corebound.api.measure",
    "nightly": "corebound.api.nightly",
    "plan": "corebound.api.plan",
    "publish": "corebound.api.publish",
    "remove_environments": "corebound.api.environments",
    "reproduce": "corebound.api.reproduce",
    "restore_host": "corebound.api.doctor",
    "run": "corebound.api.measure",
    "topology": "corebound.api.plan",
    "tune": "corebound.api.tune",
    "tune_host": "corebound.api.doctor",
    "update": "corebound.api.update",
    "verify_tuning": "corebound.api.tune",
    "write_examples": "corebound.api.init",
    "write_site": "corebound.api.report",
}

__all__ = [*_API, "__version__"]  # noqa: PLE0604  # the names are strings


def __getattr__(name: str) -> object:
    if name not in _API:
        message = f"module 'corebound' has no attribute {name!r}"
        raise AttributeError(message)
    # Imported here: see above.
    import importlib  # noqa: PLC0415
    import inspect  # noqa: PLC0415

    value = getattr(importlib.import_module(_API[name]), name)
    if inspect.isfunction(value):
        value = importlib.import_module("corebound.api.arguments").checked(value)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_API})

"""Corebound, a CPU benchmark suite: which cores, how many threads, and is the result reliable?

The names below are the Python API; docs/reference/python-api.md describes them. Each is imported
when it is first used: the worker starts under another environment's Python and must load only its
own code.
"""

__version__ = "0.2.0"

# The names by module; `__init__.pyi` has the same, for type checkers.
_NAMES = {
    "analysis.compared": "ComparedRow",
    "api.commits": "Bisection bisect compare_commits",
    "api.comparison": "Comparison",
    "api.fleet": "Fleet",
    "api.measure": ("Calibrations Measurement Reproduction calibrate measure plan reproduce run"),
    "api.nightly": "NightlyRun nightly",
    "api.regressions": "Regressions",
    "api.results": "Results load",
    "api.tune": "Tuning VerifiedTuning tune verify_tuning",
    "errors": "CoreboundError",
    "launch.environments": "EnvironmentStatus",
    "machine.doctor.host_settings": "SettingResult",
    "machine.topology": "Topology",
    "stats.history.alerts": "HistoryChange",
    "workflow.environments": (
        "MadeEnvironment RemovedEnvironment environments make_environments remove_environments"
    ),
    "workflow.examples": "Example WrittenExamples examples write_examples",
    "workflow.export": "Export export",
    "workflow.host_checks": "HostChecks doctor restore_host tune_host",
    "workflow.hosts": "HostResults",
    "workflow.import_history": "ImportedProject import_asv",
    "workflow.import_profile": "StoredProfile import_profiles",
    "exchange.result_files": "Columns",
    "workflow.import_results": "ImportedResults import_results",
    "workflow.init": "InitResult init",
    "workflow.inspect": "Inspection inspect",
    "workflow.plan": "CheckedScenario PlannedConfiguration RunPlan check topology",
    "workflow.projects": "UpdatedProject update",
    "workflow.publish": "Publication publish",
    "workflow.recorded_runs": "LaunchLog",
    "workflow.report": "WrittenSite write_site",
}
_API = {name: f"corebound.{module}" for module, names in _NAMES.items() for name in names.split()}

__all__ = list(_API)
__all__ += ["__version__"]


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

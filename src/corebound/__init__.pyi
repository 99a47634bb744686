from corebound.analysis.compared import ComparedRow
from corebound.api.commits import Bisection, bisect, compare_commits
from corebound.api.comparison import Comparison
from corebound.api.fleet import Fleet
from corebound.api.measure import (
    Calibrations,
    Measurement,
    Reproduction,
    calibrate,
    measure,
    plan,
    reproduce,
    run,
)
from corebound.api.nightly import NightlyRun, nightly
from corebound.api.regressions import Regressions
from corebound.api.results import Results, load
from corebound.api.tune import Tuning, VerifiedTuning, tune, verify_tuning
from corebound.errors import CoreboundError
from corebound.exchange.result_files import Columns
from corebound.launch.environments import EnvironmentStatus
from corebound.machine.doctor.host_settings import SettingResult
from corebound.machine.topology import Topology
from corebound.stats.history.alerts import HistoryChange
from corebound.workflow.environments import (
    MadeEnvironment,
    RemovedEnvironment,
    environments,
    make_environments,
    remove_environments,
)
from corebound.workflow.examples import Example, WrittenExamples, examples, write_examples
from corebound.workflow.export import Export, export
from corebound.workflow.host_checks import HostChecks, doctor, restore_host, tune_host
from corebound.workflow.hosts import HostResults
from corebound.workflow.import_history import ImportedProject, import_asv
from corebound.workflow.import_profile import StoredProfile, import_profiles
from corebound.workflow.import_results import ImportedResults, import_results
from corebound.workflow.init import InitResult, init
from corebound.workflow.inspect import Inspection, inspect
from corebound.workflow.plan import (
    CheckedScenario,
    PlannedConfiguration,
    RunPlan,
    check,
    topology,
)
from corebound.workflow.projects import UpdatedProject, update
from corebound.workflow.publish import Publication, publish
from corebound.workflow.recorded_runs import LaunchLog
from corebound.workflow.report import WrittenSite, write_site

__version__: str
__all__ = [
    "Bisection",
    "Calibrations",
    "CheckedScenario",
    "Columns",
    "ComparedRow",
    "Comparison",
    "CoreboundError",
    "EnvironmentStatus",
    "Example",
    "Export",
    "Fleet",
    "HistoryChange",
    "HostChecks",
    "HostResults",
    "ImportedProject",
    "ImportedResults",
    "InitResult",
    "Inspection",
    "LaunchLog",
    "MadeEnvironment",
    "Measurement",
    "NightlyRun",
    "PlannedConfiguration",
    "Publication",
    "Regressions",
    "RemovedEnvironment",
    "Reproduction",
    "Results",
    "RunPlan",
    "SettingResult",
    "StoredProfile",
    "Topology",
    "Tuning",
    "UpdatedProject",
    "VerifiedTuning",
    "WrittenExamples",
    "WrittenSite",
    "__version__",
    "bisect",
    "calibrate",
    "check",
    "compare_commits",
    "doctor",
    "environments",
    "examples",
    "export",
    "import_asv",
    "import_profiles",
    "import_results",
    "init",
    "inspect",
    "load",
    "make_environments",
    "measure",
    "nightly",
    "plan",
    "publish",
    "remove_environments",
    "reproduce",
    "restore_host",
    "run",
    "topology",
    "tune",
    "tune_host",
    "update",
    "verify_tuning",
    "write_examples",
    "write_site",
]
